"""``vcctl top``: the cluster at a glance. Queues with bars, jobs by phase, what waits and why, starts a minute."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stromboli.api import quantities
from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, QUEUES
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.counting import counted
from stromboli.cli.vc import ages
from stromboli.kube import json
from stromboli.kube.errors import Forbidden
from stromboli.kube.json import JsonObject

BAR = 24
MOST_WAITING = 12
CLEAR = "\x1b[H\x1b[2J"
MINUTE = 60.0


@dataclass(frozen=True)
class Sight:
    """What was listed in one look."""

    now: float
    nodes: Sequence[JsonObject]
    queues: Sequence[JsonObject]
    groups: Sequence[JsonObject]
    jobs: Sequence[JsonObject]
    pods: Sequence[JsonObject]

    @classmethod
    def take(cls, api: Api, now: float) -> Sight:
        """Look at the cluster; nodes and pods are left out for those who may not list them."""
        return cls(
            now, _allowed(api, NODES), api.list(QUEUES), api.list(POD_GROUPS), api.list(JOBS), _allowed(api, PODS)
        )


def _allowed(api: Api, kind: Any) -> list[JsonObject]:
    try:
        return api.list(kind)
    except Forbidden:
        return []


def show_top(invocation: Invocation) -> None:
    """Look again and again, until Ctrl-C; once with ``--once``."""
    interval = invocation.arguments.number("interval")
    if interval < 1:
        raise CommandError("--interval must be at least 1 second")
    with invocation.connect() as api:
        while True:
            lines = list(screen(Sight.take(api, invocation.now()), _width(invocation)))
            if invocation.arguments.on("once"):
                break
            invocation.terminal.out.write(CLEAR + "\n".join(lines) + "\n")
            invocation.terminal.out.flush()
            time.sleep(interval)
    for line in lines:
        invocation.say(line)


def _width(invocation: Invocation) -> int | None:
    """Columns of the terminal, or what COLUMNS says; None, for no limit, where the output goes elsewhere."""
    if invocation.terminal.out.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


def screen(sight: Sight, width: int | None) -> Iterator[str]:
    """The lines of one look, cut at ``width``."""
    for line in _lines(sight):
        yield line if width is None or len(line) <= width else line[: max(width - 1, 1)] + "…"


def _lines(sight: Sight) -> Iterator[str]:
    starts = _starts(sight)
    phases = Counter(_phase(job) for job in sight.jobs)
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"
    seen = f"{counted(len(sight.nodes), 'node')}, {counted(len(sight.pods), 'pod')}"
    yield f"{seen}, {counted(starts, 'start')} in the last minute"
    yield f"Jobs: {told}"
    yield ""
    yield f"{'QUEUE':<28} {'RESOURCE':<10} {'USE':<{BAR + 2}} {'IN USE':>10} {'DESERVED':>10} {'AT MOST':>10}"
    yield from _queues(sight)
    waiting = list(_waiting(sight.groups, sight.now))
    yield ""
    yield f"Waiting: {len(waiting)}"
    yield from waiting[:MOST_WAITING]
    if len(waiting) > MOST_WAITING:
        yield f"  and {len(waiting) - MOST_WAITING} more"


def _phase(job: JsonObject) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def _starts(sight: Sight) -> int:
    moments = (ages.seconds((pod.get("status") or {}).get("startTime")) for pod in sight.pods)
    return sum(moment is not None and sight.now - moment <= MINUTE for moment in moments)


# -- queues ------------------------------------------------------------------------------------------------------------


def _queues(sight: Sight) -> Iterator[str]:
    total = _sum((node.get("status") or {}).get("allocatable") or {} for node in sight.nodes)
    for depth, queue in tree(sight.queues):
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        name = "  " * depth + json.key_of(queue)[1]
        state = status.get("state") or ""
        name += "" if state == "Open" else f" ({state or 'new'})"
        for resource in ("cpu", "memory", *_others(status.get("allocated") or {})):
            used = _amount(status.get("allocated"), resource) or Fraction()
            most = _amount(spec.get("capability"), resource)
            of = most if most is not None else total.get(resource)
            yield (
                f"{name:<28} {resource:<10} {bar(used, of)} {_text(used, resource):>10} "
                f"{_text(_amount(spec.get('deserved'), resource), resource):>10} {_text(most, resource):>10}"
            )
            name = ""


def tree(queues: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
    """Queues below their parents, with their depth; those of a circle or without parent stand at the top."""
    children: dict[str, list[JsonObject]] = {}
    names = {json.key_of(queue)[1] for queue in queues}
    for queue in queues:
        name = json.key_of(queue)[1]
        parent = (queue.get("spec") or {}).get("parent") or ("root" if name != "root" else "")
        children.setdefault(parent if parent in names else "", []).append(queue)
    shown: set[str] = set()

    def below(parent: str, depth: int) -> Iterator[tuple[int, JsonObject]]:
        for queue in sorted(children.get(parent, []), key=lambda item: json.key_of(item)[1]):
            name = json.key_of(queue)[1]
            if name not in shown:
                shown.add(name)
                yield depth, queue
                yield from below(name, depth + 1)

    yield from below("", 0)
    yield from ((0, queue) for queue in queues if json.key_of(queue)[1] not in shown)


def _others(allocated: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in allocated if name not in ("cpu", "memory", "pods"))


def _amount(listed: Mapping[str, Any] | None, resource: str) -> Fraction | None:
    value = (listed or {}).get(resource)
    try:
        return None if value is None else Fraction(quantities.parse(str(value)))
    except ValueError:
        return None


def _sum(lists: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for listed in lists:
        for resource in listed:
            total[resource] = total.get(resource, Fraction()) + (_amount(listed, resource) or Fraction())
    return total


def bar(used: Fraction, of: Fraction | None) -> str:
    """``[####    ]``; full when there is nothing to use."""
    part = min(used / of, Fraction(1)) if of else Fraction(bool(used))
    full = round(part * BAR)
    return f"[{'#' * full}{' ' * (BAR - full)}]"


def _text(amount: Fraction | None, resource: str) -> str:
    if amount is None:
        return "-"
    return quantities.format(amount, "binary" if resource == "memory" else "decimal")


# -- waiting -----------------------------------------------------------------------------------------------------------


def _waiting(groups: Sequence[JsonObject], now: float) -> Iterator[str]:
    """PodGroups that wait, the longest first, with why."""
    waiting = [
        group for group in groups if (group.get("status") or {}).get("phase") in (None, "", "Pending", "Inqueue")
    ]
    waiting.sort(key=lambda group: str(json.metadata(group).get("creationTimestamp") or ""))
    for group in waiting:
        namespace, name = json.key_of(group)
        age = ages.age(json.metadata(group).get("creationTimestamp"), now)
        yield f"  {namespace}/{_job_of(group) or name}  {age}  {_why(group)}"


def _job_of(group: JsonObject) -> str:
    owners = json.metadata(group).get("ownerReferences") or []
    return next((str(owner.get("name")) for owner in owners if owner.get("kind") == JOBS.kind), "")


def _why(group: JsonObject) -> str:
    for condition in reversed((group.get("status") or {}).get("conditions") or []):
        if (condition.get("type"), condition.get("status")) in (("Admitted", "False"), ("Unschedulable", "True")):
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""
