"""What every controller of this room needs to tell owners of objects what happened to them."""

from __future__ import annotations

from typing import Protocol

from stromboli.kube.events import EventType, Reference


class Events(Protocol):
    """Where Events go; ``stromboli.kube.events.Recorder`` in production."""

    def event(self, regarding: Reference, type: EventType, reason: str, message: str) -> None:
        """Record one Event. Returns at once and never raises."""
        ...
