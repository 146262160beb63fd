"""Ages and times as the tools print them (spec 08 section 1)."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


def age(timestamp: object, now: float, *, zero_days: bool = False) -> str:
    """How long ago; ``<unknown>`` without a time. ``zero_days`` is format A, which writes ``3y0d`` for ``3y``."""
    moment = seconds(timestamp)
    return "<unknown>" if moment is None else duration(now - moment, zero_days=zero_days)


def duration(length: float, *, zero_days: bool = False) -> str:
    """A length in seconds, in at most two units, coarser the longer it is."""
    whole = int(length)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole, YEAR, "y", DAY, "d", always=zero_days)
    return f"{whole // YEAR}y"


def _two(whole: int, large: int, large_unit: str, small: int, small_unit: str, *, always: bool = False) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_unit}" + (f"{rest}{small_unit}" if rest or always else "")


def seconds(timestamp: object) -> float | None:
    """Seconds since the epoch of a wire time; None for anything else."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def date(timestamp: object) -> str:
    """``YYYY-MM-DD`` in the local zone; Go's zero date without a time."""
    moment = seconds(timestamp)
    return "0001-01-01" if moment is None else datetime.fromtimestamp(moment).strftime("%Y-%m-%d")


def moment(timestamp: object) -> str:
    """``2024-01-31 10:00:00 +0000 UTC``; Go's zero time without a time."""
    found = seconds(timestamp)
    if found is None:
        return "0001-01-01 00:00:00 +0000 UTC"
    return datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
