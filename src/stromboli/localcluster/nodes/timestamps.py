"""Kubernetes timestamps (RFC 3339, whole seconds, UTC) to and from seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(seconds: float) -> str:
    """``2026-01-31T12:00:00Z`` for seconds since the epoch."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(seconds: float) -> str:
    """The MicroTime form that Leases and Events use: ``2026-01-31T12:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(text: str) -> float:
    """Seconds since the epoch of a timestamp. Raises ValueError for anything else."""
    return datetime.fromisoformat(text).timestamp()
