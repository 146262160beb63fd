"""The system's own kinds as the scheduler reads them (spec 01 sections 7, 8, 11 to 13).

The models with validation are the pydantic ones (``scheduling``, ``topology``, ...); these are their hot twins.
They have every field of spec and status but conditions and allocations that nothing reads. Where absent and zero
differ (spec 01 section 1.3) absent is ``None``.
"""

from __future__ import annotations

import msgspec

from stromboli.api.core.affinities import LabelSelector
from stromboli.api.core.meta import Object, ResourceList, Struct


class NetworkTopology(Struct, frozen=True, kw_only=True):
    """Topology constraint of a job or sub-group; a tier of 0 is legal."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Struct, frozen=True, kw_only=True):
    """How pods of a PodGroup form sub-gangs."""

    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a PodGroup."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupCondition(Struct, frozen=True, kw_only=True):
    """One condition of a PodGroup; ``transition_id`` names the scheduling cycle."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a PodGroup."""

    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Object, frozen=True, kw_only=True):
    """A gang."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class ExtendCluster(Struct, frozen=True, kw_only=True):
    """A cluster that jobs of a queue may be forwarded to."""

    name: str = ""
    weight: int = 0
    capacity: ResourceList = {}


class Guarantee(Struct, frozen=True, kw_only=True):
    """What is set aside for a queue."""

    resource: ResourceList = {}


class NodeGroupAffinity(Struct, frozen=True, kw_only=True):
    """Names of node groups, required and preferred."""

    required_during_scheduling_ignored_during_execution: tuple[str, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[str, ...] = ()


class QueueAffinity(Struct, frozen=True, kw_only=True):
    """Node groups that a queue wants and avoids."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class QueueSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a queue. Absent ``reclaimable`` means true; a dimension missing in ``capability`` is unlimited."""

    weight: int = 0
    capability: ResourceList = {}
    reclaimable: bool | None = None
    extend_clusters: tuple[ExtendCluster, ...] = ()
    guarantee: Guarantee = Guarantee()
    affinity: QueueAffinity | None = None
    type: str = ""
    parent: str = ""
    deserved: ResourceList = {}
    priority: int = 0
    dequeue_strategy: str = ""


class Reservation(Struct, frozen=True, kw_only=True):
    """Nodes and amounts reserved for a queue; declared by the API, not used."""

    nodes: tuple[str, ...] = ()
    resource: ResourceList = {}


class QueueStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a queue; the counters are leftovers that nothing writes any more."""

    state: str = ""
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    reservation: Reservation = Reservation()
    allocated: ResourceList = {}


class Queue(Object, frozen=True, kw_only=True):
    """A queue."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class MemberExactMatch(Struct, frozen=True, kw_only=True):
    """A member by name."""

    name: str = ""


class MemberRegexMatch(Struct, frozen=True, kw_only=True):
    """Members whose names contain a match of ``pattern``."""

    pattern: str = ""


class MemberSelector(Struct, frozen=True, kw_only=True):
    """One of the three ways to name members."""

    exact_match: MemberExactMatch | None = None
    regex_match: MemberRegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(Struct, frozen=True, kw_only=True):
    """A child, or several: type ``Node`` or ``HyperNode``. Without selector it matches nothing."""

    type: str = ""
    selector: MemberSelector | None = None


class HyperNodeSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a HyperNode; a lower tier is closer."""

    tier: int = 0
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()


class HyperNodeStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a HyperNode."""

    node_count: int = 0


class HyperNode(Object, frozen=True, kw_only=True):
    """A topology domain."""

    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()


class NumaResource(Struct, frozen=True, kw_only=True):
    """Ids of a resource that can be given out (cpuset text), and how many there are."""

    allocatable: str = ""
    capacity: int = 0


class CpuInfo(Struct, frozen=True, kw_only=True):
    """Place of one CPU; absent members are 0."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class NumatopologySpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a Numatopology; keys of ``cpu_detail`` are decimal CPU ids."""

    policies: dict[str, str] = {}
    res_reserved: dict[str, str] = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuInfo] = {}


class Numatopology(Object, frozen=True, kw_only=True):
    """NUMA layout of the node of the same name."""

    spec: NumatopologySpec = NumatopologySpec()


class NodeShardSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a shard."""

    nodes_desired: tuple[str, ...] = ()


class NodeShardStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a shard."""

    last_update_time: str | None = None
    nodes_in_use: tuple[str, ...] = ()
    nodes_to_remove: tuple[str, ...] = ()
    nodes_to_add: tuple[str, ...] = ()


class NodeShard(Object, frozen=True, kw_only=True):
    """The nodes of one scheduler; it has the scheduler's name."""

    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()
