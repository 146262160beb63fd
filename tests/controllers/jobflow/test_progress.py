"""The phase of a flow is a function of its jobs' phases: spec 03 section 5.2, P25."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.phases import FINISHED_JOB_PHASES, JobFlowPhase, JobPhase
from stromboli.controllers.jobflow.progress import FINAL, STAGES, next_phase, phase_of

PENDING, RUNNING, SUCCEED, FAILED = (
    JobFlowPhase.PENDING, JobFlowPhase.RUNNING, JobFlowPhase.SUCCEED, JobFlowPhase.FAILED
)  # fmt: skip

FIRST_OF_TWO = {
    "": PENDING,
    "Pending": PENDING,
    "Running": RUNNING,
    "Restarting": RUNNING,
    "Completing": RUNNING,
    "Completed": RUNNING,
    "Aborting": RUNNING,
    "Aborted": RUNNING,
    "Terminating": RUNNING,
    "Terminated": FAILED,
    "Failed": FAILED,
}


@pytest.mark.parametrize(("phase", "want"), FIRST_OF_TWO.items())
def test_a_flow_of_two_whose_first_job_is(phase: str, want: JobFlowPhase) -> None:
    assert phase_of([phase, ""]) is want


@pytest.mark.parametrize(("phase", "want"), {**FIRST_OF_TWO, "Completed": SUCCEED}.items())
def test_a_flow_of_one_whose_job_is(phase: str, want: JobFlowPhase) -> None:
    assert phase_of([phase]) is want


@pytest.mark.parametrize("phase", sorted(FINISHED_JOB_PHASES))
def test_no_finished_last_job_leaves_a_flow_running(phase: JobPhase) -> None:
    """P25."""
    assert phase_of(["Completed", phase]) in (SUCCEED, FAILED)


def test_every_phase_of_a_job_has_a_meaning() -> None:
    assert STAGES.keys() == {"", *JobPhase}


def test_a_flow_of_nothing_has_succeeded() -> None:
    assert phase_of([]) is SUCCEED


@pytest.mark.parametrize("present", ["", "Pending", "Running"])
def test_the_last_change_is_enough(present: str) -> None:
    """Defect 11 of spec 03 section 13: a flow that went from Pending to Running never heard that it was done."""
    assert next_phase(present, ["Completed", "Completed"]) == SUCCEED


@pytest.mark.parametrize("present", [*sorted(FINAL), SUCCEED])
def test_what_is_over_stays_over(present: str) -> None:
    assert next_phase(present, ["Running", "Failed"]) == present


def test_a_phase_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="Flying"):
        next_phase("Flying", [])


@given(st.lists(st.sampled_from(["", *JobPhase]), max_size=5))
def test_the_order_of_steps_does_not_matter(phases: list[str]) -> None:
    assert len({phase_of(order) for order in itertools.islice(itertools.permutations(phases), 24)}) == 1
