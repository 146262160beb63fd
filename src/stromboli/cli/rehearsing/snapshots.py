"""Taking a snapshot of a cluster with a user's rights, and reading the files that hold one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import bytes_of
from stromboli.cli.rehearsing import members
from stromboli.kube import json
from stromboli.kube.errors import Forbidden, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.snapshots import STRUCTS, TEMPLATES, Snapshot, SnapshotError, decode, reduced

__all__ = ["STRUCTS", "NotAllowed", "Snapshot", "gather", "read"]

KINDS: Mapping[Kind, type[core.Object]] = {**STRUCTS, **TEMPLATES}
"""What is read."""
REQUIRED = (kinds.NODES, kinds.QUEUES, kinds.POD_GROUPS, kinds.PODS)


class NotAllowed(CommandError):
    """What a snapshot cannot do without may not be listed."""


def read(path: Path) -> Snapshot:
    """Read a snapshot file, ``-`` for standard input. Raises CommandError."""
    where = "standard input" if str(path) == "-" else path
    try:
        return decode(bytes_of(str(path)))
    except OSError as error:
        raise CommandError(f"{where}: cannot be read: {error.strerror or error}") from error
    except SnapshotError as error:
        raise CommandError(f"{where} {error}; make one with 'vcctl snapshot FILE'") from error


def gather(
    api: Api, *, policy: str = "", kinds_wanted: Sequence[Kind] = tuple(KINDS), clock: Callable[[], float] = time.time
) -> Snapshot:
    """Read a snapshot from a cluster. What a user may not list is left out and named in ``missing``.

    Raises:
        NotAllowed: nodes, queues, PodGroups or pods may not be listed, without which nothing can be said.
    """
    objects: list[core.Object] = []
    missing: list[str] = []
    for kind in kinds_wanted:
        try:
            found = api.list(kind)
        except NotFound:
            continue
        except Forbidden as error:
            if kind in REQUIRED:
                raise NotAllowed(f"what the cluster would do cannot be worked out: {error.message}") from error
            missing.append(f"{kind.resource}: {error.message}")
            continue
        objects.extend(_readable(kind, found, missing))
    awaited = _awaited(api, objects, missing)
    return Snapshot(clock(), tuple(objects), tuple(awaited), policy, missing=tuple(missing))


def _readable(kind: Kind, found: Iterable[JsonObject], missing: list[str]) -> Iterator[core.Object]:
    for obj in found:
        try:
            yield reduced(core.from_builtins(KINDS[kind], obj))
        except core.UndecodableObject as error:
            missing.append(f"{kind.resource} {'/'.join(json.key_of(obj))}: {error}")


def _awaited(api: Api, objects: Sequence[core.Object], missing: list[str]) -> Iterator[core.Pod]:
    """Pods that the controller will make for vcjobs whose PodGroup is there and whose pods are not."""
    groups = {group.key for group in objects if isinstance(group, core.PodGroup)}
    present = {(pod.namespace, pod.name) for pod in objects if isinstance(pod, core.Pod)}
    priorities = [item for item in objects if isinstance(item, core.PriorityClass)]
    try:
        jobs = api.list(kinds.JOBS)
    except (Forbidden, NotFound) as error:
        missing.append(f"{kinds.JOBS.resource}: {error.message}")
        return
    for job in jobs:
        if (json.key_of(job)[0], members.group_name(job)) not in groups or members.phase_of(job) != "Pending":
            continue
        try:
            yield from [pod for pod in members.pods(job, priorities) if pod.key not in present]
        except (ValueError, TypeError, AttributeError) as error:  # an object that is older than its schema
            missing.append(f"{kinds.JOBS.resource} {'/'.join(json.key_of(job))}: {error}")
