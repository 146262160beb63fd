"""The state machine of spec 02 section 9, phase by action, and the rules that pick the next phase."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.phases import FINISHED_JOB_PHASES
from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobPhase as Phase
from stromboli.controllers.job import phases
from stromboli.controllers.job.phases import NONE, SOFT, Rule, Step, Tally, TaskTally, Work

SYNC_P, SYNC_U, SYNC_R = (Step(Work.SYNC, rule) for rule in (Rule.PENDING, Rule.RUNNING, Rule.RESTARTING))
RESTART = Step(Work.KILL_JOB, Rule.TO_RESTARTING, NONE, counts_retry=True)
TARGET = Step(Work.KILL_TARGET, Rule.TO_RESTARTING, NONE, counts_retry=True)
KILL_R = Step(Work.KILL_JOB, Rule.RESTARTING)
TARGET_R = Step(Work.KILL_TARGET, Rule.RESTARTING)
RESUME = Step(Work.KILL_JOB, Rule.TO_RESTARTING, SOFT)


def soft(rule: Rule) -> Step:
    return Step(Work.KILL_JOB, rule, SOFT)


COLUMNS = (
    (Action.SYNC_JOB,),
    (Action.RESTART_JOB,),
    (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION),
    (Action.ABORT_JOB,),
    (Action.TERMINATE_JOB,),
    (Action.COMPLETE_JOB,),
    (Action.RESUME_JOB,),
    (phases.OTHER,),
)
LIVE = (RESTART, TARGET, soft(Rule.TO_ABORTING), soft(Rule.TO_TERMINATING), soft(Rule.TO_COMPLETING))
ROWS: dict[Phase, tuple[Step, ...]] = {
    Phase.PENDING: (SYNC_P, *LIVE, SYNC_P, SYNC_P),
    Phase.RUNNING: (SYNC_U, *LIVE, SYNC_U, SYNC_U),
    Phase.RESTARTING: (SYNC_R, KILL_R, TARGET_R, KILL_R, KILL_R, KILL_R, KILL_R, KILL_R),
    Phase.ABORTING: (*[soft(Rule.ABORTING)] * 6, RESUME, soft(Rule.ABORTING)),
    Phase.ABORTED: (*[soft(Rule.STAY)] * 6, RESUME, soft(Rule.STAY)),
    Phase.COMPLETING: (soft(Rule.COMPLETING),) * 8,
    Phase.TERMINATING: (soft(Rule.TERMINATING),) * 8,
    Phase.COMPLETED: (soft(Rule.STAY),) * 8,
    Phase.FAILED: (soft(Rule.STAY),) * 8,
    Phase.TERMINATED: (soft(Rule.STAY),) * 8,
}
CELLS = [
    (phase, action, want)
    for phase, row in ROWS.items()
    for column, want in zip(COLUMNS, row, strict=True)
    for action in column
]


@pytest.mark.parametrize(("phase", "action", "want"), CELLS)
def test_every_cell_of_the_table(phase: Phase, action: Action, want: Step) -> None:
    assert phases.step(phase, action) == want


def test_the_cells_cover_every_phase_and_action() -> None:
    assert {(phase, action) for phase, action, _ in CELLS} == {(phase, action) for phase in Phase for action in Action}


@pytest.mark.parametrize("text", ["", None, "Sleeping"])
def test_an_empty_or_unknown_phase_behaves_as_pending(text: str | None) -> None:
    assert phases.phase_of(text) is Phase.PENDING


@pytest.mark.parametrize("text", ["EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue", "Dance"])
def test_foreign_actions_fall_into_one_column(text: str) -> None:
    assert phases.action_of(text) is phases.OTHER


@dataclass(frozen=True)
class Case:
    current: Phase
    rule: Rule
    tally: Tally
    want: Phase


def plain(replicas: int, min_available: int, **counts: int) -> Tally:
    return Tally(min_available, (TaskTally(replicas),), recorded_min_available=min_available, **counts)


def two_tasks(first: TaskTally, second: TaskTally, *, min_available: int) -> Tally:
    succeeded = (first.succeeded or 0) + (second.succeeded or 0)
    failed = first.replicas + second.replicas - succeeded
    return Tally(min_available, (first, second), succeeded=succeeded, failed=failed)


CASES: dict[str, Case] = {
    "pending: a full gang runs": Case(Phase.PENDING, Rule.PENDING, plain(3, 3, running=3), Phase.RUNNING),
    "pending: one pod short stays": Case(Phase.PENDING, Rule.PENDING, plain(3, 3, running=2), Phase.PENDING),
    "pending: failed pods count as having arrived": Case(
        Phase.PENDING, Rule.PENDING, plain(3, 3, running=1, succeeded=1, failed=1), Phase.RUNNING
    ),
    "aborting: drained": Case(Phase.ABORTING, Rule.ABORTING, plain(2, 2, failed=1), Phase.ABORTED),
    "aborting: a terminating pod holds it": Case(
        Phase.ABORTING, Rule.ABORTING, plain(2, 2, terminating=1), Phase.ABORTING
    ),
    "completing: drained": Case(Phase.COMPLETING, Rule.COMPLETING, plain(2, 2, succeeded=2), Phase.COMPLETED),
    "completing: a running pod holds it": Case(
        Phase.COMPLETING, Rule.COMPLETING, plain(2, 2, running=1), Phase.COMPLETING
    ),
    "terminating: drained": Case(Phase.TERMINATING, Rule.TERMINATING, plain(2, 2), Phase.TERMINATED),
    "terminating: a pending pod holds it": Case(
        Phase.TERMINATING, Rule.TERMINATING, plain(2, 2, pending=1), Phase.TERMINATING
    ),
    "restarting: retries used up": Case(
        Phase.RESTARTING, Rule.RESTARTING, replace(plain(2, 1), retry_count=3, max_retry=3), Phase.FAILED
    ),
    "restarting: enough room for the gang": Case(
        Phase.RESTARTING, Rule.RESTARTING, replace(plain(2, 1), retry_count=1, max_retry=3), Phase.PENDING
    ),
    "restarting: waits for terminating pods": Case(
        Phase.RESTARTING, Rule.RESTARTING, replace(plain(2, 2, terminating=1), retry_count=1), Phase.RESTARTING
    ),
    "running: all succeeded": Case(Phase.RUNNING, Rule.RUNNING, plain(2, 2, succeeded=2), Phase.COMPLETED),
    "running: half succeeded": Case(Phase.RUNNING, Rule.RUNNING, plain(2, 2, succeeded=1, running=1), Phase.RUNNING),
    "running: all lost": Case(Phase.RUNNING, Rule.RUNNING, plain(5, 3, pending=5), Phase.PENDING),
    "running: too many pending": Case(Phase.RUNNING, Rule.RUNNING, plain(5, 3, pending=3, running=2), Phase.PENDING),
    "running: elastic pods may be pending": Case(
        Phase.RUNNING, Rule.RUNNING, plain(5, 3, pending=2, running=1, succeeded=1, failed=1), Phase.RUNNING
    ),
    "running: scaled to zero": Case(Phase.RUNNING, Rule.RUNNING, plain(0, 1), Phase.RUNNING),
    "running: minSuccess reached early": Case(
        Phase.RUNNING, Rule.RUNNING, replace(plain(5, 3, running=3, succeeded=2), min_success=2), Phase.COMPLETED
    ),
    "running: minSuccess missed at the end": Case(
        Phase.RUNNING, Rule.RUNNING, replace(plain(3, 1, succeeded=1, failed=2), min_success=2), Phase.FAILED
    ),
    "running: fewer successes than minAvailable": Case(
        Phase.RUNNING, Rule.RUNNING, plain(3, 2, succeeded=1, failed=2), Phase.FAILED
    ),
    "running: one task fell short of its own minimum": Case(
        Phase.RUNNING,
        Rule.RUNNING,
        two_tasks(TaskTally(2, 1, 0), TaskTally(3, 1, 3), min_available=2),
        Phase.FAILED,
    ),
    "running: task minimums are not looked at when the job asks for less": Case(
        Phase.RUNNING,
        Rule.RUNNING,
        two_tasks(TaskTally(2, 2, 0), TaskTally(3, 2, 3), min_available=3),
        Phase.COMPLETED,
    ),
    "running: a task without counted pods does not fail the job": Case(
        Phase.RUNNING,
        Rule.RUNNING,
        two_tasks(TaskTally(0, 0, None), TaskTally(2, 2, 2), min_available=2),
        Phase.COMPLETED,
    ),
    "finished phases stay": Case(Phase.COMPLETED, Rule.STAY, plain(2, 2, running=2), Phase.COMPLETED),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_next_phase(case: Case) -> None:
    assert phases.next_phase(case.current, case.rule, case.tally) is case.want


@given(
    phase=st.sampled_from(sorted(FINISHED_JOB_PHASES)),
    action=st.sampled_from(list(Action)),
    counts=st.lists(st.integers(0, 5), min_size=5, max_size=5),
)
def test_no_action_leaves_a_finished_phase(phase: Phase, action: Action, counts: list[int]) -> None:
    pending, running, succeeded, failed, terminating = counts
    tally = Tally(
        1,
        (TaskTally(5),),
        pending=pending,
        running=running,
        succeeded=succeeded,
        failed=failed,
        terminating=terminating,
    )
    assert phases.next_phase(phase, phases.step(phase, action).rule, tally) is phase


def test_every_phase_can_be_left_except_the_finished_ones() -> None:
    stuck = set()
    for phase in Phase:
        outcomes = {
            phases.next_phase(phase, phases.step(phase, action).rule, tally)
            for action in Action
            for tally in (plain(1, 1), plain(1, 1, running=1), plain(1, 1, terminating=1))
        }
        if outcomes == {phase}:
            stuck.add(phase)
    assert stuck == FINISHED_JOB_PHASES


def test_only_failures_count_as_retries() -> None:
    counting = {action for phase in Phase for action in Action if phases.step(phase, action).counts_retry}
    assert counting == {Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION}
