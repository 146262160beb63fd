"""``scheduling.volcano.sh/v1beta1``: PodGroup and Queue (spec 01 sections 7 and 8)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds, phases
from stromboli.api.kinds import Kind
from stromboli.api.meta import LabelSelector, Resource
from stromboli.api.modelling import (
    ATOMIC,
    SUBDOMAIN,
    Count,
    Int32,
    Model,
    ResourceList,
    Schema,
    Time,
)
from stromboli.api.topologies import NetworkTopologySpec


class SubGroupPolicySpec(Model):
    """A rule that forms sub-gangs of the pods of a PodGroup (section 7.2)."""

    name: Annotated[str, Schema(max_length=253)] = ""
    """Name of the policy, part of sub-group ids."""
    network_topology: NetworkTopologySpec | None = None
    """Topology of each sub-group."""
    sub_group_size: Annotated[Int32 | None, Schema(minimum=1, default=1)] = None
    """Pods that make a sub-group ready."""
    min_sub_groups: Annotated[Count | None, Schema(default=0)] = None
    """Sub-groups that must be ready; 0 asks for none."""
    label_selector: LabelSelector | None = None
    """Pods considered; all when absent or empty."""
    match_label_keys: Annotated[list[str], ATOMIC] = []
    """Pods with equal values of all these labels form one sub-group."""


class PodGroupSpec(Model):
    """What a gang needs (section 7.1)."""

    min_member: Count = 0
    """Gang size."""
    min_task_member: dict[str, Int32] = {}
    """Minimum by task."""
    queue: Annotated[str, Schema(default="default", max_length=253, pattern=SUBDOMAIN)] = ""
    """Queue."""
    priority_class_name: Annotated[str, Schema(max_length=253)] = ""
    """Priority of the gang."""
    min_resources: ResourceList | None = None
    """Amount tested before the gang is let in; none is asked when absent."""
    network_topology: NetworkTopologySpec | None = None
    """Topology of the gang."""
    sub_group_policy: list[SubGroupPolicySpec] = []
    """Rules for sub-gangs; the first that matches a pod wins."""


class PodGroupCondition(Model):
    """One condition of a PodGroup."""

    type: str = ""
    """Unschedulable or Scheduled."""
    status: str = ""
    """True, False or Unknown."""
    transition_id: str = Field(default="", alias="transitionID")
    """Scheduling cycle."""
    last_transition_time: Time | None = None
    """When the condition was written."""
    reason: str = ""
    """Reason."""
    message: str = ""
    """Text for people."""


class PodGroupStatus(Model):
    """What the scheduler observed (section 7.3)."""

    phase: Annotated[str, Schema(enum=("Pending", "Running", "Unknown", "Inqueue", "Completed"))] = ""
    """Phase; empty is Pending."""
    conditions: list[PodGroupCondition] = []
    """Conditions, one of each type."""
    running: Count = 0
    """Running pods."""
    succeeded: Count = 0
    """Succeeded pods."""
    failed: Count = 0
    """Failed pods."""


class PodGroup(Resource):
    """A gang: pods that are scheduled together or not at all."""

    KIND: ClassVar[Kind] = kinds.POD_GROUPS

    spec: PodGroupSpec = Field(default_factory=PodGroupSpec)
    status: PodGroupStatus = Field(default_factory=PodGroupStatus)


class Cluster(Model):
    """A cluster that Jobs of the queue may be forwarded to."""

    name: str = ""
    """Name of the cluster."""
    weight: Int32 = 0
    """Weight among clusters."""
    capacity: ResourceList = {}
    """Capacity of the cluster."""


class Guarantee(Model):
    """What is set aside for a queue."""

    resource: ResourceList = {}
    """Amounts."""


class NodeGroupAffinity(Model):
    """Names of node groups, required and preferred."""

    required_during_scheduling_ignored_during_execution: list[str] = []
    """Groups that are a must."""
    preferred_during_scheduling_ignored_during_execution: list[str] = []
    """Groups that are preferred."""


class NodeGroupAntiAffinity(Model):
    """Names of node groups to stay away from, required and preferred."""

    required_during_scheduling_ignored_during_execution: list[str] = []
    """Groups that are taboo."""
    preferred_during_scheduling_ignored_during_execution: list[str] = []
    """Groups to avoid."""


class QueueAffinity(Model):
    """Node groups that a queue's pods want and avoid."""

    node_group_affinity: NodeGroupAffinity | None = None
    """Wanted."""
    node_group_anti_affinity: NodeGroupAntiAffinity | None = None
    """Avoided."""


class QueueSpec(Model):
    """A queue's share and rights (section 8.1)."""

    weight: Annotated[Int32, Schema(default=1, minimum=1, maximum=65535)] = 0
    """Weight for fair shares."""
    capability: ResourceList = {}
    """Upper limit; a missing resource is unlimited."""
    reclaimable: bool | None = None
    """Whether others may reclaim from the queue; they may when absent."""
    extend_clusters: list[Cluster] = []
    """Clusters to forward Jobs to."""
    guarantee: Guarantee = Field(default_factory=Guarantee)
    """Reserved amount."""
    affinity: QueueAffinity | None = None
    """Node groups."""
    type: Annotated[str, Schema(max_length=253)] = ""
    """Not used."""
    parent: Annotated[str, Schema(max_length=253, pattern=SUBDOMAIN)] = ""
    """Parent queue; root when empty."""
    deserved: ResourceList = {}
    """Amount that can be reclaimed back."""
    priority: Count = 0
    """Order of queues; higher first."""
    dequeue_strategy: Annotated[str, Schema(default="traverse", enum=tuple(phases.DequeueStrategy))] = ""
    """What to do when the first gang does not fit: stop (fifo), or try the next (traverse)."""


class Reservation(Model):
    """Nodes and amounts reserved for a queue."""

    nodes: list[str] = []
    """Nodes."""
    resource: ResourceList = {}
    """Amounts."""


class QueueStatus(Model):
    """What was observed of a queue (section 8.2)."""

    state: Annotated[str, Schema(enum=("Open", "Closed", "Closing", "Unknown"))] = ""
    """State; empty before the first sync."""
    unknown: Count = 0
    """Not written any more."""
    pending: Count = 0
    """Not written any more."""
    running: Count = 0
    """Not written any more."""
    inqueue: Count = 0
    """Not written any more."""
    completed: Count = 0
    """Not written any more."""
    reservation: Reservation = Field(default_factory=Reservation)
    """Not written."""
    allocated: ResourceList = {}
    """Amount in use, descendants included."""


class Queue(Resource):
    """Shares a cluster among teams."""

    KIND: ClassVar[Kind] = kinds.QUEUES

    spec: QueueSpec = Field(default_factory=QueueSpec)
    status: QueueStatus = Field(default_factory=QueueStatus)
