"""The cluster's state in a file between runs, with a journal beside it of what has changed since.

The state file is replaced in one step, so it always holds a complete state; one that cannot be read stops the start and
is left as it is. Every write is in the journal (``FILE.journal``) before it is acknowledged. A journal that has grown
large becomes ``FILE.journal.old``, a new one begins, the state is written anew in a thread, and the old journal goes:
at every moment the three files together hold everything. An orderly end leaves the state file alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

from stromboli.localcluster import journals, snapshots
from stromboli.localcluster.certificates import write_private
from stromboli.localcluster.journals import Journal
from stromboli.localcluster.storage import StorageError, Store

log = logging.getLogger(__name__)

JOURNAL_BYTES = 8 * 1024 * 1024
"""Size of a journal from which on the state is written anew; more when the state itself is larger."""

RETRY_SECONDS = 5.0
"""Pause after a state that could not be written."""


class StateFileError(Exception):
    """A state file that cannot be used; one line that says what to do."""

    for_user = True


class StateFile:
    """One state file of one store: :meth:`restore`, :meth:`begin`, :meth:`keep` while the store is used, :meth:`save`.

    Without :meth:`begin` there is no journal, and :meth:`save` just writes the file.
    """

    def __init__(self, store: Store, path: Path) -> None:
        self._store = store
        self._path = path
        self._newer = path.with_name(f"{path.name}.journal")
        self._older = path.with_name(f"{path.name}.journal.old")
        self._journal: Journal | None = None
        self._saved = -1
        self._writing = threading.Lock()

    def restore(self) -> bool:
        """Load the file if there is one, and what the journals have beyond it.

        Raises :class:`StateFileError` and changes nothing when it is unusable.
        """
        try:
            content = self._path.read_bytes()
            changes = [*journals.read(self._older), *journals.read(self._newer)]
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StateFileError(f"state file {self._path}: {error.strerror}; give a readable --state-file") from error
        try:
            snapshots.restore(self._store, content, changes)
        except StorageError as error:
            raise StateFileError(
                f"state file {self._path} cannot be used ({error}); it was left as it is: "
                "move it away to start afresh, or give another --state-file"
            ) from error
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

    def begin(self) -> None:
        """Write the present state, and from now on every change before it is acknowledged. Raises StateFileError."""
        try:
            self._write(self._store.revision, snapshots.take(self._store))
            self._start_journal()
            self._older.unlink(missing_ok=True)
        except OSError as error:
            raise StateFileError(f"state file {self._path}: cannot be written: {error.strerror}") from error

    def save(self) -> None:
        """Write the present state, unless it is written already, and end the journal. Raises OSError."""
        if self._store.revision != self._saved:
            self._write(self._store.revision, snapshots.take(self._store))
        if self._journal is not None:
            self._store.record_with(None)
            self._journal.close()
            self._journal = None
        self._newer.unlink(missing_ok=True)
        self._older.unlink(missing_ok=True)

    async def keep(self) -> None:
        """Write the state whenever the journal has grown large, for ever; a failure is logged and tried again."""
        while self._journal is not None:
            await self._journal.full.wait()
            try:
                await self._renew()
            except OSError as error:
                log.error("state file %s not written: %s", self._path, error.strerror)
                await asyncio.sleep(RETRY_SECONDS)

    async def _renew(self) -> None:
        """Take the state and begin a journal in one moment; the file's I/O is done in a thread."""
        if not self._older.exists():  # otherwise writing the state has failed before, and both journals are needed
            self._newer.rename(self._older)
            self._start_journal()
        await asyncio.to_thread(self._write, self._store.revision, snapshots.take(self._store))
        self._older.unlink(missing_ok=True)

    def _start_journal(self) -> None:
        limit = max(JOURNAL_BYTES, 2 * self._path.stat().st_size)
        fresh = Journal(self._newer, self._store.revision, limit)
        self._store.record_with(fresh.append)
        if self._journal is not None:
            self._journal.close()
        self._journal = fresh

    def _write(self, revision: int, snapshot: bytes) -> None:
        """Write a snapshot, unless a newer one has been written: a thread that is overtaken at the end must not win."""
        with self._writing:
            if revision > self._saved:
                write_private(self._path, snapshot)
                self._saved = revision
