"""An informer against a server that fails in every way a server can. What is asserted is always the same: in the end
the store is what the server has, every change was told in an order that makes sense, and nothing was asked in a hurry.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.errors import NotSynced
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.retrying import Backoff
from stromboli.kube.watching import Changed, Listed, ListingEnded, ListingStarted, Pace
from stromboli.kube.wire import WatchEvent
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.kube.objects import pod


class Diary:
    """What a handler was told, and what in it makes no sense.

    An informer shields itself from handlers that raise, so complaints are collected, and looked at after each test.
    """

    written: ClassVar[list[Diary]] = []

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, str]] = []
        self.alive: dict[str, tuple[str, int]] = {}
        self.complaints: list[str] = []
        Diary.written.append(self)

    def attach(self, informer: Informer[JsonObject]) -> Diary:
        informer.add_handler(on_add=self.add, on_update=self.update, on_delete=self.delete)
        return self

    def add(self, obj: JsonObject) -> None:
        name, uid, version = _facts(obj)
        self._expect(name not in self.alive, f"{name} was added twice")
        self.alive[name] = uid, version
        self.entries.append(("add", name, uid))

    def update(self, old: JsonObject, new: JsonObject) -> None:
        name, uid, version = _facts(new)
        was = self.alive.get(name, ("", 0))
        self._expect(was == _facts(old)[1:], f"{name} was not updated from its last known state")
        self._expect(uid == was[0], f"{name} changed its UID in an update")
        self._expect(version > was[1], f"{name} did not become newer in an update")
        self.alive[name] = uid, version
        self.entries.append(("update", name, uid))

    def delete(self, obj: JsonObject) -> None:
        name, uid, _ = _facts(obj)
        self._expect(self.alive.pop(name, ("",))[0] == uid, f"{name}: somebody else was deleted")
        self.entries.append(("delete", name, uid))

    def kinds_of(self, name: str) -> list[str]:
        return [what for what, who, _ in self.entries if who == name]

    def _expect(self, truth: bool, complaint: str) -> None:
        if not truth:
            self.complaints.append(complaint)


@pytest.fixture(autouse=True)
def what_was_told_makes_sense() -> Iterator[None]:
    Diary.written.clear()
    yield
    assert [complaint for diary in Diary.written for complaint in diary.complaints] == []


def _facts(obj: JsonObject) -> tuple[str, str, int]:
    meta = obj["metadata"]
    return meta["name"], meta["uid"], int(meta["resourceVersion"])


class Counts:
    """An observer that counts."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def informed(self, resource: str, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1


def quick(*, idle_timeout: float = 5.0, first: float = 0.01, streaming: bool = False, page_limit: int = 500) -> Pace:
    """A pace for tests: short delays, but delays."""
    return Pace(
        idle_timeout=idle_timeout,
        streaming=streaming,
        page_limit=page_limit,
        backoff=Backoff(first=first, maximum=0.2, rng=random.Random(1)),
    )


def pods(client: Client, pace: Pace | None = None, **options: object) -> Informer[JsonObject]:
    return Informer(client, kinds.PODS, json.decode_object, pace=pace or quick(), **options)  # type: ignore[arg-type]


