"""NodeShards follow nodes, pods and the configuration: spec 03 sections 10.4 to 10.6."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.controllers.sharding.configuration import parse_flags
from stromboli.controllers.sharding.controller import ShardingController, is_worth_writing
from stromboli.kube import json
from tests.controllers.stage import Stage, stage

FLAGS = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")
SYSTEM, CONFIG_MAP = "volcano-system", "volcano-sharding-configmap"


def put_node(scene: Stage, name: str) -> None:
    scene.server.put(kinds.NODES, {"metadata": {"name": name}, "status": {"capacity": {"cpu": "8", "memory": "32Gi"}}})


def put_pod(scene: Stage, node: str, cpu: str, name: str = "p", phase: str = "Running") -> None:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    scene.server.put(
        kinds.PODS,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": containers},
            "status": {"phase": phase},
        },
    )


def configure(scene: Stage, text: str) -> None:
    meta = {"name": CONFIG_MAP, "namespace": SYSTEM}
    scene.server.put(kinds.CONFIG_MAPS, {"metadata": meta, "data": {"sharding.yaml": text}})


async def start(scene: Stage, **options: Any) -> None:
    given = {"sync_period": 3600.0, **options}
    await scene.run(lambda informers: ShardingController(scene.client, informers, parse_flags(FLAGS), **given))


@asynccontextmanager
async def sharding(nodes: int = 0, config: str | None = None, **options: Any) -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        for number in range(nodes):
            put_node(scene, f"n{number}")
        if config is not None:
            configure(scene, config)
        await start(scene, **options)
        yield scene


def shards(scene: Stage) -> dict[str, list[str]]:
    found = scene.server.objects(kinds.NODE_SHARDS)
    return {json.key_of(one)[1]: sorted(one["spec"]["nodesDesired"]) for one in found}


async def test_without_nodes_there_are_empty_shards() -> None:
    async with sharding() as scene:
        await scene.until(lambda: shards(scene) == {"volcano": [], "agent-scheduler": []})


async def test_a_full_node_goes_to_the_other_scheduler_soon() -> None:
    async with sharding(nodes=2) as scene:
        await scene.until(lambda: shards(scene) == {"volcano": ["n0", "n1"], "agent-scheduler": []})
        put_pod(scene, "n1", "10")
        await scene.until(lambda: shards(scene) == {"volcano": ["n0"], "agent-scheduler": ["n1"]})
        put_pod(scene, "n1", "10", phase="Succeeded")
        await scene.until(lambda: shards(scene) == {"volcano": ["n0", "n1"], "agent-scheduler": []})


async def test_nodes_that_come_and_go() -> None:
    async with sharding(nodes=1) as scene:
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        put_node(scene, "n1")
        await scene.until(lambda: shards(scene)["volcano"] == ["n0", "n1"])
        scene.server.remove(kinds.NODES, "n0")
        await scene.until(lambda: shards(scene)["volcano"] == ["n1"])


async def test_changes_of_nodes_may_wait_for_the_interval() -> None:
    async with sharding(nodes=1, node_events=False, sync_period=0.05) as scene:
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        put_pod(scene, "n0", "10")
        await scene.until(lambda: shards(scene).get("agent-scheduler") == ["n0"])


async def test_a_shard_that_somebody_deletes_comes_back_and_a_foreign_one_goes() -> None:
    async with sharding(nodes=1, sync_period=0.2) as scene:
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        scene.server.remove(kinds.NODE_SHARDS, "volcano")
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        scene.server.put(kinds.NODE_SHARDS, {"metadata": {"name": "by-hand"}, "spec": {"nodesDesired": ["n0"]}})
        await scene.until(lambda: "by-hand" not in shards(scene))


async def test_the_configuration_is_followed() -> None:
    async with sharding(nodes=2, config="schedulerConfigs: [{name: one, maxNodes: 1}, {name: two}]") as scene:
        await scene.until(lambda: shards(scene) == {"one": ["n0"], "two": ["n1"]})
        configure(scene, "schedulerConfigs: [{name: two}]")
        await scene.until(lambda: shards(scene) == {"two": ["n0", "n1"]})


@pytest.mark.parametrize("text", ["", "schedulerConfigs: []", "a: [", "schedulerConfigs: [{name: a, minNodes: -1}]"])
async def test_an_empty_or_bad_configuration_leaves_the_flags_in_force(text: str) -> None:
    """Defect 21 of spec 03 section 13: the chart's default deleted every shard."""
    async with sharding(nodes=1, config=text) as scene:
        await scene.until(lambda: shards(scene) == {"volcano": ["n0"], "agent-scheduler": []})


