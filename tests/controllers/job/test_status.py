"""Status: counters, conditions, durations: spec 02 section 17."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.core import timestamp
from stromboli.api.phases import JobPhase
from stromboli.controllers.job import indexes, status
from stromboli.controllers.job.counting import Count
from stromboli.controllers.job.status import Draft, compose, difference
from stromboli.kube.json import JsonObject
from tests.controllers.building import CREATED, JobBuilder, job

NOW = timestamp(CREATED) + 90


def draft(phase: str, **fields: object) -> Draft:
    known: dict[str, object] = {"count": Count(), "version": 0, "retry_count": 0, "min_available": 1}
    return Draft(phase=JobPhase(phase), **{**known, **fields})  # type: ignore[arg-type]


def after(builder: JobBuilder, *phases: str, every: float = 10) -> JsonObject:
    """The status after passes that ended in these phases."""
    for step, phase in enumerate(phases):
        builder.wire["status"] = compose(builder.model(), draft(phase), NOW + step * every)
    found: JsonObject = builder.wire["status"]
    return found


def reached(found: JsonObject) -> list[str]:
    return [one["status"] for one in found["conditions"]]


def test_conditions_hold_each_phase_once_the_last_at_the_end() -> None:
    assert reached(after(job(), "Pending")) == ["Pending"]
    assert reached(after(job(), "Pending", "Running", "Pending")) == ["Running", "Pending"]
    assert reached(after(job(), "Pending", "Running", "Completed")) == ["Pending", "Running", "Completed"]


def test_conditions_do_not_grow() -> None:
    found = after(job(), *["Pending", "Running", "Restarting"] * 200)
    assert len(found["conditions"]) == 3


def test_the_time_of_the_last_transition_moves_only_with_the_phase() -> None:
    assert after(job(), "Running")["state"] == after(job(), "Running", "Running", "Running")["state"]


def test_the_duration_is_frozen_at_the_end_and_absent_while_running() -> None:
    assert "runningDuration" not in after(job(), "Running")
    assert after(job(), "Running", "Completed", every=30)["runningDuration"] == "2m0s"
    assert after(job(), "Running", "Completed", "Completed", every=30)["runningDuration"] == "2m0s"


def test_zeros_are_left_out() -> None:
    assert compose(job().model(), draft("Pending", min_available=0), NOW) == {
        "state": {"phase": "Pending", "lastTransitionTime": "2026-06-24T09:01:30Z"},
        "conditions": [{"status": "Pending", "lastTransitionTime": "2026-06-24T09:01:30Z"}],
    }


def test_counters_by_task() -> None:
    count = Count()
    count.add("worker", "Running", 2)
    count.add("worker", "Failed")
    count.add("master", "Succeeded")
    count.add_terminating(3)
    found = compose(job().model(), draft("Running", count=count), NOW)
    assert found["taskStatusCount"] == {
        "master": {"phase": {"Succeeded": 1}},
        "worker": {"phase": {"Failed": 1, "Running": 2}},
    }
    assert (found["running"], found["failed"], found["succeeded"], found["terminating"]) == (2, 1, 1, 3)


def test_a_failed_creation_keeps_the_status_and_adds_why() -> None:
    builder = job().phase("Pending").status(pending=1)
    found = status.creation_failed(builder.model(), "[exceeded quota]", NOW)
    assert (found["state"]["reason"], found["state"]["message"]) == ("PodCreationFailed", "[exceeded quota]")
    assert found["pending"] == 1
    assert reached(found) == ["PodCreationFailed"]
    again = status.creation_failed(builder.status(**found).model(), "[exceeded quota]", NOW + 60)
    assert again == found


def test_a_failed_creation_in_mid_restart_is_a_condition_only() -> None:
    state = {"phase": "Restarting", "reason": "RestartJob", "message": "why"}
    found = status.creation_failed(job().status(state=state).model(), "[exceeded quota]", NOW)
    assert (found["state"], reached(found)) == (state, ["PodCreationFailed"])


def test_a_refusal_keeps_the_status_and_adds_why() -> None:
    found = status.refused(job().phase("Pending").status(pending=1).model(), "PVCError", "pvc data is not found")
    assert (found["state"]["reason"], found["state"]["message"]) == ("PVCError", "pvc data is not found")
    assert (found["state"]["phase"], found["pending"]) == ("Pending", 1)


def test_a_refusal_in_mid_restart_leaves_what_is_restarted() -> None:
    restarting = job().status(state={"phase": "Restarting", "reason": "RestartTask", "message": "why"}).model()
    assert status.refused(restarting, "PluginError", "no such plugin") == status.recorded(restarting)


JSON = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3)),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=2), JSON, max_size=4)


def merge(old: JsonObject, patch: JsonObject) -> JsonObject:
    """RFC 7396, as the server applies it."""
    found = dict(old)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            inner = found.get(key)
            found[key] = merge(inner if isinstance(inner, dict) else {}, value)
        else:
            found[key] = value
    return found


@given(old=OBJECTS, new=OBJECTS)
def test_a_difference_applied_gives_the_new_state(old: JsonObject, new: JsonObject) -> None:
    patch = difference(old, new)
    assert merge(old, patch) == new
    assert (patch == {}) == (old == new)


@given(st.frozensets(st.integers(0, 500)))
def test_indexes_survive_writing_and_reading(numbers: frozenset[int]) -> None:
    assert indexes.parse(indexes.format(numbers)) == numbers


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", set()),
        ("0-3,7", {0, 1, 2, 3, 7}),
        ("5-1", set()),
        ("x,2,-", {2}),
        ("0-99999999999", set()),
        ("1-2-3,4", {4}),
        ("²", set()),
    ],
)
def test_damaged_indexes_are_read_as_far_as_they_go(text: str, want: set[int]) -> None:
    assert indexes.parse(text) == want
