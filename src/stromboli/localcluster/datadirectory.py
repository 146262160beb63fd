"""The data directory of a cluster: held by one process at a time, and noticed when it vanishes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock"
WATCH_SECONDS = 1.0


class DataDirectoryInUse(Exception):
    """Another cluster runs in the data directory."""

    for_user = True


class DataDirectoryGone(Exception):
    """The data directory was removed or replaced while the cluster ran."""

    for_user = True


@dataclass(frozen=True)
class DataDirectory:
    """A data directory that this process holds."""

    path: Path
    lock: int
    """File descriptor of the lock file."""

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to the directory that is held, rather than to nothing or to another one."""
        try:
            return os.path.samestat(os.stat(self.path / LOCK), os.fstat(self.lock))
        except OSError:
            return False

    async def watch(self) -> None:
        """Look at it for ever. Raises DataDirectoryGone."""
        while self.is_there:  # noqa: ASYNC110 - nothing tells: it is a file system that is looked at
            await asyncio.sleep(WATCH_SECONDS)
        raise DataDirectoryGone(f"data directory {self.path} is gone: stopping, and its state is not written back")


@contextlib.contextmanager
def hold(wanted: Path | None) -> Iterator[DataDirectory]:
    """Hold a data directory, or a temporary one, as the only process. Raises DataDirectoryInUse."""
    with contextlib.ExitStack() as stack:
        if wanted is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stromboli-")))
        else:
            directory = wanted
            directory.mkdir(parents=True, exist_ok=True)
        lock = stack.enter_context(open(directory / LOCK, "a+"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"data directory {directory} is in use by another cluster; stop it or give another --data-dir"
            raise DataDirectoryInUse(text) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield DataDirectory(directory, lock.fileno())


def holder(directory: Path) -> str | None:
    """The process id of the cluster that holds ``directory``; None when nobody does. Changes nothing."""
    try:
        with open(directory / LOCK) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read().strip() or "not known"
    except OSError:
        return None
    return None
