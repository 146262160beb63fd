"""Why jobs and gangs wait, and the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from stromboli.api import core
from stromboli.dashboard import groups, jobs
from stromboli.dashboard.objects import Job, JobSpec, JobState, JobStatus, TaskSpec
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.waiting import why
from stromboli.testing.builders import created_at, pod_group


def group(phase: str, *conditions: tuple[str, str, str, str], owner: str = "") -> core.PodGroup:
    built = pod_group("g").phase(phase).build()
    told = tuple(core.PodGroupCondition(type=a, status=b, reason=c, message=d) for a, b, c, d in conditions)
    owners = (core.OwnerReference(kind="Job", name=owner, uid=f"uid-{owner}"),) if owner else ()
    return msgspec.structs.replace(
        built,
        metadata=msgspec.structs.replace(built.metadata, owner_references=owners),
        status=core.PodGroupStatus(phase=phase, conditions=told),
    )


ADMITTED = ("Admitted", "False", "QueueQuotaInsufficient", "short by cpu 4")
UNFIT = ("Unschedulable", "True", "NotEnoughResources", "3/3 tasks in gang unschedulable")
SHORT = ("Fits", "False", "NodesRefuse", "short by memory 2Gi")
FITS = ("Scheduled", "True", "", "")
WHYS = {
    "not admitted": (group("Pending", ADMITTED), ("QueueQuotaInsufficient", "short by cpu 4")),
    "admitted, no room": (group("Inqueue", UNFIT), ("NotEnoughResources", "3/3 tasks in gang unschedulable")),
    "the cause wins": (group("Pending", ADMITTED, UNFIT), ("QueueQuotaInsufficient", "short by cpu 4")),
    "room is short by so much": (group("Inqueue", SHORT, UNFIT), ("NodesRefuse", "short by memory 2Gi")),
    "what is settled says nothing": (
        group("Inqueue", ("Admitted", "True", "x", "y"), FITS),
        ("NotAdmittedYet", "no scheduling cycle has looked at it yet"),
    ),
    "new": (group(""), ("NotAdmittedYet", "no scheduling cycle has looked at it yet")),
    "running": (group("Running", UNFIT), ("", "")),
    "completed": (group("Completed", ADMITTED), ("", "")),
}


@pytest.mark.parametrize("name", WHYS)
def test_whys(name: str) -> None:
    of, want = WHYS[name]
    found = why(of)
    assert (found.reason, found.message) == want


def test_a_next_step_is_told_where_the_message_has_none() -> None:
    assert why(group("Pending")).step.startswith("wait for the next scheduling cycle")
    assert why(group("Pending", ADMITTED)).step == ""


def job(name: str, phase: str = "Pending", born: float = 0.0) -> Job:
    return Job(
        metadata=core.ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", creation_timestamp=created_at(born)),
        spec=JobSpec(min_available=1, tasks=(TaskSpec(name="a", replicas=2), TaskSpec(name="b", replicas=3))),
        status=JobStatus(state=JobState(phase=phase)),
    )


def test_a_job_tells_what_its_gang_tells() -> None:
    (row,) = jobs.rows(Sight(jobs=[job("j")], groups=[group("Pending", ADMITTED, owner="j")]))
    assert (row.why.reason, row.group, row.pods, row.queue) == ("QueueQuotaInsufficient", "Pending", 5, "default")


def test_a_pending_job_without_a_gang_says_so() -> None:
    (row,) = jobs.rows(Sight(jobs=[job("j", "")]))
    assert (row.state, row.why.reason) == ("Pending", "PodGroupMissing")


def test_a_job_that_does_not_wait_has_no_reason() -> None:
    for phase in ("Running", "Completed", "Aborted", "Failed"):
        (row,) = jobs.rows(Sight(jobs=[job("j", phase)], groups=[group("Pending", ADMITTED, owner="j")]))
        assert row.why.reason == ""


def test_the_longest_waiting_come_first_and_what_has_ended_last() -> None:
    life = [
        job("ended-early", "Completed", 1),
        job("runs", "Running", 2),
        job("waits-new", "Pending", 4),
        job("waits-old", "Pending", 3),
        job("ended-late", "Failed", 5),
    ]
    want = ["waits-old", "waits-new", "runs", "ended-late", "ended-early"]
    assert [row.name for row in jobs.rows(Sight(jobs=life))] == want


def test_states_are_counted_in_the_order_of_a_life() -> None:
    life = [job("a", "Completed"), job("b", ""), job("c", "Running"), job("d", "Pending"), job("e", "Strange")]
    assert list(jobs.counts(life).items()) == [("Pending", 2), ("Running", 1), ("Completed", 1), ("Strange", 1)]


def test_gangs_that_wait_come_first() -> None:
    built = [
        replace(pod_group("old").phase("Running"), created=created_at(0)).build(),
        replace(pod_group("new").phase("Running"), created=created_at(9)).build(),
        replace(pod_group("waits").phase("Inqueue").topology("soft", tier_name="rack"), created=created_at(5)).build(),
    ]
    found = groups.rows(Sight(groups=built))
    assert [row.name for row in found] == ["waits", "new", "old"]
    assert [row.tier for row in found] == ["soft rack", "", ""]
