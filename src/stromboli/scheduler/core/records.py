"""The things a cycle reasons about: tasks, sub-jobs, jobs, queues, nodes and shapes (spec 04 sections 9 to 14).

Plain mutable records without behaviour beyond counting. The mirror builds them from events, the journal moves tasks
between statuses; nobody else writes to them. Amounts live in arrays of ``core.columns`` width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.statuses import (
    ALLOCATED_STATUSES,
    READY_STATUSES,
    SCHEDULED_STATUSES,
    VALID_STATUSES,
    TaskStatus,
)

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.elsewhere import Claimant
    from stromboli.scheduler.core.tables import JobTable

Attached = tuple[tuple[str, int], ...]
"""Scalars of CSI drivers with the number of volumes that a pod attaches, sorted."""

ROOT_HYPER_NODE = "<cluster-top-hypernode>"
"""The virtual HyperNode above all others, holding every node (spec 04 section 24)."""


class Phase(IntEnum):
    """PodGroup phases; ``PENDING`` stands for an empty phase as well."""

    PENDING = 0
    INQUEUE = 1
    RUNNING = 2
    UNKNOWN = 3
    COMPLETED = 4

    @property
    def word(self) -> str:
        """The phase as PodGroup statuses spell it."""
        return self.name.capitalize()


# Counting by status is asked for at every placement: one call that picks the numbers beats a loop over statuses.
_READY, _SCHEDULED, _VALID, _ALLOCATED = (
    itemgetter(*statuses) for statuses in (READY_STATUSES, SCHEDULED_STATUSES, VALID_STATUSES, ALLOCATED_STATUSES)
)

PHASES_BY_WORD = {phase.word: phase for phase in Phase}


class Shape:
    """What nodes see of a task: tasks with equal content share one shape (interned by the mirror).

    ``pod`` is some pod of this shape: read specification fields that are part of the content from it (requests,
    selector, affinity, tolerations, ports, volumes, claims), and labels and annotations from the shape itself.
    """

    __slots__ = (
        "annotations",
        "attached",
        "best_effort",
        "compared",
        "delta",
        "index",
        "labels",
        "namespace",
        "nonzero",
        "pod",
        "request",
        "requested",
        "row_compared",
        "row_request",
    )

    def __init__(self, index: int, pod: core.Pod, request: Floats, nonzero: tuple[float, float]) -> None:
        self.index = index
        """Unique among the shapes of a mirror."""
        self.pod = pod
        self.namespace = pod.namespace
        self.labels: Mapping[str, str] = {}
        """Labels under keys that some pod's affinity or spread constraint selects on."""
        self.annotations: Mapping[str, str] = {}
        """Annotations under the keys that plugins asked for."""
        self.attached: Attached = ()
        """Part of ``request``; see ``core.attaching``."""
        self.request = request
        self.nonzero = nonzero
        """cpu (milli) and memory (bytes) with the defaults of spec 06 section 15.1."""
        self.requested: tuple[int, ...] = ()
        """Columns with a request of at least epsilon."""
        self.compared: tuple[int, ...] = ()
        """Columns in which the request is held against a node: cpu, memory and every scalar listed."""
        self.row_request: tuple[tuple[int, float], ...] = ()
        """``requested`` with its amounts: quicker than the array for one row."""
        self.row_compared: tuple[tuple[int, float], ...] = ()
        """``compared`` with its amounts."""
        self.best_effort = False
        self.delta: dict[int | tuple[int, int], Floats] = {}
        """Change of a node's state per holding of a task on it, or per (old, new) holding; see ``core.accounting``."""


@dataclass(slots=True)
class Transaction:
    """A task's place when a statement was discarded, for the message of spec 04 section 31.3."""

    status: TaskStatus
    node: str
    eviction_occurred: bool


