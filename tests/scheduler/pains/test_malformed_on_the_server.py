"""A whole scheduler over an API server full of damaged objects: it goes on, and places the healthy job."""

from __future__ import annotations

import random

import pytest

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.scheduler.cache import plain_kinds
from stromboli.testing.builders import node, pod, pod_group, queue
from stromboli.testing.waiting import eventually
from tests.scheduler.pains import malformed
from tests.scheduler.pains.policies import POLICIES
from tests.scheduler.shell.conftest import stage as stage  # the same stage
from tests.scheduler.shell.stage import Stage

KINDS: dict[type[core.Object], Kind] = {
    core.Pod: kinds.PODS,
    core.Node: kinds.NODES,
    core.Queue: kinds.QUEUES,
    core.PodGroup: kinds.POD_GROUPS,
    core.HyperNode: kinds.HYPER_NODES,
    core.PriorityClass: kinds.PRIORITY_CLASSES,
}


def put_damaged(stage: Stage, dice: random.Random) -> None:
    """Everything, most of it damaged; what has no name or namespace cannot be there at all."""
    known = {**KINDS, **{struct: kind for kind, struct in plain_kinds(stage.options)}}
    given = malformed.whole()
    dice.shuffle(given)
    for struct, one in given:
        damaged = malformed.damaged(one, dice) if dice.random() < 0.7 else one
        metadata = damaged.get("metadata")
        identity = {key: one["metadata"][key] for key in ("name", "namespace", "uid") if key in one["metadata"]}
        damaged["metadata"] = {**metadata, **identity} if isinstance(metadata, dict) else identity
        if struct in known:
            stage.server.put(known[struct], damaged)


@pytest.mark.parametrize("name", ["built in", "chart, evicting", "everything in a tree"])
@pytest.mark.parametrize("seed", range(4))
async def test_it_goes_on_and_places_the_healthy_job(
    stage: Stage, name: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(f"{name} {seed}")
    put_damaged(stage, dice)
    enough = {"cpu": "2", "memory": "2Gi"}
    guaranteed = queue(malformed.HEALTHY_QUEUE)._spec(guarantee=core.Guarantee(resource=dict(enough)))
    stage.put(guaranteed.deserve(**enough).state("Open"))
    stage.put(node(malformed.HEALTHY_NODE).offer(cpu=4, memory="16Gi").label(healthy="yes"))
    stage.put(pod_group("healthy", "sane").members(2).queue(malformed.HEALTHY_QUEUE).phase("Pending").reserve(**enough))
    for at in range(2):
        one = pod(f"healthy-{at}", "sane").group("healthy").request(cpu=1, memory="1Gi").select(healthy="yes")
        stage.put(one)
    stage.policies.current = POLICIES[name]
    scheduler = await stage.start()
    await eventually(lambda: places(stage) == [malformed.HEALTHY_NODE] * 2, what="the healthy job")
    put_damaged(stage, dice)
    end = scheduler.cycles + 5
    await eventually(lambda: scheduler.cycles >= end, what="cycles")
    await eventually(lambda: stage.phase("healthy", "sane") == "Running", what="its phase")
    assert not [record for record in caplog.records if "could not be applied to the mirror" in record.message]


def places(stage: Stage) -> list[str | None]:
    """Where the healthy pods are; the others may not even have a spec."""
    return [stage.pod(f"healthy-{at}", "sane")["spec"].get("nodeName") for at in range(2)]
