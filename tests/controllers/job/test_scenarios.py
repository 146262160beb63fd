"""Whole lives of jobs, against a fake API server."""

from __future__ import annotations

from functools import partial

import pytest

from stromboli.api import kinds
from stromboli.kube import json
from tests.controllers.building import JobBuilder, job
from tests.controllers.stage import Stage, stage


async def test_a_job_runs_to_its_end() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2), 2)
        for name in scene.pods():
            scene.set_pod(name, "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.server.objects(kinds.POD_GROUPS), "the PodGroup to go")
        assert scene.pod_phases() == {"job1-worker-0": "Succeeded", "job1-worker-1": "Succeeded"}
        assert scene.status()["succeeded"] == 2
        assert [one["status"] for one in scene.status()["conditions"]] == ["Pending", "Running", "Completed"]


async def test_no_pod_before_admission() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 2))
        await scene.until(lambda: scene.group())
        await scene.until(lambda: scene.phase() == "Pending")
        assert not scene.pods()
        await scene.admit()
        await scene.until(lambda: len(scene.pods()) == 2)


async def test_restarting_a_job_makes_new_pods_and_a_new_gang() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).policy("PodFailed", "RestartJob"), 2)
        before, gang = scene.uids(), json.uid_of(scene.group())
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: scene.status().get("retryCount") == 1)
        await scene.until(lambda: json.uid_of(scene.group()) != gang, "a new PodGroup")
        await scene.admit()
        await scene.run_pods(2)
        await scene.until(lambda: scene.phase() == "Running")
        assert set(before.values()).isdisjoint(scene.uids().values())
        assert scene.status()["version"] == 1


async def test_a_targeted_restart_keeps_the_gang_and_replaces_one_pod() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).policy("PodFailed", "RestartPod"), 2)
        before, gang = scene.uids(), json.uid_of(scene.group())
        scene.set_pod("job1-worker-1", "Failed", exit_code=1)
        await scene.until(lambda: scene.uids().get("job1-worker-1") not in (None, before["job1-worker-1"]))
        await scene.run_pods(2)
        await scene.until(lambda: scene.phase() == "Running")
        assert scene.uids()["job1-worker-0"] == before["job1-worker-0"]
        assert json.uid_of(scene.group()) == gang
        assert (scene.status()["retryCount"], scene.status().get("version", 0)) == (1, 0)


async def test_only_the_failed_tasks_pods_are_restarted() -> None:
    builder = job().task("master", 1).task("worker", 2).policy("PodFailed", "RestartTask", task="worker")
    async with stage() as scene:
        await scene.running(builder, 3)
        before = scene.uids()
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: len(scene.uids()) == 3 and not set(before.values()) >= set(scene.uids().values()))
        await scene.until(lambda: scene.uids().get("job1-worker-1") not in (None, before["job1-worker-1"]))
        assert scene.uids()["job1-master-0"] == before["job1-master-0"]


async def test_an_evicted_pod_takes_its_partition_with_it() -> None:
    builder = (
        job()
        .task("task0", 2)
        .task("task1", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
        .policy("PodEvicted", "RestartPartition", task="task1")
    )
    async with stage() as scene:
        await scene.running(builder, 6)
        before = scene.uids()
        scene.delete_pod("job1-task1-0")
        await scene.until(
            lambda: (
                {name for name, uid in scene.uids().items() if uid != before[name]} == {"job1-task1-0", "job1-task1-1"}
            )
        )
        assert len(scene.uids()) == 6


async def test_used_up_retries_leave_only_finished_pods() -> None:
    builder = job().task("master", 1).task("worker", 1).policy("PodFailed", "RestartJob").spec(maxRetry=3)
    async with stage() as scene:
        scene.submit(builder)
        for attempt in range(1, 4):
            await scene.admit()
            await scene.run_pods(2)
            await scene.until(lambda: scene.phase() == "Running")
            scene.set_pod("job1-master-0", "Failed", exit_code=1)
            await scene.retried(attempt)
        await scene.until(lambda: scene.phase() == "Failed")
        await scene.until(lambda: scene.pod_phases() == {"job1-master-0": "Failed"})
        assert scene.status()["state"]["reason"] == "MaxRetryReached"


async def test_aborting_and_resuming_costs_no_retry() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).spec(maxRetry=3), 2)
        for _ in range(5):
            scene.command("AbortJob")
            await scene.until(lambda: scene.phase() == "Aborted")
            assert not scene.pods()
            scene.command("ResumeJob")
            await scene.until(lambda: scene.phase() in ("Restarting", "Pending"))
            await scene.admit()
            await scene.run_pods(2)
            await scene.until(lambda: scene.phase() == "Running")
        assert scene.status().get("retryCount", 0) == 0
        assert len(scene.status()["conditions"]) <= 10
        assert not scene.server.objects(kinds.COMMANDS)


