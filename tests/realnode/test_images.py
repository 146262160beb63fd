"""Images for nodes: when they are built anew, and what a job's image holds."""

from __future__ import annotations

from pathlib import Path

from e2e.realnode.images import WORKLOAD_FILES, digest, furnish
from e2e.realnode.surroundings import Settings, Surroundings


def test_the_digest_follows_names_and_content_of_sources_alone(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "one.py").write_text("1")
    first = digest([source])
    (source / "__pycache__").mkdir()
    (source / "__pycache__" / "one.pyc").write_text("compiled")
    (source / "stromboli.egg-info").mkdir()
    (source / "stromboli.egg-info" / "PKG-INFO").write_text("written by an installer")
    assert digest([source]) == first
    (source / "one.py").rename(source / "two.py")
    renamed = digest([source])
    assert renamed != first
    (source / "two.py").write_text("2")
    assert digest([source]) not in (first, renamed)


def test_busyboxs_commands_fill_the_gaps_between_real_ones(tmp_path: Path) -> None:
    for name in ("bin", "usr/bin", "usr/share/doc", "etc"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin/busybox").write_text("#!/bin/sh\necho sh\necho ssh\n")
    (tmp_path / "bin/busybox").chmod(0o755)
    (tmp_path / "usr/bin/ssh").write_text("the real one")
    furnish(tmp_path)
    assert (tmp_path / "bin/sh").readlink() == Path("busybox")
    assert not (tmp_path / "bin/ssh").exists()
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert all((tmp_path / name).read_text() == text for name, text in WORKLOAD_FILES.items())


def test_settings_and_surroundings_arrive_as_they_were_written(tmp_path: Path) -> None:
    settings = Settings("run", tmp_path, {"helm": Path("/bin/helm")}, [Path("/image.tar")], False, ["-k", "x"])
    settings.write(tmp_path / "settings")
    assert Settings.read(tmp_path / "settings") == settings
    surroundings = Surroundings(Path("/k"), Path("/log"), {"helm": Path("/bin/helm")}, ["node-1"], "image:1")
    surroundings.write(tmp_path / "surroundings")
    assert Surroundings.read(tmp_path / "surroundings") == surroundings
