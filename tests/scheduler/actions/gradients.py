"""A plugin for tests that says which HyperNodes to try: the subtree by tier, tightest first (spec 05 section 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from stromboli.scheduler.core.plugin import Hooks, Plugin, Purpose
from stromboli.scheduler.core.records import Job, SubJob
from stromboli.scheduler.core.tables import Rows
from stromboli.scheduler.core.view import View


class Gradients(Plugin):
    """Confines jobs and sub-jobs to the tiers they allow; prefers the HyperNode named first, or what is asked for."""

    name: ClassVar[str] = "gradients"
    favourite: ClassVar[str] = ""

    def open(self, view: View) -> Hooks:
        self._view = view
        return Hooks(gradient=self._gradient, hyper_node_score=self._score)

    def _gradient(self, job: Job, sub_job: SubJob | None, start: str, purpose: Purpose) -> Sequence[Sequence[str]]:
        owner = job if sub_job is None else sub_job
        if owner.hard_tier is None:
            return [[start]]
        root = self._root(owner, start)
        if root is None:
            return []
        below = [name for name in self._below(root) if self._view.hyper_nodes.by_name[name].tier <= owner.hard_tier]
        tiers = sorted({self._view.hyper_nodes.by_name[name].tier for name in below})
        groups = [[name for name in below if self._view.hyper_nodes.by_name[name].tier == tier] for tier in tiers]
        return groups[::-1] if purpose is Purpose.EVICT else groups

    def _root(self, owner: Job | SubJob, start: str) -> str | None:
        allocated, view = owner.allocated_hyper_node, self._view.hyper_nodes
        if not allocated:
            return start
        allowed = [name for name in view.ancestors(allocated) if view.by_name[name].tier <= (owner.hard_tier or 0)]
        if not allowed:
            return None
        highest = allowed[-1]
        if start in view.ancestors(highest):
            return highest
        return start if highest in view.ancestors(start) else None

    def _below(self, name: str) -> list[str]:
        found = [name]
        for child in sorted(self._view.hyper_nodes.by_name[name].children):
            found.extend(self._below(child))
        return found

    def _score(self, sub_job: SubJob, candidates: Mapping[str, Rows]) -> Mapping[str, float]:
        return {name: 1.0 if name == self.favourite else 0.0 for name in candidates}
