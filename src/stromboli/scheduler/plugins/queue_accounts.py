"""What each queue may have, deserves, has and has promised, flat or in a tree (spec 06 sections 10.2 and 10.3).

In a tree everything a queue has is also had by all queues above it: ``allocated``, ``request``, ``inqueue`` and
``elastic`` of an account include those below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY, PODS, Floats
from stromboli.scheduler.plugins import device_quotas, queue_quotas, reservations
from stromboli.scheduler.plugins.queue_hierarchy import ROOT

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Queue, Task
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.queue_hierarchy import QueueHierarchy


@dataclass(slots=True, eq=False)
class Account:
    """One queue in this cycle; amounts by column."""

    queue: Queue
    guarantee: Floats
    capability: Floats
    """Infinite where nothing is said."""
    limit: Floats
    """Real capability: what others' guarantees leave, and no more than the capability."""
    deserved: Floats
    deserves: Bools
    """Columns that ``deserved`` names, with zero as well."""
    elsewhere: Floats
    """What jobs of other schedulers hold of the queue; part of ``allocated`` and ``request``."""
    allocated: Floats
    request: Floats
    inqueue: Floats
    elastic: Floats
    devices: device_quotas.DeviceAccount
    own_capability: Floats
    """As the queue states it, infinite where it says nothing."""
    line: list[Account] = field(default_factory=list)
    """The account itself and those of its ancestors, up to the root's."""
    spared: Floats = field(default_factory=lambda: np.zeros(0))
    """What reclaiming leaves the queue at least: what it deserves and, of what it has beyond, the part elsewhere. All
    schedulers that share the queue together take from it what it has too much, and not each of them all of that."""
    guaranteed: Floats = field(default_factory=lambda: np.zeros(0))
    """The same for the guarantee."""
    gated: dict[str, Task] = field(default_factory=dict)
    """Tasks whose gate was removed and that have no node yet, by UID: their room is kept."""

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.queue.name

    @property
    def is_best_effort(self) -> bool:
        """Whether nothing but pods is deserved."""
        some = self.deserved >= EPSILON
        some[PODS] = False
        return not some.any()

    def share(self) -> float:
        """The largest part of anything deserved that is in use; 1 where nothing is deserved."""
        if self.is_best_effort:
            return 1.0
        columns = np.nonzero(self.deserved >= EPSILON)[0]
        return float((self.allocated[columns] / self.deserved[columns]).max())

    def limited_by(self, column: int) -> Account:
        """Whose capability the limit of a resource is: the first upwards that may hold no less than it states.

        The root when the limit is what the cluster has.
        """
        for account in self.line:
            stated = account.own_capability[column]
            if np.isfinite(stated) and stated <= account.limit[column] + EPSILON:
                return account
        return self.line[-1]

    def reserved(self, task: Task) -> Floats | float:
        """Room kept for tasks whose gate was removed, other than this one."""
        return sum((other.request for uid, other in self.gated.items() if uid != task.uid), start=0.0)


def flat(view: View) -> dict[str, Account]:
    """Accounts of the queues that have jobs, each by itself."""
    guarantees = {name: queue_quotas.kept_free_for(queue, view) for name, queue in view.queues.items()}
    everybodys = sum(guarantees.values(), start=np.zeros(view.columns.width))
    unpromised = np.maximum(view.total - everybodys, 0.0)
    accounts = {}
    for account in _bare(view, [queue for queue in view.queues.values() if queue.jobs]):
        here = unpromised + guarantees[account.name]
        account.limit = np.minimum(here + account.elsewhere, account.capability)
        account.deserved = np.maximum(np.minimum(account.deserved, account.limit), account.guarantee)
        account.line = [account]
        _spare(account)
        accounts[account.name] = account
    return accounts


def tree(view: View, hierarchy: QueueHierarchy) -> dict[str, Account]:
    """Accounts of all usable queues, those above including those below."""
    usable = hierarchy.downwards
    accounts = {account.name: account for account in _bare(view, [view.queues[name] for name in usable])}
    for name in usable:
        account = accounts[name]
        account.line = [account, *(accounts[above] for above in hierarchy.ancestors[name])]
    for name in reversed(usable):
        _add_to_parent(accounts[name])
    if ROOT in accounts:
        _sum_up(accounts[ROOT], [accounts[name] for name in hierarchy.children[ROOT]])
    for name in usable:
        _limit(view, accounts[name], _promised_beside(accounts, hierarchy, name))
        _spare(accounts[name])
    return accounts


