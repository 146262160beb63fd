"""network-topology-aware: gangs stay inside HyperNodes of low tiers, which are packed (spec 06 section 25)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY
from stromboli.scheduler.core.plugin import Hooks, Plugin, Purpose, Reach, Scope, Score
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import arguments
from stromboli.scheduler.plugins.domain_packing import PREFIX, LowestDomains, Packing, column_weights, requests, sums

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, SubJob, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

FULL = 100.0
DEFAULT_FADING = 0.8
DEFAULT_MOST_FOR_EVICTION = 8


class NetworkTopologyAware(Plugin):
    """Scores nodes and HyperNodes, and says in which HyperNodes a gang is to be tried, best ones first."""

    name: ClassVar[str] = "network-topology-aware"
    arguments_model = arguments.model(
        "NetworkTopologyAwareArguments",
        **{
            "weight": arguments.Integer,
            "hypernode__binpack__cpu": arguments.Integer,
            "hypernode__binpack__memory": arguments.Integer,
            "hypernode__binpack__resources": arguments.Text,
            "hypernode__binpack__normal-pod__enable": arguments.Boolean,
            "hypernode__binpack__normal-pod__fading": arguments.Number,
            "hypernode__gradient__evict__max-hypernodes": arguments.Integer,
        },
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        self._known = view.hyper_nodes
        self._read_arguments()
        self._packing = Packing(view, column_weights(self.arguments, view.columns))
        self._codes: dict[int, tuple[Rows, int]] = {}
        self._lowest = LowestDomains(view)
        self._near: dict[str, Floats] = {}
        return Hooks(
            scores=[
                Score(
                    "network topology",
                    self._rate,
                    scope=Scope.TASK,
                    reach=Reach.CLUSTER,
                    concerns=lambda _task: len(self._known.tiers) > 1,  # without HyperNodes all nodes are alike
                )
            ],
            hyper_node_score=self._hyper_node_scores,
            gradient=self._gradient,
        )

    def _read_arguments(self) -> None:
        given = self.arguments
        weight = policy.integer(given, "weight", 1)
        self._weight = weight if weight >= 0 else 1
        self._packs_normal_pods = policy.boolean(given, f"{PREFIX}.normal-pod.enable", True)
        fading = policy.number(given, f"{PREFIX}.normal-pod.fading", DEFAULT_FADING)
        self._fading = fading if fading >= 0.0 else DEFAULT_FADING
        most = policy.integer(given, "hypernode.gradient.evict.max-hypernodes", DEFAULT_MOST_FOR_EVICTION)
        self._most_for_eviction = most if most > 0 else DEFAULT_MOST_FOR_EVICTION

    # HyperNodes

    def _hyper_node_scores(self, sub_job: SubJob, candidates: Mapping[str, Rows]) -> dict[str, float]:
        """Fullness with the whole sub-job; of equally full best ones those that hold more of it already."""
        request = requests(sub_job.tasks.values(), self._view.columns.width)
        scores = self._packing.of_rows(list(candidates.values()), request)
        best = scores == scores.max(initial=-np.inf)
        if best.sum() > 1 and sub_job.tasks:
            for at in np.nonzero(best)[0].tolist():
                scores[at] += self._part_on(sub_job, list(candidates.values())[at])
        return dict(zip(candidates, (scores * FULL * self._weight).tolist(), strict=True))

    @staticmethod
    def _part_on(sub_job: SubJob, rows: Rows) -> float:
        """Which part of a sub-job's tasks is on these rows."""
        here = set(rows.tolist())
        placed = [task for task in sub_job.tasks.values() if task.node is not None and task.node.row in here]
        return len(placed) / len(sub_job.tasks)

    # Nodes

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        sub_job = task.sub_job
        if task.job is None:
            return None
        if sub_job is None:
            return self._normal(task, rows)
        if sub_job.topology is None:
            normal = self._normal(task, rows)
            return None if normal is None else normal * FULL * self._weight
        return self._confined(sub_job, rows)

    def _normal(self, task: Task, rows: Rows) -> Floats | None:
        """How full the HyperNodes around each node would be, those of higher tiers counting less."""
        if not self._packs_normal_pods:
            return None
        score, weights = np.zeros(len(rows)), 0.0
        for tier in range(self._known.tiers[0], self._known.tiers[-1] + 1):
            weight = self._fading ** (tier - 1)
            codes, count = self._domains(tier)
            fullness = np.append(self._packing.by_code(codes, count, task.request), 1.0)
            score += weight * fullness[codes[rows]]
            weights += weight
        return score / weights if weights else score

    def _domains(self, tier: int) -> tuple[Rows, int]:
        """For every row the number of its HyperNode of a tier, -1 where it is in none; and how many there are."""
        known = self._codes.get(tier)
        if known is None:
            codes: Rows = np.full(self._view.nodes.count, -1, dtype=np.intp)
            names = sorted(name for name, one in self._known.by_name.items() if one.tier == tier)
            for code, name in enumerate(names):
                codes[self._known.rows.get(name, np.empty(0, dtype=np.intp))] = code
            known = self._codes[tier] = codes, len(names)
        return known

    def _confined(self, sub_job: SubJob, rows: Rows) -> Floats | None:
        """Nearness of each node to where the (sub-)job already is; of equally near best ones those with more of it."""
        at = sub_job.allocated_hyper_node or ("" if sub_job.job.has_sub_groups else sub_job.job.allocated_hyper_node)
        if not at:
            return None
        lowest = self._lowest.codes[rows]
        scores = self._nearness_to(at)[lowest]
        best = scores == scores.max(initial=-np.inf)
        if best.sum() > 1 and sub_job.tasks:
            scores = np.where(best, scores + self._lowest.parts_of(sub_job)[lowest], scores)
        return scores * FULL * self._weight

    def _nearness_to(self, allocated: str) -> Floats:
        """Nearness of the nodes of each lowest HyperNode."""
        known = self._near.get(allocated)
        if known is None:
            known = np.array([self._nearness(name, allocated) for name in self._lowest.names])
            self._near[allocated] = known
        return known

    def _nearness(self, name: str, allocated: str) -> float:
        if not name:
            return 0.0
        if name == allocated:
            return 1.0
        common = self._known.lowest_common_ancestor(name, allocated)
        if not common:
            return 0.0
        lowest, highest = self._known.tiers[0], self._known.tiers[-1]
        return (highest - self._known.by_name[common].tier) / (highest - lowest) if highest > lowest else 1.0

    # Gradients

    def _gradient(self, job: Job, sub_job: SubJob | None, start: str, purpose: Purpose) -> list[list[str]]:
        """HyperNodes to try, of the lowest tier first; for eviction of the highest first, and not too many."""
        owner = sub_job if sub_job is not None else job
        if owner.hard_tier is None:
            return [[start]]
        top = self._search_root(owner, start)
        if top is None:
            return []
        minimum = None if owner.allocated_hyper_node else _minimum(job, sub_job, self._view.columns.width)
        known = self._known.by_name
        names = [name for name in self._below(top) if known[name].tier <= owner.hard_tier]
        by_tier: dict[int, list[str]] = {}
        for name in names if minimum is None else self._holding(names, minimum, purpose):
            by_tier.setdefault(known[name].tier, []).append(name)
        gradient = [by_tier[tier] for tier in sorted(by_tier)]
        return gradient if purpose is Purpose.ALLOCATE else self._capped(gradient)

    def _search_root(self, owner: Job | SubJob, start: str) -> str | None:
        """Where to look: ``start``, or what it has in common with where the gang may be; None when that is nothing."""
        if not owner.allocated_hyper_node:
            return start
        assert owner.hard_tier is not None
        line = self._known.ancestors(owner.allocated_hyper_node)
        allowed = [
            name
            for name in line
            if (known := self._known.by_name.get(name)) is not None and known.tier <= owner.hard_tier
        ]
        if not allowed:
            return None
        top = allowed[-1]
        if start in self._known.ancestors(top):
            return top
        return start if top in self._known.ancestors(start) else None

    def _below(self, top: str) -> Iterator[str]:
        """The HyperNode and all below it, breadth first, siblings by name."""
        waiting, seen = [top], {top}
        for name in waiting:
            known = self._known.by_name.get(name)
            if known is None:
                continue
            yield name
            for child in sorted(known.children - seen):
                seen.add(child)
                waiting.append(child)

    def _holding(self, names: Sequence[str], minimum: Floats, purpose: Purpose) -> list[str]:
        """HyperNodes with this much in all; those whose nodes are not known are given the chance.

        Of scalar resources only those that are asked for count: nodes may owe others.
        """
        none: Rows = np.empty(0, dtype=np.intp)
        domains = [self._known.rows.get(name, none) for name in names]
        nodes = self._view.nodes
        layers = (nodes.idle, nodes.future) if purpose is Purpose.ALLOCATE else (nodes.allocatable,)
        wanted = np.union1d(np.nonzero(minimum)[0], [CPU, MEMORY])
        enough = [(minimum < sums(layer, domains) + EPSILON)[:, wanted].all(axis=1) for layer in layers]
        holds = np.logical_or.reduce(enough)
        return [name for name, fits in zip(names, holds.tolist(), strict=True) if fits or name not in self._known.rows]

    def _capped(self, gradient: Sequence[Sequence[str]]) -> list[list[str]]:
        """From the highest tier down; of a tier that does not fit whole the last ones."""
        return capped(gradient, self._most_for_eviction)


def capped(gradient: Sequence[Sequence[str]], most: int) -> list[list[str]]:
    """The groups in reverse, no more than ``most`` HyperNodes in all; of the last group its last ones."""
    chosen: list[list[str]] = []
    for group in reversed(gradient):
        left = most - sum(len(taken) for taken in chosen)
        if left <= 0:
            break
        chosen.append(list(group[-left:]))
    return chosen


def _minimum(job: Job, sub_job: SubJob | None, width: int) -> Floats:
    """The least that must fit: a job's minimum resources, the requests of a sub-job's Pending tasks."""
    if sub_job is None:
        return np.zeros(width) if job.min_resources is None else job.min_resources
    return requests((task for task in sub_job.tasks.values() if task.status == TaskStatus.PENDING), width)
