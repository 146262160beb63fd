"""The picture of ``vcctl top``: queues with bars, jobs by phase, what waits and why. Pure; draws only what is shown.

What the dashboard shows of queues and of waiting is computed in one place, :mod:`stromboli.dashboard`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stromboli.api import core, quantities
from stromboli.cli.counting import counted
from stromboli.cli.vc import ages
from stromboli.cli.vc.looking import GroupLine, Look, NodeLine
from stromboli.dashboard import amounts
from stromboli.dashboard.queues import tree

BAR, SHORTEST_BAR = 24, 10
NAME, NARROWEST_NAME = 28, 20
BESIDE = 47
"""Columns of the table of queues beside names and bars: resource, brackets, three amounts, blanks between."""
SHORTEST_NAME = 8
"""Letters that are left of a name, however deep in the tree its queue stands."""
MOST_WAITING = 12
FEWEST_QUEUE_LINES = 4
"""Of a live view, however low the terminal is."""
MINUTE = 60.0


@dataclass(frozen=True)
class Table:
    """The table of queues: in the order of the tree, with their names as shown; how wide names and bars are."""

    rows: Sequence[tuple[str, core.Queue]]
    name: int
    bar: int

    @classmethod
    def of(cls, queues: Iterable[core.Queue], width: int | None) -> Table:
        """The table as it fits into ``width``: with shorter bars first, then with shorter names."""
        short = 0 if width is None else max(BESIDE + BAR + NAME - width, 0)
        bar = max(BAR - short, SHORTEST_BAR)
        name = max(NAME - max(short - (BAR - SHORTEST_BAR), 0), NARROWEST_NAME)
        rows = list(_named(queues, None if width is None else name))
        return cls(rows, max([name, *(len(shown) for shown, _ in rows)]), bar)


def screen(look: Look, width: int | None, height: int | None = None, note: str = "") -> Iterator[str]:
    """The lines of one look, cut at ``width``; as many queues as leave room for what waits within ``height``.

    ``note`` stands above everything.
    """
    for line in _lines(look, Table.of(look.queues, width), height, note):
        yield line if width is None or len(line) <= width else line[: max(width - 1, 1)] + "…"


def _lines(look: Look, table: Table, height: int | None, note: str) -> Iterator[str]:
    head, waiting = [*([note] if note else ()), *_head(look, table)], list(_waiting_lines(look))
    room = None if height is None else max(height - len(head) - len(waiting), FEWEST_QUEUE_LINES)
    yield from head
    yield from _queues(look, table, room)
    yield from waiting


def _head(look: Look, table: Table) -> Iterator[str]:
    phases = Counter(job.phase for job in look.jobs)
    told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"
    seen = f"{counted(len(look.nodes), 'node')}, {counted(len(look.pods), 'pod')}"
    yield f"{seen}, {counted(_starts(look), 'start')} in the last minute"
    yield f"Jobs: {told}"
    yield ""
    first = f"{'QUEUE':<{table.name}} {'RESOURCE':<10} {'USE':<{table.bar + 2}}"
    yield f"{first} {'IN USE':>10} {'DESERVED':>10} {'AT MOST':>10}"


def _starts(look: Look) -> int:
    since = look.now - MINUTE
    return sum(pod.started >= since for pod in look.pods)


# -- queues ------------------------------------------------------------------------------------------------------------


def _named(queues: Iterable[core.Queue], column: int | None) -> Iterator[tuple[str, core.Queue]]:
    """Queues in the order of the tree, with their names as they are shown: long ones cut to fit into their column."""
    for depth, queue in tree(queues):
        indent, state = "  " * depth, "" if queue.status.state == "Open" else f" ({queue.status.state or 'new'})"
        name = queue.name
        if column is not None and len(name) > (room := max(column - len(indent) - len(state), SHORTEST_NAME)):
            name = f"{name[: room - 1]}…"
        yield f"{indent}{name}{state}", queue


def _queues(look: Look, table: Table, room: int | None) -> Iterator[str]:
    """The lines of the first queues that have room, and how many are left out."""
    lengths = [len(amounts.ordered(queue.status.allocated)) for _, queue in table.rows]
    shown = len(lengths) if room is None or sum(lengths) <= room else _fitting(lengths, room - 1)
    offered = total(look.nodes)
    for name, queue in table.rows[:shown]:
        yield from _queue_lines(f"{name:<{table.name}}", queue, offered, table.bar)
    if shown < len(lengths):
        yield f"  and {counted(len(lengths) - shown, 'queue')} more (all of them: --once)"


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


def _queue_lines(name: str, queue: core.Queue, offered: Mapping[str, Fraction], length: int) -> Iterator[str]:
    """The lines of a queue, one a resource; the first has its name."""
    for resource in amounts.ordered(queue.status.allocated):
        used = amounts.amount(queue.status.allocated, resource) or Fraction()
        most = amounts.amount(queue.spec.capability, resource)
        deserved = amounts.amount(queue.spec.deserved, resource)
        yield (
            f"{name} {resource:<10} {bar(used, offered.get(resource) if most is None else most, length)} "
            f"{_text(used, resource):>10} {_text(deserved, resource):>10} {_text(most, resource):>10}"
        )
        name = " " * len(name)


def bar(used: Fraction, of: Fraction | None, length: int = BAR) -> str:
    """``[####    ]``; full when there is nothing to use."""
    full = round(amounts.part(used, of) * length)
    return f"[{'#' * full}{' ' * (length - full)}]"


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