@asynccontextmanager
async def running(*informers: Informer[JsonObject]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def in_step(informer: Informer[JsonObject], server: FakeApiServer) -> Callable[[], bool]:
    """Whether the store holds exactly what the server has."""

    def agrees() -> bool:
        have = sorted(_facts(obj) for obj in informer.store)
        return informer.synced and have == sorted(_facts(obj) for obj in server.objects(kinds.PODS))

    return agrees


async def churn(server: FakeApiServer, rounds: int, *, seed: int = 7, names: int = 12) -> None:
    """Creations, updates, deletions and re-creations of a few pods, with a pause now and then."""
    rng = random.Random(seed)
    for step in range(rounds):
        name = f"p{rng.randrange(names)}"
        exists = any(json.key_of(obj)[1] == name for obj in server.objects(kinds.PODS))
        if exists and rng.random() < 0.35:
            server.remove(kinds.PODS, name, "default")
        else:
            server.put(kinds.PODS, pod(name, step=str(step)))
        if rng.random() < 0.2:
            await asyncio.sleep(0.002)


# -- the ordinary course ---------------------------------------------------------------------------------------------


async def test_the_store_follows_the_cluster(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("old"))
    informer = pods(client)
    diary = Diary().attach(informer)
    async with running(informer):
        await informer.wait_synced(5)
        assert informer.store.get(("default", "old"))
        server.put(kinds.PODS, pod("new"))
        server.put(kinds.PODS, pod("new", changed="yes"))
        server.remove(kinds.PODS, "old", "default")
        await eventually(lambda: len(diary.entries) == 4)
    assert diary.kinds_of("old") == ["add", "delete"]
    assert diary.kinds_of("new") == ["add", "update"]


async def test_a_listing_comes_in_pages(client: Client, server: FakeApiServer) -> None:
    for number in range(25):
        server.put(kinds.PODS, pod(f"p{number}"))
    informer = pods(client, quick(page_limit=10))
    async with running(informer):
        await informer.wait_synced(5)
    assert len(informer.store) == 25
    assert server.count("list") == 3


async def test_a_listing_comes_as_a_stream_where_the_server_can(client: Client, server: FakeApiServer) -> None:
    for number in range(25):
        server.put(kinds.PODS, pod(f"p{number}"))
    informer = pods(client, quick(streaming=True))
    async with running(informer):
        await informer.wait_synced(5)
        server.put(kinds.PODS, pod("late"))
        await eventually(in_step(informer, server))
    assert server.count("list") == 0


async def test_without_streaming_lists_it_falls_back_to_pages(client: Client, server: FakeApiServer) -> None:
    server.streaming_lists = False
    server.put(kinds.PODS, pod("p"))
    informer = pods(client, quick(streaming=True))
    async with running(informer):
        await informer.wait_synced(5)
        await eventually(in_step(informer, server))
    assert server.count("list") == 1


async def test_indexes_follow_the_objects(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a", app="web"))
    server.put(kinds.PODS, pod("b", app="web"))
    informer = pods(client, indexes={"app": lambda obj: [obj["metadata"]["labels"]["app"]]})
    async with running(informer):
        await informer.wait_synced(5)
        assert [json.key_of(obj)[1] for obj in informer.store.by_index("app", "web")] == ["a", "b"]
        server.put(kinds.PODS, pod("a", app="db"))
        await eventually(lambda: informer.store.by_index("app", "db"))
    assert [json.key_of(obj)[1] for obj in informer.store.by_index("app", "web")] == ["b"]
    assert informer.store.by_index("app", "nobody") == ()


async def test_a_filter_makes_objects_come_and_go(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a", app="web"))
    informer = pods(client, filter=lambda obj: obj["metadata"]["labels"].get("app") == "web")
    diary = Diary().attach(informer)
    async with running(informer):
        await informer.wait_synced(5)
        server.put(kinds.PODS, pod("a", app="db"))
        await eventually(lambda: len(informer.store) == 0)
        server.put(kinds.PODS, pod("a", app="web"))
        await eventually(lambda: len(informer.store) == 1)
    assert diary.kinds_of("a") == ["add", "delete", "add"]


async def test_a_selection_makes_objects_come_and_go(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a", app="web"))
    informer = pods(client, label_selector="app=web")
    diary = Diary().attach(informer)
    async with running(informer):
        await informer.wait_synced(5)
        server.put(kinds.PODS, pod("a", app="db"))
        server.put(kinds.PODS, pod("a", app="web"))
        await eventually(lambda: len(diary.entries) == 3)
    assert diary.kinds_of("a") == ["add", "delete", "add"]


async def test_a_late_handler_is_told_of_what_is_there(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("a"))
    informer = pods(client)
    async with running(informer):
        await informer.wait_synced(5)
        assert Diary().attach(informer).kinds_of("a") == ["add"]


# -- one bad thing stops nothing -------------------------------------------------------------------------------------


async def test_an_object_that_cannot_be_decoded_stops_nothing(
    client: Client, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    def picky(raw: bytes) -> JsonObject:
        if b"poison" in raw:
            raise ValueError("poison")
        return json.decode_object(raw)

    counts = Counts()
    server.put(kinds.PODS, pod("bad", kind="poison"))
    server.put(kinds.PODS, pod("good"))
    informer = Informer(client, kinds.PODS, picky, pace=quick(), observer=counts)
    async with running(informer):
        await informer.wait_synced(5)
        assert informer.store.keys() == (("default", "good"),)
        server.put(kinds.PODS, pod("good", kind="poison"))
        server.put(kinds.PODS, pod("later"))
        await eventually(lambda: ("default", "later") in informer.store)
        assert informer.store.get(("default", "good")), "the last state that could be read is kept"
        server.remove(kinds.PODS, "good", "default")
        await eventually(lambda: ("default", "good") not in informer.store)
    assert counts.seen["undecodable"] == 3
    assert "default/good: skipped" in caplog.text


async def test_what_cannot_be_read_any_more_survives_a_listing(client: Client, server: FakeApiServer) -> None:
    poisoned = False

    def picky(raw: bytes) -> JsonObject:
        if poisoned:
            raise ValueError("poison")
        return json.decode_object(raw)

    server.put(kinds.PODS, pod("a"))
    counts = Counts()
    informer = Informer(client, kinds.PODS, picky, pace=quick(), observer=counts)
    async with running(informer):
        await informer.wait_synced(5)
        poisoned = True
        server.expire_versions()
        server.break_watches()
        await eventually(lambda: counts.seen["listed"] == 2)
    assert ("default", "a") in informer.store


async def test_a_handler_that_raises_stops_nobody(client: Client, server: FakeApiServer) -> None:
    def explode(obj: JsonObject) -> None:
        raise RuntimeError("boom")

    counts = Counts()
    informer = pods(client, observer=counts)
    informer.add_handler(on_add=explode)
    diary = Diary().attach(informer)
    async with running(informer):
        server.put(kinds.PODS, pod("a"))
        server.put(kinds.PODS, pod("b"))
        await eventually(lambda: len(diary.entries) == 2)
    assert counts.seen["handler-failed"] == 2


async def test_an_index_function_that_raises_costs_only_its_object(client: Client, server: FakeApiServer) -> None:
    server.put(kinds.PODS, pod("unlabelled"))
    server.put(kinds.PODS, pod("labelled", app="web"))
    counts = Counts()
    informer = pods(client, indexes={"app": lambda obj: [obj["metadata"]["labels"]["app"]]}, observer=counts)
    async with running(informer):
        await informer.wait_synced(5)
    assert informer.store.keys() == (("default", "labelled"),)
    assert counts.seen["failed"] == 1


async def test_a_line_that_is_no_event_stops_nothing(client: Client, server: FakeApiServer) -> None:
    server.faults.garbage()
    counts = Counts()
    informer = pods(client, observer=counts)
    async with running(informer):
        await informer.wait_synced(5)
        server.put(kinds.PODS, pod("a"))
        await eventually(in_step(informer, server))
    assert counts.seen["unreadable"] == 1


# -- every fault: nothing lost, nothing in a hurry -------------------------------------------------------------------

Order = Callable[[FakeApiServer], object]

FAULTS: dict[str, Order] = {
    "no fault": lambda server: None,
    "cut in mid-watch": lambda server: server.faults.cut_watch(after=3, times=6),
    "cut at the first event": lambda server: server.faults.cut_watch(after=0, times=3),
    "half-open connections": lambda server: server.faults.half_open(after=2, times=2),
    "410 as an event": lambda server: server.faults.expire_watch(after=2, times=4),
    "410 as an answer": lambda server: server.faults.fail(410, verb="watch", reason="Expired", times=3),
    "429 with Retry-After": lambda server: server.faults.fail(429, verb="watch", retry_after=1, times=1),
    "429 without": lambda server: server.faults.fail(429, verb="list", times=3),
    "a storm of 500s on lists": lambda server: server.faults.fail(500, verb="list", times=9),
    "a storm of 500s on watches": lambda server: server.faults.fail(500, verb="watch", times=9),
    "watches refused with 403": lambda server: server.faults.fail(403, verb="watch", times=3),
    "connections broken before an answer": lambda server: server.faults.disconnect(verb="watch", times=3),
    "lists broken before an answer": lambda server: server.faults.disconnect(verb="list", times=3),
    "duplicated events": lambda server: server.faults.duplicate_events(),
    "reordered events": lambda server: server.faults.reorder_events(),
    "slow answers": lambda server: server.faults.delay(0.2, times=4),
    "garbage between events": lambda server: server.faults.garbage(times=None),
}


@pytest.mark.parametrize("streaming", [False, True], ids=["pages", "stream"])
@pytest.mark.parametrize("order", FAULTS.values(), ids=FAULTS.keys())
async def test_nothing_is_lost_and_nothing_is_asked_in_a_hurry(order: Order, streaming: bool) -> None:
    async with FakeApiServer(bookmark_interval=0.1) as server, await server.client() as client:
        for number in range(5):
            server.put(kinds.PODS, pod(f"p{number}"))
        order(server)
        informer = pods(client, quick(idle_timeout=0.4, streaming=streaming, page_limit=4))
        diary = Diary().attach(informer)
        async with running(informer):
            await churn(server, 60)
            await informer.wait_synced(20)
            await churn(server, 60, seed=8)
            await eventually(in_step(informer, server), timeout=20)
        told = {name: uid for name, (uid, _) in diary.alive.items()}
        assert told == {_facts(obj)[0]: _facts(obj)[1] for obj in server.objects(kinds.PODS)}
        assert server.count() < 60, "too many requests"


async def test_versions_forgotten_during_a_gap_lead_to_a_listing_that_tells_the_difference(
    client: Client, server: FakeApiServer
) -> None:
    for name in ("stays", "changes", "goes", "is-replaced"):
        server.put(kinds.PODS, pod(name))
    informer = pods(client)
    diary = Diary().attach(informer)
    async with running(informer):
        await informer.wait_synced(5)
        await eventually(lambda: server.open_watches == 1)
        held = server.faults.hold(verb="watch")
        server.break_watches()
        await eventually(lambda: held.hits)
        server.put(kinds.PODS, pod("changes", now="different"))
        server.remove(kinds.PODS, "goes", "default")
        server.remove(kinds.PODS, "is-replaced", "default")
        server.put(kinds.PODS, pod("is-replaced"))
        server.put(kinds.PODS, pod("comes"))
        server.expire_versions()
        held.release()
        await eventually(in_step(informer, server))
    assert diary.kinds_of("stays") == ["add"]
    assert diary.kinds_of("changes") == ["add", "update"]
    assert diary.kinds_of("goes") == ["add", "delete"]
    assert diary.kinds_of("is-replaced") == ["add", "delete", "add"]
    assert diary.kinds_of("comes") == ["add"]


async def test_a_continue_token_that_expires_starts_the_listing_again(client: Client, server: FakeApiServer) -> None:
    for number in range(9):
        server.put(kinds.PODS, pod(f"p{number}"))
    server.faults.fail(410, verb="list", skip=1, times=1, reason="Expired")
    informer = pods(client, quick(page_limit=3))
    diary = Diary().attach(informer)
    async with running(informer):
        await informer.wait_synced(5)
    assert len(informer.store) == 9
    assert [what for what, _, _ in diary.entries] == ["add"] * 9
    assert server.count("list") == 2 + 3


async def test_after_a_cut_it_goes_on_where_it_was(client: Client, server: FakeApiServer) -> None:
    informer = pods(client)
    async with running(informer):
        await informer.wait_synced(5)
        for number in range(3):
            server.put(kinds.PODS, pod(f"p{number}"))
            await eventually(in_step(informer, server))
            server.break_watches()
            await eventually(lambda: not server.open_watches)
    assert server.count("list") == 1


async def test_bookmarks_move_the_place_so_that_a_forgotten_past_does_not_matter(server: FakeApiServer) -> None:
    server.bookmark_interval = 0.02
    async with await server.client() as client:
        informer = pods(client)
        async with running(informer):
            await eventually(lambda: server.open_watches)
            server.put(kinds.NODES, {"metadata": {"name": "n"}})  # moves the version, tells pods nothing
            server.expire_versions()
            await eventually(lambda: informer._position.resource_version == str(server.memory.version))
            server.break_watches()
            await eventually(lambda: server.count("watch") == 2)
            server.put(kinds.PODS, pod("a"))
            await eventually(in_step(informer, server))
    assert server.count("list") == 1


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(client: Client, server: FakeApiServer) -> None:
    informer = pods(client, quick(first=0.05))
    async with running(informer):
        await informer.wait_synced(5)
        end = asyncio.get_running_loop().time() + 1.0
        while asyncio.get_running_loop().time() < end:
            server.end_watches()
            await asyncio.sleep(0.001)
    assert 2 <= server.count("watch") <= 15


async def test_a_server_that_is_away_comes_back(server: FakeApiServer) -> None:
    async with await server.client() as client:
        informer = pods(client)
        async with running(informer):
            await informer.wait_synced(5)
            await server.stop()
            server.put(kinds.PODS, pod("meanwhile"))
            await eventually(lambda: informer.last_error is not None)
            await server.start()
            await eventually(in_step(informer, server))


async def test_waiting_for_a_listing_that_never_comes_ends_with_the_reason(
    client: Client, server: FakeApiServer
) -> None:
    server.faults.fail(403, verb="list", times=None, message="pods is forbidden: no RBAC")
    informer = pods(client)
    async with running(informer):
        with pytest.raises(NotSynced, match=r"pods: not listed within 0\.3 s; last error: pods is forbidden: no RBAC"):
            await informer.wait_synced(0.3)
    assert not informer.synced


async def test_several_informers_are_awaited_together(client: Client, server: FakeApiServer) -> None:
    informers = [Informer(client, kind, json.decode_object, pace=quick()) for kind in (kinds.PODS, kinds.NODES)]
    async with running(*informers):
        await wait_all_synced(*informers, timeout=5)
    assert all(informer.synced for informer in informers)


async def test_memory_stays_flat_over_many_changes(client: Client, server: FakeApiServer) -> None:
    informer = pods(client, indexes={"step": lambda obj: obj["metadata"]["labels"].values()})
    async with running(informer):
        await informer.wait_synced(5)
        for seed in range(20):
            await churn(server, 200, seed=seed)
            await asyncio.sleep(0)
        await eventually(in_step(informer, server))
        for obj in server.objects(kinds.PODS):
            server.remove(kinds.PODS, *reversed(json.key_of(obj)))
        await eventually(in_step(informer, server))
    assert len(informer.store) == 0
    assert informer.store._indexes["step"]._keys == {}
    assert informer.store._indexes["step"]._values == {}
    assert len(informer._deleted) <= 1024
    assert informer._listing == set()


# -- any delivery of a history, without a server ---------------------------------------------------------------------


class History:
    """What happens to three objects of one kind, as watch events in their true order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, JsonObject]] = []
        self.present: dict[str, JsonObject] = {}
        self._uids = 0

    def happen(self, name: str, what: str) -> None:
        """``write`` creates or changes; ``delete`` ends; ``leave`` ends for the selection only."""
        version = str(len(self.events) + 1)
        if what == "write":
            known = name in self.present and "gone" not in self.present[name]
            returning = self.present.get(name, {}).get("gone") == "left"
            if not known and not returning:
                self._uids += 1
            uid = self.present[name]["metadata"]["uid"] if known or returning else f"uid-{self._uids}"
            obj: JsonObject = {"metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version}}
            self.events.append(("MODIFIED" if known else "ADDED", obj))
            self.present[name] = obj
        elif name in self.present and "gone" not in self.present[name]:
            last = self.present[name]["metadata"] | {"resourceVersion": version}
            self.events.append(("DELETED", {"metadata": last}))
            self.present[name] = {"metadata": last, "gone": "left" if what == "leave" else "deleted"}

    def alive(self) -> list[tuple[str, str, int]]:
        return sorted(_facts(obj) for obj in self.present.values() if "gone" not in obj)


OCCURRENCES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["write", "write", "end"])), max_size=30)


def informer_without_server(*, selective: bool) -> Informer[JsonObject]:
    unused: Any = None
    selector = "app=web" if selective else None
    return Informer(unused, kinds.PODS, json.decode_object, label_selector=selector, pace=quick())


def tell(informer: Informer[JsonObject], event: tuple[str, JsonObject]) -> None:
    informer.take(Changed(WatchEvent(event[0], json.encode(event[1]))))


def test_leaving_twice_told_in_the_wrong_order_is_leaving() -> None:
    history, informer = History(), informer_without_server(selective=True)
    for what in ("write", "leave", "write", "leave"):
        history.happen("a", what)
    first, left, back, left_again = history.events
    for event in (first, left_again, left, back):
        tell(informer, event)
    assert len(informer.store) == 0


@pytest.mark.parametrize("selective", [False, True], ids=["everything", "a selection"])
@given(occurrences=OCCURRENCES, data=st.data())
@settings(max_examples=150, deadline=None)
def test_duplicates_and_wrong_order_end_where_the_true_order_ends(
    selective: bool, occurrences: list[tuple[str, str]], data: st.DataObject
) -> None:
    history = History()
    for name, what in occurrences:
        history.happen(name, what if what == "write" else "leave" if selective else "delete")
    delayed = data.draw(st.lists(st.integers(0, 3), min_size=len(history.events), max_size=len(history.events)))
    order = sorted(range(len(history.events)), key=lambda number: number + delayed[number] * 1.5)
    twice = data.draw(st.sets(st.sampled_from(order) if order else st.nothing()))

    informer = informer_without_server(selective=selective)
    diary = Diary().attach(informer)
    for number in order:
        for _ in range(2 if number in twice else 1):
            tell(informer, history.events[number])
    assert sorted(_facts(obj) for obj in informer.store) == history.alive()
    assert sorted((name, *facts) for name, facts in diary.alive.items()) == history.alive()
    assert diary.complaints == []


@given(before=OCCURRENCES, missed=OCCURRENCES, page_by_page=st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_listing_after_a_gap_ends_where_watching_would_have(
    before: list[tuple[str, str]], missed: list[tuple[str, str]], page_by_page: bool
) -> None:
    history, informer = History(), informer_without_server(selective=False)
    diary = Diary().attach(informer)
    for name, what in before:
        history.happen(name, "write" if what == "write" else "delete")
    for event in history.events:
        tell(informer, event)
    told = len(diary.entries)
    seen = len(history.events)
    for name, what in missed:
        history.happen(name, "write" if what == "write" else "delete")
    for _ in range(2 if page_by_page else 1):  # a listing that breaks off half-way is begun again
        informer.take(ListingStarted())
        for obj in history.present.values():
            if "gone" not in obj:
                informer.take(Listed(json.encode(obj)))
    informer.take(ListingEnded(str(len(history.events))))
    assert sorted(_facts(obj) for obj in informer.store) == history.alive()
    assert diary.complaints == []
    if len(history.events) == seen:
        assert len(diary.entries) == told, "a listing without news is no news"


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    informer = informer_without_server(selective=False)
    for version in ("abc", "abd", "abb"):
        obj = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": version}}
        tell(informer, ("MODIFIED", obj))
        stored = informer.store.identity(("ns", "a"))
        assert stored and stored.resource_version == version
        assert informer._position.resource_version == version
