"""A vcjob out of flags: one task of equal pods (spec 08 sections 2.2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.api.kinds import JOBS
from stromboli.cli.commanding.errors import CommandError
from stromboli.kube.json import JsonObject

NAME_LABEL = "job.volcano.sh"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the flags ask for."""

    name: str
    namespace: str
    image: str
    replicas: int
    minimum: int
    requests: str
    limits: str
    scheduler: str
    command: Sequence[str] = ()
    queue: str = ""


def make(wish: Wish) -> JsonObject:
    """The job. Raises CommandError when a resource list cannot be read."""
    container: JsonObject = {
        "name": wish.name,
        "image": wish.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": resources(wish.limits), "requests": resources(wish.requests)},
    }
    if wish.command:
        container["command"] = list(wish.command)
    template = {
        "metadata": {"name": wish.name, "labels": {NAME_LABEL: wish.name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: JsonObject = {
        "minAvailable": wish.minimum,
        "schedulerName": wish.scheduler,
        "tasks": [{"replicas": wish.replicas, "template": template}],
    }
    if wish.queue:
        spec["queue"] = wish.queue
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": wish.name, "namespace": wish.namespace},
        "spec": spec,
    }


def resources(text: str) -> dict[str, str]:
    """``cpu=1000m,memory=100Mi`` as a resource list. Raises CommandError naming the part at fault."""
    if not text:
        return {}
    return dict(_part(part) for part in text.split(","))


def _part(part: str) -> tuple[str, str]:
    pieces = part.split("=")
    if len(pieces) != 2:
        raise CommandError(f"invalid argument syntax {part}, expected <resource>=<value>")
    from stromboli.api import quantities

    try:
        quantities.parse(pieces[1])
    except ValueError as error:
        raise CommandError(f"invalid quantity {pieces[1]!r} of {pieces[0]}: {error}") from error
    return pieces[0], pieces[1]
