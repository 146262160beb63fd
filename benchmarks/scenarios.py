"""The clusters that are measured; generated the same every time.

Nodes offer 32 cpu, 256Gi and 110 pods and carry the label ``zone=z{i % 4}``. Gangs live in namespace ``ns`` and queue
``default`` of weight 1, with ``minResources`` set and ``minMember`` equal to their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption, Policy, Switches
from stromboli.testing.builders import node, pod, pod_group, queue

UNPREEMPTABLE = Switches(preemptable=False)


def bench_policy(*, topology: bool = False, reclaims: bool = False) -> Policy:
    """The policy that the original was measured with."""
    if reclaims:
        return _reclaiming_policy()
    first = (PluginOption("priority"), PluginOption("gang", UNPREEMPTABLE), PluginOption("conformance"))
    second = [
        PluginOption("overcommit"),
        PluginOption("drf", UNPREEMPTABLE),
        PluginOption("predicates"),
        PluginOption("proportion"),
        PluginOption("nodeorder"),
        PluginOption("binpack"),
    ]
    if topology:
        second.append(PluginOption("network-topology-aware"))
    return Policy(actions=("enqueue", "allocate", "backfill"), tiers=(first, tuple(second)))


def _reclaiming_policy() -> Policy:
    first = (PluginOption("priority"), PluginOption("gang", UNPREEMPTABLE), PluginOption("conformance"))
    second = (
        PluginOption("overcommit", arguments={"overcommit-factor": 10}),
        PluginOption("drf", UNPREEMPTABLE),
        *(PluginOption(name) for name in ("predicates", "proportion", "nodeorder", "binpack")),
    )
    return Policy(actions=("enqueue", "allocate", "reclaim", "backfill"), tiers=(first, second))


@dataclass(frozen=True)
class Gangs:
    """Equal gangs of equal pods."""

    count: int
    size: int
    cpu: str = "1"
    memory: str = "1Gi"
    tier: int | None = None
    alike: bool = True
    """Otherwise no two pods of all the gangs ask for the same."""


@dataclass(frozen=True)
class Scenario:
    """A cluster and what waits in it."""

    name: str
    nodes: int
    gangs: Gangs
    running_per_node: int = 0
    binds: int = 0
    """Pods that the first cycle must bind."""
    repeated: bool = False
    """Measured is the median cycle after the first, over the same mirror."""
    racks: int = 0
    """Nodes per rack, and racks per spine, when there are HyperNodes."""
    evictions: int = 0
    """Pods that the first cycle must evict: every node is full of another queue's pods."""

    def mirror(self) -> Mirror:
        """The cluster, fed as events."""
        mirror = Mirror()
        mirror.apply_queue(queue().build())
        if self.evictions:
            mirror.apply_queue(queue("qa").build())
            mirror.apply_queue(queue("qb").build())
        for index in range(self.nodes):
            labelled = node(f"n{index:05}").offer(cpu=32, memory="256Gi").label(zone=f"z{index % 4}")
            mirror.apply_node(labelled.build())
        for resource in self._hyper_nodes():
            mirror.apply_hyper_node(resource)
        self._run(mirror)
        if self.evictions:
            self._fill(mirror)
        self._wait(mirror)
        return mirror

    def _run(self, mirror: Mirror) -> None:
        for index in range(self.nodes if self.running_per_node else 0):
            group = f"running-{index:05}"
            mirror.apply_pod_group(pod_group(group).members(self.running_per_node).phase("Running").build())
            for member in range(self.running_per_node):
                running = pod(f"{group}-{member}").group(group).request(cpu="1", memory="1Gi").on(f"n{index:05}")
                mirror.apply_pod(running.build())

    def _fill(self, mirror: Mirror) -> None:
        """Groups of as many pods as the gangs have, ten a node, of the gangs' pods' size."""
        gangs = self.gangs
        for index in range(self.nodes * 10 // gangs.size):
            group = f"full-{index:04}"
            mirror.apply_pod_group(pod_group(group).queue("qa").members(1).phase("Running").build())
            for member in range(gangs.size):
                where = (index * gangs.size + member) // 10
                one = pod(f"{group}-full-{member}").group(group).request(cpu=gangs.cpu, memory=gangs.memory)
                mirror.apply_pod(one.on(f"n{where:05}").build())

    def _wait(self, mirror: Mirror) -> None:
        gangs = self.gangs
        for index in range(gangs.count):
            name = f"gang-{index:04}"
            group = pod_group(name).members(gangs.size).phase("Pending").born(index)
            group = group.queue("qb" if self.evictions else "default")
            group = group.reserve(cpu=_times(gangs.cpu, gangs.size), memory=_times(gangs.memory, gangs.size))
            if gangs.tier is not None:
                group = group.topology("hard", gangs.tier)
            mirror.apply_pod_group(group.build())
            member = pod("").group(name).request(cpu=gangs.cpu, memory=gangs.memory).born(index)
            for number in range(gangs.size):
                one = replace(member, name=f"{name}-worker-{number}")
                if not gangs.alike:
                    at = index * gangs.size + number
                    one = one.request(cpu=f"{500 + at // 10}m", memory=f"{512 * 1024 + 64 * at}Ki")
                mirror.apply_pod(one.build())

    def _hyper_nodes(self) -> Iterator[core.HyperNode]:
        if not self.racks:
            return
        racks = self.nodes // self.racks
        for rack in range(racks):
            members = tuple(f"n{rack * self.racks + index:05}" for index in range(self.racks))
            yield _hyper_node(f"rack-{rack:03}", 1, members, "Node")
        spines = racks // self.racks
        for spine in range(spines):
            members = tuple(f"rack-{spine * self.racks + index:03}" for index in range(self.racks))
            yield _hyper_node(f"spine-{spine:02}", 2, members, "HyperNode")
        yield _hyper_node("top", 3, tuple(f"spine-{spine:02}" for spine in range(spines)), "HyperNode")


def _hyper_node(name: str, tier: int, members: tuple[str, ...], kind: str) -> core.HyperNode:
    named = (core.MemberSelector(exact_match=core.MemberExactMatch(name=member)) for member in members)
    spec = core.HyperNodeSpec(
        tier=tier, members=tuple(core.HyperNodeMember(type=kind, selector=selector) for selector in named)
    )
    return core.HyperNode(metadata=core.ObjectMeta(name=name, uid=name), spec=spec)


def _times(quantity: str, count: int) -> str:
    digits = quantity.rstrip("GMKi")
    return f"{round(float(digits) * count, 3):g}{quantity[len(digits) :]}"


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("S1", 1000, Gangs(20, 100), binds=2000),
        Scenario("S2", 1000, Gangs(100, 100), binds=10000),
        Scenario("S3", 5000, Gangs(5, 100), binds=500),
        Scenario("S4", 5000, Gangs(1, 10), running_per_node=10, binds=10, repeated=True),
        Scenario("S5", 1000, Gangs(100, 100), binds=10000, repeated=True),
        Scenario("S6", 1000, Gangs(100, 100, alike=False), binds=10000),
        Scenario("S7", 1000, Gangs(50, 100, "3.2", "20Gi"), evictions=5000),
        Scenario("S8", 4096, Gangs(16, 256, "16", "64Gi", tier=2), binds=4096, racks=16),
    )
}
