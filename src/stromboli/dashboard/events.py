"""What has been said of objects lately."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final

from stromboli.api import core
from stromboli.dashboard.moments import created, seconds
from stromboli.dashboard.sights import Sight

MOST: Final = 500
"""Events that are shown; older ones are left to kubectl."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event; ``last`` is when it was said for the last time, ``count`` how often it was."""

    namespace: str
    state: str
    reason: str
    object: str
    message: str
    source: str
    count: int
    last: float

    @property
    def words(self) -> tuple[str, ...]:
        """What a search looks at."""
        return f"{self.namespace}/{self.object}", self.reason, self.message, self.source


def rows(sight: Sight) -> list[EventRow]:
    """The latest events, the last one first."""
    latest = heapq.nlargest(MOST, sight.events, key=lambda event: (_last(event), event.namespace, event.name))
    return [_row(event) for event in latest]


def _last(event: core.Event) -> float:
    return max(map(seconds, (event.last_timestamp, event.event_time))) or created(event)


def _row(event: core.Event) -> EventRow:
    about = event.involved_object
    return EventRow(
        about.namespace or "",
        event.type or "Normal",
        event.reason,
        f"{about.kind}/{about.name}",
        event.message,
        event.reporting_component or event.source.component,
        max(event.count, 1),
        _last(event),
    )
