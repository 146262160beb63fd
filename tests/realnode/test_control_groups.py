"""The control group of a run, in both versions of the kernel's hierarchies, on directories that stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.realnode import control_groups

NAME = "stromboli-e2e-node-7"


@pytest.fixture
def first_version(tmp_path: Path) -> Path:
    """One hierarchy for each controller, and links that some systems have beside them."""
    for controller in ("cpu", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    (tmp_path / "cpuacct").symlink_to("cpu")
    return tmp_path


@pytest.fixture
def second_version(tmp_path: Path) -> Path:
    """One hierarchy for all."""
    for name in ("cgroup.controllers", "cgroup.procs"):
        (tmp_path / name).touch()
    (tmp_path / "system.slice").mkdir()
    (tmp_path / "system.slice" / "cgroup.procs").touch()
    return tmp_path


def test_each_controller_gets_one(first_version: Path) -> None:
    control_groups.make(NAME, first_version)
    assert (first_version / "cpu" / NAME).is_dir()
    assert (first_version / "memory" / NAME).is_dir()


def test_the_one_hierarchy_gets_one(second_version: Path) -> None:
    control_groups.make(NAME, second_version)
    assert control_groups.trees(NAME, second_version) == [second_version / NAME]


async def test_containers_groups_go_before_their_parent(first_version: Path) -> None:
    control_groups.make(NAME, first_version)
    (first_version / "cpu" / NAME / "pod" / "container").mkdir(parents=True)
    assert await control_groups.remove(NAME, frozenset(), first_version) == []
    assert control_groups.trees(NAME, first_version) == []


async def test_what_is_busy_is_named(first_version: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands in for a process: neither lets its directory be removed."""
    control_groups.make(NAME, first_version)
    busy = first_version / "memory" / NAME / "container"
    busy.mkdir()
    (busy / "process").touch()
    monkeypatch.setattr(control_groups, "GONE_SECONDS", 0.0)
    assert await control_groups.remove(NAME, frozenset(), first_version) == [busy, busy.parent]


async def test_what_was_never_made_is_removed_at_once(tmp_path: Path) -> None:
    assert await control_groups.remove(NAME, frozenset(), tmp_path) == []


async def test_groups_of_containers_that_came_with_the_run_go(first_version: Path) -> None:
    ours, theirs = (first_version / "cpu" / "k8s.io" / name for name in ("a-container", "of-somebody-else"))
    theirs.mkdir(parents=True)
    before = control_groups.containers(first_version)
    ours.mkdir()
    (first_version / "memory" / "k8s.io" / "a-container").mkdir(parents=True)

    assert await control_groups.remove(NAME, before, first_version) == []
    assert theirs.is_dir()
    assert not ours.exists()
    assert not (first_version / "memory" / "k8s.io").exists()
