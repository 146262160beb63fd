"""Every phase, every action, every condition of a pod: what a plan does is what the tables of spec 02 section 9 say.

The job has two workers, both needed, each a partition. Worker 1 runs; worker 0 is in the condition under test, and an
eviction of it is what the action is the policy's answer to. What is expected is worked out here from the table of
section 9.1 (as typed in ``test_phases``) and from sections 9.2, 10 and 11, not with the code that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobPhase as Phase
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.operations import DeletePodGroup
from stromboli.controllers.job.phases import SOFT, Rule, Step, Work
from stromboli.controllers.job.policies import Occurrence
from tests.controllers.building import UID, job, member
from tests.controllers.job.test_phases import CELLS
from tests.controllers.job.test_planning import created, of_type, removed, steps, view, written

VERSION = 1
EVICTED = "job1-worker-0"
WANTED = {(phase, action): step for phase, action, step in CELLS}
MAX_RETRY = 3


def worker(phase: str, *, version: int = VERSION, terminating: bool = False) -> Member:
    return member("worker", 0, phase, version=version, terminating=terminating, partition="0")


RUNNING = member("worker", 1, version=VERSION, partition="1")
CONDITIONS: dict[str, Member | None] = {
    "pending": worker("Pending"),
    "running": worker("Running"),
    "succeeded": worker("Succeeded"),
    "failed": worker("Failed"),
    "releasing": worker("Running", terminating=True),
    "unknown": worker("Unknown"),
    "absent": None,
    "of an earlier version": worker("Running", version=VERSION - 1),
    "of another job of the name": None,
}


@dataclass(frozen=True)
class Outcome:
    """What a plan comes to."""

    phase: Phase
    removed: tuple[str, ...]
    created: tuple[str, ...]
    retries: int
    version: int
    group_deleted: bool


def outdated(condition: str) -> bool:
    """Whether the eviction is no business of the job's (any more), so that nothing but a sync is due."""
    return condition in ("of an earlier version", "of another job of the name")


def expected(stored: str, action: Action, condition: str, retries: int) -> Outcome:
    phase = Phase(stored or "Pending")
    step = WANTED[phase, Action.SYNC_JOB if outdated(condition) else action]
    begins = step.rule.value.startswith("→")
    zero = CONDITIONS[condition]
    pods = [*([zero] if zero else []), RUNNING]
    gone = [one.name for one in pods if not one.terminating and is_killed(one, step, phase, action, retries)]
    made = [EVICTED] if step.work is Work.SYNC and zero is None else []
    after_retries = retries + (1 if step.counts_retry else 0)
    version = VERSION + (1 if step.work is Work.KILL_JOB and (begins or gone) else 0)
    after = following(phase, step.rule, counts(pods, gone, made), after_retries)
    return Outcome(after, tuple(gone), tuple(made), after_retries, version, step.work is Work.KILL_JOB)


def is_killed(pod: Member, step: Step, phase: Phase, action: Action, retries: int) -> bool:
    if step.work is Work.SYNC:  # the leftovers of a restart that was interrupted, and nothing else
        return phase is Phase.RESTARTING and pod.version < VERSION and pod.phase not in SOFT
    if step.work is Work.KILL_TARGET:
        return action is Action.RESTART_TASK or pod.name == EVICTED
    return pod.phase not in (SOFT if retries >= MAX_RETRY - 1 else step.spares)


def counts(pods: list[Member], gone: list[str], made: list[str]) -> dict[str, int]:
    found = dict.fromkeys(("Pending", "Running", "Succeeded", "Failed", "Unknown", "terminating"), 0)
    for pod in pods:
        found["terminating" if pod.terminating or pod.name in gone else pod.phase] += 1
    found["Pending"] += len(made)
    return found


def following(phase: Phase, rule: Rule, n: dict[str, int], retries: int) -> Phase:
    """Section 9.2 for two pods of which two are needed, and no minSuccess."""
    alive = n["terminating"] + n["Pending"] + n["Running"]
    finished = n["Succeeded"] + n["Failed"]
    match rule.value:
        case "P":
            return Phase.RUNNING if n["Running"] + finished >= 2 else phase
        case "U" if finished == 2:
            return Phase.COMPLETED if n["Succeeded"] == 2 else Phase.FAILED
        case "U":
            return Phase.PENDING if n["Pending"] > 0 else phase
        case "R" if retries >= MAX_RETRY:
            return Phase.FAILED
        case "R":
            return Phase.PENDING if n["terminating"] == 0 else phase
        case "A" | "C" | "T":
            ends = {"A": Phase.ABORTED, "C": Phase.COMPLETED, "T": Phase.TERMINATED}
            return phase if alive else ends[rule.value]
        case "stay":
            return phase
    return Phase(rule.value.removeprefix("→ "))


def seen(stored: str, action: Action, condition: str, retries: int) -> Outcome:
    policy = {"totalPartitions": 2, "partitionSize": 1}
    builder = job().task("worker", 2, partitionPolicy=policy).policy("PodEvicted", str(action)).spec(maxRetry=MAX_RETRY)
    builder.phase(stored).status(version=VERSION, retryCount=retries)
    zero = CONDITIONS[condition]
    eviction = Occurrence(
        event="PodEvicted",
        job_uid="another" if condition == "of another job of the name" else UID,
        task="worker",
        pod=EVICTED,
        pod_uid=zero.uid if zero else "gone",
        partition="0",
        version=zero.version if zero else VERSION,
    )
    members = [*([zero] if zero else []), RUNNING]
    operations = steps(view(builder, *members, reported=(eviction,)))
    status = written(operations)
    return Outcome(
        Phase(status["state"]["phase"]),
        tuple(removed(operations)),
        tuple(created(operations)),
        status.get("retryCount", 0),
        status.get("version", 0),
        bool(of_type(operations, DeletePodGroup)),
    )


@pytest.mark.parametrize("retries", [0, MAX_RETRY - 1, MAX_RETRY])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("stored", [*Phase])
def test_every_action(stored: str, condition: str, retries: int) -> None:
    for action in Action:
        want = expected(stored, action, condition, retries)
        assert seen(stored, action, condition, retries) == want, action