class Task:
    """One pod, as the scheduler sees it."""

    __slots__ = (
        "annotations",
        "created",
        "deleting",
        "evicting",
        "eviction_occurred",
        "gate_opt_in",
        "gated",
        "host_ports",
        "index",
        "job",
        "job_id",
        "key",
        "labels",
        "last_transaction",
        "name",
        "namespace",
        "node",
        "node_name",
        "nominated_node",
        "order_key",
        "preemptable",
        "preempted",
        "preemption_policy",
        "priority",
        "priority_class",
        "queue_gate_only",
        "revocable_zone",
        "role",
        "scheduled_at",
        "scheduled_condition",
        "shape",
        "spec_priority",
        "started",
        "status",
        "sub_job",
        "uid",
    )

    def __init__(self, namespace: str, name: str, uid: str, shape: Shape) -> None:
        self.namespace = namespace
        self.name = name
        self.key = f"{namespace}/{name}"
        self.uid = uid
        self.shape = shape
        self.job_id = ""
        self.job: Job | None = None
        self.sub_job: SubJob | None = None
        self.role = ""
        self.index: int | None = None
        """Pod index of spec 04 section 28.1, when the name ends in one."""
        self.priority = 1
        self.spec_priority = 0
        """``spec.priority``, absent 0."""
        self.priority_class = ""
        self.preemption_policy = ""
        self.preemptable = True
        self.revocable_zone = ""
        self.created = 0.0
        self.labels: Mapping[str, str] = {}
        self.annotations: Mapping[str, str] = {}
        self.gated = False
        self.queue_gate_only = False
        """Its only gate is the queue-allocation gate (spec 04 section 33)."""
        self.gate_opt_in = False
        self.status = TaskStatus.PENDING
        self.node: Node | None = None
        self.node_name = ""
        self.nominated_node = ""
        self.eviction_occurred = False
        self.last_transaction: Transaction | None = None
        self.scheduled_condition: tuple[str, str, str] | None = None
        """(status, reason, message) of the pod's PodScheduled condition, for tasks without a node."""
        self.scheduled_at = float("inf")
        """When PodScheduled became True, in seconds since the epoch; infinite while it is not."""
        self.started = float("inf")
        """When the pod started, in seconds since the epoch; infinite while it has not."""
        self.deleting = False
        self.preempted = False
        """A scheduler has evicted it for a more important pod, and says so in its conditions."""
        self.evicting = False
        """Evicted by us, and the API server has not yet shown it."""
        self.host_ports: tuple[tuple[str, str, int], ...] = ()
        self.order_key: tuple[int, float, str] | None = None

    @property
    def request(self) -> Floats:
        """Requests by column; read only."""
        return self.shape.request

    @property
    def best_effort(self) -> bool:
        """Whether nothing but a pod slot is requested."""
        return self.shape.best_effort

    def __repr__(self) -> str:
        return f"<Task {self.key} {self.status.word}{'@' + self.node_name if self.node_name else ''}>"


class SubJob:
    """Tasks of a job that form a gang of their own (spec 04 section 12); every job with tasks has at least one."""

    __slots__ = (
        "allocated_hyper_node",
        "counts",
        "failed_roles",
        "group",
        "hard_tier",
        "id",
        "job",
        "match_index",
        "minimum",
        "nominated_hyper_node",
        "pending_best_effort",
        "tasks",
        "topology",
    )

    def __init__(self, job: Job, id: str, group: str, minimum: int) -> None:
        self.job = job
        self.id = id
        self.group = group
        self.minimum = minimum
        self.match_index = 0
        self.topology: core.NetworkTopology | None = None
        self.hard_tier: int | None = None
        """Highest tier allowed in this cycle; None when the sub-job is not confined (spec 04 section 24.1)."""
        self.tasks: dict[str, Task] = {}
        self.counts = [0] * len(TaskStatus)
        self.pending_best_effort = 0
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""
        self.failed_roles: set[str] = set()
        """Roles of which a task found no node in the running search."""

    @property
    def priority(self) -> int:
        """The highest priority of its tasks; 0 at least."""
        return max(0, max((task.priority for task in self.tasks.values()), default=0))

    @property
    def ready_count(self) -> int:
        """Tasks that hold resources or have succeeded."""
        return sum(_READY(self.counts))

    @property
    def is_ready(self) -> bool:
        """Whether the sub-job's own minimum is met (spec 04 section 11)."""
        return self.ready_count + self.pending_best_effort >= self.minimum

    @property
    def is_pipelined(self) -> bool:
        """Whether the minimum is met counting tasks that wait for resources being released."""
        return self.ready_count + self.counts[TaskStatus.PIPELINED] + self.pending_best_effort >= self.minimum

    def __repr__(self) -> str:
        return f"<SubJob {self.id}>"


