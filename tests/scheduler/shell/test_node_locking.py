"""Locks on nodes while pods with devices are bound."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from stromboli.api import core, kinds, names
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core.extensions import BindExtension, NodeLock
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.results import Bind, TaskRef
from stromboli.scheduler.node_locking import ATTEMPTS, WAIT_SECONDS, NodeLocks
from stromboli.testing.builders import node, pod, pod_group
from stromboli.testing.clocks import FakeClock
from tests.scheduler.shell.stage import Stage

KEY = "hamivgpu"
TASK = TaskRef("ns", "p", "uid-p", "ns/j")


def bind(*, handed_over: bool = True) -> Bind:
    lock = NodeLock(KEY, "node n0 locked for p hamivgpu lockname", handed_over)
    return Bind(TASK, "n0", BindExtension(locks=(lock,)))


def lock_of(stage: Stage) -> str | None:
    annotations = stage.server.get(kinds.NODES, "n0")["metadata"].get("annotations") or {}
    return annotations.get(KEY)


def put_lock(stage: Stage, mark: str) -> None:
    stage.put(node("n0").annotate(**{KEY: mark}))


def ago(clock: FakeClock, seconds: float) -> str:
    return f"{datetime.fromtimestamp(clock.time() - seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def locks(stage: Stage, clock: FakeClock) -> NodeLocks:
    return NodeLocks(stage.client, clock=clock)


async def test_only_binds_with_locks_need_anything(locks: NodeLocks) -> None:
    assert locks.needs(bind())
    assert not locks.needs(Bind(TASK, "n0"))
    assert not locks.needs(Bind(TASK, "n0", BindExtension({"a": "b"})))


async def test_a_lock_is_the_time_at_which_it_was_taken(stage: Stage, locks: NodeLocks, clock: FakeClock) -> None:
    stage.put(node("n0"))
    await locks.pre_bind(bind())
    assert lock_of(stage) == ago(clock, 0)


AFTERWARDS = {
    "bound, and the device plugin gives it back": (True, True, True),
    "bound, and the scheduler gives it back": (False, True, False),
    "not bound": (True, False, False),
    "not bound, the scheduler's own": (False, False, False),
}


@pytest.mark.parametrize("name", AFTERWARDS)
async def test_who_gives_it_back(name: str, stage: Stage, locks: NodeLocks) -> None:
    handed_over, is_bound, stays = AFTERWARDS[name]
    stage.put(node("n0"))
    order = bind(handed_over=handed_over)
    await locks.pre_bind(order)
    await (locks.settle(order) if is_bound else locks.roll_back(order))
    assert (lock_of(stage) is not None) is stays
    await locks.roll_back(order)
    assert (lock_of(stage) is not None) is stays, "a lock that is not held any more is not taken off"


async def test_an_old_lock_counts_for_nothing(stage: Stage, locks: NodeLocks, clock: FakeClock) -> None:
    put_lock(stage, ago(clock, 301))
    await locks.pre_bind(bind())
    assert lock_of(stage) == ago(clock, 0)


async def test_what_is_no_time_is_left_alone(stage: Stage, locks: NodeLocks) -> None:
    put_lock(stage, "yesterday")
    with pytest.raises(PreBindError, match="hamivgpu lockname annotation hamivgpu of node n0 is no time: 'yesterday'"):
        await locks.pre_bind(bind())
    assert lock_of(stage) == "yesterday"


async def test_somebody_elses_lock_is_waited_for(stage: Stage, locks: NodeLocks, clock: FakeClock) -> None:
    put_lock(stage, ago(clock, 10))
    waiting = asyncio.create_task(locks.pre_bind(bind()))
    await stage.until(lambda: clock.sleepers, "waiting")
    assert not waiting.done()
    stage.put(node("n0"))
    await clock.advance(2)
    await stage.until(waiting.done, "locked")
    assert lock_of(stage) is not None


async def test_it_is_not_waited_for_without_end(stage: Stage, locks: NodeLocks, clock: FakeClock) -> None:
    put_lock(stage, ago(clock, 10))
    waiting = asyncio.create_task(locks.pre_bind(bind()))
    for _ in range(int(WAIT_SECONDS) + 2):
        await stage.until(lambda: waiting.done() or clock.sleepers, "waiting")
        await clock.advance(1)
    await stage.until(waiting.done, "given up")
    error = waiting.exception()
    assert isinstance(error, PreBindError)
    assert str(error) == "node n0 locked for p hamivgpu lockname node n0 has been locked within 5 minutes"


async def test_a_node_that_keeps_changing_is_given_up(stage: Stage, locks: NodeLocks, clock: FakeClock) -> None:
    stage.put(node("n0"))
    stage.server.faults.fail(409, verb="patch", kind=kinds.NODES, times=ATTEMPTS)
    waiting = asyncio.create_task(locks.pre_bind(bind()))
    for _ in range(ATTEMPTS):
        await stage.until(lambda: waiting.done() or clock.sleepers, "waiting")
        await clock.advance(1)
    await stage.until(waiting.done, "given up")
    assert str(waiting.exception()).endswith(f"setNodeLock exceeds retry count {ATTEMPTS}")


async def test_a_node_that_is_gone_has_no_lock(stage: Stage, locks: NodeLocks) -> None:
    with pytest.raises(PreBindError):
        await locks.pre_bind(bind())
    await locks.roll_back(bind())


async def test_pods_are_bound_with_their_cards_under_a_lock(stage: Stage) -> None:
    register = {names.NODE_VGPU_REGISTER: "GPU-0,10,16384,NVIDIA,true,hami-core:"}
    offered = {names.VGPU_NUMBER: 10, names.VGPU_CORES: 100, names.VGPU_MEMORY: 16384}
    stage.put(node("n0").offer(cpu=8, memory="8Gi", **offered).annotate(**register), pod_group("j").members(1))
    stage.put(pod("p").group("j"))
    limits = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: "1000"}
    document = stage.pod("p")
    containers = [{"name": "c", "resources": {"limits": limits, "requests": limits}}]
    stage.server.put(kinds.PODS, {**document, "spec": {**document["spec"], "containers": containers}})
    arguments = {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True}
    tier = (PluginOption("gang"), PluginOption("predicates"), PluginOption("deviceshare", arguments=arguments))
    stage.policies.current = Policy(("enqueue", "allocate"), (tier,))
    await stage.start()
    await stage.until(lambda: stage.bound("p") == 1)
    annotations = stage.pod("p")["metadata"]["annotations"]
    assert annotations[names.VGPU_IDS] == "GPU-0,NVIDIA,1000,0:"
    assert annotations[names.BIND_PHASE] == "allocating"
    assert core.timestamp(str(lock_of(stage))) > 0
