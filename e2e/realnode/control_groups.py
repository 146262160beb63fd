"""Control groups of a run: removed afterwards, since no namespace ends them.

There is one of the run's own, and those that containerd makes below ``k8s.io`` for containers whose pods have no group
of their own, as it is where cgroups per quality of service are off.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTAINERS = "k8s.io"
GONE_SECONDS = 30.0
POLL_SECONDS = 0.1


def trees(name: str, root: Path = ROOT) -> list[Path]:
    """The directories of the control group: one in version 2, one for each controller in version 1."""
    return [path for path in (root / name, *sorted(root.glob(f"*/{name}"))) if path.is_dir()]


def make(name: str, root: Path = ROOT) -> None:
    """Make the control group in every hierarchy that is mounted."""
    if (root / "cgroup.controllers").is_file():
        (root / name).mkdir()
        return
    for hierarchy in sorted(root.iterdir()):
        if hierarchy.is_dir() and (hierarchy / "cgroup.procs").is_file() and not hierarchy.is_symlink():
            (hierarchy / name).mkdir()


def containers(root: Path = ROOT) -> frozenset[Path]:
    """The groups that containerd has made for containers, and those that hold them."""
    holders = trees(CONTAINERS, root)
    return frozenset(holders).union(*({path for path in one.iterdir() if path.is_dir()} for one in holders))


async def remove(name: str, before: frozenset[Path], root: Path = ROOT) -> list[Path]:
    """Remove the run's control group, and those of containers that were not there ``before``, once the kernel has taken
    their processes away. Containers of somebody else's, begun meanwhile, have processes; their groups stay.

    Answers what of the run's own group is still there after half a minute.
    """
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        for path in sorted(containers(root) - before, key=lambda one: -len(one.parts)):
            list(_removed_from_below(path))
        left = [path for tree in trees(name, root) for path in _removed_from_below(tree)]
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(POLL_SECONDS)


def _removed_from_below(tree: Path) -> Iterator[Path]:
    """Remove directories, deepest first; yields those that are busy."""
    for path in (*sorted((p for p in tree.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)), tree):
        try:
            path.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            yield path
