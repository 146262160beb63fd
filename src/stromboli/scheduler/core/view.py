"""What plugins and actions see of the cluster while a cycle runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.api import quantities
from stromboli.api.reasons import WaitReason
from stromboli.scheduler.core.columns import Columns, Floats
from stromboli.scheduler.core.records import HyperNode, Job, Node, Queue, Shape, Task
from stromboli.scheduler.core.tables import JobTable, NodeTable, Rows

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.objects import ClusterObjects


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric value to expose; the shell adds the prefix ``volcano_``."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    ended: bool = False
    """The series is to go: what it measured is no more."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event on a PodGroup."""

    job_id: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an object, to be said in an event on it."""

    kind: str
    """``Queue``, ``PodGroup``, ``Numatopology``, ``ConfigMap``."""
    namespace: str
    name: str
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """One resource of which there is too little, and who says so. Amounts as the API writes them."""

    holder: str
    """The queue whose limit it is, which may be one above the job's own."""
    resource: str
    wanted: str
    limit: str
    taken: str
    short: str
    """By how much what is wanted and what is taken exceed the limit together."""

    @property
    def is_lasting(self) -> bool:
        """Whether what is wanted exceeds the limit by itself, so that it stays when nothing is taken."""
        return quantities.parse(self.wanted) > quantities.parse(self.limit)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a job was not admitted: a word for programs and a sentence with numbers and the next step for people."""

    reason: str
    message: str
    shortages: tuple[Shortage, ...] = ()

    @property
    def is_lasting(self) -> bool:
        """Whether waiting does not help. What a queue deserves may change, so that being above it need not last."""
        return self.reason != WaitReason.QUEUE_EXHAUSTED and any(each.is_lasting for each in self.shortages)


@dataclass(slots=True, kw_only=True)
class HyperNodeView:
    """HyperNodes of the session with the virtual root (spec 04 sections 15 and 24)."""

    ready: bool
    by_name: dict[str, HyperNode]
    rows: dict[str, Rows]
    """Real session nodes of each HyperNode, as rows in node-list order."""
    tiers: list[int]
    """All tiers, ascending, the virtual root's included."""
    lowest_of_row: dict[int, str] = field(default_factory=dict)
    """For each row a HyperNode of the lowest tier that holds it; absent when none but the root does."""
    _chains: dict[str, list[str]] = field(default_factory=dict)

    def ancestors(self, name: str) -> list[str]:
        """The HyperNode, its parent, and so on up to the root; not to be changed."""
        chain = self._chains.get(name)
        if chain is None:
            chain = self._chains[name] = self._climb(name)
        return chain

    def _climb(self, name: str) -> list[str]:
        chain: list[str] = []
        while name and name not in chain:
            chain.append(name)
            node = self.by_name.get(name)
            name = node.parent if node else ""
        return chain

    def lowest_common_ancestor(self, left: str, right: str) -> str:
        """The lowest HyperNode above both; an empty name gives the other; empty when there is none."""
        if not left or not right or left == right:
            return left or right
        above_left = self.ancestors(left)
        return next((name for name in self.ancestors(right) if name in above_left), "")


