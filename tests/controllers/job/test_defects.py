"""Where the original's job controller is wrong ours is not: spec 02, section 24 and defects that other sections name.

The register names the entry, what goes wrong in the original, and the test of the better behaviour. What had no test of
its own has one below.
"""

from __future__ import annotations

import pytest

from stromboli.api import kinds
from stromboli.api.phases import JobAction as Action
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.deciding import decide
from stromboli.controllers.job.operations import DropAttachment
from stromboli.kube import json
from tests.controllers.building import job, member
from tests.controllers.job.test_deciding import eviction
from tests.controllers.job.test_planning import NOW, of_type, running, steps, view
from tests.controllers.registers import holds
from tests.controllers.stage import Stage, stage

REGISTER = {
    "spec_02_24_7: a finished job is killed and written again and again": (
        "test_scenarios.test_a_finished_job_lies_still"
    ),
    "spec_02_24_8: a kill does not count what it spares": (
        "test_planning.test_an_abort_spares_what_has_finished_and_counts_it"
    ),
    "spec_02_24_9: a targeted kill takes plugin objects away": (
        "test_defects.test_spec_02_24_9_a_targeted_restart_leaves_plugin_objects_alone"
    ),
    "spec_02_24_10: scaling down looks like an eviction": (
        "test_scenarios.test_scaling_down_triggers_no_eviction_policy"
    ),
    "spec_02_24_11: Unknown is dead after the first restart": "test_policies.CASES/Unknown is not outdated by versions",
    "spec_02_24_12: every pod that is added counts as pending": (
        "test_deciding.test_states_and_the_occurrences_they_show"
    ),
    "spec_02_24_13 (8a): a delayed action races with the job's worker": (
        "test_deciding.test_a_delayed_action_waits_is_announced_once_and_comes_due"
    ),
    "spec_02_24_13 (8b): a replaced timer keeps running": "test_deciding.test_a_delay_ends_with_its_condition",
    "spec_02_24_13 (8c): a new pod inherits the old one's timer": (
        "test_deciding.test_a_new_pod_of_the_name_has_a_delay_of_its_own"
    ),
    "spec_02_24_13 (8d): timers outlive their job": "test_defects.test_spec_02_24_13_nothing_outlives_its_job",
    "spec_02_24_13 (8e): partitions of different tasks are confused": (
        "test_defects.test_spec_02_24_13_a_partition_is_one_of_its_task"
    ),
    "spec_02_24_14: an empty partition is not restarted": "test_planning.test_a_target_that_is_gone_still_restarts",
    "spec_02_24_15: surplus and marked pods are counted twice": (
        "test_planning.test_surplus_and_marked_pods_are_removed_and_counted_once"
    ),
    "spec_02_24_16: pods are told by the name of their job": (
        "test_scenarios.test_pods_of_an_earlier_job_of_the_same_name_do_not_count"
    ),
    "spec_02_24_17: plugins run in random order": "test_plugins.test_the_order_is_fixed_whatever_the_job_says",
    "spec_02_24_18: a phase is counted before it is written": (
        "test_defects.test_spec_02_24_18_a_phase_is_counted_once_however_often_its_write_fails"
    ),
    "spec_02_24_19: what has succeeded is not ready": (
        "test_scenarios.test_dependents_start_once_their_dependency_has_succeeded"
    ),
    "spec_02_24_24: hosts are not refreshed while the job is pending": (
        "test_defects.test_spec_02_24_24_hosts_follow_the_scale_of_a_pending_job"
    ),
    "spec_02_1_3: a job with a priority class crashes without the gate": (
        "test_scenarios.test_priorities_are_not_needed_when_their_gate_is_off"
    ),
    "spec_02_4: pods of no known job are kept for ever": (
        "test_defects.test_spec_02_4_pods_of_no_known_job_are_not_remembered"
    ),
    "spec_02_5_4: the limit of retries is not forgotten, and the end may fail": (
        "test_defects.test_spec_02_5_4_a_termination_that_fails_is_tried_again"
    ),
    "spec_02_6: a Command hits a later job of the name": (
        "test_scenarios.test_commands_for_an_earlier_job_are_dropped"
    ),
    "spec_02_10_2: a restart without a target restarts nothing but counts": (
        "test_planning.test_a_command_without_a_target_changes_nothing"
    ),
    "spec_02_13: an unknown dependency crashes": ("test_planning.test_a_dependency_that_does_not_exist_is_never_ready"),
    "spec_02_14: a group of the old name may be anybody's": (
        "test_memory.test_a_group_of_the_old_name_counts_if_it_is_the_jobs"
    ),
    "spec_02_16: a claim leaks when the controller dies": (
        "test_scenarios.test_a_generated_claim_is_named_before_it_is_made"
    ),
    "spec_02_17_3: markers of plugins are not written": (
        "test_scenarios.test_plugins_leave_their_objects_and_take_them_away"
    ),
    "spec_02_18: percent signs garble a message": "test_podgroups.test_how_a_complaint_is_put",
    "spec_02_21: a bad number leaves zero": "test_plugins.ARGUMENTS/a bad number ends it and keeps the default",
    "spec_02_22_7: the head's Service goes by names of ports": "test_plugins.test_ray_service_targets_numbers",
}
DEFECTS_OF_SECTION_24 = {*range(7, 20), 24}


