"""Whose nodes are whose: the cases of spec 04 section 35, and a scheduler that keeps to them."""

from __future__ import annotations

from stromboli.api import core, kinds
from stromboli.kube.json import JsonObject
from stromboli.scheduler.options import Options
from stromboli.scheduler.sharding import Shards, ShardStatus
from stromboli.testing.builders import node
from tests.scheduler.shell.stage import PERIOD, Stage, gang

Known = dict[tuple[str, str], core.NodeShard]


def shards(own: tuple[str, ...], **others: tuple[str, ...]) -> Known:
    """The own shard with desired nodes, others with nodes in use."""
    known = [
        core.NodeShard(metadata=core.ObjectMeta(name="volcano"), spec=core.NodeShardSpec(nodes_desired=own)),
        *(
            core.NodeShard(metadata=core.ObjectMeta(name=name), status=core.NodeShardStatus(nodes_in_use=used))
            for name, used in others.items()
        ),
    ]
    return {shard.key: shard for shard in known}


def test_nodes_that_others_use_are_not_ours_yet() -> None:
    mine = Shards("volcano")
    status = mine.look(shards(("1", "2", "3", "4"), a=("2",), b=("3", "4")))
    assert mine.in_use == {"1"}
    assert status == ShardStatus(frozenset({"1"}), frozenset(), frozenset({"2", "3", "4"}))


def test_without_the_own_object_the_nodes_stay_what_they_were() -> None:
    mine = Shards("volcano")
    mine.look(shards(("1", "2")))
    known = shards(("1", "2"), a=("1",))
    del known["", "volcano"]
    assert mine.look(known) is None
    assert mine.in_use == {"1", "2"}


def test_status_is_the_difference_between_use_and_desire() -> None:
    status = ShardStatus.of(frozenset({"old"}), ["new"])
    assert status.to_wire() == {"nodesInUse": ["old"], "nodesToRemove": ["old"], "nodesToAdd": ["new"]}


def test_status_that_is_true_already_is_not_written() -> None:
    mine = Shards("volcano")
    known = shards(("1",))
    own = known["", "volcano"]
    status = core.NodeShardStatus(nodes_in_use=("1",))
    known["", "volcano"] = core.NodeShard(metadata=own.metadata, spec=own.spec, status=status)
    assert mine.look(known) is None
    assert mine.in_use == {"1"}


async def test_hard_mode_keeps_to_the_own_nodes_and_says_which(stage: Stage) -> None:
    stage.options = Options(schedule_period=PERIOD, scheduler_sharding_mode="hard")
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), node("n2").offer(cpu=8, memory="8Gi"), *gang("job", 2))
    stage.server.put(kinds.NODE_SHARDS, {"metadata": {"name": "volcano"}, "spec": {"nodesDesired": ["n1", "n2"]}})
    other = {"metadata": {"name": "agent"}, "spec": {"nodesDesired": []}, "status": {"nodesInUse": ["n2"]}}
    stage.server.put(kinds.NODE_SHARDS, other)
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2)
    assert set(stage.binds().values()) == {"n1"}
    await stage.until(lambda: own_status(stage).get("nodesInUse") == ["n1"], "status")
    assert own_status(stage)["nodesToAdd"] == ["n2"]


def own_status(stage: Stage) -> JsonObject:
    return dict(stage.server.get(kinds.NODE_SHARDS, "volcano").get("status", {}))
