"""nodeorder: the classic scores of Kubernetes (spec 06 section 15).

Row scores are whole numbers by truncation, summed with their weights without normalisation; batch scores are normalised
over the candidates. A score of weight 0, or about which no node differs, is not computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import CPU, MEMORY, Floats
from stromboli.scheduler.core.plugin import Hooks, Plugin, Reach, Score
from stromboli.scheduler.plugins import affinity, arguments, neighbours, node_facts, spreading

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

Rate: TypeAlias = "Callable[[Task, Rows], Floats | None]"
MAX_SCORE = 100.0
GPU = "nvidia.com/gpu"
MIB = 1024.0 * 1024.0
SMALLEST_IMAGE, LARGEST_IMAGE = 23.0 * MIB, 1000.0 * MIB
WEIGHTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "balancedresource": 1,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}


class NodeOrder(Plugin):
    """Composes the scores that have a weight."""

    name: ClassVar[str] = "nodeorder"
    arguments_model = arguments.model(
        "NodeOrderArguments", **{f"{name}__weight": arguments.Integer for name in WEIGHTS}
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        self._weights = {
            name: policy.integer(self.arguments, f"{name}.weight", weight) for name, weight in WEIGHTS.items()
        }
        facts = node_facts.of(view)
        self._labels, self._taints = facts.labels, facts.taints
        self._neighbours, first = neighbours.of(view)
        self._spread = facts.image_spread if self._weights["imagelocality"] else {}
        return Hooks(
            scores=[*self._row_scores(), *self._batch_scores()],
            on_allocate=self._neighbours.placed if first else None,
            on_deallocate=self._neighbours.removed if first else None,
        )

    def _row_scores(self) -> list[Score]:
        scores = {
            "leastrequested": self._least_requested,
            "mostrequested": self._most_requested,
            "balancedresource": self._balanced,
            "nodeaffinity": self._node_affinity,
            "imagelocality": self._image_locality,
        }
        by_node = {"nodeaffinity", "imagelocality"}
        return [
            Score(name, rate, reach=Reach.NODE if name in by_node else Reach.STATE)
            for name, rate in scores.items()
            if self._weights[name]
        ]

    def _batch_scores(self) -> list[Score]:
        view = self._view
        between = affinity.InterPodAffinity(view, self._neighbours)
        spread = spreading.TopologySpread(view, self._labels, self._taints, self._neighbours)
        batch: list[tuple[str, Rate, Callable[[Floats], Floats], Reach, Callable[[Task], bool] | None]] = [
            ("podaffinity", between.rate, affinity.stretched, Reach.CLUSTER, between.prefers),
            ("podtopologyspread", spread.rate, spreading.crowded_last, Reach.CLUSTER, spread.prefers),
        ]
        if self._taints.discourage:
            batch.append(("tainttoleration", self._taint_toleration, fewest_first, Reach.NODE, None))
        scores = [
            Score(name, rate, normalise=_times(self._weights[name], normalise), reach=reach, concerns=concerns)
            for name, rate, normalise, reach, concerns in batch
            if self._weights[name]
        ]
        if self._weights["tainttoleration"] and not self._taints.discourage:
            everything = MAX_SCORE * self._weights["tainttoleration"]
            scores.append(
                Score("tainttoleration", lambda _task, rows: np.full(len(rows), everything), reach=Reach.NODE)
            )
        return scores

    def _least_requested(self, task: Task, rows: Rows) -> Floats:
        return self._weighted("leastrequested", self._over_cpu_and_memory(task, rows, least=True))

    def _most_requested(self, task: Task, rows: Rows) -> Floats:
        return self._weighted("mostrequested", self._over_cpu_and_memory(task, rows, least=False))

    def _over_cpu_and_memory(self, task: Task, rows: Rows, *, least: bool) -> Floats:
        """Mean of cpu and memory, of those that the node has, each truncated to a whole number."""
        nodes = self._view.nodes
        total, parts = np.zeros(len(rows)), np.zeros(len(rows))
        for column, amount in zip((CPU, MEMORY), task.shape.nonzero, strict=True):
            room = nodes.allocatable[rows, column]
            taken = nodes.nonzero[rows, column] + amount
            rest = np.maximum(room - taken, 0.0) if least else np.minimum(taken, room)
            has = room > 0.0
            total += np.floor(np.divide(rest * MAX_SCORE, room, out=np.zeros(len(rows)), where=has))
            parts += has
        return np.floor(np.divide(total, parts, out=np.zeros(len(rows)), where=parts > 0.0))

    def _balanced(self, task: Task, rows: Rows) -> Floats | None:
        """100 less the spread of the used fractions of cpu, memory and GPUs."""
        request = task.shape.request
        gpu = self._view.columns.get(GPU)
        columns = [CPU, MEMORY, *([gpu] if gpu is not None and request[gpu] > 0.0 else [])]
        if not any(request[column] > 0.0 for column in columns):
            return None
        nodes = self._view.nodes
        room = np.array([nodes.allocatable[rows, column] for column in columns])
        taken = np.array([nodes.requested[rows, column] + request[column] for column in columns])
        has = room > 0.0
        fractions = np.minimum(np.divide(taken, room, out=np.zeros_like(room), where=has), 1.0)
        return self._weighted("balancedresource", np.trunc((1.0 - deviation(fractions.T, has.T)) * MAX_SCORE))

    def _node_affinity(self, task: Task, rows: Rows) -> Floats | None:
        affinity = task.shape.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return None
        score = np.zeros(len(rows))
        for term in affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
            if term.weight:
                score += term.weight * self._labels.matches_term(term.preference, rows)
        return self._weighted("nodeaffinity", score)

    def _image_locality(self, task: Task, rows: Rows) -> Floats | None:
        """Scores nodes that have the pod's images, large and widespread ones more."""
        spec = task.shape.pod.spec
        containers = (*spec.init_containers, *spec.containers)
        images = {name for container in containers if (name := _normal_image(container.image)) in self._spread}
        if not images:
            return None
        nodes = self._view.node_list
        sums = np.zeros(len(rows))
        for image in images:
            times = sum(_normal_image(container.image) == image for container in containers)
            sizes = [(node := nodes[row]) is not None and node.images.get(image, 0) or 0 for row in rows]
            sums += times * np.trunc(np.array(sizes, dtype=np.float64) * self._spread[image])
        largest = LARGEST_IMAGE * len(containers)
        clamped = np.clip(sums, SMALLEST_IMAGE, largest)
        return self._weighted(
            "imagelocality", np.trunc(MAX_SCORE * (clamped - SMALLEST_IMAGE) / (largest - SMALLEST_IMAGE))
        )

    def _taint_toleration(self, task: Task, rows: Rows) -> Floats:
        return self._taints.intolerable_preferences(task.shape.pod.spec.tolerations, rows)

    def _weighted(self, name: str, score: Floats) -> Floats:
        return score * self._weights[name]