async def test_a_success_once_counted_is_never_run_again() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 4), 4)
        for index in (0, 2):
            scene.set_pod(f"job1-worker-{index}", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.status().get("succeeded") == 2)
        for index in (0, 2):
            scene.delete_pod(f"job1-worker-{index}")
        scene.set_pod("job1-worker-1", "Running", restarts=1)
        await scene.until(lambda: scene.status().get("running") == 2)
        await scene.stop()
        await scene.start()
        for index in (1, 3):
            scene.set_pod(f"job1-worker-{index}", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        assert scene.status()["succeeded"] == 4
        assert scene.server.count("create", kinds.PODS) == 4


async def test_pods_of_an_earlier_job_of_the_same_name_do_not_count() -> None:
    async with stage() as scene:
        builder = job().task("worker", 1).policy("PodEvicted", "TerminateJob")
        await scene.running(builder, 1)
        old = scene.server.get(kinds.PODS, "job1-worker-0", "default")
        scene.server.remove(kinds.JOBS, "job1", "default")
        scene.submit(builder)
        await scene.admit()
        await scene.until(lambda: scene.server.count("create", kinds.PODS) > 1, "the new job to try")
        assert scene.uids()["job1-worker-0"] == json.uid_of(old)
        scene.delete_pod("job1-worker-0")
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")
        assert scene.uids()["job1-worker-0"] != json.uid_of(old)
        assert "ExecuteAction" not in scene.events.reasons("job1")


async def test_dependents_start_once_their_dependency_has_succeeded() -> None:
    builder = job().task("first", 1, minAvailable=1).task("second", 1, dependsOn={"name": ["first"]})
    async with stage() as scene:
        scene.submit(builder.spec(minAvailable=1))
        await scene.admit()
        await scene.until(lambda: set(scene.pods()) == {"job1-first-0"})
        scene.set_pod("job1-first-0", "Succeeded", exit_code=0, ready=False)
        await scene.until(lambda: set(scene.pods()) == {"job1-first-0", "job1-second-0"})


async def test_quota_is_waited_for_and_explained() -> None:
    async with stage(max_requeue=1) as scene:
        message = 'pods "job1-worker-0" is forbidden: exceeded quota: gpu'
        scene.server.faults.fail(403, verb="create", kind=kinds.PODS, times=6, reason="Forbidden", message=message)
        scene.submit(job().task("worker", 1))
        await scene.admit()
        await scene.until(lambda: scene.status().get("state", {}).get("reason") == "PodCreationFailed")
        assert message in scene.status()["state"]["message"]
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")
        assert "reason" not in scene.status()["state"]


def is_told(scene: Stage, message: str) -> bool:
    return any(message in one for one in scene.events.messages("job1", "PodGroupPending"))


async def test_a_cause_that_comes_to_a_consequence_is_told() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 2))
        await scene.admit()
        for message in ("2/1 tasks in gang unschedulable: pod group is not ready", "1/2: Origin reason is a taint"):
            told = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": message}
            scene.server.put(kinds.POD_GROUPS, {**scene.group(), "status": {"phase": "Inqueue", "conditions": [told]}})
            await scene.until(partial(is_told, scene, message))


