"""The state file: kept between runs, never half written, never lost."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from stromboli.api import kinds
from stromboli.localcluster import statefile
from stromboli.localcluster.certificates import write_private
from stromboli.localcluster.statefile import StateFile, StateFileError
from stromboli.localcluster.storage import Key, Store

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


def test_heartbeats_alone_are_not_worth_writing(tmp_path: Path) -> None:
    path, beats = tmp_path / "state", [0]
    store = filled()
    state = StateFile(store, path, lambda: beats[0])
    state.save()
    path.unlink()
    store.replace(PLACE, {**filled().list(kinds.CONFIG_MAPS)[0].object})
    beats[0] += 1
    state.save()
    assert not path.exists()
    store.replace(PLACE, {**filled().list(kinds.CONFIG_MAPS)[0].object})
    state.save()
    assert path.exists()


def test_an_overtaken_write_does_not_win(tmp_path: Path) -> None:
    """At the end the last state is written while a thread may still be on its way with an older one."""
    path = tmp_path / "state"
    store = filled("old")
    state = StateFile(store, path)
    older = (store.revision, store.snapshot())
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


async def test_changes_are_saved_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statefile, "SETTLE_SECONDS", 0.01)
    written = threading.Event()

    def write(path: Path, content: bytes) -> None:
        write_private(path, content)
        written.set()

    monkeypatch.setattr(statefile, "write_private", write)
    store = filled()
    state = StateFile(store, tmp_path / "state")
    keeping = asyncio.create_task(state.keep())
    await asyncio.sleep(0)
    present = store.get(PLACE)
    assert present is not None
    store.replace(PLACE, {**present.object, "data": {"k": "later"}})
    async with asyncio.timeout(10):
        await asyncio.to_thread(written.wait)
    assert b"later" in (tmp_path / "state").read_bytes()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
