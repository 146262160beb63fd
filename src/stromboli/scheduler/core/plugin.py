"""The contract between the scheduler and its plugins.

A plugin is one module with a class derived from ``Plugin``. Each cycle builds it anew from its arguments and calls
``open``; the answer names what the plugin wants to have a say in (``Hooks``). A switch of the policy (spec 04 section
3.2) takes a hook away again, and ``core.combining`` puts the answers of all plugins together (spec 04 section 27).

Node-side hooks are questions about many nodes at once: ``Filter.refuse`` and ``Score.rate`` take a task and an array of
row numbers and return one answer a row. The framework asks about all rows once and afterwards only about rows that a
placement has touched. It asks about a *shape*, not about every task: tasks that look the same to nodes share
``task.shape``, and any of them may be passed. A hook whose answer depends on more says so with ``scope`` (also on the
task's job, or on the single task) and ``reach`` (the answer about one node depends on other nodes, as with pod
affinity: asked again whenever it is needed, so do the bookkeeping in ``on_allocate``/``on_deallocate``).

Job-side hooks are keys (least is served first) and votes. Votes never change anything: state follows the journal, which
calls ``on_allocate``/``on_deallocate`` for every placement, eviction and rollback, in exact reverse order on rollback.
``job.allocated`` and ``queue.allocated`` already follow the journal, so most plugins need no accounting of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.extensions import BindExtension
from stromboli.scheduler.core.reasons import Reason
from stromboli.scheduler.core.tables import Rows

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Node, Queue, SubJob, Task
    from stromboli.scheduler.core.view import Refusal, View

T = TypeVar("T")

Refusals: TypeAlias = npt.NDArray[np.uint8]
"""Per row 0 when the node is fine, else 1 + the index of a reason of the filter."""

Scalar: TypeAlias = float | int | str | bool
Key: TypeAlias = tuple[Scalar, ...]
Arguments: TypeAlias = Mapping[str, object]


class Vote(IntEnum):
    """A plugin's opinion at a voting point (spec 04 section 27.3)."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Scope(Enum):
    """What an answer about nodes depends on, apart from the nodes."""

    SHAPE = "shape"
    JOB = "job"
    TASK = "task"


class Reach(Enum):
    """What may change the answer about a node while a cycle runs."""

    NODE = "node"
    """nothing: it depends on the Node object alone"""
    STATE = "state"
    """placements on this node, as they show in its rows of ``view.nodes`` and nowhere else. Such a hook may be asked
    about imagined rows beyond the end of ``view.node_list``: what the node would be like with more tasks"""
    ROW = "row"
    """placements on this node"""
    CLUSTER = "cluster"
    """placements on any node"""


class Depends(Enum):
    """What can change an element's key while it waits in a heap."""

    NOTHING = "nothing"
    ITSELF = "itself"
    """only placements and evictions of its own tasks (a job's) or of its jobs' tasks (a queue's)"""
    OTHERS = "others"
    """anything: all keys are read again at every pop"""


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """An order, as keys (least first) or, where no key can express it, as a comparison (< 0: left first).

    Equal keys leave the decision to the next plugin.
    """

    key: Callable[[T], Key] | None = None
    compare: Callable[[T, T], int] | None = None
    depends: Depends = Depends.ITSELF

    def __post_init__(self) -> None:
        if (self.key is None) == (self.compare is None):
            raise ValueError("an order needs either a key or a comparison")


@dataclass(frozen=True, slots=True)
class Filter:
    """One reason or family of reasons for which nodes are refused.

    Filters of one plugin are asked in order; a node refused with an aborting code (every code but UNSCHEDULABLE) is not
    asked about again, plain refusals accumulate. ``reasons`` may grow while the filter lives.
    """

    name: str
    reasons: Sequence[Reason]
    refuse: Callable[[Task, Rows], Refusals | None]
    """None: nothing to refuse; unless the reach is CLUSTER the filter is then not asked again in this cycle."""
    scope: Scope = Scope.SHAPE
    reach: Reach = Reach.ROW
    concerns: Callable[[Task], bool] | None = None
    """Asked once in a cycle for every shape: False when nothing that may happen in the cycle makes the filter refuse a
    node for it. With reach CLUSTER this is what keeps the filter from costing every task something."""
    alone: bool = False
    """An aborting refusal is reported alone: what the plugin's earlier filters said about the node is dropped."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number per node, added to those of all other scores; more is better.

    With ``normalise``, what ``rate`` answers is raw, and the array of raw numbers *of the candidates* is passed through
    ``normalise`` before it is added. ``rate`` may answer None when it has nothing to say about any node; unless its
    reach is CLUSTER it is then not asked again in this cycle.
    """

    name: str
    rate: Callable[[Task, Rows], Floats | None]
    normalise: Callable[[Floats], Floats] | None = None
    scope: Scope = Scope.SHAPE
    reach: Reach = Reach.ROW
    concerns: Callable[[Task], bool] | None = None
    """As in ``Filter``."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why a job cannot be scheduled as it is."""

    reason: str
    message: str


class Eviction(Enum):
    """What a gang action evicts for (spec 04 section 27.2)."""

    GANG_PREEMPT = "gangpreempt"
    GANG_RECLAIM = "gangreclaim"


@dataclass(frozen=True, slots=True)
class EvictionContext:
    """On whose behalf victims are sought, and where."""

    kind: Eviction
    job: Job
    hyper_node: str
    demand: Sequence[Task] = ()
    """The tasks of the job for which room is sought, all of them together."""


class Purpose(Enum):
    """What a HyperNode gradient is asked for."""

    ALLOCATE = "allocate"
    EVICT = "evict"


