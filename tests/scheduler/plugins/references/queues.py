"""What queues may have (spec 06 sections 9 and 10): proportion, and capacity, flat and in a tree.

Votes about a queue and a pod, and which of two queues goes first. Amounts are by resource name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Act, Place, Told, amount, request, requested, room

Amounts = dict[str, float]
EPSILON = 0.1
UNLIMITED = float("inf")


def names(told: Told) -> list[str]:
    """Every resource that anybody has or asks for."""
    offered = {name for node in told.nodes.values() for name in node.status.allocatable}
    pods = [*told.pods.values(), *told.gone.values()]
    containers = [one for pod in pods for one in (*pod.spec.init_containers, *pod.spec.containers)]
    asked = {name for one in containers for name in one.resources.requests}
    return sorted({"pods", *offered, *asked})


def total(told: Told) -> Amounts:
    """What all nodes offer."""
    return {name: sum(room(node, name) for node in told.nodes.values()) for name in names(told)}


def listed(told: Told, given: Mapping[str, str | int | float]) -> Amounts:
    """A resource list, with zeros for what it does not name."""
    return {name: amount(given, name) for name in names(told)}


def queue_pods(told: Told, queue: str) -> list[core.Pod]:
    """Pods of the jobs of a queue."""
    return [pod for pod in told.pods.values() if told.group_of(pod).spec.queue == queue]


def allocated(told: Told, queue: str) -> Amounts:
    """What pods hold, with promises and without what is being released."""
    where = told.where()
    holding = (Place.RUNNING, Place.BOUND, Place.PLACED, Place.PROMISED)
    pods = [pod for pod in queue_pods(told, queue) if pod.name in where and where[pod.name][1] in holding]
    return {name: sum(request(pod, name) for pod in pods) for name in names(told)}


def as_opened(told: Told) -> Told:
    """The story up to the opening of the present session."""
    ends = [at for at, step in enumerate(told.steps) if step.act is Act.CLOSE]
    first = ends[-1] + 1 if ends else 0
    while first < len(told.steps) and told.steps[first].act is Act.GO:
        first += 1
    return replace(told, steps=told.steps[:first])


def wanted(told: Told, queue: str) -> Amounts:
    """What is allocated and what Pending pods ask for."""
    without = told.pending()
    pending = [pod for pod in queue_pods(told, queue) if pod.name in without]
    held = allocated(told, queue)
    return {name: held[name] + sum(request(pod, name) for pod in pending) for name in names(told)}


def guarantee(told: Told, queue: core.Queue) -> Amounts:
    """What a queue is guaranteed."""
    return listed(told, queue.spec.guarantee.resource)


def capability(told: Told, queue: core.Queue) -> Amounts:
    """No limit for what it does not name, nor where cpu or memory are not above zero."""
    given = queue.spec.capability
    found = {name: amount(given, name) if name in given else UNLIMITED for name in names(told)}
    for name in ("cpu", "memory"):
        if found[name] <= 0:
            found[name] = UNLIMITED
    return found


def with_jobs(told: Told) -> list[str]:
    """Queues that have a state in flat mode."""
    return [name for name in told.queues if any(group.spec.queue == name for group in told.groups.values())]


def is_open(queue: core.Queue) -> bool:
    """Whether it takes anything."""
    return queue.status.state == "Open"


def flat_limit(told: Told, queue: str) -> Amounts:
    """The real capability."""
    promised = [guarantee(told, one) for one in told.queues.values()]
    own, cap = guarantee(told, told.queues[queue]), capability(told, told.queues[queue])
    left = {name: max(0.0, have - sum(one[name] for one in promised)) for name, have in total(told).items()}
    return {name: min(left[name] + own[name], cap[name]) for name in names(told)}


def exceeds(have: Amounts, limit: Amounts, pods: Sequence[core.Pod]) -> bool:
    """Whether something that the pods ask for is above the limit (no epsilon, no pods)."""
    asked = {name for pod in pods for name in requested(pod) if name != "pods"}
    return any(have[name] + sum(request(pod, name) for pod in pods) > limit[name] for name in asked)


def largest_part(told: Told, held: Amounts, deserved: Amounts) -> float:
    """Of anything that is deserved."""
    return max((held[name] / deserved[name] for name in names(told) if deserved[name] >= EPSILON), default=0.0)


# -- section 9 -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proportion:
    """Weighted shares of what there is."""

    def deserved(self, told: Told) -> dict[str, Amounts]:
        """The water-filling of 9.2, at the opening."""
        opened = as_opened(told)
        queues = with_jobs(opened)
        found = {queue: dict.fromkeys(names(opened), 0.0) for queue in queues}
        limits = {queue: (flat_limit(opened, queue), wanted(opened, queue)) for queue in queues}
        remaining, satisfied = total(opened), set[str]()
        while True:
            weights = sum(opened.queues[queue].spec.weight for queue in queues if queue not in satisfied)
            if weights == 0:
                return found
            before, start = {queue: dict(found[queue]) for queue in queues}, dict(remaining)
            for queue in [queue for queue in queues if queue not in satisfied]:
                part = opened.queues[queue].spec.weight / weights
                limit, asked = limits[queue]
                least = guarantee(opened, opened.queues[queue])
                for name in names(opened):
                    more = min(found[queue][name] + start[name] * part, limit[name], asked[name])
                    found[queue][name] = max(more, least[name])
                enough = all(asked[name] < found[queue][name] + EPSILON for name in names(opened))
                if enough or found[queue] == before[queue]:
                    satisfied.add(queue)
            for name in names(opened):
                change = sum(found[queue][name] - before[queue][name] for queue in queues)
                remaining[name] = max(0.0, remaining[name] - change)
            empty = all(remaining[name] < EPSILON for name in names(opened) if name != "pods")
            if empty or remaining == start:
                return found

    def allocatable(self, told: Told, queue: str, pod: core.Pod) -> bool:
        """Within what is deserved."""
        return self.preemptive(told, queue, [pod])

    def preemptive(self, told: Told, queue: str, pods: Sequence[core.Pod]) -> bool:
        """The same for several."""
        if queue not in with_jobs(told) or not is_open(told.queues[queue]):
            return False
        return not exceeds(allocated(told, queue), self.deserved(told)[queue], pods)

    def overused(self, told: Told, queue: str) -> bool:
        """Nothing that is deserved is left."""
        held = allocated(told, queue)
        deserved = self.deserved(told).get(queue, dict.fromkeys(names(told), 0.0))
        return all(deserved[name] < held[name] + EPSILON for name in names(told))

    def before(self, told: Told, left: str, right: str) -> float:
        """Below 0 when the left queue goes first, by priority and share."""
        priority = (told.queues[right].spec.priority or 0) - (told.queues[left].spec.priority or 0)
        deserved = self.deserved(told)
        shares = [largest_part(told, allocated(told, queue), deserved[queue]) for queue in (left, right)]
        return priority or shares[0] - shares[1]


# -- section 10 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Capacity:
    """Deserved, guaranteed and capable, as the queues say."""

    hierarchy: bool = False

    def line(self, told: Told, queue: str) -> list[str]:
        """A queue and those above it."""
        if not self.hierarchy:
            return [queue]
        found = [queue]
        while found[-1] != "root":
            found.append(told.queues[found[-1]].spec.parent or "root")
        return found

    def children(self, told: Told, queue: str) -> list[str]:
        """Queues right below."""
        return [name for name in told.queues if name != "root" and self.line(told, name)[1] == queue]

    def held(self, told: Told, queue: str) -> Amounts:
        """What a queue holds, with those below it."""
        below = [name for name in told.queues if queue in self.line(told, name)]
        each = [allocated(told, name) for name in below]
        return {name: sum(one[name] for one in each) for name in names(told)}

    def guaranteed(self, told: Told, queue: str) -> Amounts:
        """The root guarantees what its children are guaranteed."""
        if not self.hierarchy or queue != "root":
            return guarantee(told, told.queues[queue])
        each = [guarantee(told, told.queues[name]) for name in self.children(told, "root")]
        return {name: sum(one[name] for one in each) for name in names(told)}

    def capable(self, told: Told, queue: str) -> Amounts:
        """In a tree what is not said is as above; the root is not limited in what the cluster has."""
        own = capability(told, told.queues[queue])
        if not self.hierarchy:
            return own
        if queue == "root":
            has = total(told)
            return {
                name: own[name] if own[name] < UNLIMITED or has[name] > 0 or name in ("cpu", "memory") else 0.0
                for name in names(told)
            }
        above = self.capable(told, self.line(told, queue)[1])
        return {name: above[name] if own[name] == UNLIMITED else own[name] for name in names(told)}

    def limit(self, told: Told, queue: str) -> Amounts:
        """The real capability."""
        if not self.hierarchy:
            return flat_limit(told, queue)
        own = self.capable(told, queue)
        if queue == "root":
            return own
        parent = self.line(told, queue)[1]
        above, siblings = self.limit(told, parent), self.children(told, parent)
        promised = {name: sum(guarantee(told, told.queues[one])[name] for one in siblings) for name in names(told)}
        least = guarantee(told, told.queues[queue])
        return {name: min(max(0.0, above[name] - promised[name]) + least[name], own[name]) for name in names(told)}

    def deserved(self, told: Told, queue: str) -> Amounts:
        """As the queue says, and no less than it is guaranteed; flat no more than the real capability."""
        if self.hierarchy and queue == "root":
            each = [self.deserved(told, name) for name in self.children(told, "root")]
            return {name: sum(one[name] for one in each) for name in names(told)}
        said, least = listed(told, told.queues[queue].spec.deserved), guarantee(told, told.queues[queue])
        limit = dict.fromkeys(said, UNLIMITED) if self.hierarchy else self.limit(told, queue)
        return {name: max(min(said[name], limit[name]), least[name]) for name in names(told)}

    def allocatable(self, told: Told, queue: str, pod: core.Pod) -> bool:
        """Within the real capability of the queue and of all above it."""
        if not is_open(told.queues[queue]) or (not self.hierarchy and queue not in with_jobs(told)):
            return False
        if self.hierarchy and self.children(told, queue):
            return False
        return not any(exceeds(self.held(told, name), self.limit(told, name), [pod]) for name in self.line(told, queue))

    def preemptive(self, told: Told, queue: str, pods: Sequence[core.Pod]) -> bool:
        """Within the real capability, and within something of what is deserved."""
        if not is_open(told.queues[queue]) or (not self.hierarchy and queue not in with_jobs(told)):
            return False
        held, deserved = self.held(told, queue), self.deserved(told, queue)
        if exceeds(held, self.limit(told, queue), pods):
            return False
        for name in {name for pod in pods for name in requested(pod) if name != "pods"}:
            then = held[name] + sum(request(pod, name) for pod in pods)
            if (then >= EPSILON or deserved[name] >= EPSILON) and then < deserved[name] + EPSILON:
                return True
        return False

    def overused(self, told: Told, queue: str) -> bool:
        """It has no say."""
        return False

    def before(self, told: Told, left: str, right: str) -> float:
        """Below 0 when the left queue goes first: by priority, then by share where the two lines part."""
        priority = (told.queues[right].spec.priority or 0) - (told.queues[left].spec.priority or 0)
        if priority:
            return priority
        if self.hierarchy:
            inner = bool(self.children(told, left)) - bool(self.children(told, right))
            if inner:
                return inner
            if not self.children(told, left):
                left, right = self._parted(told, left, right)
        share = self._share(told, left) - self._share(told, right)
        return share or self._is_best_effort(told, left) - self._is_best_effort(told, right)

    def _parted(self, told: Told, left: str, right: str) -> tuple[str, str]:
        lines = [list(reversed(self.line(told, queue))) for queue in (left, right)]
        common = 0
        while common < min(map(len, lines)) - 1 and lines[0][common] == lines[1][common]:
            common += 1
        return lines[0][common], lines[1][common]

    def _is_best_effort(self, told: Told, queue: str) -> bool:
        return all(value < EPSILON for name, value in self.deserved(told, queue).items() if name != "pods")

    def _share(self, told: Told, queue: str) -> float:
        if self._is_best_effort(told, queue):
            return 1.0
        return largest_part(told, self.held(told, queue), self.deserved(told, queue))


# -- room that is kept ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptRoom:
    """Room that others were evicted for stays with the pod that was told to wait for it, as far as other queues go."""

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Where only room is left that pods of other queues wait for."""
        if pod.status.nominated_node_name:
            return []
        waiting = [
            told.pods[name] for name in told.pending() if told.pods[name].status.nominated_node_name == node.name
        ]
        kept = [
            other
            for other in waiting
            if told.queue_of(other).name != told.queue_of(pod).name and _fits(as_opened(told), other, node, [])
        ]
        if not kept or _fits(told, pod, node, kept):
            return []
        return ["node(s) had only resources kept for pods that others were evicted for"]

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """None."""
        return {}


def _fits(told: Told, pod: core.Pod, node: core.Node, kept: Sequence[core.Pod]) -> bool:
    return all(
        request(pod, name) < told.future(node.name, name) - sum(request(one, name) for one in kept) + EPSILON
        for name in requested(pod)
    )
