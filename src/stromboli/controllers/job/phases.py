"""The job state machine as data: what each action means in each phase, and which phase comes next.

:data:`TABLE` is the whole machine (spec 02 section 9.1): one :class:`Step` for every phase and action. A step says what
to do with the pods (:class:`Work`), which pods a kill spares, and the :class:`Rule` that picks the next phase from the
pod counts of the same pass (section 9.2). Nothing here knows about API objects, time or I/O, so the machine can be
walked exhaustively by tests and rendered into the documentation.

Differences from the letter of the spec, on purpose: a resumed job does not consume a retry, because only failures
count as retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from stromboli.api.phases import FINISHED_JOB_PHASES as FINISHED
from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobPhase as Phase

OTHER: Final = Action.ENQUEUE_JOB
"""Stands for any action that a job does not know: queue actions, ``EnqueueJob`` itself and unknown texts."""

SETTLED: Final = FINISHED | {Phase.ABORTED}
"""Phases in which nothing of the job runs any more."""


def phase_of(text: str | None) -> Phase:
    """The phase spelled ``text``; ``Pending`` for what is empty or not known."""
    try:
        return Phase(text or Phase.PENDING)
    except ValueError:
        return Phase.PENDING


def action_of(text: str) -> Action:
    """The action spelled ``text``; ``OTHER`` for what a job does not know."""
    try:
        return Action(text)
    except ValueError:
        return OTHER


class Scope(Enum):
    """How much of a job an action concerns; a delayed action is cancelled by another of the same scope and target."""

    INTERNAL = auto()
    JOB = auto()
    TASK = auto()
    POD = auto()
    PARTITION = auto()


_SCOPES = {
    Action.SYNC_JOB: Scope.INTERNAL,
    OTHER: Scope.INTERNAL,
    Action.RESTART_TASK: Scope.TASK,
    Action.RESTART_POD: Scope.POD,
    Action.RESTART_PARTITION: Scope.PARTITION,
}


def scope(action: Action) -> Scope:
    """The scope class of an action (spec 02 section 2.4)."""
    return _SCOPES.get(action, Scope.JOB)


class Work(Enum):
    """What a step does with the pods of the job."""

    SYNC = "sync"
    KILL_JOB = "kill"
    KILL_TARGET = "target"


class Rule(Enum):
    """How the next phase is found once the pods have been counted (spec 02 section 9.2)."""

    STAY = "stay"
    PENDING = "P"
    RUNNING = "U"
    RESTARTING = "R"
    ABORTING = "A"
    COMPLETING = "C"
    TERMINATING = "T"
    TO_RESTARTING = "→ Restarting"
    TO_ABORTING = "→ Aborting"
    TO_COMPLETING = "→ Completing"
    TO_TERMINATING = "→ Terminating"


NONE: frozenset[str] = frozenset()
SOFT: frozenset[str] = frozenset({"Succeeded", "Failed"})
"""Pod phases that a soft kill spares: finished pods stay for their logs."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one action means in one phase."""

    work: Work
    rule: Rule
    spares: frozenset[str] = NONE
    counts_retry: bool = False


def _sync(rule: Rule) -> Step:
    return Step(Work.SYNC, rule)


def _kill(spares: frozenset[str], rule: Rule, *, counts_retry: bool = False) -> Step:
    return Step(Work.KILL_JOB, rule, spares, counts_retry)


def _target(rule: Rule, *, counts_retry: bool = False) -> Step:
    return Step(Work.KILL_TARGET, rule, counts_retry=counts_retry)


_TARGETED = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)


def _live_row(rule: Rule) -> dict[Action, Step]:
    """Pending and Running: every action is taken up."""
    return {
        **dict.fromkeys(Action, _sync(rule)),
        **dict.fromkeys(_TARGETED, _target(Rule.TO_RESTARTING, counts_retry=True)),
        Action.RESTART_JOB: _kill(NONE, Rule.TO_RESTARTING, counts_retry=True),
        Action.ABORT_JOB: _kill(SOFT, Rule.TO_ABORTING),
        Action.TERMINATE_JOB: _kill(SOFT, Rule.TO_TERMINATING),
        Action.COMPLETE_JOB: _kill(SOFT, Rule.TO_COMPLETING),
    }


def _constant_row(step: Step) -> dict[Action, Step]:
    """Phases that do the same thing whatever is asked."""
    return dict.fromkeys(Action, step)


