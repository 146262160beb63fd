"""NUMA layouts of nodes and the CPUs still free on them, kept from cycle to cycle (spec 04 section 14).

A Numatopology tells what the node's kubelet has given out, some time after it has done so. In between what this
scheduler has assigned is subtracted: at once, and given back when the placement comes to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stromboli.api import core, quantities
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins.numaaware.assigning import take
from stromboli.scheduler.plugins.numaaware.layouts import NOTHING, Cpus, Layout, parse_cpus

CPU = "cpu"
CPU_POLICY, TOPOLOGY_POLICY = "CPUManagerPolicy", "TopologyManagerPolicy"
STATIC = "static"
_MEMORY = "numa-aware"


@dataclass(slots=True)
class NumaNode:
    """What is known about one node."""

    resource: core.Numatopology
    layout: Layout
    reserved: Cpus
    free: dict[str, Cpus]
    """Ids by resource, less what is assigned to pods that the Numatopology does not know of yet."""

    @property
    def cpu_policy(self) -> str:
        """Policy of the CPU manager."""
        return self.resource.spec.policies.get(CPU_POLICY, "")

    @property
    def topology_policy(self) -> str:
        """Policy of the topology manager."""
        return self.resource.spec.policies.get(TOPOLOGY_POLICY, "")

    @property
    def available(self) -> Cpus:
        """CPUs that can be given to containers."""
        return self.free.get(CPU, NOTHING) - self.reserved


@dataclass(frozen=True, slots=True)
class Assignment:
    """CPUs of a pod on a node."""

    task_key: str
    node: str
    cpus: Cpus


@dataclass(slots=True)
class NumaRecords:
    """All nodes with a Numatopology, and assignments that their Numatopology may not show yet, by pod UID."""

    nodes: dict[str, NumaNode] = field(default_factory=dict)
    in_flight: dict[str, Assignment] = field(default_factory=dict)
    _ignored: dict[str, tuple[core.Numatopology, str]] = field(default_factory=dict)
    """Numatopologies that cannot be read, and why."""
    _version: int = -1
    _layouts: dict[frozenset[tuple[str, core.CpuInfo]], Layout] = field(default_factory=dict)

    def refresh(self, view: View) -> None:
        """Takes in changed Numatopologies, and gives back what pods have left without a trace."""
        version = view.objects.version(core.Numatopology)
        if version != self._version:
            self._version = version
            self._read(view)
        for name, (resource, error) in self._ignored.items():
            view.warn(f"Numatopology {name}: it is ignored: {error}", resource)
        for uid, assignment in list(self.in_flight.items()):
            if not _is_placed(view.nodes_by_name, uid, assignment):
                self.give_back(uid)

    def take(self, task: Task, node: Node, cpus: Cpus) -> None:
        """A pod gets CPUs."""
        self.in_flight[task.uid] = Assignment(task.key, node.name, cpus)
        known = self.nodes[node.name]
        known.free[CPU] = known.free.get(CPU, NOTHING) - cpus

    def give_back(self, uid: str) -> Cpus:
        """A pod does not get the CPUs assigned to it; answers which."""
        assignment = self.in_flight.pop(uid, None)
        if assignment is None:
            return NOTHING
        known = self.nodes.get(assignment.node)
        if known is not None:
            known.free[CPU] = known.free.get(CPU, NOTHING) | (assignment.cpus & known.layout.all)
        return assignment.cpus

    def _read(self, view: View) -> None:
        listed = view.objects.all(core.Numatopology)
        self._ignored.clear()
        present = {name for _, name in listed}
        for name in [name for name in self.nodes if name not in present]:
            self._forget(name)
        for (_, name), resource in listed.items():
            known = self.nodes.get(name)
            if known is None or known.resource is not resource:
                try:
                    self._take_in(name, known, resource)
                except ValueError as error:
                    self._forget(name)
                    self._ignored[name] = (resource, str(error))

    def _take_in(self, name: str, known: NumaNode | None, resource: core.Numatopology) -> None:
        sets = {kind: parse_cpus(listed.allocatable) for kind, listed in resource.spec.numares.items()}
        layout = self._layout(resource.spec.cpu_detail)
        reserved = take(layout, layout.all, _reserved_count(resource))
        fresh = NumaNode(resource, layout, reserved, sets)
        if known is not None and not _grows(known, resource):
            kept = {kind: cpus for kind, cpus in known.free.items() if len(cpus) < len(sets.get(kind, NOTHING))}
            fresh.free = {**known.free, **sets, **kept}
            if kept:
                self.nodes[name] = fresh
                return
        self.nodes[name] = fresh
        self._drop_in_flight(name)

    def _layout(self, places: Mapping[str, core.CpuInfo]) -> Layout:
        key = frozenset(places.items())
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = Layout({int(cpu): place for cpu, place in places.items()})
        return layout

    def _forget(self, name: str) -> None:
        self.nodes.pop(name, None)
        self._drop_in_flight(name)

    def _drop_in_flight(self, name: str) -> None:
        for uid in [uid for uid, assignment in self.in_flight.items() if assignment.node == name]:
            del self.in_flight[uid]


def of(view: View) -> NumaRecords:
    """The records, brought up to date."""
    records = view.memory.get(_MEMORY)
    if not isinstance(records, NumaRecords):
        records = view.memory[_MEMORY] = NumaRecords()
    records.refresh(view)
    return records


def _grows(known: NumaNode, new: core.Numatopology) -> bool:
    """Whether some resource did not shrink; one is enough (quirk, kept)."""
    old = known.resource.spec.numares
    return any(
        len(parse_cpus(old[kind].allocatable)) <= len(parse_cpus(listed.allocatable))
        for kind, listed in new.spec.numares.items()
        if kind in old
    )


def _reserved_count(resource: core.Numatopology) -> int:
    return quantities.value(resource.spec.res_reserved.get(CPU, "0"))


def _is_placed(nodes: Mapping[str, Node], uid: str, assignment: Assignment) -> bool:
    node = nodes.get(assignment.node)
    task = node.tasks.get(assignment.task_key) if node is not None else None
    return task is not None and task.uid == uid


def resources_by_numa(counts: Mapping[int, int]) -> dict[str, dict[str, str]]:
    """CPUs per NUMA node as the annotation of spec 01 section 17 has them."""
    return {str(numa): {CPU: str(count)} for numa, count in counts.items()}


def numa_count(layout: Layout, cpus: Iterable[int]) -> int:
    """How many NUMA nodes these CPUs are on."""
    return len(layout.per_numa(cpus))
