"""Which jobs are let in (spec 06 sections 9 to 13 and 28): votes on jobEnqueueable, and the extender's on overused.

An admitted job is promised its minimum. Two things are our own: promises to jobs of lower priority that wait in vain,
as an earlier cycle has found, keep no job out, and overcommit lets in what a queue is entitled to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stromboli.api import core, durations
from stromboli.scheduler.core import calling
from tests.scheduler.plugins.references import queues
from tests.scheduler.plugins.references.queues import Amounts
from tests.scheduler.plugins.references.telling import Act, Place, Told, amount, request

PERMIT, ABSTAIN, REJECT = 1, 0, -1
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
SLA = "volcano.sh/sla-waiting-time"


@dataclass
class Admissions:
    """Who has been let in, by the session's number."""

    steps: list[tuple[int, str]] = field(default_factory=list)

    def admit(self, told: Told, group: str) -> None:
        """A job is let in."""
        self.steps.append((_session(told), group))

    def present(self, told: Told) -> list[core.PodGroup]:
        """Those of this session."""
        return [told.groups[name] for number, name in self.steps if number == _session(told)]


class Voter(Protocol):
    """What a plugin should say of a job that waits to be let in."""

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """Permit, abstain or reject."""


def decision(votes: Iterable[int]) -> bool:
    """What the votes of one tier come to."""
    return REJECT not in votes


# -- jobs ----------------------------------------------------------------------------------------------------------


def _session(told: Told) -> int:
    return sum(step.act is Act.CLOSE for step in told.steps)


def members(told: Told, group: core.PodGroup) -> list[core.Pod]:
    """Pods of a group."""
    return [pod for pod in told.pods.values() if told.group_of(pod).name == group.name]


def minimum(told: Told, group: core.PodGroup) -> Amounts:
    """``minResources``, zeros where it says nothing."""
    return queues.listed(told, group.spec.min_resources or {})


def priority(told: Told, group: core.PodGroup) -> int:
    """That of the group's class."""
    values = {one.name: one.value for one in told.others if isinstance(one, core.PriorityClass)}
    return values.get(group.spec.priority_class_name, 0)


def is_in_vain(group: core.PodGroup) -> bool:
    """Whether the group is known not to be schedulable."""
    return any(one.type == "Unschedulable" and one.status == "True" for one in group.status.conditions)


def gated(told: Told, group: core.PodGroup) -> Amounts:
    """Requests of pods with gates, but for those with the queue's alone."""
    held_back = [pod for pod in members(told, group) if {one.name for one in pod.spec.scheduling_gates} - {QUEUE_GATE}]
    return {name: sum(request(pod, name) for pod in held_back) for name in queues.names(told)}


def less(left: Amounts, right: Amounts) -> Amounts:
    """The positive part of a difference."""
    return {name: max(0.0, left[name] - right[name]) for name in left}


def added(*amounts: Amounts) -> Amounts:
    """The sum of at least one."""
    return {name: sum(one[name] for one in amounts) for name in amounts[0]}


def nothing(told: Told) -> Amounts:
    """Zeros."""
    return dict.fromkeys(queues.names(told), 0.0)


def with_place(told: Told, group: core.PodGroup) -> list[core.Pod]:
    """Pods of a group in allocated status."""
    where = told.where()
    return [
        pod
        for pod in members(told, group)
        if pod.name in where and where[pod.name][1] in (Place.RUNNING, Place.BOUND, Place.PLACED)
    ]


def held(told: Told, group: core.PodGroup) -> Amounts:
    """What the group's pods in allocated status ask for."""
    placed = with_place(told, group)
    return {name: sum(request(pod, name) for pod in placed) for name in queues.names(told)}


def promised_on_admission(told: Told, group: core.PodGroup) -> Amounts:
    """What a job that is let in now is promised."""
    return less(minimum(told, group), gated(told, group))