async def test_a_job_outlives_its_queue_and_goes_on_when_that_is_back() -> None:
    async with stage(max_requeue=0) as scene:
        queue = {"metadata": {"name": "team"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
        scene.server.put(kinds.QUEUES, queue)
        await scene.running(job().task("worker", 3).spec(queue="team"), 3)
        scene.server.remove(kinds.QUEUES, "team")
        await scene.until(lambda: scene.status()["state"].get("reason") == "QueueNotFound", "the job to be told")
        scene.delete_pod("job1-worker-2")
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: (scene.status().get("succeeded"), scene.status().get("running")) == (1, 1), "counts")
        assert set(scene.pods()) == {"job1-worker-0", "job1-worker-1"}
        [told] = scene.events.messages("job1", "QueueNotFound")
        assert "queue team was deleted" in told
        scene.server.put(kinds.QUEUES, queue)
        await scene.run_pods(3)
        await scene.until(lambda: scene.status().get("running") == 2 and "reason" not in scene.status()["state"])
        assert scene.phase() == "Running"


BROKEN: dict[str, tuple[JobBuilder, str]] = {
    "plugin arguments that are no list": (
        job("broken").task("worker", 1).spec(plugins={"ssh": "--no-root=true"}),
        "spec.plugins.ssh",
    ),
    "a timeout that is no duration": (
        job("broken").task("worker", 1).policy("PodFailed", "RestartJob", timeout="soon"),
        "spec.policies[0].timeout",
    ),
    "a status that is no status": (job("broken").task("worker", 1).status(running="many"), "status.running"),
    "more replicas than anything can hold": (job("broken").task("worker", 2**40), "spec.tasks[0].replicas"),
    "more replicas than all tasks may have": (
        job("broken").task("worker", 999_999).task("more", 2),
        "spec.tasks[1].replicas",
    ),
    "tasks that are no list": (job("broken").spec(tasks={"a": 1}), "spec.tasks"),
}


@pytest.mark.parametrize(("broken", "field"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_job_that_cannot_be_read_is_set_aside_and_the_others_run(broken: JobBuilder, field: str) -> None:
    async with stage() as scene:
        scene.submit(broken)
        await scene.running(job().task("worker", 1), 1)
        await scene.until(lambda: scene.status("broken").get("state", {}).get("reason") == "InvalidJob")
        assert field in scene.events.messages("broken", "InvalidJob")[0]
        assert not scene.pods("broken")


async def test_a_quantity_that_cannot_be_read_ends_its_job_only() -> None:
    async with stage(max_requeue=1) as scene:
        scene.submit(job("broken").task("worker", 1, requests={"cpu": "lots"}))
        await scene.running(job().task("worker", 1), 1)
        await scene.until(lambda: scene.phase("broken") == "Terminated")
        assert "lots" in scene.status("broken")["state"]["message"]


@pytest.mark.parametrize("given", [None, {}, {"state": None}, {"state": {"phase": "Sleeping"}}, {"conditions": None}])
async def test_an_odd_status_does_not_matter(given: object) -> None:
    async with stage() as scene:
        odd = job().task("worker", 1).policy("PodFailed", "RestartJob")
        odd.wire["status"] = given
        await scene.running(odd, 1)
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.retried(1)


async def test_an_unknown_plugin_ends_the_job_with_that_reason() -> None:
    async with stage(max_requeue=2) as scene:
        scene.submit(job().task("worker", 1).spec(plugins={"telepathy": []}))
        await scene.until(lambda: scene.phase() == "Terminated")
        assert "telepathy" in scene.status()["state"]["message"]


async def test_a_job_whose_first_status_cannot_be_written_is_told_and_begins_later() -> None:
    async with stage() as scene:
        scene.server.faults.fail(403, verb="patch", kind=kinds.JOBS, message="status is not yours")
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: scene.phase() == "Pending")
        [told] = scene.events.messages("job1", "JobStatusError")
        assert told.startswith("Failed to initialize job status, err: ")
        assert "status is not yours" in told


async def test_a_finished_job_lies_still() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 1), 1)
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.server.objects(kinds.POD_GROUPS))
        before = scene.status()
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0, restarts=1)
        await scene.running(job("other").task("worker", 1), 1)
        assert scene.status() == before


async def test_scaling_down_triggers_no_eviction_policy() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 3, minAvailable=1).policy("PodEvicted", "TerminateJob"), 3)
        scaled = scene.job()
        scaled["spec"]["tasks"][0]["replicas"] = 1
        scene.server.put(kinds.JOBS, scaled)
        await scene.until(lambda: set(scene.pods()) == {"job1-worker-0"})
        await scene.until(lambda: scene.status().get("running") == 1 and "terminating" not in scene.status())
        assert scene.phase() == "Running"


async def test_a_pending_pod_is_acted_upon_only_after_the_timeout() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 1).policy("PodPending", "TerminateJob", timeout="200ms"))
        await scene.admit()
        await scene.until(lambda: scene.phase() == "Terminated")
        assert scene.events.messages("job1", "ExecuteAction")[0] == "Execute action TerminateJob after 200ms"


async def test_commands_for_an_earlier_job_are_dropped() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 1), 1)
        scene.command("TerminateJob", uid="somebody-else")
        await scene.until(lambda: not scene.server.objects(kinds.COMMANDS))
        await scene.running(job("other").task("worker", 1), 1)
        assert scene.phase() == "Running"


async def test_plugins_leave_their_objects_and_take_them_away() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).spec(plugins={"env": [], "ssh": [], "svc": []}), 2)
        assert scene.names_of(kinds.CONFIG_MAPS) == ["job1-svc"]
        assert scene.names_of(kinds.SECRETS) == ["job1-ssh"]
        assert scene.names_of(kinds.SERVICES) == scene.names_of(kinds.NETWORK_POLICIES) == ["job1"]
        for name in scene.pods():
            scene.set_pod(name, "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        left = (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.NETWORK_POLICIES)
        await scene.until(lambda: not any(scene.names_of(kind) for kind in left))


async def test_a_generated_claim_is_named_before_it_is_made() -> None:
    async with stage() as scene:
        claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"mountPath": "/data", "volumeClaim": claim_spec}
        await scene.running(job().task("worker", 1).spec(volumes=[volume]), 1)
        [claim] = scene.names_of(kinds.PERSISTENT_VOLUME_CLAIMS)
        assert scene.job()["spec"]["volumes"][0]["volumeClaimName"] == claim
        assert scene.status()["controlledResources"][f"volume-pvc-{claim}"] == claim
        assert claim.startswith("job1-pvc-")


