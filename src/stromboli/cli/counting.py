"""Numbers of things, in words that agree with the number."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{count} {plural(count, thing)}"


def plural(count: int, thing: str) -> str:
    """``thing`` for one, with an s for any other number."""
    return thing if count == 1 else f"{thing}s"


def verb(count: int, base: str) -> str:
    """``starts`` for one, ``start`` for any other number; ``are`` and ``have`` change as they do."""
    return {"are": "is", "have": "has"}.get(base, f"{base}s") if count == 1 else base
