"""Consistent hashing of pods, PodGroups and nodes over several schedulers.

Old and new schedulers can share a cluster only if they agree on every point of the ring (spec 04 section 16): 20 points
a member, point *i* at CRC-32 (IEEE) of the decimal *i* followed by the member's name; a key belongs to the member at
the first point strictly greater than its own CRC-32, wrapping around.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from zlib import crc32

POINTS_PER_MEMBER = 20


class Ring:
    """Which member owns a key."""

    def __init__(self, members: Iterable[str]) -> None:
        points = {
            crc32(f"{point}{member}".encode()): member for member in members for point in range(POINTS_PER_MEMBER)
        }
        self._points = sorted(points)
        self._members = [points[point] for point in self._points]

    def owner(self, key: str) -> str | None:
        """The member that a key belongs to; None on an empty ring."""
        if not self._points:
            return None
        return self._members[bisect_right(self._points, crc32(key.encode())) % len(self._points)]
