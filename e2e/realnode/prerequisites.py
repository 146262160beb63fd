"""What the machine must have: programs of Debian's packages, and the right to make namespaces."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from e2e.realnode.commands import CommandError, run
from e2e.realnode.configurations import CNI_PLUGINS

PROGRAMS: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "iptables-restore": "iptables",
    "ip": "iproute2",
    "mount": "mount",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "strip": "binutils",
}
"""Debian's package by program."""
FILES: Mapping[Path, str] = {
    CNI_PLUGINS / name: "containernetworking-plugins" for name in ("bridge", "host-local", "loopback", "portmap")
}
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes")
APT_SECONDS = 900.0


class PrerequisiteError(Exception):
    """Something is missing that cannot be had here; the text names it and the next step."""

    for_user = True


def missing(
    which: Callable[[str], object] = shutil.which, exists: Callable[[Path], bool] = Path.exists
) -> dict[str, str]:
    """Packages by the program or file that is not there."""
    programs = {program: package for program, package in PROGRAMS.items() if not which(program)}
    return programs | {str(path): package for path, package in FILES.items() if not exists(path)}


async def provide(say: Callable[[str], None]) -> None:
    """Install what is missing, where this may be done.

    Raises:
        PrerequisiteError: not root, or something is missing on a machine without apt, or apt does not have it.
    """
    if os.geteuid() != 0:
        raise PrerequisiteError(
            "real nodes need root, for namespaces and control groups: become root, or run make e2e, which needs none"
        )
    lacking = missing()
    if not lacking:
        return
    packages = sorted(set(lacking.values()))
    if shutil.which("apt-get") is None:
        raise PrerequisiteError(
            f"{', '.join(sorted(lacking))} not found: install what Debian calls {', '.join(packages)}"
        )
    say(f"installing {', '.join(packages)} with apt-get")
    await _install(packages)
    if lacking := missing():
        raise PrerequisiteError(f"{', '.join(sorted(lacking))} not found after installing {', '.join(packages)}")


async def _install(packages: list[str]) -> None:
    install = [*APT, "install", "--no-install-recommends", *packages]
    try:
        await run(*install, seconds=APT_SECONDS)
    except CommandError:
        # A machine that has just been made has no lists of packages, or old ones.
        await run(*APT, "update", seconds=APT_SECONDS)
        await run(*install, seconds=APT_SECONDS)