Victims: TypeAlias = tuple[Sequence["Task"], Vote]
"""The candidates that may be evicted, in the order given; with ABSTAIN the list is ignored (spec 04 section 27.2)."""


class PlacementRefused(Exception):
    """Raised by an ``on_allocate`` that has changed nothing: the placement is undone and the message is reported."""


@dataclass(slots=True, kw_only=True)
class Hooks:
    """What a plugin takes part in. Absent hooks cost nothing."""

    # Orders; least is served first.
    job_order: Order[Job] | None = None
    sub_job_order: Order[SubJob] | None = None
    task_order: Order[Task] | None = None
    queue_order: Order[Queue] | None = None
    victim_queue_order: Callable[[Queue, Queue, Queue], int] | None = None
    """(left, right, the preemptor's queue): < 0 when victims of left go first."""

    # Nodes.
    prepare: Callable[[Task], str | None] | None = None
    """Before nodes are tried for a task: None, or why no node can be tried (pre-predicate)."""
    filters: Sequence[Filter] = ()
    scores: Sequence[Score] = ()
    hyper_node_score: Callable[[SubJob, Mapping[str, Rows]], Mapping[str, float]] | None = None
    gradient: Callable[[Job, SubJob | None, str, Purpose], Sequence[Sequence[str]]] | None = None
    """Groups of HyperNodes to try, best group first, for a job (sub-job None) or a sub-job, from a starting one."""

    # Votes and checks about jobs and queues.
    job_valid: Callable[[Job], Invalid | None] | None = None
    job_ready: Callable[[Job], bool] | None = None
    sub_job_ready: Callable[[SubJob], bool] | None = None
    job_pipelined: Callable[[Job], Vote] | None = None
    sub_job_pipelined: Callable[[SubJob], Vote] | None = None
    job_enqueueable: Callable[[Job], Vote] | None = None
    job_enqueued: Callable[[Job], None] | None = None
    """The job has been admitted. This and ``gate_removed`` keep books outside the journal."""
    gate_removed: Callable[[Task], None] | None = None
    """The queue had room for the task, whose queue-allocation gate is to be removed (spec 04 section 33)."""
    job_starving: Callable[[Job], bool] | None = None
    overused: Callable[[Queue], bool] | None = None
    allocatable: Callable[[Queue, Task], bool] | None = None
    withheld: Callable[[Queue, Task], Refusal | None] | None = None
    """Why ``allocatable`` has said no: whose limit it is, and what is short by how much. None: it has not."""
    preemptive: Callable[[Queue, Sequence[Task]], bool] | None = None

    # Victims.
    preemptable: Callable[[Task, Sequence[Task]], Victims] | None = None
    reclaimable: Callable[[Task, Sequence[Task]], Victims] | None = None
    unified_evictable: Callable[[EvictionContext, Sequence[Task]], Victims] | None = None
    victim_tasks: Sequence[Callable[[Sequence[Task]], Collection[Task]]] = ()

    # Accounting: follows the journal. The task carries its new status; on_deallocate may be called for a task that is
    # being evicted or whose placement is rolled back.
    on_allocate: Callable[[Task, Node], None] | None = None
    on_deallocate: Callable[[Task, Node], None] | None = None

    bind_extension: Callable[[Task, Node], BindExtension | None] | None = None
    """What goes along with the bind of a task that the cycle has committed; asked when the cycle hands over."""

    # What the mirror should know from now on. Shapes tell pods apart by these keys as soon as all plugins are open, so
    # shapes that tasks have while a plugin opens are nothing to be remembered.
    shape_labels: frozenset[str] = frozenset()
    """Pod labels that node-side hooks read."""
    shape_annotations: frozenset[str] = frozenset()
    """Pod annotations that node-side hooks read, as far as arguments or objects decide about them."""
    own_resources: frozenset[str] = frozenset()
    """Resources that the plugin accounts for itself: they are in no request and in no node's amounts any more."""

    held_otherwise: Callable[[], Mapping[str, Mapping[str, float]]] | None = None
    """By queue and resource, in internal units: what its tasks hold beyond (or short of) what they ask for, as far as
    the plugin knows better. Counts in the queue's status; asked at the end of the cycle."""

    # The end of the cycle, before PodGroup statuses are worked out.
    close: Callable[[], None] | None = None


class Plugin:
    """Base of all plugins.

    ``name`` is the name used in policy files; ``__init__`` receives the raw arguments of the policy entry (read them
    with the lenient readers of ``core.policy``). Keep ``__init__`` cheap: a plugin is built in every cycle.
    """

    name: ClassVar[str] = ""
    shape_annotations: ClassVar[frozenset[str]] = frozenset()
    """Pod annotations that node-side hooks read: pods that differ in them get different shapes."""
    configuration_entries: ClassVar[frozenset[str]] = frozenset()
    """Names in the policy's ``configurations`` that the plugin reads; see ``View.configurations``."""

    def __init__(self, arguments: Arguments | None = None) -> None:
        self.arguments: Arguments = arguments or {}

    def open(self, view: View) -> Hooks:
        """Looks at the cluster as the cycle begins and says what the plugin takes part in."""
        raise NotImplementedError


PluginFactory: TypeAlias = Callable[[Arguments], Plugin]


@dataclass(slots=True)
class PluginTable:
    """Plugins by the name used in policy files."""

    factories: dict[str, type[Plugin]] = field(default_factory=dict)

    def add(self, plugin: type[Plugin]) -> type[Plugin]:
        """Registers a plugin class under its name."""
        self.factories[plugin.name] = plugin
        return plugin
