"""Time zones by name, and that of this process."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

_LOCAL_ZONE_FILE: Final = Path("/etc/localtime")


class UnknownZone(ValueError):
    """A name that is no time zone."""


@lru_cache(maxsize=1024)
def load(name: str) -> tzinfo:
    """The zone of an IANA name; ``Local`` is that of the process. Raises :class:`UnknownZone`."""
    if name == "Local":
        return local()
    try:
        # no_cache: the class keeps every zone it ever made alive, and names come from tenants.
        return ZoneInfo.no_cache(name)
    except (ValueError, LookupError, OSError) as error:
        raise UnknownZone(f"unknown time zone {name}") from error


@lru_cache(maxsize=1)
def local() -> tzinfo:
    """The zone of this process: ``$TZ``, else ``/etc/localtime``, else UTC."""
    named = os.environ.get("TZ", "").removeprefix(":")
    try:
        if named:
            return ZoneInfo(named)
        with _LOCAL_ZONE_FILE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ValueError, LookupError, OSError):
        return UTC
