"""The view of the canned cluster as a whole; ``python -m tests.dashboard.canned`` writes it anew."""

from __future__ import annotations

from tests.dashboard.canned import GOLDEN, seen


def test_the_view_of_the_canned_cluster_is_the_golden_one() -> None:
    assert seen() == GOLDEN.read_text(), "if this change is meant: python -m tests.dashboard.canned"
