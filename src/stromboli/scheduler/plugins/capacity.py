"""capacity: queues with explicit deserved, guaranteed and greatest amounts, flat or in a tree (spec 06 section 10).

Where the original stops everything because of one queue that cannot be used, only that queue and those below it are
set aside here, and their jobs are told why. And what a queue has promised to jobs of lower priority that wait in vain
keeps no job out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.scheduler.core import devices, policy
from stromboli.scheduler.core.columns import PODS
from stromboli.scheduler.core.elsewhere import PART
from stromboli.scheduler.core.plugin import Depends, Eviction, EvictionContext, Hooks, Key, Order, Plugin, Victims, Vote
from stromboli.scheduler.core.statuses import CHARGED_STATUSES, TaskStatus
from stromboli.scheduler.core.view import Refusal
from stromboli.scheduler.plugins import arguments, claimants, queue_accounts, queue_quotas, reservations
from stromboli.scheduler.plugins.device_quotas import DeviceAccount
from stromboli.scheduler.plugins.queue_hierarchy import ROOT, QueueHierarchy
from stromboli.scheduler.plugins.reclaiming import Reclaiming

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Node, Queue, Task
    from stromboli.scheduler.core.view import Shortage, View
    from stromboli.scheduler.plugins.queue_accounts import Account

GATES = "SchedulingGatesQueueAdmission"
DEVICES, CAPACITIES = "DynamicResourceAllocation", "DRAConsumableCapacity"


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments, as read."""

    reclaim_level: int
    devices: bool
    capacities: bool

    @classmethod
    def read(cls, given: policy.Arguments, view: View) -> Options:
        """Unreadable values leave the defaults, which are the feature gates'; a negative level is 0."""
        devices, capacities = view.feature(DEVICES, True), view.feature(CAPACITIES, False)
        return cls(
            max(policy.integer(given, "ancestorReclaimLevel", 0), 0),
            policy.boolean(given, f"capacity.{DEVICES}Enable", devices),
            policy.boolean(given, f"capacity.{CAPACITIES}Enable", capacities),
        )


