"""Ages as kubectl shows them."""

from __future__ import annotations

from datetime import datetime

from stromboli.localcluster import clock


def age(timestamp: object, now: datetime) -> str:
    """Time since ``timestamp``; ``<unknown>`` when there is none."""
    moment = clock.parse(timestamp) if isinstance(timestamp, str) else None
    return "<unknown>" if moment is None else duration((now - moment).total_seconds())


def duration(seconds: float) -> str:
    """A duration in at most two units, coarser the longer it is."""
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")
