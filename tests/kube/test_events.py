from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.events import COMBINED, Correlator, EventType, Recorder, Reference
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock, SkippingClock
from stromboli.testing.waiting import eventually
from tests.kube.objects import pod

POD = Reference("v1", "Pod", "default", "p", "uid-1")
QUEUE = Reference.to(kinds.QUEUES, "", "default", "uid-2")


@asynccontextmanager
async def recording(client: Client) -> AsyncIterator[Recorder]:
    recorder = Recorder(client, "volcano", host="node-1")
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
        await eventually(lambda: recorder.pending == 0)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def only(events: list[JsonObject]) -> JsonObject:
    assert len(events) == 1
    return events[0]


async def test_an_event_is_what_kubectl_shows(client: Client, server: FakeApiServer) -> None:
    async with recording(client) as recorder:
        recorder.warning(POD, "Unschedulable", "1/2 tasks in gang unschedulable")
    event = only(server.objects(kinds.EVENTS, "default"))
    assert event["metadata"]["name"].startswith("p.")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": "uid-1",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "Unschedulable", 1)
    assert event["message"] == "1/2 tasks in gang unschedulable"
    assert event["source"] == {"component": "volcano", "host": "node-1"}
    assert event["firstTimestamp"] == event["lastTimestamp"]


async def test_repeats_are_folded_into_a_count(client: Client, server: FakeApiServer) -> None:
    async with recording(client) as recorder:
        recorder.normal(POD, "Scheduled", "again")
        await eventually(lambda: server.count("create") == 1)
        for _ in range(6):
            recorder.normal(POD, "Scheduled", "again")
        recorder.normal(POD, "Scheduled", "something else")
    counts = {event["message"]: event["count"] for event in server.objects(kinds.EVENTS)}
    assert counts == {"again": 7, "something else": 1}
    assert server.count("create") == 2


async def test_events_of_cluster_scoped_objects_are_in_the_default_namespace(
    client: Client, server: FakeApiServer
) -> None:
    async with recording(client) as recorder:
        recorder.normal(QUEUE, "Opened", "queue is open")
    assert only(server.objects(kinds.EVENTS, "default"))["involvedObject"]["kind"] == "Queue"


async def test_a_reference_is_taken_from_the_object(server: FakeApiServer) -> None:
    stored = server.put(kinds.PODS, pod("p"))
    want = Reference("v1", "Pod", "default", "p", stored["metadata"]["uid"])
    assert Reference.to_object(kinds.PODS, stored) == want


async def test_a_namesake_with_another_uid_has_events_of_its_own(client: Client, server: FakeApiServer) -> None:
    async with recording(client) as recorder:
        recorder.normal(POD, "Scheduled", "x")
        recorder.normal(Reference("v1", "Pod", "default", "p", "uid-9"), "Scheduled", "x")
    assert len(server.objects(kinds.EVENTS)) == 2


async def test_an_event_that_expired_on_the_server_begins_anew(client: Client, server: FakeApiServer) -> None:
    async with recording(client) as recorder:
        recorder.normal(POD, "Scheduled", "x")
        await eventually(lambda: server.objects(kinds.EVENTS))
        gone = only(server.objects(kinds.EVENTS))["metadata"]["name"]
        server.remove(kinds.EVENTS, gone, "default")
        recorder.normal(POD, "Scheduled", "x")
        await eventually(lambda: server.count("patch") and server.objects(kinds.EVENTS))
    event = only(server.objects(kinds.EVENTS))
    assert event["metadata"]["name"] != gone
    assert event["count"] == 1


Order = Callable[[FakeApiServer], object]


@dataclass
class Trouble:
    order: Order
    want_creates: int
    want_written: bool = True