def overdrawn(accounts: Mapping[str, Account], hierarchy: QueueHierarchy, total: Floats) -> Iterator[tuple[str, str]]:
    """Queues that are promised more than there is above them, with a sentence; nothing is refused for that."""
    for name, children in hierarchy.children.items():
        for child in children:
            if _asks_for_more(accounts[child], accounts[name], total):
                text = f"queue {child}: its capability is more than {name} or the cluster has; what they have counts"
                yield child, text
        if name != ROOT and children:
            yield from _promises_more(accounts[name], [accounts[child] for child in children])


def _asks_for_more(child: Account, parent: Account, total: Floats) -> bool:
    asked = np.isfinite(child.own_capability)
    asked[PODS] = False
    return bool((asked & (child.own_capability > np.minimum(parent.capability, total) + EPSILON)).any())


def _promises_more(account: Account, children: Sequence[Account]) -> Iterator[tuple[str, str]]:
    for what in ("deserved", "guarantee"):
        promised = sum((getattr(child, what) for child in children), start=np.zeros_like(account.limit))
        if (promised > np.maximum(getattr(account, what), account.guarantee) + EPSILON).any():
            text = f"queue {account.name}: the sum of its children's {what} is above its own; lower theirs or raise it"
            yield account.name, text


def _bare(view: View, queues: Iterable[Queue]) -> Iterable[Account]:
    """Accounts that know only themselves; capability and deserved as written, limit unset."""
    reserved = queue_quotas.per_queue(view, reservations.promised(view))
    beyond = queue_quotas.per_queue(view, queue_quotas.elastic(view))
    for queue in queues:
        spec = queue.resource.spec
        yield Account(
            queue=queue,
            guarantee=queue_quotas.guarantee_of(spec, view),
            capability=queue_quotas.capability_of(spec, view),
            limit=np.zeros(view.columns.width),
            deserved=queue_quotas.deserved_of(spec, view),
            deserves=queue_quotas.named(spec.deserved, view) | queue_quotas.named(spec.guarantee.resource, view),
            elsewhere=queue.elsewhere,
            allocated=queue.allocated + queue.elsewhere,
            request=queue.allocated + queue.elsewhere + queue.pending,
            inqueue=reserved[queue.index],
            elastic=beyond[queue.index],
            devices=device_quotas.DeviceAccount(device_quotas.limits(spec.capability), holder=queue.name),
            own_capability=queue_quotas.capability_of(spec, view),
        )


def _add_to_parent(account: Account) -> None:
    if len(account.line) > 1:
        parent = account.line[1]
        parent.elsewhere = parent.elsewhere + account.elsewhere
        parent.allocated = parent.allocated + account.allocated
        parent.request = parent.request + account.request
        parent.inqueue = parent.inqueue + account.inqueue
        parent.elastic = parent.elastic + account.elastic


def _sum_up(root: Account, children: list[Account]) -> None:
    """The root promises what its children are promised."""
    zero = np.zeros_like(root.limit)
    root.guarantee = sum((child.guarantee for child in children), start=zero)
    root.deserved = sum((np.maximum(child.deserved, child.guarantee) for child in children), start=zero)
    for child in children:
        root.deserves = root.deserves | child.deserves


def _promised_beside(accounts: Mapping[str, Account], hierarchy: QueueHierarchy, name: str) -> Floats:
    """The guarantees of a queue and its siblings together."""
    above = hierarchy.ancestors[name]
    beside = hierarchy.children[above[0]] if above else []
    return sum((accounts[sibling].guarantee for sibling in beside), start=np.zeros_like(accounts[name].guarantee))


def _limit(view: View, account: Account, promised: Floats) -> None:
    """Works out capability and limit; the parent's are known. ``promised`` is what the siblings are guaranteed."""
    account.deserved = np.maximum(account.deserved, account.guarantee)
    if len(account.line) == 1:
        account.limit = account.capability = _of_root(view, account.capability)
        return
    parent = account.line[1]
    account.capability = np.where(np.isfinite(account.capability), account.capability, parent.capability)
    left = np.maximum(parent.limit - promised, 0.0)
    account.limit = np.minimum(left + account.guarantee, account.capability)


def _spare(account: Account) -> None:
    """Works out what reclaiming leaves a queue of which other schedulers' jobs hold a part."""
    if not account.elsewhere.any():
        account.spared, account.guaranteed = account.deserved, account.guarantee
        return
    held = account.allocated
    part = np.divide(account.elsewhere, held, out=np.zeros_like(held), where=held > 0.0)
    account.spared, account.guaranteed = (
        due + np.maximum(held - due, 0.0) * part for due in (account.deserved, account.guarantee)
    )


def _of_root(view: View, capability: Floats) -> Floats:
    """The root's capability: without limit where nothing is said, for all that the cluster has."""
    has = view.total > 0.0
    has[[CPU, MEMORY, PODS]] = True
    result: Floats = np.where(np.isfinite(capability) | has, capability, 0.0)
    return result
