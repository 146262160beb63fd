"""task-topology (spec 06 section 24): the score, and the order of tasks, that of priority included.

Tasks of a bucket that does not fit a node are left out from the last in its order on, which is our own choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Act, Place, Told, request, requested

PREFIX = "volcano.sh/task-topology-"
HELD = (Place.RUNNING, Place.LEAVING, Place.BOUND)


@dataclass
class Bucket:
    """Names of pods that want to be together."""

    node: str = ""
    pods: list[core.Pod] = field(default_factory=list)


@dataclass(frozen=True)
class TaskTopology:
    """The plugin's argument."""

    weight: int = 1

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """It filters nothing."""
        return []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """One node after the other."""
        group = told.group_of(pod)
        if not _has_say(told, group):
            return {}
        buckets = self._buckets(told, group)
        mine = [bucket for bucket in buckets if any(one.name == pod.name for one in bucket.pods)]
        if not mine:
            return {}
        largest = max(len(bucket.pods) for bucket in buckets)
        base = {node.name: self._base(told, pod, node, mine[0]) for node in nodes}
        return {name: score * self.weight * 100 / largest for name, score in base.items()}

    @staticmethod
    def _base(told: Told, pod: core.Pod, node: core.Node, bucket: Bucket) -> int:
        if not _has_room(told, node, [pod]):
            return 0
        there = (*HELD, Place.PLACED, Place.PROMISED)
        group, where = told.group_of(pod), told.where()
        here = [one for one in told.on(node.name, *there) if told.group_of(one).name == group.name]
        company = sum(one.name in {other.name for other in here} for one in bucket.pods)
        repelled = sum(_is_away(group, role(pod), role(one)) for one in here)
        unplaced = sorted((one for one in bucket.pods if one.name not in where), key=lambda one: _order(group, one))
        fitting = [pod, *(one for one in unplaced if one.name != pod.name)]
        while not _has_room(told, node, fitting):
            fitting.pop()
        return company - repelled + len(fitting)

    def before(self, told: Told, left: core.Pod, right: core.Pod) -> int:
        """Below 0 when the left pod goes first; 0 when the plugin has no opinion."""
        groups = [told.group_of(pod) for pod in (left, right)]
        if not all(_has_say(told, group) for group in groups):
            return 0
        mine, other = (self._place(told, group, pod) for group, pod in zip(groups, (left, right), strict=True))
        if mine is None or other is None:
            return (mine is None) - (other is None)
        if groups[0].name != groups[1].name:
            return 0
        if mine[1] == other[1]:
            ours, theirs = (_order(group, pod)[:2] for group, pod in zip(groups, (left, right), strict=True))
            return (ours > theirs) - (ours < theirs)
        return (mine > other) - (mine < other)

    def _place(self, told: Told, group: core.PodGroup, pod: core.Pod) -> tuple[int, int] | None:
        """How many of a pod's bucket have no place, negative, and the bucket's number; None when it is in none."""
        where = told.where()
        for number, bucket in enumerate(self._buckets(told, group)):
            if any(one.name == pod.name for one in bucket.pods):
                return -sum(one.name not in where for one in bucket.pods), number
        return None

    def _buckets(self, told: Told, group: core.PodGroup) -> list[Bucket]:
        """As they were when the session opened."""
        closed = [at for at, step in enumerate(told.steps) if step.act is Act.CLOSE]
        gone = {step.pod for step in told.steps if step.act is Act.GO}
        opened = replace(told, steps=told.steps[: closed[-1] + 1] if closed else [])
        where = {name: node for name, (node, place) in opened.where().items() if place in HELD and name not in gone}
        pods = [pod for pod in told.pods.values() if told.group_of(pod).name == group.name and _wish(group, role(pod))]
        pods.sort(key=lambda pod: (pod.name not in where, where.get(pod.name, ""), _order(group, pod)))
        buckets: list[Bucket] = []
        for pod in pods:
            if pod.name in where:
                found = [one for one in buckets if one.node == where[pod.name]]
            else:
                found = _best(group, buckets, pod, where)
            if not found:
                found = [Bucket(where.get(pod.name, ""))]
                buckets += found
            found[0].pods.append(pod)
        return buckets