TROUBLES = {
    "a failing server": Trouble(lambda server: server.faults.fail(500, verb="create", times=2), 3),
    "a lost answer": Trouble(lambda server: server.faults.disconnect(verb="create", executed=True), 2),
    "a namespace that is going away": Trouble(lambda server: server.faults.fail(403, verb="create"), 1, False),
    "a server that never recovers": Trouble(
        lambda server: server.faults.fail(500, verb="create", times=None), 5, False
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
async def test_writing_is_tried_again_only_where_that_helps(server: FakeApiServer, trouble: Trouble) -> None:
    clock = FakeClock()
    trouble.order(server)
    async with await server.client() as client:
        recorder = Recorder(client, "volcano", clock=clock)
        task = asyncio.create_task(recorder.run())
        recorder.normal(POD, "Scheduled", "x")
        while recorder.pending:
            await clock.advance(0.1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert server.count("create") == trouble.want_creates
    assert bool(server.objects(kinds.EVENTS)) is trouble.want_written


async def test_what_waits_is_written_when_the_process_ends(client: Client, server: FakeApiServer) -> None:
    held = server.faults.hold(verb="create", times=1)
    recorder = Recorder(client, "volcano", workers=1)
    task = asyncio.create_task(recorder.run())
    for number in range(5):
        recorder.normal(POD, "Scheduled", f"message {number}")
    await eventually(lambda: held.hits)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert len(server.objects(kinds.EVENTS)) == 5


async def test_the_end_is_not_delayed_for_ever(client: Client, server: FakeApiServer) -> None:
    server.faults.hold(verb="create", times=None)
    recorder = Recorder(client, "volcano", flush_timeout=0.1)
    task = asyncio.create_task(recorder.run())
    recorder.normal(POD, "Scheduled", "x")
    await eventually(lambda: server.held)
    task.cancel()
    async with asyncio.timeout(5):
        with suppress(asyncio.CancelledError):
            await task


async def test_recording_is_bounded_and_never_raises(client: Client) -> None:
    recorder = Recorder(client, "volcano", queue_size=10)
    for number in range(100):
        recorder.event(Reference("v1", "Pod", "ns", f"p{number}", str(number)), EventType.NORMAL, "R" * 500, "x" * 5000)
    assert recorder.pending == 10
    assert recorder.dropped == 90


# -- correlation -----------------------------------------------------------------------------------------------------


def test_one_object_gets_25_events_at_once_and_then_one_in_five_minutes() -> None:
    clock = FakeClock()
    correlator = Correlator(clock=clock)
    passed = [correlator.correlate(POD, "Warning", "Failed", "x") for _ in range(100)]
    assert sum(series is not None for series in passed) == 25
    assert correlator.correlate(QUEUE, "Warning", "Failed", "x"), "others have a share of their own"
    clock._steady += 300
    later = [correlator.correlate(POD, "Warning", "Failed", "x") for _ in range(10)]
    assert sum(series is not None for series in later) == 1
    assert later[0] and later[0].count == 110, "what was held back is counted"


async def test_many_different_messages_of_one_reason_are_combined_until_it_is_quiet() -> None:
    clock = SkippingClock()
    correlator = Correlator(clock=clock)
    series = [correlator.correlate(POD, "Normal", "Waiting", f"message {number}") for number in range(15)]
    shown = [one.message for one in series if one]
    assert shown[:10] == [f"message {number}" for number in range(10)]
    assert shown[-1] == f"{COMBINED}message 14"
    assert len({one.name for one in series[10:] if one}) == 1
    known = correlator.correlate(POD, "Normal", "Waiting", "message 3")
    assert known and (known.message, known.count) == ("message 3", 2)
    await clock.sleep(700)
    fresh = correlator.correlate(POD, "Normal", "Waiting", "message 99")
    assert fresh and fresh.message == "message 99"


@given(
    names=st.lists(st.sampled_from([f"p{number}" for number in range(30)]), max_size=200),
    remembered=st.integers(1, 10),
)
def test_memory_is_bounded_whatever_is_recorded(names: list[str], remembered: int) -> None:
    correlator = Correlator(clock=FakeClock(), remembered=remembered)
    for name in names:
        correlator.correlate(Reference("v1", "Pod", "ns", name, name), "Normal", "R", "m")
    for recent in (correlator._series, correlator._similar, correlator._buckets):
        assert len(recent) <= remembered
