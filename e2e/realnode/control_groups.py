"""The control group of all containers: made before, removed afterwards, since no namespace ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
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


async def remove(name: str, root: Path = ROOT) -> list[Path]:
    """Remove the control group and those below it, once the kernel has taken their processes away.

    Answers what is still there after half a minute.
    """
    deadline = time.monotonic() + GONE_SECONDS
    while True:
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
