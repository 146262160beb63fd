"""The store: revisions, order, logs, snapshots."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster import snapshots
from stromboli.localcluster.storage import Exists, Gone, Key, Missing, Stale, StorageError, Store


def key(name: str, namespace: str = "ns") -> Key:
    return Key.of(kinds.PODS, namespace, name)


def obj(name: str, namespace: str = "ns", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def test_each_write_takes_the_next_revision_and_leaves_the_given_object_alone() -> None:
    store = Store()
    given_object = obj("a")
    first = store.create(key("a"), given_object)
    second = store.replace(key("a"), obj("a", x=1))
    assert second.revision == first.revision + 1
    assert second.object["metadata"]["resourceVersion"] == str(second.revision)
    assert "resourceVersion" not in given_object["metadata"]


def test_names_are_unique_and_missing_ones_are_told() -> None:
    store = Store()
    store.create(key("a"), obj("a"))
    with pytest.raises(Exists):
        store.create(key("a"), obj("a"))
    with pytest.raises(Missing):
        store.replace(key("b"), obj("b"))
    with pytest.raises(Missing):
        store.remove(key("b"))


def test_a_write_that_expects_another_revision_changes_nothing() -> None:
    store = Store()
    first = store.create(key("a"), obj("a"))
    store.replace(key("a"), obj("a", x=1), expected=first.revision)
    with pytest.raises(Stale):
        store.replace(key("a"), obj("a", x=2), expected=first.revision)
    with pytest.raises(Stale):
        store.remove(key("a"), expected=first.revision)
    present = store.get(key("a"))
    assert present is not None and present.object["x"] == 1


def test_cluster_scoped_keys_have_no_namespace() -> None:
    assert Key.of(kinds.NODES, "ignored", "n") == Key("", "nodes", "", "n")


def test_lists_are_sorted_and_can_be_of_one_namespace() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        store.create(key(name, namespace), obj(name, namespace))
    assert [one.key[2:] for one in store.list(kinds.PODS)] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert [one.key.name for one in store.list(kinds.PODS, "a")] == ["y", "z"]
    assert store.list(kinds.PODS, "c") == []
    store.remove(key("y", "a"))
    assert [one.key.name for one in store.list(kinds.PODS, "a")] == ["z"]
    assert store.count(kinds.PODS) == 2


def test_bytes_are_encoded_once_and_shared_by_readers() -> None:
    store = Store()
    stored = store.create(key("a"), obj("a"))
    assert stored.encoded is stored.encoded
    assert orjson.loads(stored.encoded) == stored.object


async def test_a_watch_tells_changes_after_its_revision_in_order() -> None:
    store = Store()
    store.create(key("a"), obj("a"))
    since = store.revision
    store.replace(key("a"), obj("a", x=1))
    store.create(key("b"), obj("b"))
    store.remove(key("a"))
    events = await store.watch(kinds.PODS, since=since).batch(1)
    assert [(event.type, event.stored.key.name) for event in events] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    assert events[2].old is not None and events[2].old.object["x"] == 1
    assert int(events[2].stored.object["metadata"]["resourceVersion"]) == store.revision


async def test_a_watch_of_a_namespace_sees_only_its_own_objects() -> None:
    store = Store()
    watch = store.watch(kinds.PODS, "ns")
    store.create(key("a", "other"), obj("a", "other"))
    store.create(key("b"), obj("b"))
    assert [event.stored.key.name for event in await watch.batch(1)] == ["b"]
    assert watch.revision == store.revision


async def test_a_waiting_watch_wakes_on_a_change_and_gives_up_at_its_deadline() -> None:
    store = Store()
    watch = store.watch(kinds.PODS)
    assert await watch.batch(0) == []
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(watch.batch(10))
        await asyncio.sleep(0)
        store.create(key("a"), obj("a"))
    assert [event.type for event in waiting.result()] == ["ADDED"]


async def test_a_watch_can_be_iterated() -> None:
    store = Store()
    watch = store.watch(kinds.PODS)
    store.create(key("a"), obj("a"))
    async for event in watch:
        assert event.stored.key.name == "a"
        break


async def test_the_log_is_bounded_and_readers_that_fell_behind_are_told() -> None:
    store = Store(log_capacity=4)
    slow = store.watch(kinds.PODS)
    store.create(key("a"), obj("a"))
    for count in range(20):
        store.replace(key("a"), obj("a", x=count))
    with pytest.raises(Gone):
        await slow.batch(0)
    with pytest.raises(Gone):
        store.watch(kinds.PODS, since=2)
    assert len(await store.watch(kinds.PODS, since=store.revision - 3).batch(0)) == 3


async def test_compaction_ends_watches_even_when_they_wait() -> None:
    store = Store()
    store.create(key("a"), obj("a"))
    waiting = asyncio.create_task(store.watch(kinds.PODS, since=store.revision).batch(10))
    await asyncio.sleep(0)
    store.compact()
    assert await waiting == []
    with pytest.raises(Gone):
        store.watch(kinds.NODES, since=1)


def test_a_snapshot_restores_objects_and_revision() -> None:
    store = Store()
    store.create(key("a"), obj("a"))
    store.create(Key.of(kinds.NODES, None, "n"), {"metadata": {"name": "n"}})
    store.remove(key("a"))
    other = Store()
    snapshots.restore(other, snapshots.take(store))
    assert other.revision == store.revision
    assert snapshots.take(other) == snapshots.take(store)
    with pytest.raises(Gone):
        other.watch(kinds.NODES, since=store.revision - 1)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":2}', b'{"format":1,"revision":1,"objects":[{}]}'])
def test_an_unreadable_snapshot_changes_nothing(content: bytes) -> None:
    store = Store()
    store.create(key("a"), obj("a"))
    before = snapshots.take(store)
    with pytest.raises(StorageError):
        snapshots.restore(store, content)
    assert snapshots.take(store) == before


def test_listeners_hear_of_every_write() -> None:
    store = Store()
    changed = asyncio.Event()
    store.add_listener(changed)
    store.create(key("a"), obj("a"))
    assert changed.is_set()


steps = st.lists(st.tuples(st.sampled_from(["create", "replace", "remove"]), st.sampled_from("abc")), max_size=40)


@given(steps=steps, start=st.integers(0, 40))
def test_replaying_a_watch_over_a_list_gives_the_present_state(steps: list[tuple[str, str]], start: int) -> None:
    """The contract of list and watch: whatever is listed at a revision, changes from there lead to the present."""
    store = Store()
    seen: dict[str, int] = {}
    since = 0
    for index, (action, name) in enumerate(steps):
        if index == min(start, len(steps) - 1):
            seen = {stored.key.name: stored.revision for stored in store.list(kinds.PODS)}
            since = store.revision
        try:
            if action == "remove":
                store.remove(key(name))
            else:
                getattr(store, action)(key(name), obj(name, step=index))
        except (Exists, Missing):
            pass
    if not steps:
        return
    revisions = []
    for event in asyncio.run(store.watch(kinds.PODS, since=since).batch(0)):
        revisions.append(event.revision)
        if event.type == "DELETED":
            del seen[event.stored.key.name]
        else:
            seen[event.stored.key.name] = event.revision
    assert seen == {stored.key.name: stored.revision for stored in store.list(kinds.PODS)}
    assert revisions == sorted(set(revisions))
