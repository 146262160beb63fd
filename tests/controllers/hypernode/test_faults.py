"""Discovery with something going wrong at every single write, or on its watches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stromboli.api import kinds
from stromboli.controllers.hypernode import labelled
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.testing.faults import Call, CutWatch, Disconnect, Duplicate, ExpireWatch, Failure, Fault, Reorder
from tests.controllers.hypernode.test_scenarios import configure, label_source, put_node, shown
from tests.controllers.stage import Stage, stage

WRITES = ("create", "update", "patch", "delete")


class Refused(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class Unanswered(Disconnect):
    """Carries one write out and cuts the connection."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused": lambda n: Refused(skip=n, code=500),
    "in conflict": lambda n: Refused(skip=n, code=409, reason="Conflict"),
    "carried out without an answer": lambda n: Unanswered(skip=n, executed=True),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second looks come soon."""
    monkeypatch.setattr(labelled, "RETRY", 0.05)


async def life(scene: Stage, fault: Fault) -> None:
    """Two racks become three and then one, each counted."""
    scene.server.faults.add(fault)
    for number in range(4):
        put_node(scene, f"n{number}", tor=f"s{number // 2}")
    await scene.run(lambda informers: HyperNodeController(scene.client, informers, scene.events))
    configure(scene, label_source("tor"))
    await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"], "s1": ["n2", "n3"]})
    put_node(scene, "n3", tor="s2")
    await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"], "s1": ["n2"], "s2": ["n3"]})
    for name in ("n2", "n3"):
        scene.server.remove(kinds.NODES, name)
    await scene.until(lambda: shown(scene) == {"s0": ["n0", "n1"]})
    await scene.until(lambda: scene.server.objects(kinds.HYPER_NODES)[0].get("status") == {"nodeCount": 2})


@pytest.mark.slow
@pytest.mark.parametrize("n", range(10))
@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_at_any_write_changes_nothing_in_the_end(make: Callable[[int], Fault], n: int) -> None:
    async with stage(start=False) as scene:
        await life(scene, make(n))


WATCH_FAULTS: dict[str, Callable[[], Fault]] = {
    "events twice": lambda: Duplicate(verb="watch", times=None),
    "events out of order": lambda: Reorder(verb="watch", times=None),
    "watches that are cut": lambda: CutWatch(verb="watch", times=6, after=2),
    "watches that expire": lambda: ExpireWatch(verb="watch", times=6, after=2),
}


@pytest.mark.parametrize("make", WATCH_FAULTS.values(), ids=WATCH_FAULTS.keys())
async def test_what_goes_wrong_on_a_watch_changes_nothing_in_the_end(make: Callable[[], Fault]) -> None:
    async with stage(start=False) as scene:
        await life(scene, make())
