"""Events that are too old go away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.localcluster.controllers.events import EventController
from stromboli.localcluster.storage import Key, Object
from tests.localcluster.sim.simulation import simulation


def event(name: str, **members: Any) -> Object:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved, **members}


def ago(seconds: int) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


AGES = {
    "told an hour ago": (ago(3601), {}, False),
    "told just now": (ago(0), {}, True),
    "repeated since": (ago(7200), {"lastTimestamp": ago(5)}, True),
    "a series that goes on": (ago(7200), {"series": {"count": 2, "lastObservedTime": ago(5)}}, True),
    "repeated long ago": (ago(7200), {"lastTimestamp": ago(4000)}, False),
}


@pytest.mark.parametrize(("created", "members", "want_kept"), AGES.values(), ids=AGES.keys())
async def test_an_event_is_kept_for_an_hour(created: str, members: dict[str, Any], want_kept: bool) -> None:
    async with simulation() as cluster:
        await cluster.create(event("e", **members))
        key = Key.of(kinds.EVENTS, "default", "e")
        stored = cluster.store.get(key)
        assert stored is not None
        metadata = {**stored.object["metadata"], "creationTimestamp": created}
        cluster.store.replace(key, {**stored.object, "metadata": metadata})
        again = await EventController(cluster.registry).reconcile("default", "e")
        assert (cluster.store.get(key) is not None, again is not None) == (want_kept, want_kept)
        assert again is None or 0 < again <= 3600


async def test_events_go_by_themselves() -> None:
    async with simulation(lambda registry: EventController(registry, ttl=0.1)) as cluster:
        await cluster.create(event("e"))
        await cluster.until(lambda: cluster.find(kinds.EVENTS, "e") is None)
