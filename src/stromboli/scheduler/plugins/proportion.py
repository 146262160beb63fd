"""proportion: weighted fair sharing between flat queues (spec 06 section 9).

Every queue with jobs gets a *deserved* amount by water-filling: what is left of the cluster is handed out by weight,
nobody gets more than it requests or may have, nobody less than its guarantee, until nothing is left or everybody is
satisfied.

One thing differs from the original: promises to jobs of lower priority that wait in vain do not keep a job out of its
queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api.reasons import WaitReason
from stromboli.scheduler.core.columns import EPSILON, PODS, Floats
from stromboli.scheduler.core.plugin import Eviction, EvictionContext, Hooks, Key, Order, Plugin, Victims, Vote
from stromboli.scheduler.core.view import Refusal
from stromboli.scheduler.plugins import queue_quotas, reservations
from stromboli.scheduler.plugins.queue_quotas import is_open

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Queue, Task
    from stromboli.scheduler.core.view import View


@dataclass(slots=True, eq=False)
class Standing:
    """One queue's account in this cycle; amounts by column."""

    queue: Queue
    weight: int
    guarantee: Floats
    limit: Floats
    """Real capability: what the cluster leaves after others' guarantees, and no more than jobs elsewhere leave of
    ``spec.capability``."""
    request: Floats
    deserved: Floats
    inqueue: Floats
    elastic: Floats
    names: tuple[int, ...] = ()
    """Columns of ``deserved`` that count."""

    @property
    def allocated(self) -> Floats:
        """What the queue's jobs hold; follows the journal."""
        return self.queue.allocated

    def share(self) -> float:
        """The largest part of anything deserved that is in use."""
        allocated, deserved = self.queue.allocated, self.deserved
        return max((float(allocated[column] / deserved[column]) for column in self.names), default=0.0)


class Proportion(Plugin):
    """Keeps one :class:`Standing` a queue; queues without jobs have none."""

    name: ClassVar[str] = "proportion"

    def open(self, view: View) -> Hooks:
        self._view = view
        self._standings = _standings(view)
        share_out(list(self._standings.values()), view.total)
        self._lesser = reservations.LesserPromises(view)
        return Hooks(
            queue_order=Order(key=self._key),
            reclaimable=self._reclaimable,
            unified_evictable=self._evictable,
            overused=self._overused,
            allocatable=self._allocatable,
            withheld=self._withheld,
            preemptive=self._preemptive,
            job_enqueueable=self._enqueueable,
            job_enqueued=self._enqueued,
            close=self._close,
        )

    def _key(self, queue: Queue) -> Key:
        standing = self._standings.get(queue.name)
        return (-(queue.resource.spec.priority or 0), standing.share() if standing else 0.0)

    def _overused(self, queue: Queue) -> bool:
        standing = self._standings.get(queue.name)
        return standing is None or bool((standing.deserved < standing.allocated + EPSILON).all())

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        standing = self._standings.get(queue.name)
        if standing is None or not is_open(queue):
            return False
        return _within(queue.allocated, task.shape.row_request, standing.deserved)

    def _withheld(self, queue: Queue, task: Task) -> Refusal | None:
        """Why the queue gives a task nothing: it would have more than it deserves."""
        if not is_open(queue):
            return Refusal(WaitReason.QUEUE_NOT_OPEN, queue_quotas.closed(queue))
        standing = self._standings.get(queue.name)
        if standing is None:
            return None
        held, deserved = queue.allocated + queue.elsewhere, standing.deserved + queue.elsewhere
        names = reservations.exceeded_names(self._view, held + task.request, deserved, task.request)
        found = reservations.shortages(self._view, names, task.request, deserved, held, queue.name)
        text = reservations.for_pod(found, f"queue {queue.name} deserves {{limit}}")
        return Refusal(WaitReason.QUEUE_EXHAUSTED, text, tuple(found)) if found else None

    def _preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        standing = self._standings.get(queue.name)
        if standing is None or not is_open(queue):
            return False
        return _within(queue.allocated, _together(tasks).items(), standing.deserved)

    def _enqueueable(self, job: Job) -> Vote:
        queue = job.queue
        standing = self._standings.get(queue.name) if queue else None
        if queue is None or standing is None:
            return Vote.REJECT
        if not is_open(queue):
            queue_quotas.refuse_closed(self._view, job, queue)
            return Vote.REJECT
        wanted = job.min_resources
        if wanted is None:
            return Vote.PERMIT
        total = wanted + queue.allocated + standing.inqueue - standing.elastic
        lacking = reservations.exceeded_names(self._view, total, standing.limit, wanted)
        if lacking:
            total = total - np.minimum(self._lesser.before(job), standing.inqueue)
            lacking = reservations.exceeded_names(self._view, total, standing.limit, wanted)
        if not lacking:
            return Vote.PERMIT
        queue_quotas.report_quota(self._view, job, lacking)
        capability = queue_quotas.capability_of(queue.resource.spec, self._view)
        rivals = self._view.queues.keys() - {queue.name}
        limit, taken = standing.limit + queue.elsewhere, total - wanted + queue.elsewhere
        quota = queue_quotas.Quota(queue.name, limit, taken, capability, capability, rivals)
        queue_quotas.refuse_quota(self._view, job, quota, lacking)
        return Vote.REJECT

    def _enqueued(self, job: Job) -> None:
        standing = self._standings.get(job.queue_name)
        if standing is not None and job.min_resources is not None:
            standing.inqueue += reservations.without_gated(job)
            self._lesser.add(job)

    def _reclaimable(self, _reclaimer: Task, candidates: Sequence[Task]) -> Victims:
        return self._surplus(candidates)

    def _surplus(self, candidates: Sequence[Task]) -> Victims:
        """A candidate goes as long as its queue would still hold more than it deserves."""
        held: dict[str, Floats] = {}
        victims: list[Task] = []
        for task in candidates:
            standing = self._standings.get(task.job.queue_name) if task.job else None
            if standing is None:
                continue
            running = held.setdefault(standing.queue.name, standing.allocated.copy())
            if not (running < standing.deserved + EPSILON).all():
                running -= task.request
                victims.append(task)
        return victims, Vote.PERMIT

    def _evictable(self, context: EvictionContext, candidates: Sequence[Task]) -> Victims:
        """A gang takes from other queues what a single task may take, or two queues take from each other for ever.

        The original has no say here (spec 06 section 9).
        """
        if context.kind is Eviction.GANG_PREEMPT:
            return candidates, Vote.PERMIT
        return self._surplus(candidates)

    def _close(self) -> None:
        for name, queue in self._view.queues.items():
            self._measure(name, queue, self._standings.get(name))

    def _measure(self, name: str, queue: Queue, standing: Standing | None) -> None:
        measure, zero = self._view.measure, np.zeros(self._view.columns.width)
        series = {
            "allocated": queue.allocated if standing else zero,
            "request": standing.request if standing else zero,
            "inqueue": standing.inqueue if standing else zero,
        }
        if standing:
            series["deserved"] = standing.deserved
            measure("queue_share", standing.share(), queue_name=name)
            measure("queue_weight", standing.weight, queue_name=name)
            measure("queue_overused", float(self._overused(queue)), queue_name=name)
        for what, amount in series.items():
            queue_quotas.measure(self._view, name, what, amount)


