"""What the builder makes of unpacked packages."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from images.rootfs import CERTIFICATES, fix_modes_and_times, furnish, python_command

from images import ImageError


def _modes(root: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o7777) for path in root.rglob("*") if not path.is_symlink()}


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o000])
def test_modes_and_times_are_the_same_whoever_builds(tmp_path: Path, umask: int) -> None:
    root = tmp_path / "root"
    before = os.umask(umask)
    try:
        (root / "etc").mkdir(parents=True)
        (root / "etc/passwd").write_text("")
        (root / "etc/tool").write_text("")
        (root / "etc/link").symlink_to("nowhere")
        (root / "scratch").mkdir()
    finally:
        os.umask(before)
    (root / "etc/tool").chmod(0o700)
    (root / "scratch").chmod(0o1777)
    fix_modes_and_times(root, 1234)
    assert _modes(root) == {"etc": "0o755", "passwd": "0o644", "tool": "0o755", "scratch": "0o1777"}
    assert {path.lstat().st_mtime for path in (root, *root.rglob("*"))} == {1234}
    assert stat.S_IMODE(root.stat().st_mode) == 0o755


def _with_certificates(root: Path) -> Path:
    for name, text in {"mozilla/B.crt": "B\n", "mozilla/A.crt": "A\n", "mozilla/README": "no"}.items():
        path = root / "usr/share/ca-certificates" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "usr/bin").mkdir()
    return root


def test_certificates_are_one_bundle_where_openssl_looks(tmp_path: Path) -> None:
    furnish(_with_certificates(tmp_path))
    assert (tmp_path / CERTIFICATES).read_text() == "A\nB\n"
    assert (tmp_path / "usr/lib/ssl/cert.pem").readlink() == Path("/", CERTIFICATES)


def test_the_user_is_known_and_has_no_shell(tmp_path: Path) -> None:
    furnish(_with_certificates(tmp_path))
    (line,) = (text for text in (tmp_path / "etc/passwd").read_text().splitlines() if text.startswith("stromboli:"))
    assert line.split(":")[2:] == ["65532", "65532", "", "/tmp", "/nonexistent"]


def test_a_root_without_libc_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="libc6 is missing"):
        python_command(tmp_path)
