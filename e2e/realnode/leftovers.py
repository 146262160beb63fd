"""What a run has left on the machine. Seen before and after by :func:`look`, judged by :func:`leftovers`.

Other work goes on on the machine at the same time, so a thing is a leftover only when it carries a mark of the run: its
name, one of its namespaces, or a kind that only nodes make and that was not there before.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.realnode import control_groups
from e2e.realnode.commands import run
from e2e.realnode.confinement import WANTED_SETTINGS

PLACES = ("/etc/cni", "/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods")
"""Where nodes write by habit."""
SETTINGS = (*WANTED_SETTINGS, "net/ipv4/ip_forward")
LINKS = re.compile(r"control|node-\d+|veth.*|cni.*")
RULES = re.compile(r"KUBE-|CNI-|10\.250\.")
NAMED_NAMESPACES = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Marks:
    """How things of a run are told from others: its name, and the kernel's names of its namespaces."""

    name: str
    namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Process:
    """A process, as far as it says where it belongs."""

    pid: int
    command: str
    namespaces: frozenset[str] = frozenset()
    groups: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """The machine at one moment."""

    processes: tuple[Process, ...] = ()
    mounts: frozenset[str] = frozenset()
    """File system type and mount point."""
    links: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()
    named_namespaces: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    settings: tuple[tuple[str, str], ...] = ()


def leftovers(before: Sight, after: Sight, marks: Marks) -> list[str]:
    """One line for each thing that is left."""
    return [
        *(f"process {process.pid}: {process.command}" for process in belonging(after.processes, marks)),
        *(f"mount {mount}" for mount in sorted(after.mounts - before.mounts) if _is_nodes(mount, marks)),
        *(f"network interface {link}" for link in sorted(after.links - before.links) if LINKS.fullmatch(link)),
        *(f"iptables rule {rule}" for rule in sorted(after.rules - before.rules) if RULES.search(rule)),
        *(f"network namespace {name}" for name in sorted(after.named_namespaces - before.named_namespaces)),
        *(f"directory {place}" for place in sorted(after.places - before.places)),
        *(f"control group {group}" for group in sorted(after.groups)),
        *_changed(dict(before.settings), dict(after.settings)),
    ]


def belonging(processes: Iterable[Process], marks: Marks) -> Iterator[Process]:
    """The processes that are the run's."""
    for process in processes:
        if process.namespaces & marks.namespaces or marks.name in process.groups or marks.name in process.command:
            yield process


def _is_nodes(mount: str, marks: Marks) -> bool:
    return marks.name in mount or mount.startswith("nsfs ")


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name, value in after.items():
        if (old := before.get(name, value)) != value:
            yield f"kernel setting {name.replace('/', '.')}: {old} became {value}"


def mounts_of(mountinfo: str) -> frozenset[str]:
    """Type and mount point of each line of ``/proc/self/mountinfo``."""
    found = set()
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        found.add(f"{rest.split()[0]} {fields.split()[4]}")
    return frozenset(found)


def namespaces_of(process: str | int) -> frozenset[str]:
    """The kernel's names of a process's namespaces; none for one that has ended. The machine's own are no marks."""
    found = set()
    for kind in ("mnt", "net", "pid", "ipc", "uts"):
        try:
            found.add(os.readlink(f"/proc/{process}/ns/{kind}"))
        except OSError:
            return frozenset()
    return frozenset(found)


async def look(name: str) -> Sight:
    """The machine now, with the control groups of the run of that name."""
    rules = await run("iptables-save") if shutil.which("iptables-save") else ""
    return Sight(
        processes=tuple(processes()),
        mounts=mounts_of(_text("/proc/self/mountinfo")),
        links=_names(Path("/sys/class/net")),
        # Counters and comments change by themselves.
        rules=frozenset(line for line in rules.splitlines() if line.startswith("-")),
        named_namespaces=_names(NAMED_NAMESPACES),
        places=frozenset(_existing(PLACES)),
        groups=frozenset(map(str, control_groups.trees(name))),
        settings=tuple((name, _text(f"/proc/sys/{name}").strip()) for name in SETTINGS),
    )


def processes() -> Iterator[Process]:
    """All processes but this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            command = _text(entry / "cmdline").replace("\0", " ").strip()
            yield Process(int(entry.name), command, namespaces_of(entry.name), _text(entry / "cgroup"))


def _existing(places: Iterable[str]) -> Iterator[str]:
    return (place for place in places if os.path.exists(place))


def _names(directory: Path) -> frozenset[str]:
    return frozenset(os.listdir(directory)) if directory.is_dir() else frozenset()


def _text(path: str | Path) -> str:
    """A file of the kernel's; empty when it is gone."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
