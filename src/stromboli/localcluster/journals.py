"""What has changed since the last snapshot, appended to a file before a write is acknowledged.

A record is one line of JSON. It is handed to the operating system before the change is visible to anybody, so a process
that is killed loses nothing that it has acknowledged (a machine that loses its power may: nothing is synced to disk).
A line without its end is a write that was never acknowledged, and is left out on reading.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import orjson

from stromboli.localcluster.storage import NotRecorded, Stored

log = logging.getLogger(__name__)


class Journal:
    """One file that grows. ``full`` is set once it holds more than ``limit`` bytes, so that somebody begins another."""

    def __init__(self, path: Path, after: int, limit: int) -> None:
        """Begin an empty file of the changes after revision ``after``; raises OSError."""
        self.full = asyncio.Event()
        self._limit = limit
        self._path = path
        self._size = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._write(orjson.dumps({"after": after}) + b"\n")

    def append(self, stored: Stored, gone: bool) -> None:
        """Record a write, or a deletion when ``gone``. Raises NotRecorded, with nothing of it in the file."""
        try:
            self._write(record(stored, gone))
        except OSError as error:
            raise NotRecorded(f"{self._path}: {error.strerror}") from error
        if self._size > self._limit:
            self.full.set()

    def close(self) -> None:
        """Write nothing any more."""
        os.close(self._file)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)  # what comes next must not follow half a line
            raise
        self._size += len(line)


def record(stored: Stored, gone: bool) -> bytes:
    """The line for one change."""
    group, plural, namespace, name = stored.key
    line: dict[str, object] = {"revision": stored.revision, "group": group, "plural": plural}
    line |= {"namespace": namespace, "name": name} if gone else {"object": orjson.Fragment(stored.encoded)}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read(path: Path) -> list[bytes]:
    """The lines of a journal, without one that was cut off at the end; none when there is no file. Raises OSError."""
    try:
        *lines, torn = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    if torn:
        log.warning("%s: the last change was not written to its end, and never acknowledged: left out", path)
    return lines