TABLE: Mapping[Phase, Mapping[Action, Step]] = {
    Phase.PENDING: _live_row(Rule.PENDING),
    Phase.RUNNING: _live_row(Rule.RUNNING),
    Phase.RESTARTING: {
        **_constant_row(_kill(NONE, Rule.RESTARTING)),
        **dict.fromkeys(_TARGETED, _target(Rule.RESTARTING)),
        Action.SYNC_JOB: _sync(Rule.RESTARTING),
    },
    Phase.ABORTING: {
        **_constant_row(_kill(SOFT, Rule.ABORTING)),
        Action.RESUME_JOB: _kill(SOFT, Rule.TO_RESTARTING),
    },
    Phase.ABORTED: {
        **_constant_row(_kill(SOFT, Rule.STAY)),
        Action.RESUME_JOB: _kill(SOFT, Rule.TO_RESTARTING),
    },
    Phase.COMPLETING: _constant_row(_kill(SOFT, Rule.COMPLETING)),
    Phase.TERMINATING: _constant_row(_kill(SOFT, Rule.TERMINATING)),
    Phase.COMPLETED: _constant_row(_kill(SOFT, Rule.STAY)),
    Phase.FAILED: _constant_row(_kill(SOFT, Rule.STAY)),
    Phase.TERMINATED: _constant_row(_kill(SOFT, Rule.STAY)),
}
"""Phase × action → step. Restarting honours no abort, termination or completion: they only continue the restart."""


def step(phase: Phase, action: Action) -> Step:
    """The step for ``action`` in ``phase``."""
    return TABLE[phase][action]


@dataclass(frozen=True, slots=True)
class TaskTally:
    """One task as the rules see it. ``succeeded`` is None when no pod of the task was counted in this pass."""

    replicas: int
    min_available: int | None = None
    succeeded: int | None = None

    @property
    def required(self) -> int:
        """Pods this task must have for the gang: its ``minAvailable``, or all of its replicas."""
        return self.replicas if self.min_available is None else self.min_available


@dataclass(frozen=True, slots=True)
class Tally:
    """Everything a next-phase rule may look at."""

    min_available: int
    tasks: tuple[TaskTally, ...] = ()
    min_success: int | None = None
    retry_count: int = 0
    max_retry: int = 3
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    recorded_min_available: int = field(default=0)
    """``status.minAvailable``: the gang size as of the last sync."""

    @property
    def replicas(self) -> int:
        """Pods over all tasks."""
        return sum(task.replicas for task in self.tasks)

    @property
    def alive(self) -> int:
        """Pods that still hold resources."""
        return self.terminating + self.pending + self.running


_UNCONDITIONAL = {
    Rule.TO_RESTARTING: Phase.RESTARTING,
    Rule.TO_ABORTING: Phase.ABORTING,
    Rule.TO_COMPLETING: Phase.COMPLETING,
    Rule.TO_TERMINATING: Phase.TERMINATING,
}

_WHEN_DRAINED = {
    Rule.ABORTING: Phase.ABORTED,
    Rule.COMPLETING: Phase.COMPLETED,
    Rule.TERMINATING: Phase.TERMINATED,
}


def next_phase(current: Phase, rule: Rule, tally: Tally) -> Phase:
    """The phase after a pass over the job that counted ``tally``."""
    if rule in _UNCONDITIONAL:
        return _UNCONDITIONAL[rule]
    if rule in _WHEN_DRAINED:
        return current if tally.alive else _WHEN_DRAINED[rule]
    if rule is Rule.PENDING:
        arrived = tally.running + tally.succeeded + tally.failed
        return Phase.RUNNING if tally.min_available <= arrived else current
    if rule is Rule.RESTARTING:
        return _after_restarting(current, tally)
    if rule is Rule.RUNNING:
        return _after_running(current, tally)
    return current


def _after_restarting(current: Phase, tally: Tally) -> Phase:
    if tally.retry_count >= tally.max_retry:
        return Phase.FAILED
    if tally.replicas - tally.terminating >= tally.recorded_min_available:
        return Phase.PENDING
    return current


def _after_running(current: Phase, tally: Tally) -> Phase:
    if tally.replicas == 0:
        return current  # scaled to zero: the job waits for its next pods
    if tally.min_success is not None and tally.succeeded >= tally.min_success:
        return Phase.COMPLETED
    if tally.succeeded + tally.failed == tally.replicas:
        return _outcome(tally)
    if tally.pending > tally.replicas - tally.min_available:
        return Phase.PENDING
    return current


def _outcome(tally: Tally) -> Phase:
    """Completed or Failed for a job whose pods have all finished."""
    if tally.min_available >= sum(task.required for task in tally.tasks) and any(map(_fell_short, tally.tasks)):
        return Phase.FAILED
    if tally.min_success is not None:
        return Phase.FAILED  # reached only with too few successes
    return Phase.COMPLETED if tally.succeeded >= tally.min_available else Phase.FAILED


def _fell_short(task: TaskTally) -> bool:
    return task.min_available is not None and task.succeeded is not None and task.succeeded < task.min_available