@pytest.mark.parametrize("defect", REGISTER)
def test_each_defect_has_its_test(defect: str) -> None:
    assert holds(REGISTER[defect], "tests.controllers.job")


def test_the_register_has_every_defect_of_section_24() -> None:
    entries = [entry.removeprefix("spec_02_24_") for entry in REGISTER if entry.startswith("spec_02_24_")]
    assert {int(entry.split(":")[0].split()[0]) for entry in entries} == DEFECTS_OF_SECTION_24


OBJECTS = (kinds.SECRETS, kinds.CONFIG_MAPS, kinds.SERVICES, kinds.NETWORK_POLICIES)


def test_spec_02_24_9_a_targeted_kill_drops_nothing() -> None:
    builder = running(2).policy("PodFailed", "RestartPod").spec(plugins={"svc": [], "ssh": []})
    marked = builder.status(controlledResources={"plugin-svc": "svc", "plugin-ssh": "ssh"})
    assert not of_type(steps(view(marked, member("worker", 0, "Failed"), member("worker", 1))), DropAttachment)


async def test_spec_02_24_9_a_targeted_restart_leaves_plugin_objects_alone() -> None:
    async with stage() as scene:
        builder = job().task("worker", 2).policy("PodFailed", "RestartPod").spec(plugins={"svc": [], "ssh": []})
        await scene.running(builder, 2)
        before = {kind: scene.server.objects(kind, "default") for kind in OBJECTS}
        failed = scene.uids()["job1-worker-0"]
        assert all(before.values())
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: scene.uids().get("job1-worker-0") not in (None, failed))
        await scene.run_pods(2)
        await scene.until(lambda: scene.phase() == "Running" and scene.status().get("running") == 2)
        assert {kind: scene.server.objects(kind, "default") for kind in OBJECTS} == before


async def test_spec_02_24_13_nothing_outlives_its_job() -> None:
    async with stage(start=False) as scene:
        made: list[JobController] = []

        def make(informers: object) -> JobController:
            made.append(JobController(scene.client, informers, scene.events, scene.numbers))  # type: ignore[arg-type]
            return made[0]

        await scene.run(make)
        scene.submit(job().task("worker", 1).policy("PodPending", "AbortJob", timeout="1h"))
        await scene.admit()
        controller = made[0]
        await scene.until(lambda: controller._timers and any(controller._timers.values()), "a delayed action")
        scene.server.remove(kinds.JOBS, "job1", "default")
        await scene.until(lambda: not controller._timers)
        assert len(controller._ledger) == 0
        assert controller._inbox.waiting(("default", "job1")) == ()


