"""Which action a job is due for: from what is and what was reported, through its policies, to one decision.

Most occurrences are read off the present state (a failed pod *is* there), so they survive restarts of the controller
and cannot be processed twice: acting on them makes them untrue. Only what leaves no trace, an eviction or a Command, is
reported from outside and remembered until it has been dealt with. Delays are dated from when the condition was first
seen, and end with it. Spec 02 sections 3.2, 7 and 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.api.batch import TaskSpec
from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobEvent as Happening
from stromboli.api.phases import JobPhase as Phase
from stromboli.controllers.job import phases, pods, successes
from stromboli.controllers.job.members import LIVE_PHASES, Member
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.phases import Scope
from stromboli.controllers.job.policies import SYNC, Occurrence, Resolution, Target, resolve, target

DEFAULT_TASK_RETRIES = 3


class TimerKey(NamedTuple):
    """One delayed action: what happened, to whom (by UID), and what it leads to."""

    event: str
    task: str
    pod: str
    pod_uid: str
    action: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and what to remember for later."""

    action: Action = Action.SYNC_JOB
    spelled: str = SYNC.spelled
    target: Target = field(default_factory=lambda: Target(Scope.INTERNAL))
    cause: Occurrence | None = None
    announced: tuple[tuple[str, float], ...] = ()
    """Actions that have just been delayed: as spelled, with the delay in seconds."""
    remembered: tuple[Occurrence, ...] = ()
    """Reported occurrences that are still to be dealt with once this decision has been carried out."""
    timers: Mapping[TimerKey, float] = field(default_factory=dict)
    again_at: float | None = None
    """When to decide again, seconds since the epoch; None: when something changes."""


class _Candidate(NamedTuple):
    occurrence: Occurrence
    resolution: Resolution
    target: Target
    reported: bool


@dataclass(slots=True)
class _Agenda:
    """Candidates by whether their time has come."""

    ready: list[_Candidate] = field(default_factory=list)
    waiting: list[_Candidate] = field(default_factory=list)
    timers: dict[TimerKey, float] = field(default_factory=dict)
    announced: list[tuple[str, float]] = field(default_factory=list)

    def enter(self, candidate: _Candidate, armed: Mapping[TimerKey, float], now: float) -> None:
        """Sort one candidate in; a delay that is not ``armed`` yet begins now."""
        delay = candidate.resolution.delay
        key = _timer_key(candidate)
        due = armed.get(key, now + delay) if delay > 0 else now
        if due <= now:
            self.ready.append(candidate)
            return
        if key not in armed:
            self.announced.append((candidate.resolution.spelled, delay))
        self.timers[key] = due
        self.waiting.append(candidate)


def decide(view: Observed, now: float) -> Decision:
    """The one action to carry out in this pass; a plain sync when nothing asks for more."""
    agenda = _Agenda()
    for candidate in _distinct(_candidates(view)):
        agenda.enter(candidate, view.timers, now)
    if agenda.ready:
        return _take_first(agenda, now)
    return Decision(
        announced=tuple(agenda.announced),
        remembered=_reported(agenda.waiting),
        timers=agenda.timers,
        again_at=min(agenda.timers.values(), default=None),
    )


def _take_first(agenda: _Agenda, now: float) -> Decision:
    """Take the first that is ready; it cancels what is delayed of the same scope and target (spec 02 section 8.4)."""
    chosen, *others = agenda.ready
    surviving = [one for one in agenda.waiting if not _cancels(chosen.target, one.target)]
    timers = {_timer_key(one): agenda.timers[_timer_key(one)] for one in surviving}
    return Decision(
        action=chosen.resolution.action,
        spelled=chosen.resolution.spelled,
        target=chosen.target,
        cause=chosen.occurrence,
        announced=tuple(agenda.announced),
        remembered=_reported([*others, *surviving]),
        timers=timers,
        again_at=now if others else min(timers.values(), default=None),
    )


def _cancels(executed: Target, delayed: Target) -> bool:
    return executed.scope is delayed.scope and (executed.scope is Scope.JOB or executed == delayed)


def _reported(candidates: Iterable[_Candidate]) -> tuple[Occurrence, ...]:
    return tuple(candidate.occurrence for candidate in candidates if candidate.reported)


def _timer_key(candidate: _Candidate) -> TimerKey:
    found = candidate.occurrence
    return TimerKey(found.event, found.task, found.pod, found.pod_uid, candidate.resolution.spelled)


