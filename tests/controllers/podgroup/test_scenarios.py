"""Ordinary pods get their groups, whatever order things happen in: spec 03 section 3, P20, P22, P24."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from stromboli.api import kinds, names
from stromboli.controllers.podgroup import controller
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from tests.controllers.stage import Stage, stage


@asynccontextmanager
async def groups() -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        await scene.run(lambda informers: PodGroupController(scene.client, informers))
        yield scene


def replica_set(replicas: int, minimum: int | None = None) -> JsonObject:
    notes = {} if minimum is None else {names.GROUP_MIN_MEMBER: str(minimum)}
    meta = {"name": "rs1", "namespace": "default", "uid": "rs-uid", "annotations": notes}
    return {"metadata": meta, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}}}


def pod(name: str, *, owned: bool = True, scheduler: str = "volcano", **annotations: str) -> JsonObject:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs1", "uid": "rs-uid", "controller": True}
    meta: JsonObject = {"name": name, "namespace": "default", "annotations": annotations}
    if owned:
        meta["ownerReferences"] = [owner]
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {"metadata": meta, "spec": spec}


def group_of(scene: Stage, name: str) -> str | None:
    notes = json.metadata(scene.server.get(kinds.PODS, name, "default")).get("annotations") or {}
    found: str | None = notes.get(names.GROUP_NAME)
    return found


def steps(scene: Stage) -> list[Callable[[], object]]:
    """What happens in a rolling update: a pod comes, the ReplicaSet is seen with none, then with one."""
    return [
        lambda: scene.server.put(kinds.PODS, pod("p1")),
        lambda: scene.server.put(kinds.REPLICA_SETS, replica_set(0)),
        lambda: scene.server.put(kinds.REPLICA_SETS, replica_set(1)),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_the_order_of_a_rolling_updates_events_does_not_matter(order: tuple[int, ...]) -> None:
    async with groups() as scene:
        for step in order:
            steps(scene)[step]()
        if order.index(1) > order.index(2):  # the ReplicaSet ends with none
            scene.server.put(kinds.PODS, pod("later", owned=False))
            await scene.until(lambda: group_of(scene, "later"))
            await scene.until(lambda: "podgroup-rs-uid" not in scene.names_of(kinds.POD_GROUPS))
            return
        await scene.until(lambda: scene.names_of(kinds.POD_GROUPS) == ["podgroup-rs-uid"])
        await scene.until(lambda: group_of(scene, "p1") == "podgroup-rs-uid")


async def test_a_bare_pod_gets_a_group_of_its_own() -> None:
    async with groups() as scene:
        scene.server.put(kinds.PODS, pod("p1", owned=False))
        uid = json.uid_of(scene.server.get(kinds.PODS, "p1", "default"))
        await scene.until(lambda: group_of(scene, "p1") == f"podgroup-{uid}")
        assert scene.names_of(kinds.POD_GROUPS) == [f"podgroup-{uid}"]


async def test_other_schedulers_pods_and_pods_with_a_group_are_left_alone() -> None:
    async with groups() as scene:
        scene.server.put(kinds.PODS, pod("foreign", owned=False, scheduler="default-scheduler"))
        scene.server.put(kinds.PODS, pod("grouped", owned=False, **{names.GROUP_NAME: "mine"}))
        scene.server.put(kinds.PODS, pod("ours", owned=False))
        await scene.until(lambda: group_of(scene, "ours"))
        assert (group_of(scene, "foreign"), group_of(scene, "grouped")) == (None, "mine")
        assert len(scene.names_of(kinds.POD_GROUPS)) == 1


async def test_the_group_of_a_replica_set_that_was_scaled_to_zero_goes() -> None:
    async with groups() as scene:
        scene.server.put(kinds.REPLICA_SETS, replica_set(1))
        scene.server.put(kinds.PODS, pod("p1"))
        await scene.until(lambda: group_of(scene, "p1"))
        scene.server.put(kinds.REPLICA_SETS, replica_set(0))
        await scene.until(lambda: not scene.names_of(kinds.POD_GROUPS))


async def test_gang_size_follows_the_owner() -> None:
    async with groups() as scene:
        scene.server.put(kinds.REPLICA_SETS, replica_set(1, minimum=2))
        scene.server.put(kinds.PODS, pod("p1"))
        await scene.until(lambda: minimum(scene) == 1)
        scene.server.put(kinds.REPLICA_SETS, replica_set(2, minimum=2))
        await scene.until(lambda: minimum(scene) == 2)


def minimum(scene: Stage) -> int:
    found: int = scene.server.get(kinds.POD_GROUPS, "podgroup-rs-uid", "default")["spec"]["minMember"]
    return found


async def test_a_failing_write_is_tried_again() -> None:
    async with groups() as scene:
        scene.server.faults.fail(500, verb="create", kind=kinds.POD_GROUPS, times=2)
        scene.server.faults.fail(409, verb="patch", kind=kinds.PODS, reason="Conflict")
        scene.server.put(kinds.PODS, pod("p1", owned=False))
        await scene.until(lambda: group_of(scene, "p1"))


async def test_owners_that_are_not_watched_are_asked_for() -> None:
    async with groups() as scene:
        owned = pod("p1")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds1", "uid": "ds-uid", "controller": True},
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gone", "uid": "x"},
            {"apiVersion": "example.com/v1", "kind": "Foreign", "name": "f", "uid": "y"},
        ]
        notes = {names.GROUP_MIN_MEMBER: "4", "volcano.sh/note": "kept", "other": "dropped"}
        meta = {"name": "ds1", "namespace": "default", "annotations": notes}
        scene.server.put(kinds.DAEMON_SETS, {"metadata": meta})
        scene.server.put(kinds.PODS, owned)
        await scene.until(lambda: group_of(scene, "p1") == "podgroup-ds-uid")
        made = scene.server.get(kinds.POD_GROUPS, "podgroup-ds-uid", "default")
        assert made["spec"]["minMember"] == 4
        assert made["metadata"]["annotations"] == {"volcano.sh/note": "kept"}


async def test_a_group_that_somebody_deletes_comes_back_while_its_pod_lives() -> None:
    async with groups() as scene:
        scene.server.put(kinds.PODS, pod("p1", owned=False))
        await scene.until(lambda: group_of(scene, "p1"))
        [name] = scene.names_of(kinds.POD_GROUPS)
        first = json.uid_of(scene.server.get(kinds.POD_GROUPS, name, "default"))
        scene.server.remove(kinds.POD_GROUPS, name, "default")
        await scene.until(lambda: json.uid_of(scene.server.get(kinds.POD_GROUPS, name, "default")) != first)


# -- defects that are not here any more, by their numbers in spec 03 section 13 ----------------------------------------


def stateful_set(name: str = "ss", **fields: object) -> JsonObject:
    meta = {"name": name, "namespace": "default", "uid": f"{name}-uid", "annotations": {}}
    return {"metadata": meta, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, **fields}}


def pod_of_set(name: str, namespace: str = "default", uid: str = "ss-uid") -> JsonObject:
    made = pod(name)
    made["metadata"]["namespace"] = namespace
    made["metadata"]["labels"] = {"app": "x"}
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ss", "uid": uid, "controller": True}
    ]
    return made


async def test_defect_5_a_stateful_set_has_pods_in_its_own_namespace_only() -> None:
    async with groups() as scene:
        scene.server.put(kinds.PODS, pod_of_set("far", "far", "far-uid"))
        scene.server.put(kinds.STATEFUL_SETS, stateful_set())
        scene.server.put(kinds.PODS, pod_of_set("near"))
        await scene.until(lambda: group_of(scene, "near") == "podgroup-ss-uid")
        assert scene.names_of(kinds.POD_GROUPS) == ["podgroup-ss-uid"]


async def test_defect_6_what_others_wrote_into_a_group_stays_and_nothing_is_written_twice() -> None:
    async with groups() as scene:
        scene.server.put(kinds.REPLICA_SETS, replica_set(2))
        scene.server.put(kinds.PODS, pod("p1"))
        await scene.until(lambda: group_of(scene, "p1"))
        group = scene.server.get(kinds.POD_GROUPS, "podgroup-rs-uid", "default")
        group["spec"] |= {"queue": "of-the-namespace", "minTaskMember": {"t": 1}}
        group["metadata"]["labels"] = {"theirs": "x"}
        scene.server.put(kinds.POD_GROUPS, group)
        scene.server.put(kinds.REPLICA_SETS, replica_set(3))
        scene.server.put(kinds.REPLICA_SETS, replica_set(3, minimum=3))
        await scene.until(lambda: minimum(scene) == 3)
        after = scene.server.get(kinds.POD_GROUPS, "podgroup-rs-uid", "default")
        assert after["spec"]["queue"] == "of-the-namespace"
        assert after["spec"]["minTaskMember"] == {"t": 1}
        assert after["metadata"]["labels"] == {"theirs": "x"}
        assert scene.server.count("patch", kinds.POD_GROUPS) == 1


async def test_defect_7_a_selector_of_expressions_is_no_obstacle() -> None:
    async with groups() as scene:
        owner = replica_set(1)
        owner["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        scene.server.put(kinds.REPLICA_SETS, owner)
        stranger = pod("stranger", owned=False)
        stranger["metadata"]["labels"] = {"app": "x"}
        scene.server.put(kinds.PODS, stranger)
        scene.server.put(kinds.PODS, pod("p1"))
        await scene.until(lambda: group_of(scene, "p1") == "podgroup-rs-uid")
        await scene.until(lambda: group_of(scene, "stranger") not in (None, "podgroup-rs-uid"))


# -- pains -------------------------------------------------------------------------------------------------------------


async def test_p22_a_gang_deployment_can_roll_one_pod_at_a_time() -> None:
    async with groups() as scene:
        scene.server.put(kinds.REPLICA_SETS, replica_set(1, minimum=2))  # the new one, surged by one
        scene.server.put(kinds.PODS, pod("new-1"))
        await scene.until(lambda: group_of(scene, "new-1"))
        assert minimum(scene) == 1
        scene.server.put(kinds.REPLICA_SETS, replica_set(2, minimum=2))
        scene.server.put(kinds.PODS, pod("new-2"))
        await scene.until(lambda: minimum(scene) == 2)


async def test_p23_finished_pods_reserve_nothing() -> None:
    async with groups() as scene:
        scene.server.put(kinds.PODS, pod("p1", owned=False))
        await scene.until(lambda: group_of(scene, "p1"))
        [name] = scene.names_of(kinds.POD_GROUPS)
        assert scene.server.get(kinds.POD_GROUPS, name, "default")["spec"]["minResources"]["cpu"] == "1"
        done = scene.server.get(kinds.PODS, "p1", "default")
        scene.server.put(kinds.PODS, {**done, "status": {"phase": "Succeeded"}})
        await scene.until(lambda: reserved(scene, name) == {"count/pods": "1"})


async def test_a_pod_that_could_not_be_told_its_group_is_told_later_although_a_newer_one_was() -> None:
    async with groups() as scene:
        fault = scene.server.faults.fail(500, verb="patch", kind=kinds.PODS, name="p1", times=3)
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-uid", "controller": True}
        for name, created in (("p1", "2026-01-01T00:00:00Z"), ("p2", "2026-01-02T00:00:00Z")):
            made = pod(name)
            made["metadata"] |= {"ownerReferences": [job], "creationTimestamp": created}
            scene.server.put(kinds.PODS, made)
        await scene.until(lambda: {group_of(scene, name) for name in ("p1", "p2")} == {"podgroup-j-uid"})
        assert fault.hits == 3


async def test_p23_a_group_whose_pods_are_gone_goes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "GRACE", 0.1)  # they may go before the cache shows that they were told
    async with groups() as scene:
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-uid", "controller": True}
        owned = pod("p1")
        owned["metadata"]["ownerReferences"] = [job]
        scene.server.put(kinds.PODS, owned)
        scene.server.put(kinds.REPLICA_SETS, replica_set(1))
        scene.server.put(kinds.PODS, pod("p2"))
        await scene.until(lambda: group_of(scene, "p1") and group_of(scene, "p2"))
        meta = {"name": "podgroup-old-uid", "namespace": "default"}
        old = {**job, "name": "old", "uid": "old-uid"}
        scene.server.put(kinds.POD_GROUPS, {"metadata": {**meta, "ownerReferences": [old]}, "spec": {"minMember": 1}})
        for name in ("p1", "p2"):
            scene.server.remove(kinds.PODS, name, "default")
        await scene.until(lambda: scene.names_of(kinds.POD_GROUPS) == ["podgroup-rs-uid"], "only that of a workload")


def reserved(scene: Stage, name: str) -> JsonObject:
    found: JsonObject = scene.server.get(kinds.POD_GROUPS, name, "default")["spec"]["minResources"]
    return found


async def test_a_group_of_somebody_else_is_not_touched_whatever_its_name_looks_like() -> None:
    async with groups() as scene:
        mine = {"metadata": {"name": "podgroup-mine", "namespace": "default"}, "spec": {"minMember": 9}}
        scene.server.put(kinds.POD_GROUPS, mine)
        scene.server.put(kinds.REPLICA_SETS, replica_set(1))
        done = pod("done", owned=False, **{names.GROUP_NAME: "podgroup-mine"})
        scene.server.put(kinds.PODS, {**done, "status": {"phase": "Succeeded"}})
        scene.server.put(kinds.PODS, pod("p1", owned=True, **{names.GROUP_NAME: "podgroup-mine"}))
        scene.server.put(kinds.PODS, pod("ours", owned=False))
        await scene.until(lambda: group_of(scene, "ours"))
        assert scene.server.get(kinds.POD_GROUPS, "podgroup-mine", "default")["spec"] == {"minMember": 9}
        assert len(scene.names_of(kinds.POD_GROUPS)) == 2


# -- quiet and load ----------------------------------------------------------------------------------------------------


async def test_a_new_controller_over_finished_work_writes_and_asks_nothing() -> None:
    async with groups() as scene:
        scene.server.put(kinds.REPLICA_SETS, replica_set(2, minimum=2))
        for name in ("p1", "p2"):
            scene.server.put(kinds.PODS, pod(name))
        owned = pod("p3")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-uid", "controller": True}
        ]
        scene.server.put(kinds.PODS, owned)
        await scene.until(lambda: all(group_of(scene, name) for name in ("p1", "p2", "p3")))
        await scene.stop()
        before = len([call for call in scene.server.calls if call.verb in ("get", "create", "patch", "delete")])
        await scene.run(lambda informers: PodGroupController(scene.client, informers))
        scene.server.put(kinds.PODS, pod("last", owned=False))
        await scene.until(lambda: group_of(scene, "last"))
        after = [call for call in scene.server.calls if call.verb in ("get", "create", "patch", "delete")][before:]
        assert [(call.verb, call.kind) for call in after] == [("create", "podgroups"), ("patch", "pods")]