def promised_before(told: Told, group: core.PodGroup, *, whole: bool = False) -> Amounts:
    """What the group was promised in earlier sessions and did not have as this one opened.

    With ``whole`` an Inqueue group is promised all of it, whatever it had.
    """
    opened = queues.as_opened(told)
    if group.spec.min_resources is None:
        return nothing(told)
    had = held(opened, group)
    match group.status.phase:
        case "Inqueue":
            missing = minimum(told, group) if whole else less(minimum(told, group), had)
        case "Running" if len(with_place(opened, group)) >= group.spec.min_member:
            missing = less(minimum(told, group), had)
        case _:
            return nothing(told)
    return less(missing, gated(told, group))


def promised(told: Told, admissions: Admissions, groups: Sequence[core.PodGroup], *, whole: bool = False) -> Amounts:
    """Promises to all of some groups, those of this session included."""
    names = [group.name for group in groups]
    fresh = [
        group for group in admissions.present(told) if group.name in names and group.spec.min_resources is not None
    ]
    return added(
        nothing(told),
        *(promised_before(told, group, whole=whole) for group in groups),
        *(promised_on_admission(told, group) for group in fresh),
    )


def lesser_in_vain(told: Told, than: core.PodGroup, groups: Sequence[core.PodGroup]) -> list[core.PodGroup]:
    """Those whose promises do not count against a job."""
    return [group for group in groups if is_in_vain(group) and priority(told, group) < priority(told, than)]


def exceeds(have: Amounts, limit: Amounts, wanted: Amounts) -> bool:
    """Whether there would be too much of something that is wanted (no epsilon, no pods)."""
    return any(wanted[name] > 0 and name != "pods" and have[name] > limit[name] for name in wanted)


# -- plugins -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shares:
    """proportion and capacity: within the real capability of the queue, and of those above it."""

    capacity: queues.Capacity = field(default_factory=queues.Capacity)

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """From the queue upwards."""
        queue, wanted = told.queues[group.spec.queue], minimum(told, group)
        if not queues.is_open(queue) or (self.capacity.hierarchy and self.capacity.children(told, queue.name)):
            return REJECT
        if group.spec.min_resources is None:
            return PERMIT
        own = [one for one in told.groups.values() if one.spec.queue == queue.name]
        for name in self.capacity.line(told, queue.name):
            below = [one for one in told.groups.values() if name in self.capacity.line(told, one.spec.queue)]
            inqueue = promised(told, admissions, below)
            spared = promised(told, admissions, lesser_in_vain(told, group, own))
            kept = less(inqueue, {one: min(spared[one], inqueue[one]) for one in spared})
            total = added(wanted, self.capacity.held(told, name), kept)
            beyond = self._elastic(queues.as_opened(told), below)
            if exceeds({one: total[one] - beyond[one] for one in total}, self.capacity.limit(told, name), wanted):
                return REJECT
        return PERMIT

    @staticmethod
    def _elastic(opened: Told, groups: Sequence[core.PodGroup]) -> Amounts:
        return added(nothing(opened), *(less(held(opened, group), minimum(opened, group)) for group in groups))


@dataclass(frozen=True)
class Overcommit:
    """So many times what there is."""

    factor: float = 1.2

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """Within what is left, or within what the queue deserves or is guaranteed."""
        if group.spec.min_resources is None:
            return PERMIT
        wanted, opened = minimum(told, group), queues.as_opened(told)
        lesser = [one.name for one in lesser_in_vain(told, group, list(told.groups.values()))]
        counting = [one for one in told.groups.values() if one.name not in lesser]
        total = added(wanted, promised(told, admissions, counting, whole=True))
        has = queues.total(told)
        used = {name: sum(opened.used(node, name) for node in told.nodes) for name in has}
        left = {name: has[name] * self.factor - used[name] for name in has}
        return PERMIT if not exceeds(total, left, wanted) or self._entitled(told, admissions, group) else REJECT

    @staticmethod
    def _entitled(told: Told, admissions: Admissions, group: core.PodGroup) -> bool:
        queue, wanted = told.queues[group.spec.queue], minimum(told, group)
        if not queue.spec.deserved and not queue.spec.guarantee.resource:
            return False
        deserved, least = queues.listed(told, queue.spec.deserved), queues.guarantee(told, queue)
        own = [one for one in told.groups.values() if one.spec.queue == queue.name]
        total = added(wanted, queues.allocated(told, queue.name), promised(told, admissions, own, whole=True))
        return not exceeds(total, {name: max(deserved[name], least[name]) for name in deserved}, wanted)


