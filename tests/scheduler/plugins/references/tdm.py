"""tdm (spec 06 section 19): filter and score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from unittest.mock import ANY

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Told

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"
TRUE, FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True)
class TimeDivision:
    """Windows by zone, as they are written."""

    windows: Mapping[str, str]

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """A node of a zone takes revocable pods while its window is open."""
        zone = node.metadata.labels.get(ZONE)
        if zone is None:
            return []
        if zone not in self.windows:
            return [f"revocable zone {zone} not support"]
        window = window_of(self.windows[zone])
        if window is None:
            return [ANY]  # the text of the parser is nobody's contract
        if not is_open(window, told.now):
            return [f"current time beyond revocable zone {zone}:{self.windows[zone]}"]
        return [] if is_revocable(pod) else ["not allow to dispatch to revocable node"]

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """Only asked about nodes that take the pod."""
        zoned = [node.name for node in nodes if ZONE in node.metadata.labels]
        return {node.name: 100.0 if node.name in zoned and is_revocable(pod) else 0.0 for node in nodes}


def is_revocable(pod: core.Pod) -> bool:
    """Only ``*`` counts; without the annotation a pod that says it is preemptable is revocable."""
    annotations = pod.metadata.annotations
    if ZONE in annotations:
        return annotations[ZONE] == "*"
    return annotations.get(PREEMPTABLE) in TRUE


def window_of(text: str) -> tuple[int, int] | None:
    """Minutes after midnight of both ends; None when the text is no window."""
    parts = text.strip().split("-")
    if len(parts) != 2:
        return None
    ends = []
    for part in parts:
        hour, colon, minute = part.strip().partition(":")
        if not (colon and hour.isdigit() and minute.isdigit() and len(hour) in (1, 2) and len(minute) == 2):
            return None
        if int(hour) > 23 or int(minute) > 59:
            return None
        ends.append(int(hour) * 60 + int(minute))
    return ends[0], ends[1]


def is_open(window: tuple[int, int], now: float) -> bool:
    """Today's window or yesterday's, in whole seconds of local time."""
    first, last = window
    local = datetime.fromtimestamp(int(now))
    length = timedelta(minutes=last - first if first < last else last - first + 24 * 60)
    for day in (0, -1):
        midnight = datetime(local.year, local.month, local.day) + timedelta(days=day)
        start = midnight + timedelta(minutes=first)
        if start <= local <= start + length:
            return True
    return False