def _best(group: core.PodGroup, buckets: Sequence[Bucket], pod: core.Pod, where: dict[str, str]) -> list[Bucket]:
    best: list[tuple[int, float, Bucket]] = []
    for bucket in buckets:
        wish = sum(_is_near(group, role(pod), role(one)) - _is_away(group, role(pod), role(one)) for one in bucket.pods)
        weight = sum(_weight(one) for one in bucket.pods if one.name not in where)
        if not best or wish > best[0][0] or (wish == best[0][0] and weight < best[0][1]):
            best = [(wish, weight, bucket)]
    return [bucket for wish, _, bucket in best if wish >= 0]


def _weight(pod: core.Pod) -> float:
    others = sum(request(pod, name) for name in requested(pod) if name not in ("cpu", "memory"))
    return request(pod, "cpu") + request(pod, "memory") / 2**20 + others


def _has_room(told: Told, node: core.Node, pods: Sequence[core.Pod]) -> bool:
    return all(
        sum(request(pod, name) for pod in pods) <= told.idle(node.name, name) + told.releasing(node.name, name)
        for name in {"cpu", "memory", *(name for pod in pods for name in requested(pod))}
    )


def role(pod: core.Pod) -> str:
    """The name of a pod's task."""
    return pod.metadata.annotations.get("volcano.sh/task-spec", "")


def _has_say(told: Told, group: core.PodGroup) -> bool:
    return any(key.startswith(PREFIX) for key in group.metadata.annotations) and is_valid(told, group)


def task_priority(pod: core.Pod) -> int:
    """What the priority plugin goes by: the annotation before the pod's own, 1 without either."""
    written = pod.metadata.annotations.get("volcano.sh/task-priority")
    if written is not None:
        return int(written)
    return 1 if pod.spec.priority is None else pod.spec.priority


def is_valid(told: Told, group: core.PodGroup) -> bool:
    """Every name is a role of the job, and in no group twice."""
    roles = {role(pod) for pod in told.pods.values() if told.group_of(pod).name == group.name}
    groups = [*_groups(group, "affinity"), *_groups(group, "anti-affinity"), _ranked(group)]
    return all(
        name in roles and names.count(name) == 1
        for names in ([one for one in each if one] for each in groups)
        for name in names
    )


def _groups(group: core.PodGroup, kind: str) -> list[list[str]]:
    text = group.metadata.annotations.get(PREFIX + kind)
    return [part.split(",") for part in text.split(";")] if text is not None else []


def _ranked(group: core.PodGroup) -> list[str]:
    text = group.metadata.annotations.get(PREFIX + "task-order")
    return text.split(",") if text is not None else []


def _related(groups: Sequence[Sequence[str]], left: str, right: str) -> bool:
    if left == right:
        return any(list(names) == [left] for names in groups)
    return any(left in names and right in names for names in groups)


def _is_near(group: core.PodGroup, left: str, right: str) -> bool:
    return _related(_groups(group, "affinity"), left, right)


def _is_away(group: core.PodGroup, left: str, right: str) -> bool:
    return _related(_groups(group, "anti-affinity"), left, right)


def _wish(group: core.PodGroup, name: str) -> int:
    """The topology priority of a name, 0 for none."""
    if not name:
        return 0
    near, away = _groups(group, "affinity"), _groups(group, "anti-affinity")
    if [name] in away:
        return 4
    if any(name in names and len(names) > 1 for names in near):
        return 3
    if [name] in near:
        return 2
    return 1 if any(name in names and len(names) > 1 for names in away) else 0


def _order(group: core.PodGroup, pod: core.Pod) -> tuple[int, int, str]:
    ranked = _ranked(group)
    rank = len(ranked) - ranked.index(role(pod)) if role(pod) in ranked else 0
    return -rank, -_wish(group, role(pod)), pod.name
