"""Where a queue may stand in the tree of queues, and how much of its parent it may take (spec 07 sections 14.2, 14.3).

Every walk carries the names it has seen: a cycle that is already stored ends the walk instead of hanging the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

from stromboli.api import quantities
from stromboli.webhooks.context import Cluster, Context
from stromboli.webhooks.errors import FieldError, Reason, first_said, sentence, some
from stromboli.webhooks.families import NOTHING, Amounts, Claims, Family, measured
from stromboli.webhooks.shapes import Queue

TOP: Final = ("", "root")
"""Parents of top-level queues; ``root`` need not exist and limits nobody."""


def missing(name: str) -> str:
    """The text for a queue that the cache does not hold."""
    return f'queue.scheduling.volcano.sh "{name}" not found'


def allocated_pods(queue: Queue) -> int:
    """Pods running in the queue and, rolled up, in its descendants."""
    amount = queue.status.allocated.get("pods", 0)
    return quantities.value(amount) if quantities.is_quantity(amount) else 0


def children_below(queue: Queue, cluster: Cluster) -> list[Queue]:
    """The children of a queue, without those that are above it as well.

    A cycle that was stored while nobody checked has to be deletable, so a queue does not hold up its own ancestors.
    """
    above, name = {queue.name}, queue.spec.parent
    while name not in TOP and name not in above:
        above.add(name)
        ancestor = cluster.queue(name)
        name = ancestor.spec.parent if ancestor else ""
    return [child for child in cluster.children(queue.name) if child.name not in above]


# Parents


def parent_faults(queue: Queue, context: Context) -> list[FieldError]:
    """The first rule that the queue's parent breaks."""
    if queue.spec.parent in TOP:
        return []
    text = _chain_text(queue, context) or _first_child_text(queue, context.cluster)
    return [sentence("spec.parent", text)] if text else []


def _chain_text(queue: Queue, context: Context) -> str | None:
    """What is wrong with the queues above; tested step by step upwards, the depth of a step before its existence."""
    name, parent, limit = queue.name, queue.spec.parent, context.settings.max_queue_depth
    if parent == name:
        return f"queue {name} cannot use itself as parent"
    too_deep = f"queue {name} exceeds the maximum allowed depth of {limit}"
    seen, above = [name], parent
    while above not in TOP:
        if above == name:
            return f"queue {name} cannot be placed below its own descendant {parent}"
        if above in seen:
            return f"queue {name} cannot be placed below {parent}: its ancestors form a cycle at {above}"
        seen.append(above)
        if len(seen) > limit:
            return too_deep
        ancestor = context.cluster.queue(above)
        if ancestor is None:
            return f"failed to get parent queue {above} of queue {name}: {missing(above)}"
        above = ancestor.spec.parent
    return too_deep if len(seen) + _height(name, context.cluster) > limit else None


def _first_child_text(queue: Queue, cluster: Cluster) -> str | None:
    """Pods in a parent forbid its first child. Those of children are rolled up into it: they forbid no second one."""
    parent = cluster.queue(queue.spec.parent)
    if parent is None or cluster.children(parent.name):
        return None
    pods = allocated_pods(parent)
    if not pods:
        return None
    return f"queue {parent.name} cannot be the parent queue of queue {queue.name} because it has allocated Pods: {pods}"


def _height(name: str, cluster: Cluster) -> int:
    """Levels of queues below ``name``."""
    height, seen, level = 0, {name}, [name]
    while level := [child.name for parent in level for child in cluster.children(parent) if child.name not in seen]:
        seen.update(level)
        height += 1
    return height


# Shares


def share_faults(queue: Queue, context: Context) -> list[FieldError]:
    """How the queue's resources contradict its ancestors, siblings or children; the message says the first."""
    return some(first_said(_once_a_field(_share_faults(queue, context.cluster))))


def _once_a_field(faults: Iterable[FieldError]) -> Iterator[FieldError]:
    """Sums are tested after each queue; once they are too large they stay so."""
    fields: set[str] = set()
    for fault in faults:
        if fault.field not in fields:
            fields.add(fault.field)
            yield fault


def _share_faults(queue: Queue, cluster: Cluster) -> Iterator[FieldError]:
    family = cluster.family(queue.name)
    if queue.spec.parent not in TOP:
        parent = cluster.queue(queue.spec.parent)
        if parent is None:
            text = f"parent queue {queue.spec.parent} not found: {missing(queue.spec.parent)}"
            yield sentence("spec.parent", text, Reason.NOT_FOUND)
            return
        yield from _ancestor_faults(queue, cluster)
        yield from _sum_faults(parent, cluster.family(parent.name), queue.name, Claims.of(queue), "parent queue")
    if family.children:
        yield from _descendant_faults(queue, family, cluster)
        yield from _sum_faults(queue, family, queue.name, None, "queue")


