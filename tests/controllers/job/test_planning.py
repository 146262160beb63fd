"""What a plan asks for in one pass: spec 02 sections 10 and 11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.core import PodGroup, PodGroupCondition, Queue, from_builtins, timestamp
from stromboli.api.phases import JobAction, JobPhase
from stromboli.controllers.job import documenting, phases, plugins, podgroups, restarts
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.operations import (
    CreatePodGroup,
    CreatePods,
    DeletePodGroup,
    DropAttachment,
    LookAgain,
    Operation,
    PatchJob,
    RecordEvent,
    RemovePods,
    WriteStatus,
)
from stromboli.controllers.job.planning import plan
from stromboli.controllers.job.policies import Occurrence
from stromboli.controllers.job.refusals import Refused
from stromboli.controllers.job.syncing import MOST_AT_ONCE
from stromboli.kube.json import JsonObject
from tests.controllers.building import CREATED, UID, JobBuilder, job, member

NOW = timestamp(CREATED) + 100
QUEUE = from_builtins(Queue, {"metadata": {"name": "default"}})
T = TypeVar("T")


def view(builder: JobBuilder, *members: Member, group: str | None = "Running", **fields: Any) -> Observed:
    model = builder.model()
    found = None
    if group is not None:
        wire = podgroups.build(model, {})
        wire["metadata"]["uid"] = "group-uid"
        found = from_builtins(PodGroup, {**wire, "status": {"phase": group}})
    return Observed(job=model, members=members, group=found, **{"queue": QUEUE, **fields})


def of_type(operations: Sequence[Operation], kind: type[T]) -> list[T]:
    return [one for one in operations if isinstance(one, kind)]


def steps(seen: Observed, now: float = NOW) -> tuple[Operation, ...]:
    return plan(seen, now).operations


def written(operations: Sequence[Operation]) -> JsonObject:
    [found] = of_type(operations, WriteStatus)
    return found.status


def created(operations: Sequence[Operation]) -> list[str]:
    return [manifest["metadata"]["name"] for one in of_type(operations, CreatePods) for manifest in one.manifests]


def removed(operations: Sequence[Operation]) -> list[str]:
    return sorted(gone.name for one in of_type(operations, RemovePods) for gone in one.members)


def command(action: str) -> Occurrence:
    return Occurrence(event="CommandIssued", job_uid=UID, action=action)


def running(replicas: int = 2, **task: Any) -> JobBuilder:
    return job().task("worker", replicas, **task).phase("Running")


# -- sync --------------------------------------------------------------------------------------------------------------


def test_a_new_job_first_gets_a_phase_and_then_what_a_pending_one_gets() -> None:
    begun, *others = steps(view(job().task("worker", 1), group=None))
    pending = {"status": "Pending", "lastTransitionTime": "2026-06-24T09:01:40Z"}
    assert isinstance(begun, WriteStatus)
    assert begun.status["state"] == {"phase": "Pending", "lastTransitionTime": "2026-06-24T09:01:40Z"}
    assert begun.status["conditions"] == [pending]
    stored = job().task("worker", 1)
    stored.wire["status"] = begun.status
    assert others == list(steps(view(stored, group=None)))


def test_a_new_job_that_cannot_begin_gets_its_phase_before_it_is_told_why() -> None:
    claim = {"mountPath": "/data", "volumeClaimName": "data"}
    begun, again = steps(view(job().task("worker", 1).spec(volumes=[claim]), group=None))
    assert isinstance(begun, WriteStatus)
    assert begun.status["state"]["phase"] == "Pending"
    assert again == LookAgain()


def test_a_pending_job_without_a_group_gets_one_and_no_pods() -> None:
    operations = steps(view(job().task("worker", 1).phase("Pending"), group=None))
    assert of_type(operations, CreatePodGroup)
    assert not created(operations)


def test_missing_replicas_are_created_behind_an_open_gate() -> None:
    present = [member("worker", index) for index in (0, 3)]
    operations = steps(view(running(6, minAvailable=1), *present))
    assert created(operations) == [f"job1-worker-{index}" for index in (1, 2, 4, 5)]


@pytest.mark.parametrize("phase", [None, "", "Pending"])
def test_a_closed_gate_lets_nobody_in(phase: str | None) -> None:
    assert not created(steps(view(running(), group=phase)))


def test_a_huge_job_is_created_in_portions() -> None:
    huge = running(replicas=1_000_000)
    first = created(steps(view(huge)))
    assert first == [f"job1-worker-{index}" for index in range(MOST_AT_ONCE)]
    present = [member("worker", index) for index in range(MOST_AT_ONCE)]
    second = created(steps(view(huge, *present)))
    assert second == [f"job1-worker-{index}" for index in range(MOST_AT_ONCE, 2 * MOST_AT_ONCE)]
    assert removed(steps(view(running(replicas=10), *present[:12]))) == [present[10].name, present[11].name]


def test_a_terminating_pod_blocks_its_index() -> None:
    operations = steps(view(running(2), member("worker", 0, terminating=True), member("worker", 1)))
    assert not created(operations)
    assert (written(operations)["terminating"], written(operations)["running"]) == (1, 1)


def test_surplus_and_marked_pods_are_removed_and_counted_once() -> None:
    present = [member("worker", 0), member("worker", 1, marked=True), member("worker", 2)]
    operations = steps(view(running(2, minAvailable=1), *present))
    assert removed(operations) == ["job1-worker-1", "job1-worker-2"]
    assert (written(operations)["terminating"], written(operations)["running"]) == (2, 1)


def test_a_dependency_holds_back_only_its_dependents() -> None:
    builder = job().task("master", 1, minAvailable=1).task("work", 3, dependsOn={"name": ["master"]}).phase("Pending")
    assert created(steps(view(builder))) == ["job1-master-0"]
    assert created(steps(view(builder, member("master", 0, "Pending")))) == []
    assert created(steps(view(builder, member("master", 0, all_ready=False)))) == []
    assert len(created(steps(view(builder, member("master", 0))))) == 3
    assert len(created(steps(view(builder, member("master", 0, "Succeeded", all_ready=False))))) == 3


@pytest.mark.parametrize(("iteration", "want"), [("any", 1), ("all", 0), ("", 0)])
def test_any_or_all_of_several_dependencies(iteration: str, want: int) -> None:
    builder = job().task("a", 1, minAvailable=1).task("b", 1, minAvailable=1)
    builder.task("c", 1, dependsOn={"name": ["a", "b"], "iteration": iteration}).phase("Running")
    assert len(created(steps(view(builder, member("a", 0), member("b", 0, "Pending"))))) == want


def test_a_dependency_that_does_not_exist_is_never_ready() -> None:
    builder = job().task("a", 1, dependsOn={"name": ["ghost"]}).phase("Running")
    assert created(steps(view(builder))) == []


def test_a_missing_queue_is_refused_with_its_name() -> None:
    with pytest.raises(Refused, match="queue default not found"):
        steps(view(job().task("worker", 1), queue=None))


def test_a_job_whose_queue_was_deleted_is_counted_and_told_once() -> None:
    operations = steps(view(running(2), member("worker", 0, phase="Succeeded"), queue=None))
    assert not created(operations)
    assert written(operations)["succeeded"] == 1
    [told] = of_type(operations, RecordEvent)
    assert told.reason == written(operations)["state"]["reason"] == "QueueNotFound"
    assert "queue default was deleted" in told.message and "create the queue again" in told.message
    again = running(2).status(**written(operations))
    assert not of_type(steps(view(again, member("worker", 0, phase="Succeeded"), queue=None)), RecordEvent)
    back = steps(view(again, member("worker", 0, phase="Succeeded")))
    assert created(back) == ["job1-worker-1"]
    assert "reason" not in written(back)["state"]


def test_a_job_whose_queue_was_deleted_can_still_end() -> None:
    operations = steps(view(running(1), member("worker", 0, phase="Succeeded"), queue=None))
    assert written(operations)["state"]["phase"] == "Completed"
    assert not of_type(operations, RecordEvent)


def test_losing_the_queue_keeps_what_a_restart_is_about() -> None:
    restarting = (
        job()
        .task("worker", 2)
        .status(state={"phase": "Restarting", "reason": "RestartPod"}, minAvailable=2, retryCount=1)
    )
    operations = steps(view(restarting, member("worker", 0), member("worker", 1, terminating=True), queue=None))
    assert not of_type(operations, RemovePods)
    assert written(operations)["state"] == {
        **written(operations)["state"],
        "phase": "Restarting",
        "reason": "RestartPod",
    }


def test_a_forwarding_queue_marks_the_job_once() -> None:
    queue = from_builtins(Queue, {"metadata": {"name": "q"}, "spec": {"extendClusters": [{"name": "far"}]}})
    unmarked = job().task("worker", 1).phase("Running")
    [patch] = of_type(steps(view(unmarked, queue=queue)), PatchJob)
    assert patch.patch == {"metadata": {"annotations": {"volcano.sh/job-forwarding": "true"}}}
    marked = unmarked.meta(annotations={"volcano.sh/job-forwarding": "true"})
    operations = steps(view(marked, queue=queue))
    assert not of_type(operations, PatchJob)
    [order] = of_type(operations, CreatePods)
    assert order.manifests[0]["metadata"]["labels"]["volcano.sh/job-forwarding"] == "true"


def test_a_user_claim_must_exist() -> None:
    builder = job().task("worker", 1).phase("Pending").spec(volumes=[{"mountPath": "/d", "volumeClaimName": "mine"}])
    with pytest.raises(Refused, match="pvc mine is not found"):
        steps(view(builder))
    found = written(steps(view(builder, claims=frozenset({"mine"}))))
    assert found["controlledResources"] == {"volume-pvc-mine": "mine"}


def test_a_success_on_record_is_not_run_again() -> None:
    builder = running(4).status(controlledResources={"succeeded-worker": "0-1"})
    operations = steps(view(builder, member("worker", 2)))
    assert created(operations) == ["job1-worker-3"]
    assert written(operations)["succeeded"] == 2


def test_a_job_being_deleted_is_left_alone() -> None:
    assert steps(view(running().meta(deletionTimestamp=CREATED))) == ()


def test_nothing_changes_nothing() -> None:
    builder = running(2)
    first = written(steps(view(builder, member("worker", 0), member("worker", 1))))
    again = written(steps(view(builder.status(**first), member("worker", 0), member("worker", 1)), NOW + 60))
    assert again == first


# -- kill --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "want"),
    [
        ("RestartJob", "Restarting"),
        ("AbortJob", "Aborting"),
        ("TerminateJob", "Terminating"),
        ("CompleteJob", "Completing"),
    ],
)
def test_killing_a_job_writes_the_phase_before_it_touches_pods(action: str, want: str) -> None:
    operations = steps(view(running(), member("worker", 0), member("worker", 1), reported=(command(action),)))
    status = written(operations)
    assert (status["state"]["phase"], status["version"], status["terminating"]) == (want, 1, 2)
    kinds = [type(one) for one in operations]
    taken = [DeletePodGroup, WriteStatus] if action == "RestartJob" else [WriteStatus, DeletePodGroup]
    assert kinds == [RecordEvent, *taken, RemovePods]


def test_markers_of_plugins_go_with_their_objects_not_before() -> None:
    """A controller that dies in between finds the phase, and the markers of what is still to be taken away."""
    builder = running(1).spec(plugins={"svc": []}).status(controlledResources={"plugin-svc": "svc"})
    order = (command("AbortJob"),)
    begins = steps(view(builder, member("worker", 0), reported=order, plugins=plugins.configured(builder.model())))
    begun, ended = of_type(begins, WriteStatus)
    assert begun.status["controlledResources"] == {"plugin-svc": "svc"}
    assert "controlledResources" not in ended.status
    builder.status(**begun.status)
    last = member("worker", 0, terminating=True)
    left = steps(view(builder, last, group=None, plugins=plugins.configured(builder.model())))
    assert of_type(left, DropAttachment)
    assert "controlledResources" not in written(left)


def test_an_abort_spares_what_has_finished_and_counts_it() -> None:
    present = [member("worker", 0, "Succeeded"), member("worker", 1, "Failed"), member("worker", 2)]
    operations = steps(view(running(3), *present, reported=(command("AbortJob"),)))
    assert removed(operations) == ["job1-worker-2"]
    assert (written(operations)["succeeded"], written(operations)["failed"]) == (1, 1)


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_a_targeted_restart_that_was_interrupted_is_finished(action: str) -> None:
    """The controller has died after it had written the phase; its successor has not seen what it was about."""
    policy = {"totalPartitions": 2, "partitionSize": 2}
    builder = job().task("a", 4, partitionPolicy=policy).task("b", 1).phase("Running")
    builder.policy("PodEvicted", action, task="a")
    pods = [member("a", index, partition=str(index // 2)) for index in range(1, 4)] + [member("b", 0)]
    gone = Occurrence(event="PodEvicted", job_uid=UID, task="a", pod="job1-a-0", pod_uid="gone", partition="0")
    begun = written(steps(view(builder, *pods, reported=(gone,))))
    want = {"RestartTask": ["job1-a-1", "job1-a-2", "job1-a-3"], "RestartPod": [], "RestartPartition": ["job1-a-1"]}
    assert begun["state"]["phase"] == "Restarting"

    after = steps(view(builder.status(**begun), *pods))
    assert removed(after) == want[action]
    new = [member("a", 0, retry=1, partition="0"), *(one for one in pods if one.name not in want[action])]
    rest = written(steps(view(builder.status(**begun), *new)))
    assert removed(steps(view(builder.status(**begun), *new))) == []
    assert "restarting" not in rest.get("controlledResources", {}), "it is forgotten with the end of the restart"


def test_a_record_of_a_restart_that_cannot_be_read_is_none() -> None:
    for text in ("", "task", "task/", "pod/a", "partition/a/", "job/a", "///"):
        assert restarts.of({"restarting": text}) is None


def test_a_restart_spares_nothing_until_the_last_retry() -> None:
    present = [member("worker", 0, "Failed"), member("worker", 1)]
    early = running().policy("PodFailed", "RestartJob")
    assert removed(steps(view(early, *present))) == ["job1-worker-0", "job1-worker-1"]
    last = running().policy("PodFailed", "RestartJob").status(retryCount=2)
    assert removed(steps(view(last, *present))) == ["job1-worker-1"]


def test_a_restart_forgets_successes_and_an_abort_remembers_them() -> None:
    record = {"succeeded-worker": "0"}
    for action, want in (("RestartJob", None), ("AbortJob", record)):
        builder = running().status(controlledResources=record)
        status = written(steps(view(builder, member("worker", 1), reported=(command(action),))))
        assert status.get("controlledResources") == want


def test_a_drained_job_settles() -> None:
    for phase, want in (("Aborting", "Aborted"), ("Terminating", "Terminated"), ("Completing", "Completed")):
        operations = steps(view(job().task("worker", 1).phase(phase), member("worker", 0, "Failed"), group=None))
        assert written(operations)["state"]["phase"] == want


def test_a_finished_job_loses_what_still_runs_and_then_lies_still() -> None:
    failed = job().task("worker", 2).phase("Failed").status(version=3, minAvailable=2)
    operations = steps(view(failed, member("worker", 0, "Failed"), member("worker", 1)))
    assert removed(operations) == ["job1-worker-1"]
    after = written(operations)
    still = steps(view(failed.status(**after), member("worker", 0, "Failed"), group=None), NOW + 60)
    assert written(still)["version"] == after["version"]
    assert written(still)["runningDuration"] == after["runningDuration"]
    assert [type(one) for one in still] == [WriteStatus]


def test_an_interrupted_restart_is_finished() -> None:
    builder = job().task("worker", 2).phase("Restarting", reason="RestartJob").status(version=1, retryCount=1)
    present = [member("worker", 0, "Failed"), member("worker", 1, version=1)]
    assert removed(steps(view(builder, *present, group=None))) == ["job1-worker-0"]


def test_an_interrupted_resume_keeps_what_has_finished() -> None:
    builder = job().task("worker", 2).phase("Restarting", reason="ResumeJob").status(version=2)
    present = [member("worker", 0, "Succeeded"), member("worker", 1)]
    assert removed(steps(view(builder, *present, group=None))) == ["job1-worker-1"]


# -- targeted kills ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "want"),
    [
        ("RestartPod", ["job1-b-0"]),
        ("RestartTask", ["job1-b-0", "job1-b-1", "job1-b-2", "job1-b-3"]),
        ("RestartPartition", ["job1-b-0", "job1-b-1"]),
    ],
)
def test_a_targeted_restart_hits_its_target_only(action: str, want: list[str]) -> None:
    builder = job().task("a", 1).task("b", 4).policy("PodFailed", action).phase("Running")
    others = [member("b", index, partition=str(index // 2)) for index in (1, 2, 3)]
    operations = steps(view(builder, member("a", 0), member("b", 0, "Failed", partition="0"), *others))
    assert removed(operations) == want
    assert not of_type(operations, DeletePodGroup)
    status = written(operations)
    assert (status["state"]["phase"], status["retryCount"], status.get("version", 0)) == ("Restarting", 1, 0)
    assert (status["terminating"], status["running"]) == (len(want), 5 - len(want))


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartPartition"])
def test_a_target_that_is_gone_still_restarts(action: str) -> None:
    eviction = Occurrence(
        event="PodEvicted", job_uid=UID, task="a", pod="job1-a-0", pod_uid="p", partition="0", version=0
    )
    builder = job().task("a", 1).policy("PodEvicted", action).phase("Running")
    assert written(steps(view(builder, reported=(eviction,))))["state"]["phase"] == "Restarting"


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartPartition"])
def test_a_command_without_a_target_changes_nothing(action: str) -> None:
    operations = steps(view(running(), member("worker", 0), member("worker", 1), reported=(command(action),)))
    assert not removed(operations)
    assert written(operations)["state"]["phase"] == "Running"


# -- invariants --------------------------------------------------------------------------------------------------------

MEMBERS = st.lists(
    st.builds(
        lambda task, index, phase, terminating, marked, version: member(
            task, index, phase, terminating=terminating, marked=marked, version=version
        ),
        st.sampled_from(["a", "b", "gone"]),
        st.integers(0, 5),
        st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Strange"]),
        st.booleans(),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=12,
    unique_by=lambda one: one.name,
)
ACTIONS = st.sampled_from([None, *JobAction, "Dance"])


@given(
    members=MEMBERS,
    phase=st.sampled_from(["", *JobPhase]),
    action=ACTIONS,
    policy=st.sampled_from([None, *JobAction]),
    group=st.sampled_from([None, "Pending", "Inqueue", "Running", "Unknown"]),
    retries=st.integers(0, 4),
    version=st.integers(0, 3),
)
def test_every_plan_keeps_the_rules(
    members: list[Member],
    phase: str,
    action: str | None,
    policy: str | None,
    group: str | None,
    retries: int,
    version: int,
) -> None:
    builder = job().task("a", 3, minAvailable=1).task("b", 2).phase(phase).status(retryCount=retries, version=version)
    if policy is not None:
        builder.policy("*", policy)
    reported = () if action is None else (command(str(action)),)
    seen = view(builder, *members, group=group, reported=reported)
    operations = steps(seen)

    *begun, status = (one.status for one in of_type(operations, WriteStatus))
    assert [one["state"]["phase"] for one in begun] in ([], ["Pending"][: not phase])
    before = phases.phase_of(phase)
    after = JobPhase(status["state"]["phase"])
    assert after is before or (before, after) in documenting.transitions()
    assert status.get("version", 0) in (version, version + 1)
    assert status.get("retryCount", 0) in (retries, retries + 1)
    taken = {one.name for one in members}
    assert taken.isdisjoint(created(operations)), "a pod twice"
    assert not (created(operations) and not podgroups.admitted(seen.group)), "a pod before the gate is open"
    assert len(status.get("conditions", [])) <= 32
    counted = sum(status.get(key, 0) for key in ("pending", "running", "failed", "unknown", "terminating"))
    assert counted + status.get("succeeded", 0) >= len(members)
    if before in phases.SETTLED and after in phases.SETTLED:
        live = {one.name for one in members if one.phase not in phases.SOFT and not one.terminating}
        assert live <= set(removed(operations)), "something runs on after the end"


@given(members=MEMBERS, order=st.randoms())
def test_the_order_in_which_pods_are_seen_does_not_matter(members: list[Member], order: Any) -> None:
    builder = job().task("a", 3).task("b", 2).policy("PodFailed", "RestartTask").phase("Running")
    shuffled = list(members)
    order.shuffle(shuffled)
    one, other = steps(view(builder, *members)), steps(view(builder, *shuffled))
    assert written(one) == written(other)
    assert (created(one), removed(one)) == (created(other), removed(other))


def test_a_remembered_occurrence_that_still_shows_is_acted_upon_once() -> None:
    builder = running().policy("PodFailed", "RestartPod")
    failed = member("worker", 0, "Failed")
    seen = view(builder, failed, member("worker", 1))
    cause = plan(seen, NOW).decision.cause
    assert cause is not None
    again = plan(replace(seen, reported=(cause,)), NOW).decision
    assert (again.cause, again.remembered, again.again_at) == (cause, (), None)


@pytest.mark.parametrize(("phases_of_pods", "want"), [(["Pending", "Succeeded"], True), (["Succeeded"] * 2, False)])
def test_a_job_that_has_ended_is_not_told_that_its_gang_waits(phases_of_pods: list[str], want: bool) -> None:
    seen = view(
        job().task("worker", 2).status(state={"phase": "Running"}, minAvailable=2),
        *(member("worker", index, phase) for index, phase in enumerate(phases_of_pods)),
    )
    assert seen.group is not None
    condition = PodGroupCondition(type="Unschedulable", status="True", message="2/1 tasks in gang unschedulable")
    status = msgspec.structs.replace(seen.group.status, conditions=(condition,))
    seen = replace(seen, group=msgspec.structs.replace(seen.group, status=status))
    told = [one.reason for one in of_type(steps(seen), RecordEvent)]
    assert ("PodGroupPending" in told) is want