async def test_a_bad_or_deleted_configuration_changes_nothing() -> None:
    async with sharding(nodes=1, config="schedulerConfigs: [{name: one}]", sync_period=0.1) as scene:
        await scene.until(lambda: shards(scene) == {"one": ["n0"]})
        configure(scene, "schedulerConfigs: []")
        scene.server.remove(kinds.CONFIG_MAPS, CONFIG_MAP, SYSTEM)
        put_node(scene, "n1")
        await scene.until(lambda: shards(scene) == {"one": ["n0", "n1"]})


async def test_the_status_is_left_to_the_scheduler() -> None:
    """Defect 23 of spec 03 section 13: it was sent with the spec, and lost."""
    status = {"nodesInUse": ["n9"], "nodesToAdd": [], "nodesToRemove": []}
    async with stage(start=False) as scene:
        put_node(scene, "n0")
        scene.server.put(
            kinds.NODE_SHARDS, {"metadata": {"name": "volcano"}, "spec": {"nodesDesired": []}, "status": status}
        )
        await start(scene)
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        assert scene.server.get(kinds.NODE_SHARDS, "volcano")["status"] == status
        assert all(not call.subresource for call in scene.server.called("patch", kinds.NODE_SHARDS))


async def test_a_failed_pass_does_not_end_the_interval() -> None:
    async with sharding(nodes=1, sync_period=0.05) as scene:
        await scene.until(lambda: shards(scene).get("volcano") == ["n0"])
        scene.server.faults.fail(500, verb="delete", kind=kinds.NODE_SHARDS, times=5)
        scene.server.put(kinds.NODE_SHARDS, {"metadata": {"name": "by-hand"}, "spec": {"nodesDesired": []}})
        await scene.until(lambda: "by-hand" not in shards(scene))


async def test_nothing_is_written_when_nothing_changed() -> None:
    async with sharding(nodes=3) as scene:
        await scene.until(lambda: shards(scene) == {"volcano": ["n0", "n1", "n2"], "agent-scheduler": []})
        await scene.stop()
        before = [scene.server.count(verb) for verb in ("create", "update", "patch", "delete")]
        scene.server.put(kinds.NODE_SHARDS, {"metadata": {"name": "by-hand"}, "spec": {"nodesDesired": []}})
        await start(scene)
        await scene.until(lambda: "by-hand" not in shards(scene))
        after = [scene.server.count(verb) for verb in ("create", "update", "patch", "delete")]
        assert after == [*before[:3], before[3] + 1]


WORTH = {
    "the same": ("ab", "ab", False),
    "another order": ("ab", "ba", False),
    "one more": ("ab", "abc", True),
    "one of few is new": ("ab", "ac", True),
    "one of twenty is new": ("abcdefghijklmnopqrst", "abcdefghijklmnopqrsU", False),
    "two of twenty are new": ("abcdefghijklmnopqrst", "abcdefghijklmnopqrUV", True),
    "nothing yet": ("", "", False),
}


@pytest.mark.parametrize(("present", "desired", "want"), WORTH.values(), ids=WORTH.keys())
def test_small_swaps_are_not_worth_moving(present: Sequence[str], desired: Sequence[str], want: bool) -> None:
    assert is_worth_writing(present, desired) is want
