"""What the machine lacks, and who is told what about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from e2e.realnode import prerequisites
from e2e.realnode.prerequisites import FILES, PROGRAMS, PrerequisiteError, missing


def test_a_machine_with_everything_lacks_nothing() -> None:
    assert missing(lambda program: program, lambda path: True) == {}


def test_what_is_missing_is_named_with_its_package() -> None:
    found = missing(lambda program: program != "runc", lambda path: path.name != "bridge")
    assert found == {"runc": "runc", "/usr/lib/cni/bridge": "containernetworking-plugins"}


def test_an_empty_machine_lacks_it_all() -> None:
    assert missing(lambda program: None, lambda path: False).keys() == {*PROGRAMS, *map(str, FILES)}


async def test_without_root_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PrerequisiteError, match=r"^real nodes need root, .*: become root, or run make e2e"):
        await prerequisites.provide(print)


async def test_without_apt_the_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"containerd, .*runc.* not found: install what Debian calls .*runc"):
        await prerequisites.provide(print)


def fake_apt(place: Path, script: str) -> None:
    """An apt-get that does as the script says; ``env`` is what calls it."""
    (place / "env").symlink_to("/usr/bin/env")
    (place / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {place}/calls\n{script}\n')
    (place / "apt-get").chmod(0o755)


async def test_old_lists_of_packages_are_renewed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_apt(
        tmp_path, f'case "$*" in *install*) /usr/bin/test -e {tmp_path}/renewed ;; *) : > {tmp_path}/renewed ;; esac'
    )
    with pytest.raises(PrerequisiteError, match="not found after installing"):
        await prerequisites.provide(lambda line: None)
    verbs = [line.split()[2] for line in (tmp_path / "calls").read_text().splitlines()]
    assert verbs == ["install", "update", "install"]