def _times(weight: int, normalise: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda raw: normalise(raw) * weight


def fewest_first(counts: Floats) -> Floats:
    """Whole-number scores, reversed: the fewest get 100, the most 0; all zero gives 100 to all."""
    most = counts.max(initial=0.0)
    if most == 0.0:
        return np.full_like(counts, MAX_SCORE)
    scores: Floats = MAX_SCORE - np.floor(MAX_SCORE * counts / most)
    return scores


def deviation(fractions: Floats, has: np.typing.NDArray[np.bool_]) -> Floats:
    """Per row the spread of the fractions that count: half the distance of two, the standard deviation of more."""
    if fractions.shape[1] == 2:
        halves: Floats = np.abs(fractions[:, 0] - fractions[:, 1]) / 2.0
        return np.where(has[:, 0] & has[:, 1], halves, 0.0)
    count = has.sum(axis=1)
    mean = np.divide(fractions.sum(axis=1), count, out=np.zeros(len(count)), where=count > 0)
    squares = np.where(has, (fractions - mean[:, None]) ** 2, 0.0).sum(axis=1)
    spread = np.sqrt(np.divide(squares, count, out=np.zeros(len(count)), where=count > 0))
    if has.shape[1] >= 2:
        pair = count == 2
        highest = np.where(has, fractions, -np.inf).max(axis=1)
        lowest = np.where(has, fractions, np.inf).min(axis=1)
        spread[pair] = (highest[pair] - lowest[pair]) / 2.0
    result: Floats = spread
    return result


def _normal_image(name: str) -> str:
    """The image name with ``:latest`` when it has no tag."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
