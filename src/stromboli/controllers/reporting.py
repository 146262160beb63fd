"""What every controller of this room needs to tell owners of objects what happened to them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from stromboli.api.kinds import Kind
from stromboli.api.reasons import EventReason
from stromboli.kube.events import EventType, Reference
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key, Store


class Events(Protocol):
    """Where Events go; ``stromboli.kube.events.Recorder`` in production."""

    def event(self, regarding: Reference, type: EventType, reason: str, message: str) -> None:
        """Record one Event. Returns at once and never raises."""
        ...


class Stored:
    """The objects of a store, as a controller's keys name them: one that cannot be read gets an Event that says why."""

    def __init__(self, kind: Kind, store: Store[JsonObject], events: Events) -> None:
        self._kind, self._store, self._events = kind, store, events

    def version(self, key: Key) -> Hashable:
        """UID and resourceVersion; None for an object that is not there."""
        known = self._store.identity(key)
        return None if known is None else (known.uid, known.resource_version)

    def unreadable(self, key: Key, message: str) -> None:
        """The object cannot be read."""
        raw = self._store.get(key)
        if raw is not None:
            text = f"{message}; it is taken up again when that is corrected"
            reference = Reference.to_object(self._kind, raw)
            self._events.event(reference, EventType.WARNING, EventReason.UNREADABLE, text)
