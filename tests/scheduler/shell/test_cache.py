"""What is watched, what is left out, and what of it is kept."""

from __future__ import annotations

import gc

from stromboli.api import core, kinds
from stromboli.scheduler import garbage
from stromboli.scheduler.cache import bare_pod, plain_kinds
from stromboli.scheduler.options import Options
from stromboli.testing.builders import node, pod
from tests.scheduler.shell.stage import PERIOD, Stage, gang


async def test_optional_kind_that_is_not_served_is_left_out(stage: Stage) -> None:
    stage.server.faults.fail(404, verb="list", kind=kinds.HYPER_NODES, times=None, reason="NotFound")
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 1))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    assert stage.server.count("watch", kinds.HYPER_NODES) == 0


async def test_node_that_stops_matching_the_selector_is_not_used_any_more(stage: Stage) -> None:
    stage.options = Options(schedule_period=PERIOD, node_selector=["pool:batch"])
    stage.put(node("n1").offer(cpu=2, memory="8Gi").label(pool="batch"), node("n2").offer(cpu=99, memory="8Gi"))
    scheduler = await stage.start()
    await stage.until(lambda: set(scheduler.mirror.nodes_by_name) == {"n1"}, "only the matching node")
    stage.put(node("n1").offer(cpu=2, memory="8Gi").label(pool="other"))
    await stage.until(lambda: not scheduler.mirror.nodes_by_name, "no node")


async def test_bound_pods_of_other_schedulers_take_room(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 1), pod("other").request(cpu=2).on("n1"))
    foreign = stage.pod("other")
    stage.server.put(kinds.PODS, {**foreign, "spec": {**foreign["spec"], "schedulerName": "default-scheduler"}})
    await stage.start()
    await stage.until(lambda: stage.condition("job-0"), "condition")
    assert stage.bound("job") == 0
    stage.server.remove(kinds.PODS, "other", "ns")
    await stage.until(lambda: stage.bound("job") == 1)


def test_store_keeps_who_a_pod_is_and_its_group() -> None:
    kept = bare_pod(pod("p").group("g").label(app="x").request(cpu=1).on("n1").build())
    assert kept.key == ("ns", "p")
    assert kept.uid == "ns-p"
    assert kept.metadata.annotations == {"scheduling.k8s.io/group-name": "g"}
    assert kept.spec == core.PodSpec()


def watched(**flags: object) -> set[str]:
    options = Options()
    for name, value in flags.items():
        setattr(options, name, value)
    return {kind.plural for kind, _ in plain_kinds(options)}


def test_gates_and_flags_decide_what_else_is_watched() -> None:
    everything = watched(csi_storage=True, feature_gates={"CSIStorage": True}, scheduler_sharding_mode="soft")
    assert {"csistoragecapacities", "nodeshards", "replicasets", "poddisruptionbudgets", "resourceclaims"} <= everything
    gates = ("WorkLoadSupport", "PodDisruptionBudgetsSupport", "ResourceTopology", "DynamicResourceAllocation")
    little = watched(feature_gates=dict.fromkeys(gates, False))
    assert not little & {
        *("replicasets", "statefulsets", "poddisruptionbudgets", "numatopologies", "resourceclaims"),
        *("csistoragecapacities", "nodeshards"),
    }


def test_collector_is_left_alone_only_for_a_while() -> None:
    with garbage.left_alone():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()


async def test_answer_that_the_watch_has_overtaken_is_not_taken(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 1))
    scheduler = await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    old = core.from_builtins(core.Pod, stage.pod("job-0"))
    stage.server.put(kinds.PODS, {**stage.pod("job-0"), "status": {"phase": "Succeeded"}})

    def status() -> str:
        return scheduler.mirror.tasks["ns/job-0"].status.word

    await stage.until(lambda: status() == "Succeeded", "the watch shows the end")
    scheduler.cache.apply_fetched(kinds.PODS, old)
    assert status() == "Succeeded"
    scheduler.cache.apply_fetched(kinds.PODS, core.from_builtins(core.Pod, stage.pod("job-0")))
    assert status() == "Succeeded"


async def test_answer_about_an_object_that_is_gone_does_not_bring_it_back(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 1))
    scheduler = await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    answers = {
        kinds.POD_GROUPS: core.from_builtins(core.PodGroup, stage.server.get(kinds.POD_GROUPS, "job", "ns")),
        kinds.PODS: core.from_builtins(core.Pod, stage.pod("job-0")),
    }
    stage.server.remove(kinds.PODS, "job-0", "ns")
    stage.server.remove(kinds.POD_GROUPS, "job", "ns")
    await stage.until(lambda: not scheduler.mirror.jobs and not scheduler.mirror.tasks, "an empty mirror")
    for kind, answer in answers.items():
        scheduler.cache.apply_fetched(kind, answer)
    assert not scheduler.mirror.jobs
    assert not scheduler.mirror.tasks


async def test_answer_about_an_object_does_not_take_the_place_of_its_successor(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 1))
    scheduler = await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    old = core.from_builtins(core.PodGroup, stage.server.get(kinds.POD_GROUPS, "job", "ns"))
    wire = stage.server.get(kinds.POD_GROUPS, "job", "ns")
    stage.server.remove(kinds.POD_GROUPS, "job", "ns")
    metadata = {**wire["metadata"], "uid": "another"}
    stage.server.put(kinds.POD_GROUPS, {**wire, "metadata": metadata, "status": {"phase": "Pending"}})
    await stage.until(lambda: scheduler.mirror.jobs["ns/job"].uid == "another", "the successor")
    scheduler.cache.apply_fetched(kinds.POD_GROUPS, old)
    assert scheduler.mirror.jobs["ns/job"].uid == "another"
