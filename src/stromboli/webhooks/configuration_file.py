"""Follows the admission configuration file (spec 07 section 15.4).

The content is compared, so that a ConfigMap's swapped symlinks, an editor's rename and a late first appearance are all
the same thing. A file that cannot be read or used leaves the last good groups in place and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.webhooks.admission_configuration import ConfigurationError, ResourceGroup, parse

log = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 1.0
MAX_BYTES: Final = 1024 * 1024


class ConfigurationFile:
    """The groups of one file; ``groups`` is ``None`` until it could be read once."""

    def __init__(self, path: Path, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.groups: tuple[ResourceGroup, ...] | None = None
        self._path, self._clock = path, clock
        self._seen: str | None = None
        """What the last look found: content or complaint. The same again needs no second word."""

    async def run(self) -> None:
        """Look every :data:`INTERVAL_SECONDS` until cancelled."""
        while True:
            await self._clock.sleep(INTERVAL_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Take up the file's present content, if it is new and can be used."""
        try:
            text = await asyncio.to_thread(self._read)
        except (OSError, ValueError) as error:
            self._complain(str(error))
            return
        if text == self._seen:
            return
        self._seen = text
        try:
            self.groups = parse(text).resource_groups
        except ConfigurationError as error:
            log.error("admission configuration %s is not used: %s", self._path, error)
            return
        log.info("admission configuration %s: %d resource groups", self._path, len(self.groups))

    def _read(self) -> str:
        with self._path.open(encoding="utf-8") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} characters")
        return text

    def _complain(self, complaint: str) -> None:
        if complaint != self._seen:
            log.error("admission configuration %s cannot be read: %s", self._path, complaint)
        self._seen = complaint
