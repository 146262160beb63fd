"""Everything goes wrong at once, in a seeded order: in the end every gang that fits is bound, no node over-filled."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from stromboli.api import kinds
from stromboli.testing.builders import node
from tests.scheduler.shell.stage import Stage, gang

NODES, CPUS, GANGS, SIZE = 6, 5, 10, 3


def order_faults(stage: Stage, random: Random) -> None:
    """Refusals, lost answers and slow answers of writes; watches that break, expire, repeat and swap events."""
    faults = stage.server.faults
    for _ in range(12):
        skip = random.randrange(30)
        match random.randrange(4):
            case 0:
                faults.fail(random.choice([403, 409, 500, 503]), verb="create", kind=kinds.PODS, skip=skip)
            case 1:
                faults.disconnect(verb="create", kind=kinds.PODS, skip=skip, executed=random.random() < 0.5)
            case 2:
                faults.delay(0.2, verb="create", kind=kinds.PODS, skip=skip)
            case _:
                faults.fail(random.choice([409, 500]), verb="patch", kind=kinds.POD_GROUPS, skip=skip % 10)
    for kind in (kinds.PODS, kinds.POD_GROUPS, kinds.NODES):
        match random.randrange(4):
            case 0:
                faults.cut_watch(kind=kind, after=random.randrange(1, 6), times=2)
            case 1:
                faults.expire_watch(kind=kind, after=random.randrange(1, 6), times=2)
            case 2:
                faults.duplicate_events(kind=kind, times=3)
            case _:
                faults.reorder_events(kind=kind, times=3)


@pytest.mark.parametrize("seed", range(5))
async def test_every_gang_that_fits_is_bound_in_the_end_and_no_node_is_over_filled(stage: Stage, seed: int) -> None:
    random = Random(seed)
    order_faults(stage, random)
    for number in range(NODES):
        stage.put(node(f"n{number}").offer(cpu=CPUS, memory="64Gi"))
    objects = [gang(f"job{number}", SIZE, born=1000 + number) for number in range(GANGS)]
    random.shuffle(objects)
    await stage.start()
    for one in objects:
        random.shuffle(one)
        stage.put(*one)
        if random.random() < 0.3:
            await stage.cycles(1)
        if random.random() < 0.2:
            await stage.kill()
            await stage.start()
    await stage.until(lambda: stage.bound("job") == GANGS * SIZE, f"all pods with seed {seed}")
    per_node = Counter(stage.binds().values())
    assert max(per_node.values()) <= CPUS
    await stage.until(
        lambda: all(stage.phase(f"job{number}") == "Running" for number in range(GANGS)), "phases tell the truth"
    )
