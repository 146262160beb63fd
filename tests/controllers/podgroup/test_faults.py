"""Groups of several kinds of pods with something going wrong at every single write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stromboli.api import kinds
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Call, CutWatch, Disconnect, Duplicate, ExpireWatch, Failure, Fault, Reorder
from tests.controllers.podgroup.test_owners import JOB_SETS, TEMPLATE, group_of, groups, put, put_pod
from tests.controllers.podgroup.test_scenarios import pod, replica_set
from tests.controllers.stage import Stage

MOST_WRITES = 40
WRITES = ("create", "update", "patch", "delete")
PODS = ("bare", "web-1", "web-2", "js-1", "js-2")


class Refused(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class Unanswered(Disconnect):
    """Cuts the connection of one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused": lambda n: Refused(skip=n, code=500),
    "in conflict": lambda n: Refused(skip=n, code=409, reason="Conflict"),
    "carried out without an answer": lambda n: Unanswered(skip=n, executed=True),
}


async def life(scene: Stage) -> list[tuple[int, int]]:
    """A bare pod, a rolling gang and a JobSet; then the old ReplicaSet goes. Answers size and pods of every group."""
    scene.server.put(kinds.PODS, pod("bare", owned=False))
    scene.server.put(kinds.REPLICA_SETS, replica_set(2, minimum=2))
    for name in ("web-1", "web-2"):
        scene.server.put(kinds.PODS, pod(name))
    jobs = [{"name": "a", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}]
    owner = put(scene, JOB_SETS, "js", spec={"replicatedJobs": jobs})
    for number in (1, 2):
        job = put(scene, kinds.BATCH_JOBS, f"js-a-{number}", owner, spec={"template": TEMPLATE})
        put_pod(scene, f"js-{number}", job)
    await scene.until(lambda: all(group_of(scene, name) for name in PODS))
    scene.server.put(kinds.REPLICA_SETS, replica_set(0, minimum=2))
    for name in ("web-1", "web-2"):
        scene.server.remove(kinds.PODS, name, "default")
    await scene.until(lambda: "podgroup-rs-uid" not in scene.names_of(kinds.POD_GROUPS))
    return sorted((_size(one), _pods(scene, one)) for one in scene.server.objects(kinds.POD_GROUPS))


def _size(group: JsonObject) -> int:
    return int(group["spec"]["minMember"])


def _pods(scene: Stage, group: JsonObject) -> int:
    return sum(group_of(scene, name) == group["metadata"]["name"] for name in ("bare", "js-1", "js-2"))


@pytest.mark.slow
@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_at_any_write_changes_nothing_in_the_end(make: Callable[[int], Fault]) -> None:
    for n in range(MOST_WRITES):
        async with groups() as scene:
            fault = make(n)
            scene.server.faults.add(fault)
            assert await life(scene) == [(1, 1), (2, 2)], f"with the fault at write {n}"
        if not fault.hits:
            return
    raise AssertionError(f"more than {MOST_WRITES} writes")


WATCH_FAULTS: dict[str, Callable[[], Fault]] = {
    "events twice": lambda: Duplicate(verb="watch", times=None),
    "events out of order": lambda: Reorder(verb="watch", times=None),
    "watches that are cut": lambda: CutWatch(verb="watch", times=6, after=2),
    "watches that expire": lambda: ExpireWatch(verb="watch", times=6, after=2),
}


@pytest.mark.parametrize("make", WATCH_FAULTS.values(), ids=WATCH_FAULTS.keys())
async def test_what_goes_wrong_on_a_watch_changes_nothing_in_the_end(make: Callable[[], Fault]) -> None:
    async with groups(make()) as scene:
        assert await life(scene) == [(1, 1), (2, 2)]
