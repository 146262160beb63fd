"""What is kept about devices from cycle to cycle is what would be found by looking anew."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins.deviceshare.cluster_devices import MEMORY, MOST_OUTCOMES, Memory
from stromboli.scheduler.plugins.deviceshare.vgpu import VgpuDevices
from tests.scheduler.core.worlds import audit, feed, run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    asking,
    card,
    cluster,
    devices_policy,
    gpu_node,
    member,
    opened,
    slice_of,
)

Counters = dict[str, list[tuple[int, int, int, list[str]]]]
PLAN = devices_policy(VGPUEnable=True, SchedulePolicy="binpack")


def counters(mirror: Mirror) -> Counters:
    """Users, memory, cores and pods of every card that is kept."""
    memory = mirror.memory.get(MEMORY)
    nodes = memory.nodes if isinstance(memory, Memory) else {}
    return {name: list(_of(kept.on_node.devices)) for (_, name), kept in sorted(nodes.items()) if kept.on_node}


def _of(devices: object) -> Iterator[tuple[int, int, int, list[str]]]:
    assert isinstance(devices, VgpuDevices)
    for each in devices.cards:
        yield each.users, each.used_memory, each.used_cores, sorted(each.holders)


def looked_at(mirror: Mirror) -> Counters:
    """The counters after every node has been asked about."""
    opened(mirror, VGPUEnable=True, SchedulePolicy="binpack").refusals("probe")
    return counters(mirror)


def anew(mirror: Mirror) -> Counters:
    """The same, with nothing known from before."""
    kept = mirror.memory.pop(MEMORY, None)
    found = looked_at(mirror)
    if kept is not None:
        mirror.memory[MEMORY] = kept
    return found


def _bound(mirror: Mirror) -> list[Task]:
    return [task for task in mirror.tasks.values() if task.status == TaskStatus.BINDING]


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.sampled_from(["pods", "cycle", "confirm", "fail", "delete", "register"]), max_size=12))
def test_what_is_kept_is_what_would_be_found(steps: list[str]) -> None:
    nodes = [gpu_node(f"n{n}", card(f"GPU-{n}0"), card(f"GPU-{n}1", memory=8192)) for n in range(2)]
    probe = asking(member("probe").gated("wait"), slice_of(1, 1))
    mirror = cluster(*nodes, probe)
    for number, step in enumerate(steps):
        match step, _bound(mirror):
            case "pods", _:
                for size in (3000, 6000):
                    feed(mirror, asking(member(f"p{number}-{size}"), slice_of(1, size, 30)))
            case "cycle", _:
                run_cycle(mirror, PLAN)
            case "confirm", [task, *_]:
                record = {names.VGPU_IDS: task.annotations[names.VGPU_IDS]}
                feed(mirror, asking(member(task.name, **record).on(task.node_name), slice_of(1, 3000, 30)))
            case "fail", [task, *_]:
                mirror.bind_failed(task.uid)
            case "delete", [task, *_]:
                mirror.delete_pod(task.key)
            case "register", _:
                feed(mirror, gpu_node("n0", card("GPU-00"), card("GPU-02")))
        assert looked_at(mirror) == anew(mirror)
    audit(mirror)


def test_answers_to_pods_that_are_gone_do_not_pile_up() -> None:
    mirror = cluster(gpu_node("n1", card("GPU-0")))
    for size in range(1, 2 * MOST_OUTCOMES):
        feed(mirror, asking(member(f"p{size}"), slice_of(1, size)))
        if size % 64 == 0:
            session = opened(mirror, VGPUEnable=True)
            assert all(session.refusals(f"p{each}") == {} for each in range(size - 63, size + 1))
            for each in range(size - 63, size + 1):
                mirror.delete_pod(f"ns/p{each}")
    memory = mirror.memory[MEMORY]
    assert isinstance(memory, Memory)
    (kept,) = memory.nodes.values()
    assert kept.on_node is not None
    assert 0 < len(kept.on_node.outcomes) <= MOST_OUTCOMES
