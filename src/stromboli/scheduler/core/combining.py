"""How the answers of several plugins become one (spec 04 sections 27 and 28).

``Combination`` walks tiers in order and plugins inside a tier in order. Orders are combined as tuples of keys with the
specified fallback at the end; everything else is combined when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, cmp_to_key
from typing import Any, Generic, TypeVar

from stromboli.scheduler.core import extensions
from stromboli.scheduler.core.extensions import BindExtension
from stromboli.scheduler.core.heaps import Heap, SortKey
from stromboli.scheduler.core.journal import Books
from stromboli.scheduler.core.plugin import (
    Depends,
    EvictionContext,
    Filter,
    Hooks,
    Invalid,
    Order,
    Purpose,
    Score,
    Victims,
    Vote,
)
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.records import Job, Node, Queue, SubJob, Task
from stromboli.scheduler.core.tables import Rows
from stromboli.scheduler.core.takings import Takings
from stromboli.scheduler.core.view import Refusal

T = TypeVar("T")
H = TypeVar("H")

EVICTABLE_POINTS: Mapping[str, str | None] = {
    "preemptable": "preemptable",
    "reclaimable": "reclaimable",
    "unified_evictable": None,
}
"""The hooks that are asked who may be evicted, and the switch that silences each; None: nothing does."""


@dataclass(frozen=True, slots=True)
class Member:
    """A plugin's place in a tier and what it takes part in."""

    option: PluginOption
    hooks: Hooks


class Ordering(Generic[T]):
    """An order over all plugins, with the fallback that makes it total."""

    def __init__(self, orders: Iterable[Order[T]], fallback: Callable[[T], SortKey]) -> None:
        orders = list(orders)
        self._parts = [_part(order) for order in orders]
        self._fallback = fallback
        self.depends = max((order.depends for order in orders), key=_STRENGTH.index, default=Depends.NOTHING)
        lasts = self.depends is Depends.NOTHING
        self.lasting_key: Callable[[T], SortKey] = _Known(self.key).__getitem__ if lasts else self.key
        """As :meth:`key`, worked out once for an element where nothing can change it."""

    def plugin_key(self, item: T) -> SortKey:
        """The key without the fallback: equal when no plugin has an opinion."""
        return tuple(part(item) for part in self._parts)

    def key(self, item: T) -> SortKey:
        """Least is served first; no two elements are equal."""
        return (*[part(item) for part in self._parts], *self._fallback(item))

    def sorted(self, items: Iterable[T]) -> list[T]:
        """The elements in the order of their present keys."""
        return sorted(items, key=self.key)


class _Known(dict[T, SortKey]):
    """Keys by element, worked out when first asked for."""

    def __init__(self, key: Callable[[T], SortKey]) -> None:
        self._key = key

    def __missing__(self, item: T) -> SortKey:
        found = self[item] = self._key(item)
        return found


_STRENGTH = (Depends.NOTHING, Depends.ITSELF, Depends.OTHERS)


def _part(order: Order[T]) -> Callable[[T], Any]:
    if order.key is not None:
        return order.key
    assert order.compare is not None
    return cmp_to_key(order.compare)


def _task_fallback(task: Task) -> SortKey:
    return (-1 if task.index is None else task.index, task.created, task.uid)


def _job_fallback(job: Job) -> SortKey:
    return (job.created, job.id)


def _queue_fallback(queue: Queue) -> SortKey:
    return (queue.created, queue.name)


def _sub_job_fallback(sub_job: SubJob) -> SortKey:
    return (sub_job.match_index, sub_job.id)


