"""Rows that match what was asked for, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

PAGE: Final = 50
LARGEST_PAGE: Final = 500
WAITING: Final = "waiting"
"""A state that every row with a reason to wait is in."""


class BadFilter(ValueError):
    """A filter that cannot be used; the text names the parameter and what it takes."""


class Row(Protocol):
    """What can be filtered. Rows may also have ``queue`` and ``why``."""

    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def words(self) -> tuple[str, ...]: ...  # noqa: D102


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What is wanted; what is empty is not asked for."""

    search: str = ""
    namespace: str = ""
    queue: str = ""
    state: str = ""
    offset: int = 0
    limit: int = PAGE

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filter:
        """The filter of a query string. Raises :class:`BadFilter`."""
        limit = _whole(query, "limit", PAGE)
        if not 1 <= limit <= LARGEST_PAGE:
            raise BadFilter(f"limit is {limit}: it must be between 1 and {LARGEST_PAGE}")
        return cls(
            search=query.get("search", "").strip().casefold(),
            namespace=query.get("namespace", ""),
            queue=query.get("queue", ""),
            state=query.get("state", ""),
            offset=_whole(query, "offset", 0),
            limit=limit,
        )

    def takes(self, row: Row) -> bool:
        """Whether a row is wanted."""
        return (
            self.namespace in ("", row.namespace)
            and self.queue in ("", getattr(row, "queue", ""))
            and self._takes_state(row)
            and (not self.search or any(self.search in word.casefold() for word in row.words))
        )

    def _takes_state(self, row: Row) -> bool:
        if self.state == WAITING:
            why = getattr(row, "why", None)
            return bool(why and why.reason)
        return self.state in ("", row.state)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of those that match, how many match, how many there are, and what can be chosen."""

    rows: Sequence[Row]
    offset: int
    matching: int
    total: int
    namespaces: Sequence[str]
    queues: Sequence[str]
    states: Sequence[str]


def page(rows: Sequence[R], wanted: Filter) -> Page:
    """The page that was asked for; one beyond the end becomes the last one."""
    found = [row for row in rows if wanted.takes(row)]
    last = max(len(found) - 1, 0) // wanted.limit * wanted.limit
    offset = min(wanted.offset, last)
    return Page(
        found[offset : offset + wanted.limit],
        offset,
        len(found),
        len(rows),
        sorted({row.namespace for row in rows} - {""}),
        sorted({getattr(row, "queue", "") for row in rows} - {""}),
        sorted({row.state for row in rows}),
    )


def _whole(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise BadFilter(f"{name} is {text[:20]!r}: it must be a whole number")
    return int(text)