class Job:
    """A PodGroup and its tasks (spec 04 section 10); without ``pod_group`` it is not part of cycles."""

    __slots__ = (
        "allocated_hyper_node",
        "annotations",
        "counts",
        "created",
        "disruption_budget",
        "fit_errors",
        "hard_tier",
        "id",
        "labels",
        "min_member",
        "name",
        "namespace",
        "nominated_hyper_node",
        "order_key",
        "pending_best_effort",
        "phase",
        "pod_group",
        "preemptable",
        "priority",
        "queue",
        "queue_name",
        "revocable_zone",
        "role_counts",
        "role_minimums",
        "role_pending_empty",
        "role_total",
        "row",
        "sla_waiting_time",
        "sub_groups",
        "sub_jobs",
        "table",
        "tasks",
        "topology",
        "uid",
    )

    def __init__(self, id: str, table: JobTable) -> None:
        self.id = id
        self.namespace, _, self.name = id.partition("/")
        self.table = table
        self.row = table.take()
        self.uid = ""
        self.pod_group: core.PodGroup | None = None
        self.created = 0.0
        self.queue: Queue | None = None
        self.queue_name = ""
        self.labels: Mapping[str, str] = {}
        self.annotations: Mapping[str, str] = {}
        self.min_member = 0
        self.role_minimums: Mapping[str, int] = {}
        self.role_total = 0
        """Sum of the per-role minimums."""
        self.priority = 0
        self.preemptable = False
        self.revocable_zone = ""
        self.sla_waiting_time: float | None = None
        """Seconds."""
        self.disruption_budget: tuple[str, str] | None = None
        """(``min-available`` or ``max-unavailable``, value as written)."""
        self.topology: core.NetworkTopology | None = None
        self.hard_tier: int | None = None
        self.sub_groups: dict[str, int] = {}
        """Group id to ``minSubGroups``; empty when the job has no sub-group policies."""
        self.phase = Phase.PENDING
        self.tasks: dict[str, Task] = {}
        """By UID."""
        self.counts = [0] * len(TaskStatus)
        self.pending_best_effort = 0
        self.role_counts: dict[str, list[int]] = {}
        self.role_pending_empty: dict[str, int] = {}
        self.sub_jobs: dict[str, SubJob] = {}
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""
        self.fit_errors: dict[str, object] = {}
        """Task UID to ``core.fit_errors.FitErrors`` of this cycle."""
        self.order_key: tuple[float, str] | None = None

    @property
    def allocated(self) -> Floats:
        """Requests of tasks in allocated statuses, and of those Pipelined in this cycle; read only."""
        row: Floats = self.table.allocated[self.row]
        return row

    @property
    def min_resources(self) -> Floats | None:
        """``spec.minResources``, or None; read only."""
        return self.table.minimum[self.row] if self.table.has_minimum[self.row] else None

    @property
    def has_sub_groups(self) -> bool:
        """Whether sub-group policies are in force."""
        return self.pod_group is not None and bool(self.pod_group.spec.sub_group_policy)

    @property
    def allocated_count(self) -> int:
        """Tasks in allocated statuses."""
        return sum(_ALLOCATED(self.counts))

    @property
    def ready_count(self) -> int:
        """Tasks that hold resources or have succeeded."""
        return sum(_READY(self.counts))

    @property
    def waiting_count(self) -> int:
        """Pipelined tasks."""
        return self.counts[TaskStatus.PIPELINED]

    @property
    def valid_count(self) -> int:
        """Tasks that hold, have used, wait for or may get resources."""
        return sum(_VALID(self.counts))

    @property
    def scheduled_count(self) -> int:
        """Tasks whose pods are known to have a node, or are over."""
        return sum(_SCHEDULED(self.counts))

    @property
    def is_ready(self) -> bool:
        """Whether ``minMember`` is met (spec 04 section 11)."""
        return self.ready_count + self.pending_best_effort >= self.min_member

    @property
    def is_pipelined(self) -> bool:
        """Whether ``minMember`` is met counting tasks that wait for resources being released."""
        return self.waiting_count + self.ready_count + self.pending_best_effort >= self.min_member

    @property
    def is_starving(self) -> bool:
        """Whether ``minMember`` is not met; best-effort tasks are not counted here."""
        return self.waiting_count + self.ready_count < self.min_member

    @property
    def is_pending(self) -> bool:
        """Whether the PodGroup has not been admitted."""
        return self.pod_group is None or self.phase == Phase.PENDING

    def __repr__(self) -> str:
        return f"<Job {self.id}>"