class Combination:
    """All plugins of a cycle, speaking with one voice.

    The first tier with a victim names all victims, and later tiers are not asked (spec 04 section 27.2), unless
    ``tiers_agree`` has every tier let a victim go, or queues take turns, as told by ``takings``.
    """

    def __init__(
        self,
        tiers: Sequence[Sequence[Member]],
        changes: list[Job],
        *,
        tiers_agree: bool = False,
        takings: Takings | None = None,
    ) -> None:
        self._tiers = tiers
        self._changes = changes
        self._tiers_agree = tiers_agree
        self._takings = takings
        self._found: dict[tuple[str, str | None], list[list[Any]]] = {}
        self.job_ordering = Ordering(self._collect("job_order", "job_order"), _job_fallback)
        self.queue_ordering = Ordering(self._collect("queue_order", "queue_order"), _queue_fallback)
        self.task_ordering = Ordering(self._collect("task_order", "task_order"), _task_fallback)
        self.sub_job_ordering = Ordering(self._collect("sub_job_order", "sub_job_order"), _sub_job_fallback)
        self.filters: list[tuple[str, Sequence[Filter]]] = [
            (member.option.name, member.hooks.filters) for member in self._members("predicate") if member.hooks.filters
        ]
        """Per plugin: a node refused by one plugin is not shown to the next."""
        self.scores: list[Score] = [score for member in self._members("node_order") for score in member.hooks.scores]

    # Heaps

    def job_heap(self) -> Heap[Job]:
        """A heap of jobs in job order."""
        return Heap(self.job_ordering.key, self.job_ordering.depends, self._changes, lambda job: job)

    def queue_heap(self) -> Heap[Queue]:
        """A heap of queues in queue order."""
        return Heap(self.queue_ordering.key, self.queue_ordering.depends, self._changes, lambda job: job.queue)

    # Jobs and queues

    def job_valid(self, job: Job) -> Invalid | None:
        """The first reason why the job cannot be scheduled as it is."""
        for hook in self._valid_hooks:
            invalid = hook(job)
            if invalid is not None:
                return invalid
        return None

    def job_ready(self, job: Job) -> bool:
        """Whether what the job has may be bound."""
        return all(hook(job) for hook in self._job_ready_hooks)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """As ``job_ready`` for a sub-job; a job without policies is asked as a whole."""
        if not sub_job.job.has_sub_groups:
            return self.job_ready(sub_job.job)
        return all(hook(sub_job) for hook in self._sub_job_ready_hooks)

    def job_pipelined(self, job: Job) -> bool:
        """Whether the job may keep what it has until resources are released."""
        return _vote(self._pipelined_hooks, job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        """As ``job_pipelined`` for a sub-job."""
        if not sub_job.job.has_sub_groups:
            return self.job_pipelined(sub_job.job)
        return _vote(self._sub_job_pipelined_hooks, sub_job)

    def job_enqueueable(self, job: Job) -> bool:
        """Whether the job may be admitted."""
        return _vote(self._enqueueable_hooks, job)

    def job_enqueued(self, job: Job) -> None:
        """Tells every plugin that the job has been admitted."""
        for hook in self._collect("job_enqueued", "job_enqueued"):
            hook(job)

    def job_starving(self, job: Job) -> bool:
        """Whether the job may take resources from others: all of the first tier that has an opinion must say so."""
        for hooks in self._starving_hooks:
            if hooks:
                return all(hook(job) for hook in hooks)
        return False

    def gate_removed(self, task: Task) -> None:
        """Tells every plugin that the queue-allocation gate of a task is to be removed."""
        for hook in self._collect("gate_removed", None):
            hook(task)

    def overused(self, queue: Queue) -> bool:
        """Whether the queue gets nothing more."""
        return any(hook(queue) for hook in self._overused_hooks)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may give the task resources."""
        return all(hook(queue, task) for hook in self._allocatable_hooks)

    def withheld(self, queue: Queue, task: Task) -> Refusal | None:
        """Why the queue gives the task nothing, from the first plugin that can say so."""
        return next((found for hook in self._withheld_hooks if (found := hook(queue, task)) is not None), None)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Whether the queue may take resources from others for these tasks."""
        return all(hook(queue, tasks) for hook in self._preemptive_hooks)

    # Nodes

    def prepare(self, task: Task) -> str | None:
        """Why no node can be tried for the task, or None."""
        for hook in self._prepare_hooks:
            error = hook(task)
            if error is not None:
                return error
        return None

    def hyper_node_scores(self, sub_job: SubJob, candidates: Mapping[str, Rows]) -> dict[str, float]:
        """Sum of the plugins' scores per HyperNode."""
        totals = dict.fromkeys(candidates, 0.0)
        for hook in self._collect("hyper_node_score", "hyper_node_order"):
            for name, score in hook(sub_job, candidates).items():
                totals[name] = totals.get(name, 0.0) + score
        return totals

    def gradient(self, job: Job, sub_job: SubJob | None, start: str, purpose: Purpose) -> list[list[str]]:
        """Groups of HyperNodes to try, best first: the first plugin with a gradient decides alone."""
        for hook in self._collect("gradient", "hyper_node_gradient"):
            return [list(group) for group in hook(job, sub_job, start, purpose)]
        return [[start]]

    # Victims

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Which candidates of the same queue may be evicted for the task."""
        return self._victims("preemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> list[Task]:
        """Which candidates of other queues may be evicted for the task."""
        return self._victims("reclaimable", reclaimer, candidates)

    def opinions(self, hook: str, subject: Task, candidates: Sequence[Task]) -> Iterator[tuple[str, Sequence[Task]]]:
        """Which candidates each plugin that has an opinion lets go; ``hook`` is ``preemptable`` or ``reclaimable``."""
        for member in self._members(hook):
            ask = getattr(member.hooks, hook)
            allowed, vote = ask(subject, candidates) if ask is not None else ((), Vote.ABSTAIN)
            if vote != Vote.ABSTAIN:
                yield member.option.name, allowed

    def evictable_voters(self, point: str) -> list[list[str]]:
        """Names of the plugins that are heard at one of ``EVICTABLE_POINTS``, tier by tier."""
        return [[member.option.name for member in tier] for tier in self._speakers(point, EVICTABLE_POINTS[point])]

    def victim_namers(self) -> list[str]:
        """Names of the plugins that are heard when victims are asked for without anybody to evict them for."""
        return [
            member.option.name
            for tier in self._speakers("victim_tasks", "victim")
            for member in tier
            if member.hooks.victim_tasks
        ]

    def unified_evictable(self, context: EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        """Which candidates may be evicted for a whole gang."""
        return self._victims("unified_evictable", context, candidates)

    def victim_tasks(self, candidates: Sequence[Task]) -> list[Task]:
        """The union of the first tier that names any victim."""
        for hooks in self._by_tier("victim_tasks", "victim"):
            chosen: dict[str, Task] = {}
            for several in hooks:
                for hook in several:
                    chosen.update((task.uid, task) for task in hook(candidates))
            if chosen:
                return list(chosen.values())
        return []

    def victim_queue_compare(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """< 0 when victims of the left queue go first; without opinions the reverse of queue order."""
        for hook in self._collect("victim_queue_order", None):
            verdict = hook(left, right, preemptor)
            if verdict:
                return int(verdict)
        return -1 if self.queue_ordering.key(right) < self.queue_ordering.key(left) else 1

    def _victims(self, point: str, subject: Task | EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        if self._takings is None or self._takings.blank or subject.job is None:
            return self._voted(point, subject, candidates)
        queues = {task.job.queue_name for task in candidates if task.job is not None}
        if not queues - {subject.job.queue_name}:
            return self._voted(point, subject, candidates)
        barred = self._takings.barred(subject.job, queues)
        chosen = self._voted(point, subject, candidates)
        contested = set() if self._tiers_agree else self._takings.contested(subject.job, queues)
        if contested:
            agreed = {task.uid for task in self._agreed(point, subject, candidates)}
            chosen = [task for task in chosen if task.uid in agreed or not _is_of(contested, task)]
        return [task for task in chosen if not _is_of(barred, task)] if barred else chosen

    def _voted(self, point: str, subject: Task | EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        if self._tiers_agree:
            return self._agreed(point, subject, candidates)
        for hooks in self._by_tier(point, EVICTABLE_POINTS[point]):
            chosen = _tier_verdict(hook(subject, candidates) for hook in hooks)
            if chosen:
                return chosen
        return []

    def _agreed(self, point: str, subject: Task | EvictionContext, candidates: Sequence[Task]) -> list[Task]:
        tiers = self._by_tier(point, EVICTABLE_POINTS[point])
        return _agreed((hook(subject, candidates) for hooks in tiers for hook in hooks), candidates)

    # Accounting

    @cached_property
    def books(self) -> list[Books]:
        """Everyone who keeps books about placements."""
        pairs = [(member.hooks.on_allocate, member.hooks.on_deallocate) for member in self._once()]
        return [pair for pair in pairs if pair != (None, None)]

    @cached_property
    def close_hooks(self) -> list[tuple[str, Callable[[], None]]]:
        """What plugins do at the end of the cycle."""
        return [(m.option.name, hook) for m in self._once() if (hook := m.hooks.close) is not None]

    # What follows from a cycle

    def bind_extension(self, task: Task, node: Node) -> BindExtension | None:
        """What plugins send along with a bind."""
        if not self._extension_hooks:
            return None
        return extensions.merged(hook(task, node) for hook in self._extension_hooks)

    def held_otherwise(self) -> dict[str, dict[str, float]]:
        """By queue and resource: by how much tasks hold other amounts than they ask for."""
        total: dict[str, dict[str, float]] = {}
        for member in self._once():
            for queue, amounts in (member.hooks.held_otherwise or dict)().items():
                held = total.setdefault(queue, {})
                for resource, amount in amounts.items():
                    held[resource] = held.get(resource, 0.0) + amount
        return total

    def united(self, name: str) -> frozenset[str]:
        """All names that plugins give in a field of this name, whatever their switches."""
        return frozenset().union(*(getattr(member.hooks, name) for member in self._once()))

    # The tier walk

    @cached_property
    def _extension_hooks(self) -> list[Callable[[Task, Node], BindExtension | None]]:
        return [hook for member in self._once() if (hook := member.hooks.bind_extension) is not None]

    @cached_property
    def _valid_hooks(self) -> list[Callable[[Job], Invalid | None]]:
        return self._collect("job_valid", None)

    @cached_property
    def _job_ready_hooks(self) -> list[Callable[[Job], bool]]:
        return self._collect("job_ready", "job_ready")

    @cached_property
    def _sub_job_ready_hooks(self) -> list[Callable[[SubJob], bool]]:
        return self._collect("sub_job_ready", "sub_job_ready")

    @cached_property
    def _pipelined_hooks(self) -> list[list[Callable[[Job], Vote]]]:
        return self._by_tier("job_pipelined", "job_pipelined")

    @cached_property
    def _sub_job_pipelined_hooks(self) -> list[list[Callable[[SubJob], Vote]]]:
        return self._by_tier("sub_job_pipelined", "sub_job_pipelined")

    @cached_property
    def _enqueueable_hooks(self) -> list[list[Callable[[Job], Vote]]]:
        return self._by_tier("job_enqueueable", "job_enqueued")

    @cached_property
    def _starving_hooks(self) -> list[list[Callable[[Job], bool]]]:
        return self._by_tier("job_starving", "job_starving")

    @cached_property
    def _overused_hooks(self) -> list[Callable[[Queue], bool]]:
        return self._collect("overused", "overused")

    @cached_property
    def _allocatable_hooks(self) -> list[Callable[[Queue, Task], bool]]:
        return self._collect("allocatable", "allocatable")

    @cached_property
    def _withheld_hooks(self) -> list[Callable[[Queue, Task], Refusal | None]]:
        return self._collect("withheld", "allocatable")

    @cached_property
    def _preemptive_hooks(self) -> list[Callable[[Queue, Sequence[Task]], bool]]:
        return self._collect("preemptive", "preemptive")

    @cached_property
    def _prepare_hooks(self) -> list[Callable[[Task], str | None]]:
        return self._collect("prepare", "predicate")

    def _members(self, switch: str | None) -> Iterator[Member]:
        for tier in self._tiers:
            for member in tier:
                if switch is None or getattr(member.option.switches, switch):
                    yield member

    def _once(self) -> Iterator[Member]:
        seen: set[str] = set()
        for member in self._members(None):
            if member.option.name not in seen:
                seen.add(member.option.name)
                yield member

    def _collect(self, hook: str, switch: str | None) -> list[Any]:
        return [registered for tier in self._by_tier(hook, switch) for registered in tier]

    def _by_tier(self, hook: str, switch: str | None) -> list[list[Any]]:
        found = self._found.get((hook, switch))
        if found is None:
            found = self._found[hook, switch] = self._find(hook, switch)
        return found

    def _find(self, hook: str, switch: str | None) -> list[list[Any]]:
        return [[getattr(member.hooks, hook) for member in tier] for tier in self._speakers(hook, switch)]

    def _speakers(self, hook: str, switch: str | None) -> list[list[Member]]:
        return [
            [
                member
                for member in tier
                if (switch is None or getattr(member.option.switches, switch))
                and getattr(member.hooks, hook) is not None
            ]
            for tier in self._tiers
        ]


def _vote(tiers: Sequence[Sequence[Callable[[H], Vote]]], subject: H) -> bool:
    """A reject before the decision refuses; a tier after which somebody has permitted decides; silence permits."""
    for tier in tiers:
        permitted = False
        for hook in tier:
            vote = hook(subject)
            if vote < 0:
                return False
            permitted = permitted or vote > 0
        if permitted:
            return True
    return True


def _tier_verdict(answers: Iterator[Victims]) -> list[Task]:
    """One tier's victims: the intersection, in the order of the first list; an empty list ends the tier.

    When an intersection becomes empty the next plugin seeds the list again, as users of the original may rely on.
    """
    chosen: list[Task] = []
    for victims, vote in answers:
        if vote == Vote.ABSTAIN:
            continue
        if not victims:
            return []
        if not chosen:
            chosen = list(victims)
        elif victims != chosen:
            allowed = {task.uid for task in victims}
            chosen = [task for task in chosen if task.uid in allowed]
    return chosen


def _agreed(answers: Iterator[Victims], candidates: Sequence[Task]) -> list[Task]:
    """The candidates whom everybody with an opinion lets go, as they were offered: no order of plugins matters."""
    let_go: set[str] | None = None
    for victims, vote in answers:
        if vote != Vote.ABSTAIN:
            uids = {task.uid for task in victims}
            let_go = uids if let_go is None else let_go & uids
    return [task for task in candidates if let_go and task.uid in let_go]


def _is_of(queues: Collection[str], task: Task) -> bool:
    return task.job is not None and task.job.queue_name in queues
