"""Sets of replica indexes in a compact text form, ``0-3,7``, as the job's status remembers them."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api import batch

LARGEST = batch.MOST_REPLICAS
"""No task has more replicas than this; a record that says so is damaged."""


def parse(text: str) -> frozenset[int]:
    """The set written as ``text``. Parts that cannot be read are left out: a damaged record only costs a re-run."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if _plausible(first) and _plausible(last or first):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _plausible(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 8 and int(text) < LARGEST


def format(indexes: Iterable[int]) -> str:  # noqa: A001
    """The text form, with neighbours joined to ranges."""
    ranges: list[tuple[int, int]] = []
    for index in sorted(set(indexes)):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