@dataclass(slots=True, kw_only=True)
class View:
    """The cluster in this cycle. Everything reachable from here is read only for plugins."""

    session_id: str
    now: float
    """Seconds since the epoch."""
    columns: Columns
    nodes: NodeTable
    node_list: Sequence[Node | None]
    """Nodes by row, in node-list order; None for dead rows."""
    nodes_by_name: Mapping[str, Node]
    jobs: Mapping[str, Job]
    """Jobs of the session: those with a PodGroup and an existing queue."""
    job_table: JobTable
    queues: Mapping[str, Queue]
    total: Floats
    """Sum of allocatable over all nodes."""
    hyper_nodes: HyperNodeView
    affine_shapes: Collection[Shape]
    """Shapes whose pods have inter-pod affinity or anti-affinity; only these can make one pod matter to another. As
    long as plugins open these may become others, as the shapes of tasks may: to be looked at, not copied."""
    objects: ClusterObjects
    """Everything else the mirror knows by kind: volumes, claims, services, namespaces, quotas, NUMA layouts, ..."""
    shard: frozenset[str] | None = None
    """Names of the nodes of this scheduler's shard, or None when sharding is off."""
    shard_mode: str = "none"
    hierarchy: Mapping[str, bool] = field(default_factory=dict)
    """Plugin name to its ``enableHierarchy`` switch."""
    action_names: frozenset[str] = frozenset()
    configurations: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The policy's ``configurations`` by name: arguments of actions, and entries that only plugins read."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Process options that plugins look at, such as feature gates."""
    unsettled: Callable[[], Sequence[Job]] = list
    """Jobs about which this cycle may have something new to say: close hooks look at these and at no others. Every job
    that is not ready is among them."""
    in_victim_order: Callable[[Job, Sequence[Task]], list[Task]] = lambda preemptor, tasks: list(tasks)
    """Victims in the order in which they go for a job (spec 04 section 28.3); not to be asked while plugins open."""
    shared: dict[str, object] = field(default_factory=dict)
    """What plugins of one cycle share, by a name of theirs."""
    memory: dict[str, object] = field(default_factory=dict)
    """What plugins keep from one cycle to the next, by a name of theirs; empty after a restart."""
    warnings: list[str] = field(default_factory=list)
    """What is wrong with objects that are nobody's request, such as queues; see :meth:`warn`."""
    faults: list[Fault] = field(default_factory=list)
    """Those of the warnings that are about one object."""
    _warned: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    """Why jobs were not admitted in this cycle, by job id; the first reason given counts."""
    conditions: dict[str, list[Condition]] = field(default_factory=dict)
    """Conditions set in this cycle, by job id; later ones of a type replace earlier ones."""

    def row_nodes(self, rows: Rows) -> list[Node]:
        """The nodes of live rows, in order."""
        return [node for row in rows if (node := self.node_list[row]) is not None]

    def feature(self, gate: str, default: bool) -> bool:
        """Whether a feature gate is on."""
        gates = self.options.get("feature-gates")
        on = gates.get(gate, default) if isinstance(gates, Mapping) else default
        return bool(on)

    def warn(self, text: str, about: Queue | core.Object | None = None) -> None:
        """Names, once, what cannot be used as it is, and the next step; nothing has failed.

        An object that it is ``about`` says so itself, in an event for as long as every cycle warns of it.
        """
        if text in self._warned:
            return
        self._warned.add(text)
        self.warnings.append(text)
        resource = about.resource if isinstance(about, Queue) else about
        if resource is not None:
            kind = type(resource).__name__
            self.faults.append(Fault(kind, resource.namespace, resource.name, resource.uid, text))

    def report(self, job: Job, reason: str, message: str, type: str = "Normal") -> None:
        """An event on the job's PodGroup."""
        self.events.append(JobEvent(job.id, job.uid, type, reason, message))

    def refuse(self, job: Job, reason: str, message: str, shortages: Sequence[Shortage] = ()) -> None:
        """Says with numbers why the job was not admitted; shown in the PodGroup's condition ``Admitted``."""
        self.refusals.setdefault(job.id, Refusal(reason, message, tuple(shortages)))

    def measure(self, name: str, value: float, **labels: str) -> None:
        """A metric sample; label order is that given."""
        self.samples.append(Sample(name, tuple(labels.items()), value))

    def unmeasure(self, name: str, **labels: str) -> None:
        """What ``measure`` was told about is no more."""
        self.samples.append(Sample(name, tuple(labels.items()), 0.0, ended=True))

    def set_condition(self, job: Job, condition: Condition) -> None:
        """Sets a PodGroup condition, replacing one of the same type at the end of the cycle."""
        conditions = self.conditions.setdefault(job.id, [])
        conditions[:] = [other for other in conditions if other.type != condition.type]
        conditions.append(condition)


@dataclass(frozen=True, slots=True)
class Condition:
    """A PodGroup condition before time and session id are added."""

    type: str
    reason: str
    message: str = ""
    status: str = "True"
