"""The picture of ``vcctl top``: queues with bars, jobs by phase, what waits and why. Pure; draws only what is shown.

What the dashboard shows of queues and of waiting is computed in one place, :mod:`stromboli.dashboard`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from stromboli.api import core, quantities
from stromboli.cli.counting import counted
from stromboli.cli.vc import ages
from stromboli.cli.vc.looking import GroupLine, Look, NodeLine
from stromboli.dashboard import amounts
from stromboli.dashboard.queues import tree

BAR = 24
NAME = 28
SHORTEST_NAME = 8
"""Letters that are left of a name, however deep in the tree its queue stands."""
MOST_WAITING = 12
FEWEST_QUEUE_LINES = 4
"""Of a live view, however low the terminal is."""
MINUTE = 60.0

Named = tuple[str, core.Queue]


def screen(look: Look, width: int | None, height: int | None = None, note: str = "") -> Iterator[str]:
    """The lines of one look, cut at ``width``; as many queues as leave room for what waits within ``height``.

    ``note`` stands above everything.
    """
    queues = list(_named(look.queues, cut=width is not None))
    for line in _lines(look, queues, height, note):
        yield line if width is None or len(line) <= width else line[: max(width - 1, 1)] + "…"


def _lines(look: Look, queues: Sequence[Named], height: int | None, note: str) -> Iterator[str]:
    column = max([NAME, *(len(name) for name, _ in queues)])
    head, waiting = [*([note] if note else ()), *_head(look, column)], list(_waiting_lines(look))
    room = None if height is None else max(height - len(head) - len(waiting), FEWEST_QUEUE_LINES)
    yield from head
    yield from _queues(look, queues, column, room)
    yield from waiting


def _head(look: Look, column: int) -> Iterator[str]:
    phases = Counter(job.phase for job in look.jobs)
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"
    seen = f"{counted(len(look.nodes), 'node')}, {counted(len(look.pods), 'pod')}"
    yield f"{seen}, {counted(_starts(look), 'start')} in the last minute"
    yield f"Jobs: {told}"
    yield ""
    yield f"{'QUEUE':<{column}} {'RESOURCE':<10} {'USE':<{BAR + 2}} {'IN USE':>10} {'DESERVED':>10} {'AT MOST':>10}"


def _starts(look: Look) -> int:
    since = look.now - MINUTE
    return sum(pod.started >= since for pod in look.pods)


# -- queues ------------------------------------------------------------------------------------------------------------


def _named(queues: Iterable[core.Queue], *, cut: bool) -> Iterator[Named]:
    """Queues in the order of the tree, named as they are shown; ``cut`` makes long names fit into their column."""
    for depth, queue in tree(queues):
        indent, state = "  " * depth, "" if queue.status.state == "Open" else f" ({queue.status.state or 'new'})"
        name, room = queue.name, max(NAME - len(indent) - len(state), SHORTEST_NAME)
        yield f"{indent}{f'{name[: room - 1]}…' if cut and len(name) > room else name}{state}", queue


def _queues(look: Look, queues: Sequence[Named], column: int, room: int | None) -> Iterator[str]:
    """The lines of the first queues that have room, and how many are left out."""
    lengths = [len(amounts.ordered(queue.status.allocated)) for _, queue in queues]
    shown = len(queues) if room is None or sum(lengths) <= room else _fitting(lengths, room - 1)
    offered = total(look.nodes)
    for name, queue in queues[:shown]:
        yield from _queue_lines(f"{name:<{column}}", queue, offered)
    if shown < len(queues):
        yield f"  and {counted(len(queues) - shown, 'queue')} more (all of them: --once)"


def _fitting(lengths: Iterable[int], room: int) -> int:
    """How many of the first have room."""
    fitting = 0
    for length in lengths:
        room -= length
        if room < 0:
            break
        fitting += 1
    return fitting


def total(nodes: Iterable[NodeLine]) -> dict[str, Fraction]:
    """What all nodes offer; many nodes are alike, and each kind of them is read once."""
    found: dict[str, Fraction] = {}
    for allocatable, count in Counter(node.allocatable for node in nodes).items():
        for resource, amount in amounts.total([dict(allocatable)]).items():
            found[resource] = found.get(resource, Fraction()) + count * amount
    return found


def _queue_lines(name: str, queue: core.Queue, offered: Mapping[str, Fraction]) -> Iterator[str]:
    """The lines of a queue, one a resource; the first has its name."""
    for resource in amounts.ordered(queue.status.allocated):
        used = amounts.amount(queue.status.allocated, resource) or Fraction()
        most = amounts.amount(queue.spec.capability, resource)
        deserved = amounts.amount(queue.spec.deserved, resource)
        yield (
            f"{name} {resource:<10} {bar(used, offered.get(resource) if most is None else most)} "
            f"{_text(used, resource):>10} {_text(deserved, resource):>10} {_text(most, resource):>10}"
        )
        name = " " * len(name)


def bar(used: Fraction, of: Fraction | None) -> str:
    """``[####    ]``; full when there is nothing to use."""
    full = round(amounts.part(used, of) * BAR)
    return f"[{'#' * full}{' ' * (BAR - full)}]"


def _text(amount: Fraction | None, resource: str) -> str:
    if amount is None:
        return "-"
    return quantities.format(amount, "binary" if amounts.is_binary(resource) else "decimal")


# -- waiting -----------------------------------------------------------------------------------------------------------


def _waiting_lines(look: Look) -> Iterator[str]:
    """How many PodGroups wait, and the longest waiting with why."""
    waiting = [group for group in look.groups if group.waits]
    yield ""
    yield f"Waiting: {len(waiting)}"
    yield from (_waiting_line(group, look.now) for group in _longest(waiting))
    if len(waiting) > MOST_WAITING:
        yield f"  and {len(waiting) - MOST_WAITING} more"


def _longest(waiting: Sequence[GroupLine]) -> list[GroupLine]:
    return heapq.nsmallest(MOST_WAITING, waiting, key=lambda group: (group.created, group.identity.key))


def _waiting_line(group: GroupLine, now: float) -> str:
    name = f"{group.identity.namespace}/{group.job or group.identity.name}"
    return f"  {name}  {ages.age(group.created, now)}  {group.why.reason}: {group.why.message}"