def _together(tasks: Iterable[Task]) -> dict[int, float]:
    """What tasks ask for, by column."""
    wanted: dict[int, float] = {}
    for task in tasks:
        for column, amount in task.shape.row_request:
            wanted[column] = wanted.get(column, 0.0) + amount
    return wanted


def _within(allocated: Floats, wanted: Iterable[tuple[int, float]], limit: Floats) -> bool:
    """Whether what is wanted on top of what is allocated stays within a limit (no epsilon, no pods)."""
    return all(allocated[column] + amount <= limit[column] for column, amount in wanted if column != PODS)


def _standings(view: View) -> dict[str, Standing]:
    guarantees = {name: queue_quotas.kept_free_for(queue, view) for name, queue in view.queues.items()}
    others = sum(guarantees.values(), start=np.zeros(view.columns.width))
    unpromised = np.maximum(view.total - others, 0.0)
    reserved = queue_quotas.per_queue(view, reservations.promised(view))
    beyond = queue_quotas.per_queue(view, queue_quotas.elastic(view))
    return {
        name: Standing(
            queue=queue,
            weight=_weight(view, queue),
            guarantee=guarantees[name],
            limit=np.minimum(unpromised + guarantees[name], queue_quotas.left_to_hold(queue, view)),
            request=queue.allocated + queue.pending,
            deserved=np.zeros(view.columns.width),
            inqueue=reserved[queue.index],
            elastic=beyond[queue.index],
        )
        for name, queue in view.queues.items()
        if queue.jobs
    }


def _weight(view: View, queue: Queue) -> int:
    """A queue of negative weight would take from what the others deserve: it counts as 0, and that is said."""
    weight = queue.resource.spec.weight
    if weight < 0:
        view.warn(f"queue {queue.name} has weight {weight}, which counts as 0", queue)
    return max(weight, 0)


def share_out(standings: list[Standing], total: Floats) -> None:
    """Water-filling of spec 06 section 9.2: sets ``deserved`` of every standing."""
    remaining = total.copy()
    unsatisfied = list(standings)
    while unsatisfied:
        weight = sum(standing.weight for standing in unsatisfied)
        if weight == 0:
            for standing in unsatisfied:
                standing.deserved = _more(standing, np.zeros_like(remaining))
            break
        before = remaining
        change = np.zeros_like(remaining)
        for standing in tuple(unsatisfied):
            old = standing.deserved
            standing.deserved = _more(standing, before * (standing.weight / weight))
            change += standing.deserved - old
            met = bool((standing.request < standing.deserved + EPSILON).all())
            if met or bool((standing.deserved == old).all()):
                unsatisfied.remove(standing)
        remaining = np.maximum(before - change, 0.0)
        if _empty(remaining) or bool((remaining == before).all()):
            break
    for standing in standings:
        standing.names = tuple(int(column) for column in np.nonzero(standing.deserved >= EPSILON)[0])


def _more(standing: Standing, portion: Floats) -> Floats:
    """Deserved with another portion: no more than allowed or asked for, no less than guaranteed."""
    capped = np.minimum(standing.deserved + portion, standing.limit)
    return np.maximum(np.minimum(capped, standing.request), standing.guarantee)


def _empty(amount: Floats) -> bool:
    """Below epsilon everywhere, pods not counted."""
    some = amount >= EPSILON
    some[PODS] = False
    return not some.any()