@dataclass(frozen=True)
class WaitingTimes:
    """sla: whoever has waited for long enough."""

    everybodys: float | None

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """The job's own time beats everybody's, if it can be read."""
        waiting = self.everybodys
        if SLA in group.metadata.annotations:
            try:
                own = durations.seconds(group.metadata.annotations[SLA])
            except ValueError:
                own = 0.0
            waiting = own if own > 0 else waiting
        if waiting is None:
            return ABSTAIN
        return PERMIT if told.now - core.timestamp(group.metadata.creation_timestamp or "") >= waiting else ABSTAIN


@dataclass(frozen=True)
class Quotas:
    """resourcequota: names are taken literally."""

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """Every quota of the namespace, with what was let in in this session."""
        wanted = group.spec.min_resources or {}
        fresh = [one.spec.min_resources or {} for one in admissions.present(told)]
        for quota in (one for one in told.others if isinstance(one, core.ResourceQuota)):
            for name in wanted:
                if name in quota.spec.hard:
                    listed = [wanted, quota.status.used, *fresh]
                    if sum(amount(one, name) for one in listed) > amount(quota.spec.hard, name):
                        return REJECT
        return PERMIT


@dataclass
class Opinions:
    """A service that the extender asks. Calls about some jobs and queues fail, and some answers are no votes."""

    broken: frozenset[str] = frozenset()

    def __call__(self, url: str, body: bytes, timeout: float) -> bytes:
        """One call."""
        asked: dict[str, Any] = json.loads(body)
        if url.endswith("/overused"):
            queue = asked["queue"]
            self._check(queue["name"])
            return json.dumps({"overused": self.overused(queue["name"], queue["allocated"].get("cpu", 0.0))}).encode()
        job = asked["job"]
        self._check(job["name"])
        return json.dumps({"status": self.admits(job["name"], (job["minResources"] or {}).get("cpu", 0.0))}).encode()

    def _check(self, name: str) -> None:
        if name in self.broken:
            raise calling.CallFailed(f"no answer about {name}")

    @staticmethod
    def admits(job: str, cpu: float) -> int | str:
        """What is answered about a job that needs so many milli-cpus."""
        return (PERMIT, ABSTAIN, REJECT, PERMIT, "certainly", 7)[(sum(map(ord, job)) + int(cpu) // 1000) % 6]

    @staticmethod
    def overused(queue: str, cpu: float) -> bool:
        """What is answered about a queue that holds so many milli-cpus."""
        return (sum(map(ord, queue)) + int(cpu) // 1000) % 3 == 0


@dataclass(frozen=True)
class Extender:
    """Whatever the service says; what is no vote abstains."""

    service: Opinions
    ignorable: bool

    def vote(self, told: Told, admissions: Admissions, group: core.PodGroup) -> int:
        """A call that fails rejects, unless it may be ignored."""
        if group.name in self.service.broken:
            return PERMIT if self.ignorable else REJECT
        said = self.service.admits(group.name, minimum(told, group)["cpu"])
        return said if said in (PERMIT, ABSTAIN, REJECT) and isinstance(said, int) else ABSTAIN

    def overused(self, told: Told, queue: str) -> bool:
        """A call that fails says yes, unless it may be ignored."""
        if queue in self.service.broken:
            return not self.ignorable
        return self.service.overused(queue, queues.allocated(told, queue)["cpu"])
