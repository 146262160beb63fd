"""Notices when the content of a file changes: a ConfigMap's symlinks are swapped, an editor writes in place.

The content is compared, not the folder's events, so that neighbours of the file and touches without a change mean
nothing. Looking costs one read of a small file every ``interval`` seconds and needs no platform-specific machinery.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock

INTERVAL_SECONDS = 1.0


class ContentWatch:
    """The last known content of one file."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK, interval: float = INTERVAL_SECONDS) -> None:
        self._path = path
        self._clock = clock
        self._interval = interval
        self._known: bytes | None = None
        self._complaint: str | None = None

    def read(self) -> bytes:
        """The content now, which later looks are compared with. Raises OSError."""
        self._known = self._path.read_bytes()
        return self._known

    def look(self) -> bytes | None:
        """The content if it differs from what is known, else None.

        Raises OSError when the file cannot be read; the same complaint is raised once, not at every look.
        """
        try:
            content = self._path.read_bytes()
        except OSError as error:
            if str(error) == self._complaint:
                return None
            self._complaint = str(error)
            raise
        self._complaint = None
        if content == self._known:
            return None
        self._known = content
        return content

    async def changes(self, unreadable: Callable[[OSError], None]) -> AsyncIterator[bytes]:
        """New contents as they appear, for ever. A file that cannot be read is reported once and looked at again."""
        while True:
            await self._clock.sleep(self._interval)
            try:
                content = self.look()
            except OSError as error:
                unreadable(error)
                continue
            if content is not None:
                yield content
