"""The cluster's state in a file between runs.

The file is replaced in one step, so it always holds a complete state; one that cannot be read stops the start and is
left as it is. Saving follows changes: soon after them, but never so often that it takes more than a few
percent of the time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from stromboli.localcluster.certificates import write_private
from stromboli.localcluster.storage import StorageError, Store

log = logging.getLogger(__name__)

SETTLE_SECONDS = 2.0
COST_FACTOR = 20
"""The pause after saving, as a multiple of the time it took."""


class StateFileError(Exception):
    """A state file that cannot be used; one line that says what to do."""

    for_user = True


class StateFile:
    """One state file of one store. ``noise`` counts writes that are not worth saving by themselves (heartbeats)."""

    def __init__(self, store: Store, path: Path, noise: Callable[[], int] = lambda: 0) -> None:
        self._store = store
        self._path = path
        self._noise = noise
        self._saved = -1
        self._writing = threading.Lock()

    def restore(self) -> bool:
        """Load the file if there is one. Raises :class:`StateFileError` and changes nothing when it is unusable."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StateFileError(f"state file {self._path}: {error.strerror}; give a readable --state-file") from error
        try:
            self._store.restore(content)
        except StorageError as error:
            raise StateFileError(
                f"state file {self._path} cannot be used ({error}); it was left as it is: "
                "move it away to start afresh, or give another --state-file"
            ) from error
        self._saved = self._revision()
        return True

    def check_writable(self) -> None:
        """Find out early. Raises :class:`StateFileError`."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            probe = self._path.with_name(f".{self._path.name}.probe")
            write_private(probe, b"")
            probe.unlink()
        except OSError as error:
            raise StateFileError(f"state file {self._path}: cannot be written: {error.strerror}") from error

    def save(self) -> None:
        """Write the present state, unless it is written already. Raises OSError."""
        revision = self._revision()
        if revision != self._saved:
            self._write(revision, self._store.snapshot())

    async def keep(self) -> None:
        """Save after changes, for ever; a failure is logged and tried again."""
        changed = asyncio.Event()
        self._store.add_listener(changed)
        while True:
            await changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            changed.clear()
            started = time.monotonic()
            try:
                await self._save_aside()
            except OSError as error:
                log.error("state file %s not written: %s", self._path, error.strerror)
                changed.set()
            await asyncio.sleep(min((time.monotonic() - started) * COST_FACTOR, 120))

    def _revision(self) -> int:
        """Grows with every write that counts."""
        return self._store.revision - self._noise()

    async def _save_aside(self) -> None:
        """Save with the file's I/O in a thread; the snapshot itself is taken at one moment, here."""
        revision = self._revision()
        if revision != self._saved:
            await asyncio.to_thread(self._write, revision, self._store.snapshot())

    def _write(self, revision: int, snapshot: bytes) -> None:
        """Write a snapshot, unless a newer one has been written: a thread that is overtaken at the end must not win."""
        with self._writing:
            if revision > self._saved:
                write_private(self._path, snapshot)
                self._saved = revision
