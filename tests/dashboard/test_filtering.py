"""What is searched for, and pages."""

from __future__ import annotations

import pytest

from stromboli.dashboard.filtering import BadFilter, Filter, page
from stromboli.dashboard.jobs import JobRow
from stromboli.dashboard.waiting import Why


def row(name: str, namespace: str = "ns", queue: str = "q", state: str = "Running", reason: str = "") -> JobRow:
    return JobRow(namespace, name, queue, state, "", 1, 1, 0, 0, 0, 0.0, Why(reason, f"because of {reason}"))


ROWS = [row("train-1"), row("Train-2", "other", state="Pending", reason="NodesRefuse"), row("eval", queue="r")]

FILTERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "everything": ({}, ["train-1", "Train-2", "eval"]),
    "a part of a name, in any case": ({"search": "TRAIN"}, ["train-1", "Train-2"]),
    "namespace and name": ({"search": "ns/ev"}, ["eval"]),
    "a word of the reason": ({"search": "because of nodes"}, ["Train-2"]),
    "a namespace": ({"namespace": "other"}, ["Train-2"]),
    "a queue": ({"queue": "r"}, ["eval"]),
    "a state": ({"state": "Running"}, ["train-1", "eval"]),
    "all that wait": ({"state": "waiting"}, ["Train-2"]),
    "all of it together": ({"search": "t", "namespace": "ns", "queue": "q", "state": "Running"}, ["train-1"]),
    "nothing": ({"namespace": "nowhere"}, []),
    "the second page": ({"limit": "2", "offset": "2"}, ["eval"]),
    "a page beyond the end is the last one": ({"limit": "2", "offset": "900"}, ["eval"]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    query, want = FILTERS[name]
    assert [getattr(found, "name", "") for found in page(ROWS, Filter.read(query)).rows] == want


def test_a_page_says_how_much_there_is_and_what_can_be_chosen() -> None:
    found = page(ROWS, Filter.read({"search": "train", "limit": "1"}))
    assert (len(found.rows), found.matching, found.total) == (1, 2, 3)
    assert (found.namespaces, found.queues, found.states) == (["ns", "other"], ["q", "r"], ["Pending", "Running"])


BAD = {
    "no number": ({"limit": "x"}, "limit is 'x': it must be a whole number"),
    "negative": ({"offset": "-1"}, "offset is '-1': it must be a whole number"),
    "other digits": ({"offset": "٣"}, "offset is '٣': it must be a whole number"),
    "too many": ({"limit": "501"}, "limit is 501: it must be between 1 and 500"),
    "none": ({"limit": "0"}, "limit is 0: it must be between 1 and 500"),
    "a number of a thousand digits": ({"offset": "9" * 1000}, f"offset is {'9' * 20!r}: it must be a whole number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_filters(name: str) -> None:
    query, want = BAD[name]
    with pytest.raises(BadFilter) as refused:
        Filter.read(query)
    assert str(refused.value) == want
