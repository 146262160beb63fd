"""One rule of what a PodGroup's conditions complain about: the cause wins over the consequence."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from stromboli.api import core
from stromboli.api.complaints import complaint, names_cause


def condition(type: str, second: int | None, status: str = "True", message: str = "") -> core.PodGroupCondition:
    when = None if second is None else f"2026-01-01T00:00:{second:02}Z"
    return core.PodGroupCondition(type=type, status=status, message=message or type, last_transition_time=when)


def unschedulable(second: int | None) -> core.PodGroupCondition:
    return condition("Unschedulable", second, message="2/2 tasks in gang unschedulable")


def scheduled(second: int) -> core.PodGroupCondition:
    return condition("Scheduled", second)


def denied(type: str, second: int | None, message: str) -> core.PodGroupCondition:
    return condition(type, second, "False", message)


class Case(NamedTuple):
    given: list[core.PodGroupCondition]
    want: str | None
    """Message of the condition that is told."""


CASES = {
    "nothing is written": Case([], None),
    "only that it waits": Case([unschedulable(1)], "2/2 tasks in gang unschedulable"),
    "a quota, and that it waits": Case([denied("Admitted", 1, "quota"), unschedulable(1)], "quota"),
    "that it waits is said again and again": Case([denied("Fits", 1, "2 cpu short"), unschedulable(9)], "2 cpu short"),
    "in whatever order they stand": Case([unschedulable(9), denied("Fits", 1, "2 cpu short")], "2 cpu short"),
    "without times": Case([unschedulable(None), denied("Fits", None, "2 cpu short")], "2 cpu short"),
    "two causes: the later": Case([denied("Fits", 3, "2 cpu short"), denied("Admitted", 2, "quota")], "2 cpu short"),
    "all is scheduled": Case([unschedulable(1), scheduled(2)], None),
    "it was scheduled once": Case([scheduled(1), unschedulable(2)], "2/2 tasks in gang unschedulable"),
    "what did not fit once, and all is scheduled": Case([denied("Fits", 1, "2 cpu short"), scheduled(2)], None),
    "binds refused in the second in which it was placed": Case([scheduled(2), denied("Fits", 2, "binds")], "binds"),
    "there is a node for every task": Case([unschedulable(1), condition("Fits", 2)], None),
    "admitted, and no more is known": Case([condition("Admitted", 1)], None),
    "admitted, and there is no room": Case(
        [condition("Admitted", 2), unschedulable(2)], "2/2 tasks in gang unschedulable"
    ),
    "admitted after it was said to wait": Case(
        [unschedulable(1), condition("Admitted", 2)], "2/2 tasks in gang unschedulable"
    ),
    "no longer unschedulable": Case([denied("Unschedulable", 1, "no")], None),
    "equal times: the first": Case([condition("Other", 1), unschedulable(1)], "Other"),
    "somebody's condition with a time that is none": Case(
        [
            core.PodGroupCondition(type="Other", status="True", last_transition_time="yesterday"),
            denied("Fits", 1, "2 cpu short"),
        ],
        "2 cpu short",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_wins_over_the_consequence(name: str) -> None:
    found = complaint(CASES[name].given)
    assert (found.message if found else None) == CASES[name].want


def test_only_a_false_condition_of_ours_names_a_cause() -> None:
    assert [names_cause(denied(type, 1, "why")) for type in ("Admitted", "Fits", "Unschedulable", "Scheduled")] == [
        True,
        True,
        False,
        False,
    ]
    assert not names_cause(condition("Fits", 1))
