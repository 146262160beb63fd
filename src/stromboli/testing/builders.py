"""Fluent builders of the objects the scheduler reads, for tests, examples and benchmarks.

``pod("p0").group("g").request(cpu=1, memory="1Gi").build()`` reads as the sentence it stands for. Every call returns a
changed copy, so a half-built object can be shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

import msgspec

from stromboli.api import core, names

Amount: TypeAlias = str | int | float
S = TypeVar("S", bound=core.Struct)

BIRTH = "2026-01-01T00:00:00Z"
"""Creation time of everything that is not given another."""


def created_at(seconds: float) -> str:
    """A wire time, in seconds after ``BIRTH``."""
    return datetime.fromtimestamp(core.timestamp(BIRTH) + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class PodBuilder:
    """A pod with one container."""

    name: str
    namespace: str = "ns"
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    created: str = BIRTH
    deleted: str | None = None
    requests: dict[str, Amount] = field(default_factory=dict)
    spec: core.PodSpec = core.PodSpec(scheduler_name="volcano")
    status: core.PodStatus = core.PodStatus(phase="Pending")
    ports: tuple[core.ContainerPort, ...] = ()

    def group(self, name: str) -> PodBuilder:
        """Member of a PodGroup."""
        return self.annotate(**{names.GROUP_NAME: name})

    def role(self, name: str) -> PodBuilder:
        """Task of this name."""
        return self.annotate(**{names.TASK_SPEC: name})

    def request(self, **amounts: Amount) -> PodBuilder:
        """Requests of its container; write ``gpu`` for ``nvidia.com/gpu``."""
        named = {names.NVIDIA_GPU if key == "gpu" else key: amount for key, amount in amounts.items()}
        return replace(self, requests={**self.requests, **named})

    def annotate(self, **annotations: str) -> PodBuilder:
        """More annotations."""
        return replace(self, annotations={**self.annotations, **annotations})

    def label(self, **labels: str) -> PodBuilder:
        """More labels."""
        return replace(self, labels={**self.labels, **labels})

    def on(self, node: str, phase: str = "Running") -> PodBuilder:
        """On a node, running unless said otherwise."""
        return self._spec(node_name=node).phase(phase)

    def phase(self, phase: str) -> PodBuilder:
        """In this phase."""
        return replace(self, status=_changed(self.status, phase=phase))

    def priority(self, priority: int) -> PodBuilder:
        """With a pod priority."""
        return self._spec(priority=priority)

    def select(self, **labels: str) -> PodBuilder:
        """Only on nodes with these labels."""
        return self._spec(node_selector=labels)

    def gated(self, *gates: str) -> PodBuilder:
        """With scheduling gates."""
        return self._spec(scheduling_gates=tuple(core.PodSchedulingGate(name=gate) for gate in gates))

    def affine(self, affinity: core.Affinity) -> PodBuilder:
        """With an affinity."""
        return self._spec(affinity=affinity)

    def tolerate(self, *tolerations: core.Toleration) -> PodBuilder:
        """With tolerations."""
        return self._spec(tolerations=tolerations)

    def host_port(self, port: int) -> PodBuilder:
        """Taking a port of its node."""
        return replace(self, ports=(*self.ports, core.ContainerPort(host_port=port, container_port=port)))

    def born(self, seconds: float) -> PodBuilder:
        """Created this long after ``BIRTH``."""
        return replace(self, created=created_at(seconds))

    def deleting(self) -> PodBuilder:
        """With a deletion time."""
        return replace(self, deleted=created_at(3600))

    def with_uid(self, uid: str) -> PodBuilder:
        """With this UID instead of one made from its name."""
        return replace(self, uid=uid)

    def nominated(self, node: str) -> PodBuilder:
        """With a nominated node."""
        return replace(self, status=_changed(self.status, nominated_node_name=node))

    def build(self) -> core.Pod:
        """The pod."""
        container = core.Container(
            name="main", resources=core.ResourceRequirements(requests=dict(self.requests)), ports=self.ports
        )
        metadata = core.ObjectMeta(
            name=self.name,
            namespace=self.namespace,
            uid=self.uid or f"{self.namespace}-{self.name}",
            labels=self.labels,
            annotations=self.annotations,
            creation_timestamp=self.created,
            deletion_timestamp=self.deleted,
        )
        return core.Pod(metadata=metadata, spec=_changed(self.spec, containers=(container,)), status=self.status)

    def _spec(self, **changes: object) -> PodBuilder:
        return replace(self, spec=_changed(self.spec, **changes))


@dataclass(frozen=True)
class NodeBuilder:
    """A ready node."""

    name: str
    allocatable: dict[str, Amount] = field(default_factory=lambda: {"pods": 110})
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[core.Taint, ...] = ()
    unschedulable: bool = False
    uid: str = ""

    def offer(self, **amounts: Amount) -> NodeBuilder:
        """Allocatable amounts; write ``gpu`` for ``nvidia.com/gpu``."""
        named = {names.NVIDIA_GPU if key == "gpu" else key: amount for key, amount in amounts.items()}
        return replace(self, allocatable={**self.allocatable, **named})

    def label(self, **labels: str) -> NodeBuilder:
        """More labels."""
        return replace(self, labels={**self.labels, **labels})

    def annotate(self, **annotations: str) -> NodeBuilder:
        """More annotations."""
        return replace(self, annotations={**self.annotations, **annotations})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> NodeBuilder:
        """One more taint."""
        return replace(self, taints=(*self.taints, core.Taint(key=key, value=value, effect=effect)))

    def cordon(self) -> NodeBuilder:
        """Not schedulable."""
        return replace(self, unschedulable=True)

    def build(self) -> core.Node:
        """The node."""
        return core.Node(
            metadata=core.ObjectMeta(
                name=self.name, uid=self.uid or f"node-{self.name}", labels=self.labels, annotations=self.annotations
            ),
            spec=core.NodeSpec(taints=self.taints, unschedulable=self.unschedulable),
            status=core.NodeStatus(allocatable=dict(self.allocatable), capacity=dict(self.allocatable)),
        )


@dataclass(frozen=True)
class PodGroupBuilder:
    """A PodGroup, admitted unless said otherwise."""

    name: str
    namespace: str = "ns"
    uid: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    created: str = BIRTH
    spec: core.PodGroupSpec = core.PodGroupSpec(queue="default")
    status: core.PodGroupStatus = core.PodGroupStatus(phase="Inqueue")

    def members(self, minimum: int, **roles: int) -> PodGroupBuilder:
        """At least this many pods, and per role."""
        return self._spec(min_member=minimum, min_task_member=roles)

    def queue(self, name: str) -> PodGroupBuilder:
        """In this queue."""
        return self._spec(queue=name)

    def priority_class(self, name: str) -> PodGroupBuilder:
        """Of this priority class."""
        return self._spec(priority_class_name=name)

    def reserve(self, **amounts: Amount) -> PodGroupBuilder:
        """``spec.minResources``."""
        return self._spec(min_resources=dict(amounts))

    def phase(self, phase: str) -> PodGroupBuilder:
        """In this phase."""
        return replace(self, status=_changed(self.status, phase=phase))

    def unschedulable(self) -> PodGroupBuilder:
        """Told by an earlier cycle that it cannot start."""
        condition = core.PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources")
        return replace(self, status=_changed(self.status, conditions=(condition,)))

    def topology(self, mode: str, tier: int | None = None, tier_name: str = "") -> PodGroupBuilder:
        """Confined to HyperNodes of this tier."""
        wanted = core.NetworkTopology(mode=mode, highest_tier_allowed=tier, highest_tier_name=tier_name)
        return self._spec(network_topology=wanted)

    def sub_group(
        self,
        name: str,
        key: str,
        *,
        size: int | None = None,
        minimum: int | None = None,
        topology: core.NetworkTopology | None = None,
        selector: core.LabelSelector | None = None,
    ) -> PodGroupBuilder:
        """One more sub-group policy, keyed by a label."""
        policy = core.SubGroupPolicy(
            name=name,
            match_label_keys=(key,),
            sub_group_size=size,
            min_sub_groups=minimum,
            network_topology=topology,
            label_selector=selector,
        )
        return self._spec(sub_group_policy=(*self.spec.sub_group_policy, policy))

    def annotate(self, **annotations: str) -> PodGroupBuilder:
        """More annotations."""
        return replace(self, annotations={**self.annotations, **annotations})

    def born(self, seconds: float) -> PodGroupBuilder:
        """Created this long after ``BIRTH``."""
        return replace(self, created=created_at(seconds))

    def build(self) -> core.PodGroup:
        """The PodGroup."""
        metadata = core.ObjectMeta(
            name=self.name,
            namespace=self.namespace,
            uid=self.uid or f"{self.namespace}-group-{self.name}",
            annotations=self.annotations,
            creation_timestamp=self.created,
        )
        return core.PodGroup(metadata=metadata, spec=self.spec, status=self.status)

    def _spec(self, **changes: object) -> PodGroupBuilder:
        return replace(self, spec=_changed(self.spec, **changes))


@dataclass(frozen=True)
class QueueBuilder:
    """An open queue of weight 1."""

    name: str
    created: str = BIRTH
    annotations: dict[str, str] = field(default_factory=dict)
    spec: core.QueueSpec = core.QueueSpec(weight=1)
    status: core.QueueStatus = core.QueueStatus(state="Open")

    def weight(self, weight: int) -> QueueBuilder:
        """With this weight."""
        return self._spec(weight=weight)

    def cap(self, **amounts: Amount) -> QueueBuilder:
        """With a capability."""
        return self._spec(capability=dict(amounts))

    def deserve(self, **amounts: Amount) -> QueueBuilder:
        """With a deserved amount."""
        return self._spec(deserved=dict(amounts))

    def parent(self, name: str) -> QueueBuilder:
        """Below this queue."""
        return self._spec(parent=name)

    def priority(self, priority: int) -> QueueBuilder:
        """With this priority."""
        return self._spec(priority=priority)

    def state(self, state: str) -> QueueBuilder:
        """In this state."""
        return replace(self, status=_changed(self.status, state=state))

    def unreclaimable(self) -> QueueBuilder:
        """Nothing of it can be reclaimed."""
        return self._spec(reclaimable=False)

    def born(self, seconds: float) -> QueueBuilder:
        """Created this long after ``BIRTH``."""
        return replace(self, created=created_at(seconds))

    def build(self) -> core.Queue:
        """The queue."""
        metadata = core.ObjectMeta(
            name=self.name, uid=f"queue-{self.name}", creation_timestamp=self.created, annotations=self.annotations
        )
        return core.Queue(metadata=metadata, spec=self.spec, status=self.status)

    def _spec(self, **changes: object) -> QueueBuilder:
        return replace(self, spec=_changed(self.spec, **changes))


def pod(name: str, namespace: str = "ns") -> PodBuilder:
    """A pending pod without requests."""
    return PodBuilder(name, namespace)


def node(name: str) -> NodeBuilder:
    """A node that offers nothing but 110 pods."""
    return NodeBuilder(name)


def pod_group(name: str, namespace: str = "ns") -> PodGroupBuilder:
    """A PodGroup without minimum in queue ``default``."""
    return PodGroupBuilder(name, namespace)


def queue(name: str = "default") -> QueueBuilder:
    """An open queue."""
    return QueueBuilder(name)


def hyper_node(name: str, tier: int, nodes: tuple[str, ...] = (), children: tuple[str, ...] = ()) -> core.HyperNode:
    """A HyperNode that names its members."""
    members = [
        core.HyperNodeMember(type=kind, selector=core.MemberSelector(exact_match=core.MemberExactMatch(name=member)))
        for kind, several in (("Node", nodes), ("HyperNode", children))
        for member in several
    ]
    return core.HyperNode(
        metadata=core.ObjectMeta(name=name, uid=f"hypernode-{name}"),
        spec=core.HyperNodeSpec(tier=tier, members=tuple(members)),
    )


def priority_class(name: str, value: int, *, default: bool = False) -> core.PriorityClass:
    """A priority class."""
    return core.PriorityClass(
        metadata=core.ObjectMeta(name=name, uid=f"class-{name}"), value=value, global_default=default
    )


def _changed(struct: S, **changes: object) -> S:
    return msgspec.structs.replace(struct, **changes)