async def test_an_object_of_a_plugin_that_can_never_exist_ends_the_job_at_once() -> None:
    async with stage() as scene:
        message = 'Service "job1" is invalid: metadata.name: must be no more than 63 characters'
        scene.server.faults.fail(422, verb="create", kind=kinds.SERVICES, times=None, reason="Invalid", message=message)
        scene.submit(job().task("worker", 1).spec(plugins={"svc": []}))
        await scene.until(lambda: scene.phase() == "Terminated")
        assert message in scene.status()["state"]["message"]
        assert scene.events.messages("job1", "PluginError")


async def test_priorities_are_not_needed_when_their_gate_is_off() -> None:
    async with stage(start=False) as scene:
        scene.server.faults.fail(403, verb="list", kind=kinds.PRIORITY_CLASSES, times=None)
        scene.server.faults.fail(403, verb="watch", kind=kinds.PRIORITY_CLASSES, times=None)
        await scene.start(priority_classes=False)
        await scene.running(job().task("worker", 1), 1)


async def test_a_plugin_object_of_an_earlier_job_is_waited_for() -> None:
    async with stage() as scene:
        owner = {
            "apiVersion": kinds.JOBS.api_version, "kind": "Job", "name": "job1", "uid": "earlier", "controller": True
        }  # fmt: skip
        meta = {"name": "job1-svc", "namespace": "default", "ownerReferences": [owner]}
        scene.server.put(kinds.CONFIG_MAPS, {"metadata": meta, "data": {"old": "1"}})
        scene.submit(job().task("worker", 1).spec(plugins={"svc": []}))
        await scene.until(lambda: "PluginError" in scene.events.reasons("job1"))
        scene.server.remove(kinds.CONFIG_MAPS, "job1-svc", "default")
        await scene.admit()
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")
        assert "VC_WORKER_HOSTS" in scene.server.get(kinds.CONFIG_MAPS, "job1-svc", "default")["data"]


async def test_somebody_elses_service_of_the_jobs_name_survives_the_job() -> None:
    async with stage() as scene:
        scene.server.put(kinds.SERVICES, {"metadata": {"name": "job1", "namespace": "default"}, "spec": {"mine": True}})
        await scene.running(job().task("worker", 1).spec(plugins={"svc": []}), 1)
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.names_of(kinds.CONFIG_MAPS))
        await scene.until(lambda: "plugin-svc" not in scene.status().get("controlledResources", {}))
        assert scene.server.get(kinds.SERVICES, "job1", "default")["spec"] == {"mine": True}


def hosts_known(scene: Stage) -> int:
    return int(scene.server.get(kinds.CONFIG_MAPS, "job1-svc", "default")["data"]["VC_WORKER_NUM"])


async def test_hosts_follow_the_scale_down_to_nothing_and_back() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2, minAvailable=0).spec(plugins={"svc": []}), 2)
        for replicas in (4, 1, 0, 2):
            scaled = scene.job()
            scaled["spec"]["tasks"][0]["replicas"] = replicas
            scene.server.put(kinds.JOBS, scaled)
            await scene.run_pods(replicas)
            await scene.until(lambda: hosts_known(scene) == len(scene.pods()))
            assert scene.phase() == "Running"


async def test_enough_successes_complete_a_job_that_still_runs() -> None:
    async with stage() as scene:
        await scene.running(job().task("short", 3).task("endless", 2).spec(minSuccess=2), 5)
        for index in (0, 1):
            scene.set_pod(f"job1-short-{index}", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: set(scene.pod_phases().values()) == {"Succeeded"})


async def test_a_pod_lost_while_no_policy_minds_is_replaced() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2), 2)
        before = scene.uids()
        scene.delete_pod("job1-worker-1")
        await scene.until(lambda: scene.uids().get("job1-worker-1") not in (None, before["job1-worker-1"]))
        assert scene.uids()["job1-worker-0"] == before["job1-worker-0"]


async def test_a_delayed_action_that_fails_is_tried_again_without_another_delay() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).policy("PodFailed", "TerminateJob", timeout="300ms"), 2)
        refused = scene.server.faults.fail(409, verb="patch", kind=kinds.JOBS, skip=1, times=3, reason="Conflict")
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: scene.phase() == "Terminated")
        assert refused.hits == 3
        delays = [text for text in scene.events.messages("job1", "ExecuteAction") if "after" in text]
        assert delays == ["Execute action TerminateJob after 300ms"]
