"""Packages of Debian: what goes where, and what stays out."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

import pytest
from images.debian import destination, unpack_tar

from images import ImageError

PLACES = {
    "the root itself": ("./", None),
    "a library moves under usr": ("./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
    "the loader moves under usr": ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
    "a name that only begins like one": ("./library/x", "library/x"),
    "a hidden file keeps its dot": ("./etc/.pwd.lock", "etc/.pwd.lock"),
    "a licence stays": ("./usr/share/doc/libc6/copyright", "usr/share/doc/libc6/copyright"),
    "a changelog goes": ("./usr/share/doc/libc6/changelog.Debian.gz", None),
    "documentation goes": ("./usr/share/doc/libc6/README", None),
    "manuals go, however deep": ("./usr/share/man/de/man1/python3.11.1.gz", None),
    "character converters go": ("./usr/lib/x86_64-linux-gnu/gconv/gconv-modules.d/a.conf", None),
    "a module whose library is missing goes": ("./usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311.so", None),
    "other modules stay": ("./usr/lib/python3.11/lib-dynload/_ssl.so", "usr/lib/python3.11/lib-dynload/_ssl.so"),
}


@pytest.mark.parametrize(("name", "want"), PLACES.values(), ids=PLACES)
def test_place(name: str, want: str | None) -> None:
    assert destination(name) == (want and PurePosixPath(want))


def test_a_name_that_leads_out_is_refused() -> None:
    with pytest.raises(ImageError, match="leads out of the image"):
        destination("./usr/../../etc/shadow")


def _member(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.linkname = kind, mode, link
    return member


def _unpack(root: Path, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as files:
        for member, data in members:
            member.size = len(data)
            files.addfile(member, io.BytesIO(data))
    content.seek(0)
    with tarfile.open(fileobj=content) as files:
        unpack_tar(files, root)


def test_modes_are_kept_but_not_those_that_lend_rights(tmp_path: Path) -> None:
    _unpack(
        tmp_path,
        (_member("./tmp", tarfile.DIRTYPE, 0o1777), b""),
        (_member("./bin/su", mode=0o4755), b"su"),
    )
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "usr/bin/su").stat().st_mode & 0o7777 == 0o755


def test_links_of_both_kinds_are_kept(tmp_path: Path) -> None:
    _unpack(
        tmp_path,
        (_member("./lib/libz.so.1.2"), b"z"),
        (_member("./lib/libz.so.1", tarfile.SYMTYPE, link="libz.so.1.2"), b""),
        (_member("./lib/libz-hard.so", tarfile.LNKTYPE, link="./lib/libz.so.1.2"), b""),
    )
    assert (tmp_path / "usr/lib/libz.so.1").readlink() == Path("libz.so.1.2")
    assert (tmp_path / "usr/lib/libz-hard.so").read_bytes() == b"z"


def test_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"dev/null'.*neither file, directory nor link"):
        _unpack(tmp_path, (_member("./dev/null", tarfile.CHRTYPE), b""))
