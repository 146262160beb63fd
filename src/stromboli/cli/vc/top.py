"""``vcctl top``: the cluster at a glance. Queues with bars, jobs by phase, what waits and why, starts a minute.

What the dashboard shows of queues and of waiting is computed in one place, :mod:`stromboli.dashboard`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from stromboli.api import core, quantities
from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, QUEUES, Kind
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.counting import counted
from stromboli.cli.vc import ages
from stromboli.dashboard import amounts, jobs
from stromboli.dashboard.objects import Job
from stromboli.dashboard.queues import tree
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.waiting import job_of, waits, why
from stromboli.kube.errors import Forbidden
from stromboli.kube.json import JsonObject

S = TypeVar("S", bound=core.Struct)

BAR = 24
MOST_WAITING = 12
FEWEST_QUEUE_LINES = 4
"""Of a live view, however low the terminal is."""
CLEAR = "\x1b[H\x1b[2J"
MINUTE = 60.0


@dataclass(frozen=True)
class Look:
    """What was listed in one look."""

    now: float
    sight: Sight
    pods: Sequence[core.Pod]

    @classmethod
    def take(cls, api: Api, now: float) -> Look:
        """Look at the cluster; nodes and pods are left out for those who may not list them."""
        sight = Sight(
            nodes=_read(core.Node, _allowed(api, NODES)),
            queues=_read(core.Queue, api.list(QUEUES)),
            groups=_read(core.PodGroup, api.list(POD_GROUPS)),
            jobs=_read(Job, api.list(JOBS)),
        )
        return cls(now, sight, _read(core.Pod, _allowed(api, PODS)))


def _allowed(api: Api, kind: Kind) -> list[JsonObject]:
    try:
        return api.list(kind)
    except Forbidden:
        return []


def _read(struct: type[S], objects: Iterable[JsonObject]) -> list[S]:
    """The objects that can be read; one that is older than its schema hides no others."""
    found = []
    for obj in objects:
        try:
            found.append(core.from_builtins(struct, obj))
        except core.UndecodableObject:
            continue
    return found


def show_top(invocation: Invocation) -> None:
    """Look again and again, until Ctrl-C; once with ``--once``."""
    interval = invocation.arguments.number("interval")
    if interval < 1:
        raise CommandError("--interval must be at least 1 second")
    with invocation.connect() as api:
        while True:
            look = Look.take(api, invocation.now())
            if invocation.arguments.on("once"):
                break
            lines = list(screen(look, _width(invocation), _height(invocation)))
            invocation.terminal.out.write(CLEAR + "\n".join(lines) + "\n")
            invocation.terminal.out.flush()
            time.sleep(interval)
    for line in screen(look, _width(invocation)):
        invocation.say(line)


def _height(invocation: Invocation) -> int | None:
    """Lines that a terminal shows above the cursor; None, for no limit, where the output goes elsewhere."""
    return shutil.get_terminal_size().lines - 1 if invocation.terminal.out.isatty() else None


def _width(invocation: Invocation) -> int | None:
    """Columns of the terminal, or what COLUMNS says; None, for no limit, where the output goes elsewhere."""
    if invocation.terminal.out.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


def screen(look: Look, width: int | None, height: int | None = None) -> Iterator[str]:
    """The lines of one look, cut at ``width``; as many queues as leave room for what waits within ``height``."""
    for line in _lines(look, height):
        yield line if width is None or len(line) <= width else line[: max(width - 1, 1)] + "…"


def _lines(look: Look, height: int | None) -> Iterator[str]:
    head, queues, waiting = list(_head(look)), list(_queues(look.sight)), list(_waiting_lines(look))
    room = None if height is None else max(height - len(head) - len(waiting), FEWEST_QUEUE_LINES)
    yield from head
    yield from _within(queues, room)
    yield from waiting


def _head(look: Look) -> Iterator[str]:
    sight = look.sight
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(jobs.counts(sight.jobs).items())) or "none"
    seen = f"{counted(len(sight.nodes), 'node')}, {counted(len(look.pods), 'pod')}"
    yield f"{seen}, {counted(_starts(look), 'start')} in the last minute"
    yield f"Jobs: {told}"
    yield ""
    yield f"{'QUEUE':<28} {'RESOURCE':<10} {'USE':<{BAR + 2}} {'IN USE':>10} {'DESERVED':>10} {'AT MOST':>10}"


def _waiting_lines(look: Look) -> Iterator[str]:
    waiting = list(_waiting(look.sight.groups, look.now))
    yield ""
    yield f"Waiting: {len(waiting)}"
    yield from waiting[:MOST_WAITING]
    if len(waiting) > MOST_WAITING:
        yield f"  and {len(waiting) - MOST_WAITING} more"


def _starts(look: Look) -> int:
    moments = (ages.seconds(pod.status.start_time) for pod in look.pods)
    return sum(moment is not None and look.now - moment <= MINUTE for moment in moments)


# -- queues ------------------------------------------------------------------------------------------------------------


def _within(queues: Sequence[Sequence[str]], room: int | None) -> Iterator[str]:
    """The lines of the first queues that have room, and how many are left out."""
    if room is None or sum(map(len, queues)) <= room:
        yield from (line for lines in queues for line in lines)
        return
    room -= 1
    for shown, lines in enumerate(queues):
        room -= len(lines)
        if room < 0:
            left = len(queues) - shown
            yield f"  and {counted(left, 'queue')} more (all of them: --once)"
            return
        yield from lines


def _queues(sight: Sight) -> Iterator[list[str]]:
    """The lines of each queue, one a resource."""
    total = amounts.total(node.status.allocatable for node in sight.nodes)
    for depth, queue in tree(sight.queues):
        name = "  " * depth + queue.name
        name += "" if queue.status.state == "Open" else f" ({queue.status.state or 'new'})"
        lines = []
        for resource in amounts.ordered(queue.status.allocated):
            used = amounts.amount(queue.status.allocated, resource) or Fraction()
            most = amounts.amount(queue.spec.capability, resource)
            deserved = amounts.amount(queue.spec.deserved, resource)
            lines.append(
                f"{name:<28} {resource:<10} {bar(used, total.get(resource) if most is None else most)} "
                f"{_text(used, resource):>10} {_text(deserved, resource):>10} {_text(most, resource):>10}"
            )
            name = ""
        yield lines


def bar(used: Fraction, of: Fraction | None) -> str:
    """``[####    ]``; full when there is nothing to use."""
    full = round(amounts.part(used, of) * BAR)
    return f"[{'#' * full}{' ' * (BAR - full)}]"


def _text(amount: Fraction | None, resource: str) -> str:
    if amount is None:
        return "-"
    return quantities.format(amount, "binary" if amounts.is_binary(resource) else "decimal")


# -- waiting -----------------------------------------------------------------------------------------------------------


def _waiting(groups: Sequence[core.PodGroup], now: float) -> Iterator[str]:
    """PodGroups that wait, the longest first, with why."""
    waiting = sorted(filter(waits, groups), key=lambda group: str(group.metadata.creation_timestamp or ""))
    for group in waiting:
        age, told = ages.age(group.metadata.creation_timestamp, now), why(group)
        yield f"  {group.namespace}/{job_of(group) or group.name}  {age}  {told.reason}: {told.message}"