def _distinct(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Every occurrence once: one that was remembered after a failed pass may still show in the present state."""
    found: dict[Occurrence, _Candidate] = {}
    for candidate in candidates:
        found.setdefault(candidate.occurrence, candidate)
    return list(found.values())


def _candidates(view: Observed) -> Iterator[_Candidate]:
    """Occurrences that ask for more than a sync in the job's phase: Commands first, then evictions, then states."""
    phase = phases.phase_of(view.job.status.state.phase)
    commands = [one for one in view.reported if one.action is not None]
    others = [one for one in view.reported if one.action is None and not _replaced(view, one)]
    for occurrence in (*commands, *others):
        yield from _candidate(view, phase, occurrence, reported=True)
    if _listens(view, phase):
        for occurrence in present(view):
            yield from _candidate(view, phase, occurrence, reported=False)


def _candidate(view: Observed, phase: Phase, occurrence: Occurrence, *, reported: bool) -> Iterator[_Candidate]:
    resolution = resolve(view.job, occurrence)
    if phases.step(phase, resolution.action) == phases.step(phase, Action.SYNC_JOB):
        return
    aimed = target(resolution.action, occurrence)
    if aimed.known:
        yield _Candidate(occurrence, resolution, aimed, reported)


def _listens(view: Observed, phase: Phase) -> bool:
    """Whether any policy could matter now; saves looking at every pod of most jobs."""
    if phase not in (Phase.PENDING, Phase.RUNNING, Phase.RESTARTING, Phase.ABORTING, Phase.ABORTED):
        return False
    return bool(view.job.spec.policies) or any(task.policies for task in view.job.spec.tasks)


def _replaced(view: Observed, eviction: Occurrence) -> bool:
    """Whether a pod of the same name runs again, which ends a wait after an eviction (spec 02 section 8.3)."""
    if resolve(view.job, eviction).delay <= 0:
        return False
    return any(
        one.name == eviction.pod and one.uid != eviction.pod_uid and one.phase == "Running" for one in view.members
    )


def present(view: Observed) -> Iterator[Occurrence]:
    """Occurrences that the present state shows, tasks in the order of the spec, pods by index."""
    for task in view.job.spec.tasks:
        members = sorted(
            (one for one in view.members if one.task == pods.task_name(task) and not one.marked),
            key=lambda one: (one.index is None, one.index, one.name),
        )
        yield from (about(one, Happening.POD_FAILED) for one in members if one.phase == "Failed")
        yield from _completed(task, members, successes.of(view.job, pods.task_name(task)))
        yield from _worn_out(task, members)
        yield from (
            about(one, Happening.POD_PENDING) for one in members if one.phase == "Pending" and not one.terminating
        )
    if view.group is not None and view.group.status.phase == Happening.JOB_UNKNOWN:
        yield Occurrence(event=Happening.JOB_UNKNOWN, job_uid=view.job.uid)


def about(member: Member, event: Happening) -> Occurrence:
    """An occurrence about one pod."""
    return Occurrence(
        event=event,
        job_uid=member.job_uid,
        task=member.task,
        pod=member.name,
        pod_uid=member.uid,
        partition=member.partition,
        exit_code=member.exit_code if event is Happening.POD_FAILED else 0,
        version=member.version,
    )


def _completed(task: TaskSpec, members: list[Member], recorded: frozenset[int]) -> Iterator[Occurrence]:
    """``TaskCompleted`` when all replicas have succeeded, told by the newest of the pods that are left."""
    succeeded = [one for one in members if one.phase == "Succeeded"]
    gone = recorded - {one.index for one in members}
    if task.replicas and succeeded and len(succeeded) + len(gone) >= task.replicas:
        yield about(max(succeeded, key=lambda one: one.version), Happening.TASK_COMPLETED)


def _worn_out(task: TaskSpec, members: list[Member]) -> Iterator[Occurrence]:
    """``TaskFailed`` when the containers of the task's live pods have restarted too often, told by the worst pod."""
    limit = task.max_retry or DEFAULT_TASK_RETRIES
    live = [one for one in members if one.phase in LIVE_PHASES]
    if task.replicas and live and limit > 0 and sum(one.restarts for one in live) >= limit:
        yield about(max(live, key=lambda one: one.restarts), Happening.TASK_FAILED)
