"""Wire times as seconds since the epoch, for objects that others have written."""

from __future__ import annotations

from stromboli.api import core
from stromboli.api.core.meta import Object


def seconds(text: str | None) -> float:
    """Seconds since the epoch; 0 for an absent time or one that cannot be read."""
    try:
        return core.timestamp(text)
    except ValueError:
        return 0.0


def created(obj: Object) -> float:
    """When the object was created."""
    return seconds(obj.metadata.creation_timestamp)