def _ancestor_faults(queue: Queue, cluster: Cluster) -> Iterator[FieldError]:
    for name, amount in _capability(queue).items():
        limit = next((limits[name] for limits in _limits_above(queue, cluster) if limits.get(name, 0) > 0), None)
        if limit is not None and amount > limit:
            shown, allowed = _show(name, amount), _show(name, limit)
            text = f"queue {queue.name} capability[{name}]={shown} exceeds its ancestor's capability={allowed}"
            yield sentence(f"spec.capability.{name}", text)


def _limits_above(queue: Queue, cluster: Cluster) -> Iterator[Amounts]:
    seen, above = {queue.name}, queue.spec.parent
    while above not in TOP and above not in seen:
        ancestor = cluster.queue(above)
        if ancestor is None:
            return
        yield measured(ancestor.spec.capability)
        seen.add(above)
        above = ancestor.spec.parent


def _descendant_faults(queue: Queue, family: Family, cluster: Cluster) -> Iterator[FieldError]:
    for name, amount in _capability(queue).items():
        largest = _largest_below(name, family, cluster, {queue.name})
        if largest > amount:
            mine, needed = f"capability[{name}]={_show(name, amount)}", _show(name, largest)
            text = f"queue {queue.name} {mine} is smaller than its descendants' max capability={needed}"
            yield sentence(f"spec.capability.{name}", text)


def _largest_below(name: str, family: Family, cluster: Cluster, seen: set[str]) -> int:
    """The largest capability in the subtrees; a queue that sets one hides its own descendants."""
    largest, waiting = 0, [family]
    while waiting:
        for child, claims in waiting.pop().claims.items():
            if child in seen:
                continue
            seen.add(child)
            amount = claims.capability.get(name, 0)
            largest = max(largest, amount)
            if amount <= 0:
                waiting.append(cluster.family(child))
    return largest


def _sum_faults(
    parent: Queue, family: Family, leaving: str, joining: Claims | None, whose: str
) -> Iterator[FieldError]:
    """Where children of ``parent`` claim more than it has, ``leaving`` left out and ``joining`` as the last of them.

    Whether they do is read off the family's sums. Only if so are the children added up one by one: texts say the sum at
    the child that is too much.
    """
    limits = Claims.of(parent)
    if not _may_exceed(family, family.claims.get(leaving, NOTHING), joining or NOTHING, limits):
        return
    claims = [family.claims[child.name] for child in family.children if child.name != leaving]
    sums: dict[str, dict[str, int]] = {"guarantee": {}, "deserved": {}}
    for claim in [*claims, *([joining] if joining else [])]:
        for part, amounts, limit in (
            ("guarantee", claim.guarantee, limits.guarantee),
            ("deserved", claim.deserved, limits.deserved),
        ):
            for name, amount in amounts.items():
                sums[part][name] = sums[part].get(name, 0) + amount
            if _exceeds(sums[part], limit):
                text = f"sum of children's {part} ({_show_all(sums[part])}) exceeds parent's {part} limit"
                text = f"{whose} {parent.name} validation failed: {text} ({_show_all(limit)})"
                yield sentence(f"spec.{part}", text)


def _may_exceed(family: Family, leaving: Claims, joining: Claims, limits: Claims) -> bool:
    """Whether the sum of some of the children may be too large. Of amounts below 0 the whole sum tells nothing."""
    guarantee = family.guarantee.changed(leaving.guarantee, joining.guarantee)
    deserved = family.deserved.changed(leaving.deserved, joining.deserved)
    return any(
        total.negative or _exceeds(total.amounts, limit)
        for total, limit in ((guarantee, limits.guarantee), (deserved, limits.deserved))
    )


def _exceeds(total: Amounts, limit: Amounts) -> bool:
    """Whether a sum is above its limit anywhere. A scalar the parent does not name is above, even at amount 0."""
    return any(
        amount > limit.get(name, 0) or (name not in limit and name not in ("cpu", "memory"))
        for name, amount in total.items()
    )


def _capability(queue: Queue) -> Amounts:
    return {name: amount for name, amount in measured(queue.spec.capability).items() if amount > 0}


def _show(name: str, amount: int) -> str:
    match name:
        case "cpu":
            return quantities.format(Fraction(amount, 1000))
        case "memory":
            return quantities.format(amount, "binary")
        case _:
            return f"{amount}.00"


def _show_all(measured_amounts: Amounts) -> str:
    scalars = [name for name in sorted(measured_amounts) if name not in ("cpu", "memory")]
    return ", ".join(f"{name} {measured_amounts.get(name, 0)}.00" for name in ("cpu", "memory", *scalars))
