"""The state file: kept between runs, never half written, never lost."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stromboli.api import kinds
from stromboli.localcluster import snapshots, statefile
from stromboli.localcluster.statefile import StateFile, StateFileError
from stromboli.localcluster.storage import Key, NotRecorded, Store

PLACE = Key.of(kinds.CONFIG_MAPS, "default", "a")


def filled(text: str = "b") -> Store:
    store = Store()
    store.create(PLACE, {"metadata": {"name": "a", "namespace": "default", "uid": "1"}, "data": {"k": text}})
    return store


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    before = filled()
    StateFile(before, tmp_path / "state").save()
    after = Store()
    assert StateFile(after, tmp_path / "state").restore()
    found = after.get(PLACE)
    assert found is not None
    assert found.object["data"] == {"k": "b"}
    assert after.revision == before.revision
    assert os.stat(tmp_path / "state").st_mode & 0o077 == 0


def test_without_a_file_there_is_nothing_to_restore(tmp_path: Path) -> None:
    store = Store()
    assert not StateFile(store, tmp_path / "state").restore()
    assert store.revision == Store().revision


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"{}",
        b"[]",
        b'{"format":9,"revision":1,"objects":[]}',
        b'{"format":1,"revision":1,"objects":[{}]}',
    ],
)
def test_a_corrupt_file_stops_the_start_and_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    store = filled()
    with pytest.raises(StateFileError) as caught:
        StateFile(store, path).restore()
    assert str(path) in str(caught.value)
    assert "move it away to start afresh, or give another --state-file" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content
    assert store.get(PLACE) is not None


def test_a_truncated_file_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "state"
    StateFile(filled(), path).save()
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StateFileError):
        StateFile(Store(), path).restore()


def test_nothing_new_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = StateFile(filled(), path)
    state.save()
    path.unlink()
    state.save()
    assert not path.exists()


def test_an_overtaken_write_does_not_win(tmp_path: Path) -> None:
    """At the end the last state is written while a thread may still be on its way with an older one."""
    path = tmp_path / "state"
    store = filled("old")
    state = StateFile(store, path)
    older = (store.revision, snapshots.take(store))
    store.replace(PLACE, {**filled("new").list(kinds.CONFIG_MAPS)[0].object})
    state.save()
    state._write(*older)
    assert b"new" in path.read_bytes()


def test_a_place_that_cannot_be_written_is_found_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateFileError, match="cannot be written"):
        StateFile(Store(), tmp_path / "file" / "state").check_writable()
    StateFile(Store(), tmp_path / "new" / "state").check_writable()
    assert list((tmp_path / "new").iterdir()) == []


# The journal


def change(store: Store, text: str, place: Key = PLACE) -> None:
    """Write ``text`` into an object, as a client would."""
    obj = {"metadata": {"name": place.name, "namespace": "default", "uid": "1"}, "data": {"k": text}}
    (store.create if store.get(place) is None else store.replace)(place, obj)


def restored(path: Path) -> Store:
    store = Store()
    assert StateFile(store, path).restore()
    return store


def texts(store: Store) -> dict[str, str]:
    return {stored.key.name: stored.object["data"]["k"] for stored in store.list(kinds.CONFIG_MAPS)}


OTHER = Key.of(kinds.CONFIG_MAPS, "default", "b")


def test_changes_after_the_beginning_are_there_without_saving(tmp_path: Path) -> None:
    store = filled()
    StateFile(store, tmp_path / "state").begin()
    change(store, "later")
    change(store, "new", OTHER)
    found = restored(tmp_path / "state")
    assert (texts(found), found.revision) == ({"a": "later", "b": "new"}, store.revision)
    store.remove(PLACE)
    found = restored(tmp_path / "state")
    assert (texts(found), found.revision) == ({"b": "new"}, store.revision)
    assert os.stat(tmp_path / "state.journal").st_mode & 0o077 == 0


def test_a_last_record_that_is_torn_is_left_out(tmp_path: Path) -> None:
    store, journal = filled(), tmp_path / "state.journal"
    StateFile(store, tmp_path / "state").begin()
    change(store, "whole")
    whole = journal.stat().st_size
    change(store, "torn")
    written = journal.read_bytes()
    for end in range(whole, len(written)):
        journal.write_bytes(written[:end])
        assert texts(restored(tmp_path / "state")) == {"a": "whole"}, end


def test_a_broken_record_in_between_stops_the_start(tmp_path: Path) -> None:
    store, journal = filled(), tmp_path / "state.journal"
    StateFile(store, tmp_path / "state").begin()
    change(store, "one")
    change(store, "two")
    written = journal.read_bytes().replace(b'"one"', b'"one')
    journal.write_bytes(written)
    with pytest.raises(StateFileError, match="cannot be used"):
        StateFile(Store(), tmp_path / "state").restore()
    assert journal.read_bytes() == written


def test_a_journal_of_a_later_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    store = filled()
    StateFile(store, path).save()
    early = path.read_bytes()
    change(store, "between")
    StateFile(store, path).begin()
    path.write_bytes(early)
    with pytest.raises(StateFileError, match="the changes between the revisions 2 and 3 are missing"):
        StateFile(Store(), path).restore()


def test_an_orderly_end_leaves_the_state_file_alone(tmp_path: Path) -> None:
    store = filled()
    state = StateFile(store, tmp_path / "state")
    state.begin()
    change(store, "last")
    state.save()
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert texts(restored(tmp_path / "state")) == {"a": "last"}
    change(store, "after the end")  # is recorded nowhere, and fails nowhere


def test_without_a_state_file_its_journal_counts_for_nothing(tmp_path: Path) -> None:
    store = filled()
    StateFile(store, tmp_path / "state").begin()
    change(store, "later")
    (tmp_path / "state").unlink()
    afresh = Store()
    assert not StateFile(afresh, tmp_path / "state").restore()
    StateFile(afresh, tmp_path / "state").begin()
    assert texts(restored(tmp_path / "state")) == {}


class FullDisk(OSError):
    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, "No space left on device")


def test_a_change_that_cannot_be_recorded_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled()
    StateFile(store, tmp_path / "state").begin()
    write = os.write

    def half(file: int, data: memoryview) -> int:
        if len(data) < 40:
            raise FullDisk
        return write(file, data[: len(data) - 20])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(NotRecorded, match="No space left on device"):
            change(store, "refused")
    assert texts(store) == {"a": "b"}
    change(store, "again")
    assert texts(restored(tmp_path / "state")) == texts(store) == {"a": "again"}


@pytest.fixture
async def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    """A store whose state is kept, and written anew after each change."""
    monkeypatch.setattr(statefile, "JOURNAL_BYTES", 1)
    monkeypatch.setattr(statefile, "RETRY_SECONDS", 0.01)
    store = filled()
    state = StateFile(store, tmp_path / "state")
    state.begin()
    task = asyncio.create_task(state.keep())
    yield store
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until_in(path: Path, text: bytes) -> None:
    async with asyncio.timeout(30):
        while text not in path.read_bytes():  # noqa: ASYNC110, ASYNC240 - a file is the interface
            await asyncio.sleep(0.01)


async def test_a_journal_that_has_grown_large_goes_into_the_state_file(keeping: Store, tmp_path: Path) -> None:
    for number in range(20):
        change(keeping, f"text-{number}")
        await asyncio.sleep(0)
        assert texts(restored(tmp_path / "state")) == {"a": f"text-{number}"}
    change(keeping, "x" * 10_000)
    await until_in(tmp_path / "state", b"x" * 10_000)


async def test_a_state_that_cannot_be_written_anew_loses_nothing(
    keeping: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail(_path: Path, _content: bytes) -> None:
        loop.call_soon_threadsafe(tried.set)
        raise FullDisk

    with monkeypatch.context() as patched:
        patched.setattr(statefile, "write_private", fail)
        for number in range(3):
            tried.clear()
            change(keeping, str(number) * 10_000)
            async with asyncio.timeout(30):
                await tried.wait()
            assert texts(restored(tmp_path / "state")) == texts(keeping)
    await until_in(tmp_path / "state", b"2" * 10_000)
