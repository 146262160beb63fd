"""The time as API objects carry it. One seam, so that tests can hold it still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def timestamp(delay: float = 0) -> str:
    """``metav1.Time`` of the present, or of ``delay`` seconds from now: whole seconds."""
    return (now() + timedelta(seconds=delay)).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime | None:
    """The moment a ``metav1.Time`` or ``MicroTime`` names; None when it is unreadable."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
