"""Events are kept for an hour after they were last told, as kube-apiserver keeps them; or memory would only grow."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster import clock
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

EVENT_TTL = 3600.0
"""Seconds."""


class EventController:
    """Removes Events whose time is over."""

    name = "event-ttl"

    def __init__(self, registry: Registry, ttl: float = EVENT_TTL) -> None:
        self._store = registry.store
        self._ttl = ttl

    def sources(self) -> Mapping[Kind, Mapper]:
        """Events."""
        return {kinds.EVENTS: itself}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Remove one Event that is too old, without asking anybody; otherwise the seconds until it is."""
        stored = self._store.get(Key.of(kinds.EVENTS, namespace, name))
        if stored is None:
            return None
        left = self._ttl - _age(stored.object)
        if left > 0:
            return left
        self._store.remove(stored.key)
        return None


def _age(event: Object) -> float:
    """Seconds since an Event was created or last repeated; times to come count as the present."""
    series = event.get("series") or {}
    told = (event["metadata"].get("creationTimestamp"), event.get("lastTimestamp"), series.get("lastObservedTime"))
    moments = [moment for text in told if text and (moment := clock.parse(str(text)))]
    now = clock.now()
    return max(0.0, (now - max(moments, default=now)).total_seconds())
