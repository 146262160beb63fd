"""What a scheduler is not told of at once is made up for (pain P72), and the order of arrivals does not matter (P55).

A lost event is made up for by the next listing, a lost wake-up by the next cycle.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random

import pytest

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, binds, feed, picture, run_cycle, world
from tests.scheduler.plugins.volumes.building import claim, volume
from tests.scheduler.shell.stage import Builder, Stage, gang

NODES, CPUS, GANGS, SIZE = 3, 4, 4, 3
WATCHED = (kinds.PODS, kinds.POD_GROUPS, kinds.NODES, kinds.QUEUES)


def everything(random: Random) -> list[Builder]:
    """Gangs that fill the nodes, and their queue, in any order."""
    found: list[Builder] = [node(f"n{at}").offer(cpu=CPUS, memory="64Gi") for at in range(NODES)]
    for at in range(GANGS):
        found.extend(gang(f"job{at}", SIZE, born=1000 + at))
    found.append(queue("late").state("Open"))
    random.shuffle(found)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.resource)
async def test_every_gang_is_placed_once_what_a_lost_event_told_is_listed(stage: Stage, kind: Kind, seed: int) -> None:
    random = Random(f"{kind.resource} {seed}")
    most = {kinds.PODS: GANGS * SIZE, kinds.POD_GROUPS: GANGS, kinds.NODES: NODES, kinds.QUEUES: 1}[kind]
    fault = stage.server.faults.lose_event(kind=kind, after=random.randrange(most))
    scheduler = await stage.start()
    await stage.until(lambda: scheduler.cache.missing is None, "listed")
    stage.put(*everything(random))
    await stage.until(lambda: fault.lost, "an event was lost")
    await stage.cycles(3)
    stage.server.expire_versions()
    stage.server.end_watches()
    await stage.until(lambda: stage.bound("job") == GANGS * SIZE, "all pods, after one listing")
    assert max(Counter(stage.binds().values()).values()) <= CPUS


@pytest.mark.parametrize("seed", range(3))
async def test_every_gang_is_placed_though_wake_ups_are_lost(stage: Stage, seed: int) -> None:
    random = Random(seed)
    scheduler = await stage.start()
    await stage.until(lambda: scheduler.cache.missing is None, "listed")
    hurry = scheduler.feed.hurry
    lost = 0

    def unreliable() -> None:
        nonlocal lost
        if random.random() < 0.7:
            lost += 1
        else:
            hurry()

    scheduler.feed.hurry = unreliable  # type: ignore[method-assign]
    for one in everything(random):
        stage.put(one)
        if random.random() < 0.3:
            await stage.cycles(1)
    await stage.until(lambda: stage.bound("job") == GANGS * SIZE, "all pods")
    assert lost


# The same from within: every order, with a cycle after each arrival

WITH_CLAIM = core.Volume(name="data", persistent_volume_claim=core.PvcVolume(claim_name="data"))
SCENARIO: dict[str, core.Object] = {
    "queue": queue("q").build(),
    "podgroup": pod_group("g").members(1).queue("q").build(),
    "pod": pod("p").group("g").request(cpu=1, memory="1Gi")._spec(volumes=(WITH_CLAIM,)).build(),
    "node": node("n").offer(cpu=2, memory="4Gi").build(),
    "pvc": claim(volume="pv"),
}


def test_every_order_of_arrivals_ends_alike() -> None:
    """A node, a queue, and a group whose only pod needs a claim; each of them may be the last to be heard of."""
    ends = []
    for order in permutations(SCENARIO):
        mirror = world(volume("pv", taken_by="data"))
        bound: dict[str, str] = {}
        for at, name in enumerate(order):
            feed(mirror, SCENARIO[name])
            result = run_cycle(mirror, DEFAULT_POLICY)
            assert not result.problems
            assert at == len(order) - 1 or not result.binds, order
            bound |= binds(result)
        for obj in SCENARIO.values():
            feed(mirror, obj)  # what a listing would bring again
        assert not run_cycle(mirror, DEFAULT_POLICY).binds
        audit(mirror)
        assert bound == {"p": "n"}, order
        ends.append(picture(mirror))
    assert all(end == ends[0] for end in ends)


@pytest.mark.parametrize("seed", range(40))
def test_whichever_arrival_is_lost_one_listing_makes_up_for_it(seed: int) -> None:
    random = Random(seed)
    objects = [one.build() for one in everything(random)]
    lost = random.choice(objects)
    mirror = world(queue().build(), queue("root").build())
    for obj in objects:
        if obj is not lost:
            feed(mirror, obj)
            if random.random() < 0.2:
                assert not run_cycle(mirror, DEFAULT_POLICY).problems
    run_cycle(mirror, DEFAULT_POLICY)
    for obj in objects:
        feed(mirror, obj)
    run_cycle(mirror, DEFAULT_POLICY)
    placed = [task for task in mirror.tasks.values() if task.node is not None]
    assert len(placed) == GANGS * SIZE
    audit(mirror)
