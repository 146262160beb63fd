"""Gauges about shared cards (spec 06 section 31.6), of nodes that somebody has asked about.

They tell what pods hold, not what a cycle tries out, and only what has changed is measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins.deviceshare.vgpu_cards import Card

PERIOD_SECONDS = 10.0
"""Metrics are seldom fetched more often."""
LAST = "deviceshare-gauges-time"
_MEMORY = "deviceshare-gauges"
_DEVICE = "vgpu_device_"
_OF_POD = "allocation_for_a_certain_pod"

Labels = tuple[tuple[str, str], ...]
Gauges = dict[tuple[str, Labels], float]
"""By name and labels."""


def is_due(view: View) -> bool:
    """Whether it is time to look again; answers so once."""
    last = view.memory.get(LAST)
    if isinstance(last, float) and 0 <= view.now - last < PERIOD_SECONDS:
        return False
    view.memory[LAST] = view.now
    return True


def measure(view: View, nodes: Iterable[tuple[str, Sequence[Card]]]) -> None:
    """Measures the cards of some nodes. Series of pods, cards and nodes that have gone are ended."""
    kept = view.memory.setdefault(_MEMORY, {})
    assert isinstance(kept, dict)
    before: dict[str, Gauges] = kept
    now = {name: dict(_gauges(name, cards)) for name, cards in nodes}
    gone = [name for name in before if name not in view.nodes_by_name and name not in now]
    for name in [*now, *gone]:
        _tell(view, before.pop(name, {}), now.get(name, {}))
    before.update((name, gauges) for name, gauges in now.items() if gauges)


def _tell(view: View, before: Mapping[tuple[str, Labels], float], now: Mapping[tuple[str, Labels], float]) -> None:
    for (gauge, labels), value in now.items():
        if before.get((gauge, labels)) != value:
            view.measure(gauge, value, **dict(labels))
    for gauge, labels in before.keys() - now.keys():
        view.unmeasure(gauge, **dict(labels))


def _gauges(node: str, cards: Sequence[Card]) -> Iterator[tuple[tuple[str, Labels], float]]:
    for card in cards:
        on_card: Labels = (("devID", card.facts.uuid), ("NodeName", node))
        yield (f"{_DEVICE}shared_number", on_card), float(len(card.holders))
        yield (f"{_DEVICE}allocated_memory", on_card), float(card.used_memory)
        yield (f"{_DEVICE}allocated_cores", on_card), float(card.used_cores)
        yield (f"{_DEVICE}memory_limit", on_card), float(card.facts.memory)
        for holder in card.holders.values():
            labels: Labels = (*on_card, ("podName", holder.pod))
            yield (f"{_DEVICE}memory_{_OF_POD}", labels), float(sum(held.memory for held in holder.shares))
            yield (f"{_DEVICE}core_{_OF_POD}", labels), float(sum(held.cores for held in holder.shares))
