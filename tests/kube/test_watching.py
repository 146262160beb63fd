"""The stream of steps by itself: its order, its pace, its place."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.errors import MalformedAnswer, ServerError, Unreachable, from_status
from stromboli.kube.json import encode
from stromboli.kube.paging import Page
from stromboli.kube.retrying import Backoff
from stromboli.kube.watching import (
    Changed,
    Interrupted,
    Listed,
    ListingEnded,
    ListingStarted,
    Pace,
    Position,
    Scope,
    Step,
    _place_is_lost,
    continuous_watch,
    infinite_watch,
)
from stromboli.kube.wire import MAX_LINE_BYTES, WatchEvent, lines, metadata, parse_line
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import SkippingClock
from tests.kube.objects import pod

PODS = Scope(kinds.PODS)


def pace(clock: SkippingClock, *, streaming: bool = False) -> Pace:
    backoff = Backoff(first=1, maximum=30, rng=random.Random(3))
    return Pace(idle_timeout=5, streaming=streaming, backoff=backoff, clock=clock)


async def first_steps(client: Client, clock: SkippingClock, number: int, *, streaming: bool = False) -> list[Step]:
    steps: list[Step] = []
    async with aclosing(infinite_watch(client, PODS, Position(), pace(clock, streaming=streaming))) as watch:
        async for step in watch:
            steps.append(step)
            if len(steps) == number:
                break
    return steps


def spelled(steps: list[Step]) -> list[str]:
    words = {ListingStarted: "start", Listed: "listed", ListingEnded: "end", Changed: "changed", Interrupted: "broken"}
    return [words[type(step)] for step in steps]


@pytest.mark.parametrize("streaming", [False, True])
async def test_first_what_is_there_then_what_changes(client: Client, server: FakeApiServer, streaming: bool) -> None:
    server.put(kinds.PODS, pod("a"))
    server.put(kinds.PODS, pod("b"))
    position = Position()
    seen: list[Step] = []
    async with aclosing(infinite_watch(client, PODS, position, pace(SkippingClock(), streaming=streaming))) as steps:
        async for step in steps:
            seen.append(step)
            if isinstance(step, ListingEnded):
                assert position.resource_version == step.resource_version == str(server.memory.version)
                server.put(kinds.PODS, pod("c"))
            if isinstance(step, Changed) and step.event.type != "BOOKMARK":
                assert step.event.metadata.name == "c"
                break
    assert spelled(seen)[:4] == ["start", "listed", "listed", "end"]


async def test_delays_grow_to_their_maximum_and_are_never_equal(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(403, verb="list", times=None)
    clock = SkippingClock()
    steps = await first_steps(client, clock, 20)
    delays = [step.delay for step in steps if isinstance(step, Interrupted)]
    assert len(delays) == 10
    for number, delay in enumerate(delays):
        assert min(30, 2**number) / 2 <= delay <= min(30, 2**number)
    assert all(one != other for one, other in pairwise(delays))
    assert clock.slept == pytest.approx(delays[:-1])


async def test_a_retry_after_is_waited_for(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(429, verb="watch", retry_after=17, times=2)
    clock = SkippingClock()
    steps = await first_steps(client, clock, 3)
    broken = steps[2]
    assert isinstance(broken, Interrupted)
    assert broken.delay == 17


async def test_a_watch_that_lived_makes_the_next_delay_small_again(client: Client, server: FakeApiServer) -> None:
    clock = SkippingClock()
    server.faults.fail(500, verb="watch", times=4)
    server.faults.cut_watch(after=1)
    server.put(kinds.PODS, pod("a"))
    delays: list[float] = []
    async with aclosing(infinite_watch(client, PODS, Position(), pace(clock))) as steps:
        async for step in steps:
            if isinstance(step, ListingEnded):
                server.put(kinds.PODS, pod("a", version=step.resource_version))
                server.put(kinds.PODS, pod("b", version=step.resource_version))
            if isinstance(step, Changed):
                await clock.sleep(6)
            if isinstance(step, Interrupted):
                delays.append(step.delay)
                if len(delays) == 5:
                    break
    assert delays[3] >= 4
    assert delays[4] <= 1


async def test_a_watch_that_lived_and_ended_in_order_is_followed_by_the_next_at_once(
    client: Client, server: FakeApiServer
) -> None:
    clock, events = SkippingClock(), 0
    async with aclosing(infinite_watch(client, PODS, Position(), pace(clock))) as steps:
        async for step in steps:
            if isinstance(step, ListingEnded):
                server.put(kinds.PODS, pod("a"))
            if isinstance(step, Changed) and step.event.type == "ADDED":
                events += 1
                if events == 2:
                    break
                await clock.sleep(6)
                server.end_watches()
    assert clock.slept == [6]
    assert (server.count("watch"), server.count("list")) == (2, 1)


@pytest.mark.parametrize("code", [400, 404, 410, 422])
async def test_a_continuous_watch_ends_when_its_place_is_lost(client: Client, server: FakeApiServer, code: int) -> None:
    server.faults.fail(code, verb="watch")
    steps = [step async for step in continuous_watch(client, PODS, Position(), pace(SkippingClock()))]
    assert spelled(steps) == ["start", "end", "broken"]


def delays_in(steps: list[Step]) -> list[float]:
    return [step.delay for step in steps if isinstance(step, Interrupted)]


async def test_a_place_lost_after_an_outage_is_listed_anew_at_once(client: Client, server: FakeApiServer) -> None:
    """However long the outage has made the delays: the server answers again, and what is known is out of date."""
    server.faults.fail(500, verb="watch", times=6)
    server.faults.fail(410, verb="watch")
    server.put(kinds.PODS, pod("a"))
    clock = SkippingClock()
    steps = await first_steps(client, clock, 3 + 7 + 3)
    assert spelled(steps) == ["start", "listed", "end", *["broken"] * 7, "start", "listed", "end"]
    *before, last = delays_in(steps)
    assert before[-1] >= 15
    assert last == 0
    assert clock.slept == pytest.approx([*before, 0])


async def test_a_place_that_is_lost_again_and_again_is_looked_for_more_and_more_slowly(
    client: Client, server: FakeApiServer
) -> None:
    server.faults.fail(500, verb="watch", times=6)
    server.faults.fail(410, verb="watch", times=None)
    steps = await first_steps(client, SkippingClock(), 2 + 7 + 4 * 3)
    first, *repeated = delays_in(steps)[6:]
    assert first == 0
    assert len(repeated) == 4
    for number, delay in enumerate(repeated):
        assert 2**number / 2 <= delay <= 2**number


async def test_a_place_that_is_lost_after_every_watch_that_lived_is_listed_anew_at_once(
    client: Client, server: FakeApiServer
) -> None:
    clock, delays = SkippingClock(), []
    server.faults.expire_watch(after=1, times=2)
    async with aclosing(infinite_watch(client, PODS, Position(), pace(clock))) as steps:
        async for step in steps:
            if isinstance(step, ListingEnded):
                server.put(kinds.PODS, pod("a", version=step.resource_version))
                server.put(kinds.PODS, pod("b", version=step.resource_version))
            if isinstance(step, Changed):
                await clock.sleep(6)
            if isinstance(step, Interrupted):
                delays.append(step.delay)
                if len(delays) == 2:
                    break
    assert delays == [0, 0]


async def test_a_lost_place_waits_as_long_as_the_server_asks(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(410, verb="watch", retry_after=17)
    steps = await first_steps(client, SkippingClock(), 3)
    assert delays_in(steps) == [17]


async def test_pages_that_expire_are_listed_again_at_once_the_first_time(client: Client, server: FakeApiServer) -> None:
    server.faults.fail(410, verb="list", times=3)
    steps = await first_steps(client, SkippingClock(), 6)
    first, second, third = delays_in(steps)
    assert first == 0
    assert 0.5 <= second <= 1 <= third <= 2


@pytest.mark.parametrize("code", [401, 403, 429, 500])
async def test_a_continuous_watch_outlives_what_has_nothing_to_do_with_its_place(
    client: Client, server: FakeApiServer, code: int
) -> None:
    server.faults.fail(code, verb="watch", times=2)
    server.faults.fail(410, verb="watch")
    steps = [step async for step in continuous_watch(client, PODS, Position(), pace(SkippingClock()))]
    assert spelled(steps) == ["start", "end", "broken", "broken", "broken"]


def test_a_version_from_before_a_restore_is_a_lost_place() -> None:
    status = {"code": 504, "reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}
    assert _place_is_lost(from_status(status))
    assert not _place_is_lost(from_status({"code": 504}))
    assert not _place_is_lost(Unreachable("cut"))


async def test_the_place_is_the_readers_to_move(client: Client, server: FakeApiServer) -> None:
    """An event that was received but not taken in is sent again."""
    position = Position()
    server.faults.cut_watch(after=1)
    names: list[str] = []
    async with aclosing(infinite_watch(client, PODS, position, pace(SkippingClock()))) as steps:
        async for step in steps:
            if isinstance(step, ListingEnded):
                server.put(kinds.PODS, pod("a"))
                server.put(kinds.PODS, pod("b"))
            if isinstance(step, Changed) and step.event.type == "ADDED":
                names.append(step.event.metadata.name)
                if len(names) == 3:
                    break
    assert names == ["a", "a", "b"]


# -- bytes -----------------------------------------------------------------------------------------------------------


class Chunks:
    """A byte source cut at given places."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
        self._chunks = [data[start:end] for start, end in pairwise(places) if start < end]

    async def readany(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""


@given(
    texts=st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text), max_size=8),
    tail=st.sampled_from([b"", b"half a line"]),
    cuts=st.lists(st.integers(0, 200), max_size=10),
)
def test_lines_do_not_depend_on_how_the_stream_is_cut(texts: list[bytes], tail: bytes, cuts: list[int]) -> None:
    async def read() -> list[bytes]:
        data = b"".join(text + b"\n" for text in texts) + tail
        return [line async for line in lines(Chunks(data, cuts))]

    assert asyncio.run(read()) == [text for text in texts if text.strip()]


