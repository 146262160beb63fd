"""Where the binaries of the real control plane come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.realcluster import binaries
from e2e.realcluster.binaries import BINARIES, BuildError


@pytest.fixture
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no other place to look."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(binaries, "CACHE", tmp_path)
    return tmp_path


def test_given_binaries_are_preferred(nothing_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (assets := tmp_path / "assets").mkdir()
    (assets / "etcd").write_text("given")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert binaries.find("etcd") == assets / "etcd"
    assert binaries.find("kwok") is None


def test_a_binary_built_from_the_same_sources_is_used_again(nothing_built: Path) -> None:
    (nothing_built / "etcd").write_text("built")
    assert binaries.find("etcd") is None, "nothing says what it was built from"
    (nothing_built / "etcd.digest").write_text(BINARIES["etcd"].digest())
    assert binaries.find("etcd") == nothing_built / "etcd"


def test_a_binary_built_from_other_sources_is_not_used(nothing_built: Path) -> None:
    (nothing_built / "etcd").write_text("built")
    (nothing_built / "etcd.digest").write_text(BINARIES["helm"].digest())
    assert binaries.find("etcd") is None


async def test_without_go_one_line_says_what_to_do(nothing_built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(nothing_built))
    with pytest.raises(BuildError) as failed:
        await binaries.provide(["etcd"])
    assert "\n" not in str(failed.value)
    assert "etcd is not there and go is not on PATH: install Go" in str(failed.value)
    assert "KUBEBUILDER_ASSETS" in str(failed.value)


async def test_a_build_that_fails_shows_the_compilers_words(
    nothing_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools := tmp_path / "tools").mkdir()
    go = tools / "go"
    go.write_text("#!/bin/sh\necho does not compile >&2\nexit 2\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    with pytest.raises(BuildError, match=r"building etcd failed with exit code 2:\ndoes not compile"):
        await binaries.provide(["etcd"])
    assert binaries.find("etcd") is None


@pytest.mark.parametrize("name", BINARIES)
def test_every_binary_has_a_module_with_pinned_sums(name: str) -> None:
    directory = BINARIES[name].directory
    assert (directory / "go.mod").is_file()
    assert (directory / "go.sum").is_file()