class Capacity(Plugin):
    """Composes the accounts of all queues with the rules about them."""

    name: ClassVar[str] = "capacity"
    arguments_model = arguments.model(
        "CapacityArguments",
        ancestorReclaimLevel=arguments.Integer,
        capacity__DynamicResourceAllocationEnable=arguments.Boolean,
        capacity__DRAConsumableCapacityEnable=arguments.Boolean,
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        self._options = Options.read(self.arguments, view)
        self._tree = QueueHierarchy.of(view.queues) if view.hierarchy.get(self.name) else None
        self._accounts = self._open_accounts()
        self._lesser = reservations.LesserPromises(view)
        self._claims = devices.Claims(view.objects, capacities=self._options.capacities)
        self._keeps_gates = view.feature(GATES, False)
        self._charge_devices()
        self._open_gates()
        reclaiming = Reclaiming(view, self._accounts, self._options.reclaim_level if self._tree else 0)
        return Hooks(
            filters=[claimants.Claimants(view).filter()],
            queue_order=self._queue_order(),
            victim_queue_order=self._victim_queue_order if self._tree else None,
            allocatable=self._allocatable,
            withheld=self._withheld,
            preemptive=self._preemptive,
            reclaimable=reclaiming.victims,
            unified_evictable=lambda context, candidates: _evictable(reclaiming, context, candidates),
            job_enqueueable=self._enqueueable,
            job_enqueued=self._enqueued,
            gate_removed=self._gate_removed if self._keeps_gates else None,
            on_allocate=self._placed,
            on_deallocate=self._removed,
            close=self._close,
        )

    # Opening

    def _open_accounts(self) -> dict[str, Account]:
        if self._tree is None:
            return queue_accounts.flat(self._view)
        for name, fault in self._tree.faults.items():
            self._view.warn(f"queue {name} is set aside: {fault}", self._view.queues[name])
        accounts = queue_accounts.tree(self._view, self._tree)
        whole = np.full_like(self._view.total, np.inf) if self._view.options.get(PART) else self._view.total
        for name, sentence in queue_accounts.overdrawn(accounts, self._tree, whole):
            self._view.warn(sentence, self._view.queues.get(name))
        return accounts

    def _charge_devices(self) -> None:
        if not self._options.devices:
            return
        for account in self._accounts.values():
            if _limits_devices(account):
                for claimant in account.queue.claimants:
                    for above in account.line:
                        above.devices.charge(self._claims.of_claimant(claimant))
                for job in account.queue.jobs.values():
                    for task in job.tasks.values():
                        if task.status in CHARGED_STATUSES:
                            self._charge_claims(task, DeviceAccount.charge)

    def _open_gates(self) -> None:
        if not self._keeps_gates:
            return
        for account in self._accounts.values():
            for job in account.queue.jobs.values():
                for task in job.tasks.values():
                    if task.status == TaskStatus.PENDING and task.gate_opt_in and not task.gated:
                        self._gate_removed(task)

    # Orders

    def _queue_order(self) -> Order[Queue]:
        if self._tree is None:
            return Order(key=self._key)
        return Order(compare=self._compare, depends=Depends.OTHERS)

    def _key(self, queue: Queue) -> Key:
        account = self._accounts.get(queue.name)
        return (-queue.resource.spec.priority, *(_share_key(account) if account else (1.0, True)))

    def _compare(self, left: Queue, right: Queue) -> int:
        """Priority; then leaves first; then shares, of two leaves those below their last common ancestor."""
        mine, other = self._accounts.get(left.name), self._accounts.get(right.name)
        if left.resource.spec.priority != right.resource.spec.priority:
            return -1 if left.resource.spec.priority > right.resource.spec.priority else 1
        if mine is None or other is None:
            return (mine is None) - (other is None)
        assert self._tree is not None
        leaf, other_leaf = self._tree.is_leaf(left.name), self._tree.is_leaf(right.name)
        if leaf != other_leaf:
            return -1 if leaf else 1
        if leaf:
            depth = self._tree.common_depth(left.name, right.name)
            mine = self._accounts[self._tree.at_depth(left.name, depth)]
            other = self._accounts[self._tree.at_depth(right.name, depth)]
        ours, theirs = _share_key(mine), _share_key(other)
        return (ours > theirs) - (ours < theirs)

    def _victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """The closer relative of the preemptor's queue goes first."""
        assert self._tree is not None
        known = self._tree.ancestors
        if not {left.name, right.name, preemptor.name} <= known.keys():
            return 0
        return self._tree.common_depth(right.name, preemptor.name) - self._tree.common_depth(left.name, preemptor.name)

    # What a queue may take

    def _usable(self, queue: Queue | None) -> Account | None:
        """The account of a queue that takes work."""
        account = self._accounts.get(queue.name) if queue is not None else None
        if account is None or not queue_quotas.is_open(account.queue):
            return None
        return account if self._tree is None or self._tree.is_leaf(account.name) else None

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        account = self._usable(queue)
        if account is None:
            return False
        claims = self._claims_of(task)
        return all(above.devices.admits(claims) and _has_room(above, task) for above in account.line)

    def _claims_of(self, task: Task) -> Mapping[str, devices.Demand]:
        return self._claims.of(task) if self._options.devices and task.shape.pod.spec.resource_claims else {}

    def _preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """May take from others: within its limit, and within what it (or an ancestor) deserves of something."""
        account = self._accounts.get(queue.name)
        if account is None or not queue_quotas.is_open(queue):
            return False
        wanted = sum((task.request for task in tasks), start=np.zeros(self._view.columns.width))
        if reservations.exceeded_names(self._view, account.allocated + wanted, account.limit, wanted):
            return False
        levels = self._options.reclaim_level if self._tree is not None else 0
        within = [account, *(above for above in account.line[1 : 1 + levels] if above.name != ROOT)]
        return any(reservations.within_some(one.allocated + wanted, one.deserved, wanted) for one in within)

    # Admission

    def _enqueueable(self, job: Job) -> Vote:
        account = self._usable(job.queue)
        if account is None:
            self._refuse_unusable(job)
            return Vote.REJECT
        demand = self._claims.least(job) if self._options.devices and _limits_devices(account) else {}
        for above in account.line:
            lacking = self._lacks(above, job)
            devices_lacking = above.devices.lacking(demand) if demand else []
            if lacking or devices_lacking:
                self._refuse(job, above, lacking, devices_lacking)
                return Vote.REJECT
        return Vote.PERMIT

    def _lacks(self, account: Account, job: Job) -> list[str]:
        wanted = job.min_resources
        if wanted is None:
            return []
        lacking = reservations.exceeded_names(self._view, wanted + _promised(account), account.limit, wanted)
        if lacking:
            taken = self._promised_before(account, job)
            lacking = reservations.exceeded_names(self._view, wanted + taken, account.limit, wanted)
        return lacking

    def _promised_before(self, account: Account, job: Job) -> Floats:
        """As :func:`_promised`, without what is promised in vain to jobs of the same queue that come after this one."""
        return _promised(account) - np.minimum(self._lesser.before(job), account.inqueue)

    def _refuse(self, job: Job, account: Account, lacking: list[str], devices_lacking: list[Shortage]) -> None:
        names = [*lacking, *(["dra-resource-exceeded"] if devices_lacking else [])]
        queue_quotas.report_quota(self._view, job, names)
        if lacking:
            limiting = self._limiting(account, lacking, lambda one: self._lacks(one, job))
            quota = self._quota(limiting, self._promised_before(limiting, job))
            queue_quotas.refuse_quota(self._view, job, quota, lacking)
        else:
            text = reservations.for_group(devices_lacking, queue_quotas.held_by(devices_lacking))
            queue_quotas.refuse_short(self._view, job, text, devices_lacking)

    def _limiting(self, account: Account, lacking: list[str], lacks: Callable[[Account], Collection[str]]) -> Account:
        """Whose word it is when a queue lacks something: a queue that states no capability has that of one above."""
        sources = {account.limited_by(self._view.columns.intern(name)) for name in lacking}
        source = sources.pop()
        return source if not sources and set(lacking) <= set(lacks(source)) else account

    def _quota(self, account: Account, taken: Floats) -> queue_quotas.Quota:
        stated = np.minimum.reduce([above.own_capability for above in account.line])
        rivals = self._rivals(account)
        return queue_quotas.Quota(account.name, account.limit, taken, account.capability, stated, rivals)

    def _rivals(self, account: Account) -> Collection[str]:
        """Queues whose guarantees are kept free from this one: in a tree the siblings of all queues of its line."""
        line = {above.name for above in account.line}
        if self._tree is None:
            return self._view.queues.keys() - line
        above = line - {account.name}
        return {sibling for name in above for sibling in self._tree.children.get(name, ())} - line

    def _refuse_unusable(self, job: Job) -> None:
        if job.queue is not None:
            word, text = self._unusable(job.queue)
            self._view.refuse(job, word, f"{text}; {NEXT_STEPS[word]}")

    def _unusable(self, queue: Queue) -> tuple[WaitReason, str]:
        """Why a queue takes no work at all."""
        if not queue_quotas.is_open(queue):
            return WaitReason.QUEUE_NOT_OPEN, queue_quotas.closed(queue)
        if self._tree is not None and queue.name in self._tree.faults:
            return WaitReason.QUEUE_MISCONFIGURED, self._tree.faults[queue.name]
        return WaitReason.QUEUE_NOT_LEAF, f"queue {queue.name} has queues below it and takes no jobs itself"

    def _withheld(self, queue: Queue, task: Task) -> Refusal | None:
        """Why the queue gives a task nothing: its own limit or that of one above."""
        account = self._usable(queue)
        if account is None:
            return Refusal(*self._unusable(queue))
        for above in account.line:
            lacking, found = self._exceeds(above, task), above.devices.lacking_for(self._claims_of(task))
            if lacking:
                limiting = self._limiting(above, lacking, lambda one: self._exceeds(one, task))
                quota = self._quota(limiting, limiting.allocated + limiting.reserved(task))
                found = queue_quotas.missing(self._view, quota, lacking, task.request)
            if found:
                text = reservations.for_pod(found, queue_quotas.held_by(found))
                return Refusal(WaitReason.QUEUE_QUOTA_INSUFFICIENT, text, tuple(found))
        return None

    def _exceeds(self, account: Account, task: Task) -> list[str]:
        taken = account.allocated + account.reserved(task)
        return reservations.exceeded_names(self._view, taken + task.request, account.limit, task.request)

    def _enqueued(self, job: Job) -> None:
        account = self._accounts.get(job.queue_name)
        if account is None:
            return
        demand = self._claims.least(job) if self._options.devices and _limits_devices(account) else {}
        for above in account.line:
            if job.min_resources is not None:
                above.inqueue = above.inqueue + reservations.without_gated(job)
            above.devices.promise(demand)
        self._lesser.add(job)

    # Accounting

    def _lines(self, task: Task) -> Iterator[Account]:
        account = self._accounts.get(task.job.queue_name) if task.job is not None else None
        if account is not None:
            yield from account.line

    def _placed(self, task: Task, _node: Node) -> None:
        for account in self._lines(task):
            account.allocated = account.allocated + task.request
            account.gated.pop(task.uid, None)
        self._charge_claims(task, DeviceAccount.charge)

    def _removed(self, task: Task, _node: Node) -> None:
        for account in self._lines(task):
            account.allocated = account.allocated - task.request
        self._charge_claims(task, DeviceAccount.release)
        if self._keeps_gates and task.status == TaskStatus.PENDING and task.gate_opt_in:
            self._gate_removed(task)

    def _charge_claims(self, task: Task, change: Callable[[DeviceAccount, Mapping[str, devices.Demand]], None]) -> None:
        """Changes the device accounts of the task's queue and those above, if any of them has a limit."""
        if not self._options.devices or not task.shape.pod.spec.resource_claims:
            return
        line = list(self._lines(task))
        if line and _limits_devices(line[0]):
            claims = self._claims.of(task)
            for account in line:
                change(account.devices, claims)

    def _gate_removed(self, task: Task) -> None:
        for account in self._lines(task):
            account.gated[task.uid] = task

    # Metrics

    def _close(self) -> None:
        for name, account in self._accounts.items():
            share = account.share()
            # Series of schedulers that share a queue add up: each tells what its own jobs hold.
            queue_quotas.measure(self._view, name, "allocated", account.allocated - account.elsewhere)
            queue_quotas.measure(self._view, name, "request", account.request - account.elsewhere)
            queue_quotas.measure(self._view, name, "inqueue", account.inqueue)
            queue_quotas.measure(self._view, name, "deserved", account.deserved)
            queue_quotas.measure(self._view, name, "capacity", account.capability)
            queue_quotas.measure(self._view, name, "real_capacity", account.limit)
            self._view.measure("queue_share", share, queue_name=name)
            self._view.measure("queue_overused", float(share > 1.0), queue_name=name)


def _share_key(account: Account) -> tuple[float, bool]:
    return account.share(), account.is_best_effort


def _promised(account: Account) -> Floats:
    """What a queue holds and has promised, as far as nobody can take it back."""
    return account.allocated + account.inqueue - account.elastic


def _limits_devices(account: Account) -> bool:
    return any(above.devices.limit for above in account.line)


def _has_room(account: Account, task: Task) -> bool:
    taken: Floats = account.allocated + account.reserved(task)
    limit = account.limit
    return all(taken[column] + amount <= limit[column] for column, amount in task.shape.row_request if column != PODS)


def _evictable(reclaiming: Reclaiming, context: EvictionContext, candidates: Sequence[Task]) -> Victims:
    if context.kind is Eviction.GANG_PREEMPT:
        return candidates, Vote.PERMIT
    return reclaiming.surplus(context, candidates)
