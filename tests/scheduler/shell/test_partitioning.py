"""The hash ring that old and new schedulers must agree on."""

from __future__ import annotations

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from stromboli.scheduler.partitioning import Ring

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def first_point_after(key: str, members: list[str]) -> str:
    """The rule, spelled out without search structures."""
    points = {crc32(f"{i}{member}".encode()): member for member in members for i in range(20)}
    later = [point for point in points if point > crc32(key.encode())]
    return points[min(later or points)]


@given(st.lists(names, min_size=1, max_size=5, unique=True), names)
def test_key_belongs_to_the_first_point_strictly_after_it(members: list[str], key: str) -> None:
    assert Ring(members).owner(key) == first_point_after(key, members)


def test_key_on_a_point_belongs_to_the_next_one() -> None:
    members = ["s-0", "s-1"]
    for member in members:
        key = f"7{member}"  # its CRC is exactly the member's point 7
        assert Ring(members).owner(key) == first_point_after(key, members)


def test_removing_a_member_moves_only_its_own_keys() -> None:
    keys = [f"pod-{number}" for number in range(500)]
    before, after = Ring(["s-0", "s-1", "s-2"]), Ring(["s-0", "s-1"])
    moved = [key for key in keys if before.owner(key) != after.owner(key)]
    assert moved
    assert all(before.owner(key) == "s-2" for key in moved)


def test_empty_ring_owns_nothing() -> None:
    assert Ring([]).owner("pod") is None