def test_spec_02_24_13_a_partition_is_one_of_its_task() -> None:
    policy = {"totalPartitions": 1, "partitionSize": 2}
    builder = job().task("a", 2, partitionPolicy=policy).task("b", 2, partitionPolicy=policy).phase("Running")
    builder.policy("PodFailed", "RestartPartition", task="a")
    builder.policy("PodEvicted", "RestartPartition", task="b", timeout="5m")
    gone = eviction(task="b", pod="job1-b-0", partition="0")
    decision = decide(view(builder, member("a", 0, "Failed", partition="0"), reported=(gone,)), NOW)
    assert decision.action is Action.RESTART_PARTITION
    assert (decision.target.task, decision.remembered) == ("a", (gone,))
    assert len(decision.timers) == 1, "what is delayed for the other task's partition 0 stays"


async def test_spec_02_24_18_a_phase_is_counted_once_however_often_its_write_fails() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 1), 1)
        refused = scene.server.faults.fail(409, verb="patch", kind=kinds.JOBS, times=3, reason="Conflict")
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.server.objects(kinds.POD_GROUPS))
        assert refused.hits == 3
        assert scene.numbers.entered.count(("job1", "Completed")) == 1


def hosts(scene: Stage) -> str:
    return str(scene.server.get(kinds.CONFIG_MAPS, "job1-svc", "default")["data"]["VC_WORKER_NUM"])


async def test_spec_02_24_24_hosts_follow_the_scale_of_a_pending_job() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 2, minAvailable=2).spec(plugins={"svc": []}))
        await scene.until(lambda: "plugin-svc" in scene.status().get("controlledResources", {}), "the marker")
        assert hosts(scene) == "2"
        scaled = scene.job()
        scaled["spec"]["tasks"][0]["replicas"] = 4
        scene.server.put(kinds.JOBS, scaled)
        await scene.until(lambda: hosts(scene) == "4")
        assert scene.phase() == "Pending"


async def test_spec_02_4_pods_of_no_known_job_are_not_remembered() -> None:
    async with stage(start=False) as scene:
        made: list[JobController] = []

        def make(informers: object) -> JobController:
            made.append(JobController(scene.client, informers, scene.events, scene.numbers))  # type: ignore[arg-type]
            return made[0]

        await scene.run(make)
        scene.submit(job("real").task("worker", 1))
        await scene.admit("real")
        await scene.until(lambda: scene.pods("real"))
        [pod] = scene.pods("real").values()
        for number in range(3):
            owner = {**pod["metadata"]["ownerReferences"][0], "name": f"ghost-{number}", "uid": f"ghost-{number}"}
            notes = {**pod["metadata"]["annotations"], "volcano.sh/job-name": f"ghost-{number}"}
            meta = {"name": f"ghost-{number}", "namespace": "default", "ownerReferences": [owner], "annotations": notes}
            scene.server.put(kinds.PODS, {"metadata": meta, "spec": pod["spec"], "status": {"phase": "Running"}})
            scene.server.remove(kinds.PODS, f"ghost-{number}", "default")
        scene.submit(job("last").task("worker", 1))
        await scene.admit("last")
        controller = made[0]
        assert len(controller._ledger) == 2
        ghosts = [("default", f"ghost-{number}") for number in range(3)]
        await scene.until(lambda: not any(controller._inbox.waiting(key) for key in ghosts), "forgotten evictions")


async def test_spec_02_5_4_a_termination_that_fails_is_tried_again() -> None:
    async with stage(max_requeue=1) as scene:
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: scene.group())
        refused = scene.server.faults.fail(403, verb="delete", kind=kinds.POD_GROUPS, times=1)
        scene.server.faults.fail(403, verb="create", kind=kinds.PODS, times=None)
        await scene.admit()
        await scene.until(lambda: scene.phase() == "Terminated")
        assert refused.hits == 1
        limits = [text for text in scene.events.messages("job1", "ExecuteAction") if "retry limit" in text]
        assert limits == ["Job failed on action SyncJob for retry limit reached"]
        assert json.uid_of(scene.job())
