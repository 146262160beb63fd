"""The policy file is reloaded for its content, not for noise in its folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stromboli.scheduler.watching_files import ContentWatch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"one")
    return path


def test_unchanged_touched_or_neighbouring_files_mean_nothing(path: Path) -> None:
    watch = ContentWatch(path)
    watch.read()
    os.utime(path, (1, 1))
    (path.parent / "other").write_bytes(b"noise")
    assert watch.look() is None


def test_each_change_is_seen_once(path: Path) -> None:
    watch = ContentWatch(path)
    watch.read()
    path.write_bytes(b"two")
    assert watch.look() == b"two"
    assert watch.look() is None


def test_swapped_symlinks_of_a_config_map_are_seen(tmp_path: Path) -> None:
    for number, content in enumerate([b"old", b"new"]):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "policy.yaml").write_bytes(content)
    data = tmp_path / "..data"
    data.symlink_to("..0")
    path = tmp_path / "policy.yaml"
    path.symlink_to("..data/policy.yaml")
    watch = ContentWatch(path)
    assert watch.read() == b"old"
    swap = tmp_path / "..data_tmp"
    swap.symlink_to("..1")
    swap.rename(data)
    assert watch.look() == b"new"


def test_missing_file_is_reported_once_and_seen_again_when_it_is_back(path: Path) -> None:
    watch = ContentWatch(path)
    watch.read()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        watch.look()
    assert watch.look() is None
    path.write_bytes(b"one")
    assert watch.look() is None, "back with the content that is in force"
    path.write_bytes(b"two")
    assert watch.look() == b"two"
