"""Namespaces of their own for everything that runs: who enters them, and what is done first in them.

Processes, mounts, networks and rules of packet filters end with the namespaces that hold them, even when everything is
killed at once. What the kernel does not hold in a namespace is covered up instead: directories that containerd, CNI and
the kubelet write to by habit, and settings of the machine that a kubelet would change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.realnode.addresses import CONTROL, CONTROL_BRIDGE, NodeAddresses
from e2e.realnode.commands import run

ENTER = ("unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc")
"""Starts a command as the first process of the namespaces. When this one is killed, all in them are."""
TIED = ("setpriv", "--pdeathsig", "KILL")
"""Starts a command that ends when who started it has ended, however that came."""

COVERED = ("/run", "/var/lib", "/var/log")
"""Directories of the machine that are empty ones of our own inside."""

WANTED_SETTINGS: Mapping[str, str] = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet insists on. Shown to it by files laid over the machine's, which stay as they are."""


def entering(command: Sequence[str | Path]) -> list[str]:
    """The command line that runs ``command`` in namespaces of its own."""
    return [*TIED, *ENTER, *map(str, command)]


async def cover(volatile: Path) -> None:
    """Make the directory ``volatile`` a place in memory, and lay parts of it over the machine's. For inside only.

    In memory, since to take away the ten thousand files of an image takes a minute on some disks.
    """
    await run("mount", "--types", "tmpfs", "--options", "mode=0755", "volatile", volatile)
    for place in COVERED:
        own = volatile / "covers" / place.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        await run("mount", "--bind", own, place)
    settings = volatile / "covers" / "settings"
    for name, value in WANTED_SETTINGS.items():
        file = settings / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        await run("mount", "--bind", file, f"/proc/sys/{name}")


async def connect(nodes: Sequence[NodeAddresses]) -> None:
    """Make loopback, one bridge for the control plane and one for each node, and let packets pass between them."""
    await run("ip", "link", "set", "lo", "up")
    for name, address in [(CONTROL_BRIDGE, CONTROL), *((node.name, node.address) for node in nodes)]:
        await run("ip", "link", "add", name, "type", "bridge")
        await run("ip", "address", "add", f"{address}/24", "dev", name)
        await run("ip", "link", "set", name, "up")
    await asyncio.to_thread(Path("/proc/sys/net/ipv4/ip_forward").write_text, "1")