async def test_an_endless_line_does_not_fill_the_memory() -> None:
    class Endless:
        async def readany(self) -> bytes:
            return b"x" * 2**22

    taken = 0
    with pytest.raises(MalformedAnswer, match="longer than"):
        async for _ in lines(Endless()):
            taken += 1
    assert taken == 0
    assert MAX_LINE_BYTES < 2**27


def test_an_error_event_is_raised() -> None:
    status = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd is gone"}
    with pytest.raises(ServerError, match="etcd is gone"):
        parse_line(encode({"type": "ERROR", "object": status}))
    with pytest.raises(MalformedAnswer):
        parse_line(b'{"type":"ERROR","object":7}')


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"type":"ADDED"}', b'{"type":3,"object":{}}', b"\xff\xfe"])
def test_what_is_no_event_is_marked(line: bytes) -> None:
    assert parse_line(line) == WatchEvent("UNREADABLE", line)


def test_metadata_is_found_without_decoding_the_rest() -> None:
    found = metadata(b'{"spec":{"x":[1,{"metadata":{"name":"no"}}]},"metadata":{"name":"yes","uid":"u"}}')
    assert (found.name, found.uid) == ("yes", "u")
    assert metadata(b"no json").name == ""


def test_a_page_is_split_without_being_decoded() -> None:
    page = Page.parse(b'{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"a": 1},{"b":2}]}')
    assert (list(page.items), page.resource_version, page.continue_token) == ([b'{"a": 1}', b'{"b":2}'], "7", "c")
    assert list(Page.parse(b'{"metadata":{},"items":null}').items) == []
    with pytest.raises(MalformedAnswer):
        Page.parse(b"<html>")
