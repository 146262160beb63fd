"""One pod, two pods; and as much room as is asked for is room for all."""

from __future__ import annotations

import pytest

from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing.explaining import explain
from stromboli.testing.builders import queue
from tests.cli.situations import Situation, nodes, vcjob

COUNTS = {0: "0 pods start", 1: "1 pod starts", 2: "2 pods start"}


@pytest.mark.parametrize("count", COUNTS)
def test_words_agree_with_numbers(count: int) -> None:
    assert f"{counted(count, 'pod')} {verb(count, 'start')}" == COUNTS[count]


@pytest.mark.parametrize(("count", "want"), [(1, "is has"), (2, "are have")])
def test_irregular_verbs(count: int, want: str) -> None:
    assert f"{verb(count, 'are')} {verb(count, 'have')}" == want


def test_room_for_more_than_waits_is_room_for_all() -> None:
    """Twenty nodes have room for forty such pods; only one waits."""
    situation = Situation(vcjob(replicas=1), [*nodes(20), queue().build()], "", "", group_phase="Inqueue", pods=True)
    lines = {rung.title: rung.lines for rung in explain(situation.facts()).rungs}
    assert "  room for all 1" in lines["Nodes"]
    assert lines["Gang"][0].startswith("needs 1 pod at once, 0 have a place: short by 1")
