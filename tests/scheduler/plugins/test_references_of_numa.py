"""numa-aware agrees with its reference."""

from __future__ import annotations

from random import Random

import pytest

from stromboli.api import core
from stromboli.testing.builders import node, pod_group, queue
from tests.scheduler.plugins.references.numaaware import Numa
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.telling import Told
from tests.scheduler.plugins.sessions import option
from tests.scheduler.plugins.test_numaaware import guaranteed

POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
LAYOUTS = {
    "two sockets": {cpu: core.CpuInfo(numa=cpu // 4, socket=cpu // 4, core=cpu // 2) for cpu in range(8)},
    "core ids that repeat": {cpu: core.CpuInfo(numa=cpu // 4, socket=cpu // 4, core=cpu % 4 // 2) for cpu in range(8)},
    "one socket, two NUMA nodes": {cpu: core.CpuInfo(numa=cpu // 4, socket=0, core=cpu // 2) for cpu in range(8)},
    "four NUMA nodes": {cpu: core.CpuInfo(numa=cpu // 4, socket=cpu // 8, core=cpu // 2) for cpu in range(16)},
    "no threads": {cpu: core.CpuInfo(numa=cpu // 3, socket=cpu // 3, core=cpu) for cpu in range(6)},
}


def topology(random: Random, name: str) -> core.Numatopology:
    """A node's layout, with some CPUs in use."""
    places = LAYOUTS[random.choice(list(LAYOUTS))]
    free = [str(cpu) for cpu in places if random.random() < random.choice([0.6, 1.0])]
    numares = {"cpu": core.NumaResource(allocatable=",".join(free), capacity=len(places))}
    spec = core.NumatopologySpec(
        policies={
            "CPUManagerPolicy": random.choice(["static", "static", "static", "none"]),
            "TopologyManagerPolicy": random.choice(POLICIES),
        },
        res_reserved={"cpu": random.choice(["0", "500m", "2"])} if random.random() < 0.4 else {},
        numares=numares if random.random() < 0.9 else {},
        cpu_detail={str(cpu): place for cpu, place in places.items()},
    )
    return core.Numatopology(metadata=core.ObjectMeta(name=name), spec=spec)


def scene(random: Random, reference: Numa) -> Told:
    """Nodes with layouts, and pods of one or several containers."""
    told = Told(queues={"default": queue().build()}, groups={"j": pod_group("j").members(1).build()})
    for at in range(random.randint(5, 8)):
        told.nodes[f"n{at}"] = node(f"n{at}").offer(cpu=64, memory="64Gi").build()
        if random.random() < 0.85:
            reference.topologies[f"n{at}"] = topology(random, f"n{at}")
    told.others = [*reference.topologies.values()]
    for at in range(random.randint(10, 16)):
        wanted = random.choice(["", *POLICIES, *POLICIES[1:]])
        cpu, containers = random.choice([1, 2, 3, 4, 5]), random.choice([1, 1, 2])
        built = guaranteed(f"p{at}", cpu, numa=wanted, containers=containers)
        if random.random() < 0.15:
            built = fractional(built)
        told.pods[built.name] = built
    return told


def fractional(built: core.Pod) -> core.Pod:
    """The pod with a container more that wants half a CPU."""
    amounts: core.ResourceList = {"cpu": "500m", "memory": "1Gi"}
    more = core.Container(name="half", resources=core.ResourceRequirements(requests=amounts, limits=amounts))
    spec = core.PodSpec(scheduler_name="volcano", containers=(more, *built.spec.containers))
    return core.Pod(metadata=built.metadata, spec=spec, status=built.status)


@pytest.mark.parametrize("seed", range(15))
def test_numa_aware(seed: int) -> None:
    random = Random(seed)
    reference = Numa(random.choice([1, 1, 3]))
    told = scene(random, reference)
    Play(random, Story(told, [option("numa-aware", {"weight": reference.weight})], reference)).run()
