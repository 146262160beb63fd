"""The images that the nodes run: our own as users get it, and one with a shell and ssh for jobs.

Built from package registries alone, and kept by the digest of what they are made of.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from images import ImageError, archive, build, debian, running

PROJECT = Path(__file__).parents[2]
KEPT_OLDER = 2
CACHE = PROJECT / ".stromboli" / "images"
OWN_SOURCES = ("src", "images", "pyproject.toml", "constraints.txt")
WORKLOAD = "stromboli.invalid/workload:1"
"""A shell with busybox's commands, ssh and sshd; without a command it sleeps, which is what sandboxes need.

With its tag it is never asked of a registry.
"""
WORKLOAD_PACKAGES = (
    "busybox-static", "libaudit1", "libc6", "libcap-ng0", "libcap2", "libcom-err2", "libcrypt1", "libgcrypt20",
    "libgpg-error0", "libgssapi-krb5-2", "libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "liblz4-1",
    "liblzma5", "libnsl2", "libpam0g", "libpcre2-8-0", "libselinux1", "libssl3", "libsystemd0", "libtirpc3", "libwrap0",
    "libzstd1", "openssh-client", "openssh-server", "zlib1g",
)  # fmt: skip
WORKLOAD_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/shells": "/bin/sh\n",
    "etc/ssh/sshd_config": "PermitRootLogin prohibit-password\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
WORKLOAD_CONFIG = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["sleep", "2147483647"], "WorkingDir": "/"}

__all__ = ["ImageError", "WORKLOAD", "digest", "furnish", "provide"]

Say = Callable[[str], None]


def provide(say: Say) -> list[Path]:
    """Archives of both images.

    Raises:
        ImageError: one of them cannot be built.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    return [_own(say), _workload(say)]


def digest(paths: Iterable[Path], *more: str) -> str:
    """Of names and content of all files below the paths, compiled ones left aside."""
    state = hashlib.sha256("\n".join(more).encode())
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and file.suffix != ".pyc" and not any(p.endswith(".egg-info") for p in file.parts):
                state.update(f"{file.relative_to(path.parent)}\0".encode())
                state.update(file.read_bytes())
    return state.hexdigest()[:16]


def _own(say: Say) -> Path:
    """The project's image by its own builder, under the name that the chart asks for."""
    target = CACHE / f"stromboli-{digest(PROJECT / name for name in OWN_SOURCES)}.tar"
    if target.is_file():
        return target
    say("building the image (once per state of the sources; two minutes or so)")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".new-", dir=CACHE) as place:
        running.run([sys.executable, "-m", "images.build", "--output", place], cwd=PROJECT, failed="no image")
        (built,) = Path(place).glob("*.tar")
        _keep(built, target, "stromboli-*.tar")
    say(f"built the image in {time.monotonic() - started:.0f} s")
    return target


def _workload(say: Say) -> Path:
    here = Path(__file__)
    target = CACHE / f"workload-{digest([here, here.parents[2] / 'images'])}.tar"
    if target.is_file():
        return target
    say("building the image of the jobs' containers")
    with tempfile.TemporaryDirectory(prefix=".new-", dir=CACHE) as place:
        root, packages, built = Path(place, "root"), Path(place, "packages"), Path(place, "built.tar")
        packages.mkdir()
        for package in debian.fetch(packages, WORKLOAD_PACKAGES):
            running.run(["dpkg-deb", "--extract", package, root], failed=f"{package.name} cannot be unpacked")
        furnish(root)
        archive.write(root, WORKLOAD, "1", build.architecture(), 0, built, config=WORKLOAD_CONFIG)
        _keep(built, target, "workload-*.tar")
    return target


def furnish(root: Path) -> None:
    """Add what installation scripts would have made: busybox's commands, accounts and directories.

    Host keys are not among it: each container makes its own (``ssh-keygen -A``).
    """
    names = running.run([root / "bin/busybox", "--list"], failed="busybox does not run").decode().split()
    for name in names:
        if not any((root / place / name).exists() for place in ("bin", "usr/bin", "sbin", "usr/sbin")):
            (root / "bin" / name).symlink_to("busybox")
    for name, text in WORKLOAD_FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    for name, mode in {"tmp": 0o1777, "root": 0o700, "run/sshd": 0o755, "var/empty": 0o755}.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    shutil.rmtree(root / "usr/share", ignore_errors=True)


def _keep(built: Path, target: Path, pattern: str) -> None:
    """Keep a new archive and few of its forerunners: a run that has started may still be reading one."""
    older = sorted(target.parent.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in older[KEPT_OLDER:]:
        path.unlink(missing_ok=True)
    built.replace(target)
