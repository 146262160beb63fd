"""The base: a few packages of Debian, unpacked without installing them.

No package manager, no shell and no maintainer script gets into the image. What the scripts would have made (accounts,
the bundle of certificates) is made by ``images.rootfs``. Scanners find the packages in ``/var/lib/dpkg/status.d``, the
place that other images without a package manager use.
"""

from __future__ import annotations

import email.parser
import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from images import ImageError
from images.running import run

CODENAME = "bookworm"
PYTHON = "python3.11"
PACKAGES = (
    "base-files", "ca-certificates", "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1",
    "liblzma5", f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib", "libssl3", "libstdc++6", "libuuid1", "media-types",
    "netbase", f"{PYTHON}-minimal", "zlib1g",
)  # fmt: skip

# Directories that live under /usr, with a link from the root.
MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")

LEFT_OUT = (
    "usr/lib/*-linux-gnu/gconv",  # converters of iconv; Python has its own codecs
    "usr/sbin",
    "usr/share/bug",
    "usr/share/doc/*/[!c]*",  # copyright stays
    "usr/share/doc/*/changelog*",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/lib/python3.*/pydoc_data",  # texts of the interactive help
    # Modules whose libraries are not in PACKAGES; nothing here uses them.
    "usr/lib/python3.*/lib-dynload/_curses*",
    "usr/lib/python3.*/lib-dynload/_dbm.*",
    "usr/lib/python3.*/lib-dynload/_sqlite3.*",
    "usr/lib/python3.*/lib-dynload/nis.*",
    "usr/lib/python3.*/lib-dynload/readline.*",
)


@dataclass(frozen=True, slots=True)
class Package:
    """One binary package."""

    name: str
    version: str
    architecture: str
    sha256: str
    control: str


def fetch(into: Path, packages: Sequence[str] = PACKAGES) -> list[Path]:
    """Downloads packages with apt, which checks their signatures.

    Raises:
        ImageError: this is no machine to take the packages from, or apt could not get them.
    """
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").is_file() else ""
    if shutil.which("apt-get") is None or f"VERSION_CODENAME={CODENAME}" not in release:
        raise ImageError(f"packages are taken from Debian {CODENAME}'s own apt: build with the Dockerfile elsewhere")
    command = ["apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", *packages]
    run(command, cwd=into, failed="apt-get download failed (try apt-get update first)")
    return sorted(into.glob("*.deb"))


def describe(archive: Path) -> Package:
    """What a package file says about itself."""
    control = run(["dpkg-deb", "--field", archive], failed=f"{archive.name} cannot be read").decode()
    fields = email.parser.Parser().parsestr(control)
    return Package(
        fields["Package"],
        fields["Version"],
        fields["Architecture"],
        hashlib.sha256(archive.read_bytes()).hexdigest(),
        control,
    )


def unpack(archives: Sequence[Path], root: Path) -> list[Package]:
    """Unpacks the packages into ``root`` and notes them for scanners."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    packages = []
    for archive in archives:
        content = run(["dpkg-deb", "--fsys-tarfile", archive], failed=f"{archive.name} cannot be unpacked")
        with tarfile.open(fileobj=io.BytesIO(content)) as files:
            unpack_tar(files, root)
        packages.append(describe(archive))
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for package in packages:
        (status / package.name).write_text(package.control)
    return packages


def destination(name: str) -> PurePosixPath | None:
    """Where a member of a package goes, relative to the root; None if it is left out.

    Raises:
        ImageError: the name leads out of the root.
    """
    path = PurePosixPath(name.removeprefix("./"))
    if ".." in path.parts:
        raise ImageError(f"a package holds {name!r}, which leads out of the image")
    if not path.parts:
        return None
    if path.parts[0] in MERGED:
        path = PurePosixPath("usr", path)
    outer = [path, *path.parents]
    return None if any(part.match(pattern) for pattern in LEFT_OUT for part in outer) else path


def unpack_tar(files: tarfile.TarFile, root: Path) -> None:
    """Unpacks members where ``destination`` says; owners are not kept, everything is root's in the image."""
    for member in files:
        relative = destination(member.name)
        if relative is None:
            continue
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            path.mkdir(exist_ok=True)
            path.chmod(member.mode & 0o1777)
        elif member.issym():
            path.symlink_to(member.linkname)
        elif content := files.extractfile(member):
            path.write_bytes(content.read())
            # No program in the image runs with another's rights.
            os.chmod(path, member.mode & 0o777)
        else:
            raise ImageError(f"a package holds {member.name!r}, which is neither file, directory nor link")
