"""A whole scheduler against an API server that misbehaves: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from stromboli.api import kinds
from stromboli.kube.errors import NotFound
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.options import Options
from stromboli.testing.builders import PodGroupBuilder, node, pod, pod_group, queue
from tests.scheduler.shell.stage import Stage, gang


async def test_gang_is_bound_whole_and_its_queue_and_group_say_so(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 3))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 3)
    await stage.until(lambda: stage.events("Scheduled", "job-0"), "event")
    await stage.until(lambda: stage.phase("job") == "Running", "phase")
    await stage.until(lambda: stage.queue("default")["status"].get("allocated", {}).get("cpu") == "3", "queue status")


async def test_gang_that_does_not_fit_is_told_why_and_no_pod_of_it_is_bound(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 3))
    await stage.start()
    await stage.until(lambda: (stage.condition("job-2") or {}).get("reason") == "Unschedulable", "condition")
    await stage.until(lambda: stage.events("Unschedulable", "job"), "event on the PodGroup")
    conditions = stage.server.get(kinds.POD_GROUPS, "job", "ns")["status"]["conditions"]
    assert "minAvailable" in conditions[0]["message"]
    assert stage.binds() == {}


async def test_idle_cluster_is_not_written_to(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 3))
    await stage.start()
    await stage.until(lambda: stage.condition("job-2"), "condition")
    await stage.cycles(3)
    before = stage.server.count("patch")
    await stage.cycles(20)
    assert stage.server.count("patch", kinds.POD_GROUPS) + stage.server.count("patch", kinds.PODS) <= before


async def test_fourth_of_ten_binds_refused_costs_only_that_pod_until_it_is_bound_again(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=20, memory="80Gi"), *gang("job", 10))
    fault = stage.server.faults.fail(409, verb="create", kind=kinds.PODS, skip=3, times=1)
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 10)
    assert fault.hits == 1
    assert stage.bind_calls() == 11
    await stage.until(lambda: stage.events("FailedScheduling"), "event of the refused bind")


async def test_refused_bind_is_made_known_on_the_pod(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 1))
    stage.server.faults.fail(403, verb="create", kind=kinds.PODS, name="job-0", times=None, message="denied by policy")
    await stage.start()
    await stage.until(lambda: (stage.condition("job-0") or {}).get("reason") == "SchedulerError", "condition")
    condition = stage.condition("job-0")
    assert condition is not None
    assert "failed to bind to node n1" in condition["message"]
    assert "denied by policy" in condition["message"]


async def test_slow_api_neither_doubles_binds_nor_gives_capacity_away_twice(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("first", 2))
    held = stage.server.faults.hold(verb="create", kind=kinds.PODS, times=2)
    scheduler = await stage.start()
    await stage.until(lambda: held.hits == 2, "binds under way")
    stage.put(*gang("second", 2, born=2000))
    await stage.until(lambda: "ns/second" in scheduler.mirror.session_jobs, "second job seen")
    await stage.cycles(10)
    assert stage.bind_calls() == 2
    held.release()
    await stage.until(lambda: stage.bound("first") == 2)
    await stage.cycles(5)
    assert stage.bound("second") == 0
    assert stage.bind_calls() == 2


async def test_lost_answer_of_a_bind_that_was_carried_out_is_not_a_failure(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 1))
    stage.server.faults.disconnect(verb="create", kind=kinds.PODS, name="job-0", executed=True)
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    await stage.cycles(10)
    assert stage.bind_calls() == 1


async def test_killed_and_restarted_scheduler_loses_and_doubles_nothing(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=6, memory="8Gi"), *gang("a", 3), *gang("b", 3, born=2000))
    held = stage.server.faults.hold(verb="create", kind=kinds.PODS, skip=2, times=None)
    await stage.start()
    await stage.until(lambda: held.hits >= 1 and len(stage.binds()) == 2, "killed in the middle of binding")
    await stage.kill()
    stage.server.faults.clear()
    await stage.start()
    await stage.until(lambda: stage.bound("a") == 3 and stage.bound("b") == 3)
    await stage.cycles(5)
    per_node = list(stage.binds().values()).count("n1")
    assert per_node == 6


async def test_gang_whose_binds_are_always_refused_does_not_starve_another(stage: Stage) -> None:
    """Pain P69: job a is older and would win every cycle; job b fits beside nothing but an absent a."""
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("a", 2), *gang("b", 2, born=5000))
    for name in ("a-0", "a-1"):
        stage.server.faults.fail(403, verb="create", kind=kinds.PODS, name=name, times=None, message="denied")
    scheduler = await stage.start()
    await stage.until(lambda: stage.bound("b") == 2, "job b")
    assert stage.bind_calls("a-0") == 2, "a won two cycles before it stood back"
    assert stage.bound("a") == 0
    await stage.until(lambda: "binds of its pods were refused" in str(scheduler.explanations.of("ns/a")), "reason")
    cause = "binds of its pods are refused: a-"
    await stage.until(lambda: all(cause in said(stage, name) for name in ("a-0", "a-1")), "conditions of its pods")
    assert "denied" in said(stage, "a-1")
    assert "they are tried again at " in said(stage, "a-1")


def said(stage: Stage, pod: str) -> str:
    """What the condition of a pod that waits says."""
    return str((stage.condition(pod) or {}).get("message"))


async def test_pod_deleted_while_its_bind_is_under_way_frees_its_place(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 1))
    held = stage.server.faults.hold(verb="create", kind=kinds.PODS, name="job-0")
    await stage.start()
    await stage.until(lambda: held.hits == 1, "bind under way")
    stage.server.remove(kinds.PODS, "job-0", "ns")
    held.release()
    stage.put(*gang("next", 1, born=3000))
    await stage.until(lambda: stage.bound("next") == 1)


async def test_same_name_with_a_new_uid_is_another_pod(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 1))
    held = stage.server.faults.hold(verb="create", kind=kinds.PODS, name="job-0")
    await stage.start()
    await stage.until(lambda: held.hits == 1, "bind under way")
    stage.server.remove(kinds.PODS, "job-0", "ns")
    stage.put(pod("job-0").group("job").request(cpu="1").with_uid("second"))
    held.release()
    await stage.until(lambda: stage.bound("job-0") == 1)
    assert stage.pod("job-0")["metadata"]["uid"] != "ns-job-0"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
async def test_objects_may_arrive_in_any_order(stage: Stage, order: tuple[int, ...]) -> None:
    scheduler = await stage.start()
    await stage.until(lambda: scheduler.cache.missing is None)
    group, first = gang("job", 1)
    objects = [node("n1").offer(cpu=1, memory="8Gi"), group, first]
    for number in order:
        stage.put(objects[number])
        await stage.cycles(1)
    await stage.until(lambda: stage.bound("job") == 1)


async def test_malformed_objects_stop_nothing(stage: Stage) -> None:
    stage.server.put(kinds.NODES, {"metadata": {"name": "bad"}, "status": {"allocatable": {"cpu": "many"}}})
    stage.server.put(kinds.PODS, {"metadata": {"name": "bad", "namespace": "ns"}, "spec": {"containers": 7}})
    stage.server.put(kinds.QUEUES, {"metadata": {"name": "bad"}, "spec": {"weight": 1, "parent": "ghost"}})
    stage.put(pod_group("lonely").members(3), pod("stray").group("missing").request(cpu="1"))
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2)


async def test_status_write_that_fails_is_made_up_for(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 2))
    fault = stage.server.faults.fail(500, verb="patch", kind=kinds.POD_GROUPS, times=2)
    await stage.start()
    await stage.until(lambda: fault.hits == 2, "failures")
    await stage.until(lambda: stage.server.get(kinds.POD_GROUPS, "job", "ns")["status"].get("conditions"), "condition")


async def test_status_decided_over_an_outdated_group_is_not_written(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 2))
    held = stage.server.faults.hold(verb="patch", kind=kinds.POD_GROUPS, name="job")
    await stage.start()
    await stage.until(lambda: held.hits == 1, "write under way")
    changed = stage.server.get(kinds.POD_GROUPS, "job", "ns")
    stage.server.put(kinds.POD_GROUPS, {**changed, "spec": {**changed["spec"], "minMember": 1}})
    held.release()
    await stage.until(lambda: stage.bound("job") == 1, "one pod after minMember fell to 1")


async def test_missing_queues_are_created_once_by_two_schedulers(stage: Stage) -> None:
    for name in ("default", "root"):
        stage.server.remove(kinds.QUEUES, name)
    other = Stage(stage.server, stage.client)
    try:
        await asyncio.gather(stage.start(), other.start())
        await stage.until(lambda: stage.server.get(kinds.QUEUES, "default") and stage.server.get(kinds.QUEUES, "root"))
    finally:
        await other.kill()
    root = stage.server.get(kinds.QUEUES, "root")
    assert root["spec"] == {"weight": 1, "reclaimable": False}
    assert stage.server.get(kinds.QUEUES, "default")["spec"] == {"weight": 1, "reclaimable": True}


async def test_queue_created_by_somebody_else_meanwhile_is_as_good(stage: Stage) -> None:
    stage.server.remove(kinds.QUEUES, "root")
    fault = stage.server.faults.fail(409, verb="create", kind=kinds.QUEUES, name=None, reason="AlreadyExists")
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 1))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    assert fault.hits == 1


async def test_watches_that_break_lose_no_pod(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=50, memory="80Gi"))
    stage.server.faults.cut_watch(kind=kinds.PODS, after=3, times=3)
    await stage.start()
    for number in range(10):
        stage.put(*gang(f"job{number}", 1))
    await stage.until(lambda: stage.bound("job") == 10)


async def test_pod_condition_goes_nowhere_for_a_pod_that_is_gone(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 2))
    held = stage.server.faults.hold(verb="patch", kind=kinds.PODS, times=2)
    await stage.start()
    await stage.until(lambda: held.hits == 2, "conditions under way")
    for name in ("job-0", "job-1"):
        stage.server.remove(kinds.PODS, name, "ns")
    held.release()
    stage.put(*gang("next", 1, born=3000))
    await stage.until(lambda: stage.bound("next") == 1)
    with pytest.raises(NotFound):
        stage.pod("job-0")


async def test_status_write_that_fails_for_a_running_job_is_made_up_for_as_well(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    fault = stage.server.faults.fail(500, verb="patch", kind=kinds.POD_GROUPS, skip=1, times=3)
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2)
    await stage.until(lambda: fault.hits == 3, "failures")
    await stage.until(lambda: stage.phase("job") == "Running", "phase")


async def test_queue_status_write_that_fails_is_made_up_for(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    fault = stage.server.faults.fail(500, verb="patch", kind=kinds.QUEUES, name="default", times=1)
    await stage.start()
    await stage.until(lambda: fault.hits == 1, "failure")
    await stage.until(lambda: stage.queue("default")["status"].get("allocated", {}).get("cpu") == "2", "queue status")


async def test_amounts_that_a_queue_no_longer_holds_are_taken_out_of_its_status(stage: Stage) -> None:
    # The fake server's apply leaves out nothing, as a real one leaves what other managers have set as well.
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    await stage.start()
    await stage.until(lambda: stage.queue("default")["status"].get("allocated", {}).get("pods") == "2", "pods counted")
    for name in ("job-0", "job-1"):
        stage.server.remove(kinds.PODS, name, "ns")
    nothing = {"cpu": "0", "memory": "0"}
    await stage.until(lambda: stage.queue("default")["status"]["allocated"] == nothing, "the queue's release")
    await stage.until(lambda: stage.queue("root")["status"]["allocated"] == nothing, "its parent's release")
    await stage.cycles(3)
    written = stage.server.count("patch", kinds.QUEUES)
    await stage.cycles(3)
    assert stage.server.count("patch", kinds.QUEUES) == written


async def test_pod_condition_write_that_fails_is_made_up_for(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 2))
    fault = stage.server.faults.fail(500, verb="patch", kind=kinds.PODS, name="job-1", times=2)
    await stage.start()
    await stage.until(lambda: fault.hits == 2, "failures")
    await stage.until(lambda: stage.condition("job-1"), "condition")


async def test_job_of_a_queue_that_does_not_exist_yet_waits_for_it(stage: Stage) -> None:
    group, member = gang("job", 1)
    assert isinstance(group, PodGroupBuilder)
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), group.queue("late"), member)
    scheduler = await stage.start()
    await stage.until(lambda: "ns/job" in scheduler.mirror.jobs, "job seen")
    await stage.cycles(3)
    assert stage.bound("job") == 0
    stage.put(queue("late").state("Open"))
    await stage.until(lambda: stage.bound("job") == 1)


async def test_change_of_the_policy_counts_from_the_next_cycle(stage: Stage) -> None:
    stage.policies.current = replace(DEFAULT_POLICY, actions=("enqueue",))
    stage.put(node("n1").offer(cpu=1, memory="8Gi"), *gang("job", 1))
    await stage.start()
    await stage.cycles(5)
    assert stage.bound("job") == 0
    stage.policies.current = DEFAULT_POLICY
    await stage.until(lambda: stage.bound("job") == 1)


async def test_new_pod_ends_the_pause_after_an_idle_cycle_but_heartbeats_do_not(stage: Stage) -> None:
    stage.options = Options(schedule_period=3600.0)
    idle = node("n1").offer(cpu=1, memory="8Gi")
    stage.put(idle)
    scheduler = await stage.start()
    await stage.until(lambda: scheduler.cycles >= 1, "first cycle")
    await stage.until(lambda: scheduler.cache.missing is None)
    before, applied = scheduler.cycles, scheduler.feed.applied
    stage.put(idle.label(beat="1"))
    await stage.until(lambda: scheduler.feed.applied > applied, "heartbeat seen")
    assert scheduler.cycles <= before + 1, "what arrived before may have asked for one more"
    stage.put(*gang("job", 1))
    await stage.until(lambda: stage.bound("job") == 1)