class Dispute(NamedTuple):
    """What somebody else says of a queue, and since when, in seconds since the epoch."""

    since: float
    said: Mapping[str, object]


class Queue:
    """A queue and what its jobs hold."""

    __slots__ = (
        "allocated",
        "claimants",
        "created",
        "decided",
        "disputed",
        "elsewhere",
        "index",
        "jobs",
        "name",
        "order_key",
        "pending",
        "reclaimable",
        "resource",
    )

    def __init__(self, index: int, resource: core.Queue, width_of: Floats) -> None:
        self.index = index
        """Position in ``JobTable.queue``; stable while the queue exists."""
        self.resource = resource
        """The Queue as last seen: spec, status and annotations."""
        self.name = resource.name
        self.created = resource.created
        self.reclaimable = resource.spec.reclaimable is not False
        self.allocated: Floats = width_of.copy()
        """Requests of its jobs' charged tasks; follows the journal; read only."""
        self.pending: Floats = width_of.copy()
        """Requests of its jobs' Pending tasks; follows the journal; read only."""
        self.elsewhere: Floats = width_of.copy()
        """What jobs of other schedulers hold that name this queue, see ``core.elsewhere``; the same for a whole cycle;
        read only."""
        self.claimants: Sequence[Claimant] = ()
        """Those of their pods that hold something through resource claims."""
        self.jobs: dict[str, Job] = {}
        """Jobs of the session that name this queue, by id."""
        self.order_key = (self.created, self.name)
        self.decided: tuple[Floats, Mapping[str, float]] | None = None
        """What the latest cycle said the queue and those below it hold, of resources and of device classes."""
        self.disputed: Dispute | None = None
        """What somebody else has been saying that differs from it."""

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


class Node:
    """A node by name: a placeholder without row until the Node object arrives."""

    __slots__ = ("images", "labels", "name", "ports", "resource", "row", "taints", "tasks", "uid")

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = -1
        """Row in ``NodeTable``; -1 while there is no Node object."""
        self.uid = ""
        self.resource: core.Node | None = None
        self.labels: Mapping[str, str] = {}
        self.taints: tuple[core.Taint, ...] = ()
        self.images: Mapping[str, int] = {}
        """Image name to size in bytes."""
        self.tasks: dict[str, Task] = {}
        """Tasks on the node by ``namespace/name``, those being released and pipelined included."""
        self.ports: dict[tuple[str, str, int], int] = {}
        """Host ports in use as (IP, protocol, port), with the number of pods that filters see holding them."""

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


@dataclass(slots=True)
class HyperNode:
    """A topology domain as a cycle sees it."""

    name: str
    tier: int
    tier_name: str = ""
    parent: str = ""
    children: set[str] = field(default_factory=set)
