"""overcommit: bounds the work admitted to a multiple of the cluster (spec 06 section 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import Hooks, Plugin, Vote
from stromboli.scheduler.plugins import arguments, reservations

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job
    from stromboli.scheduler.core.view import View

DEFAULT_FACTOR = 1.2


class Overcommit(Plugin):
    """Votes on admission only."""

    name: ClassVar[str] = "overcommit"
    arguments_model = arguments.model("OvercommitArguments", **{"overcommit-factor": arguments.Number})

    def open(self, view: View) -> Hooks:
        self._view = view
        factor = policy.number(self.arguments, "overcommit-factor", DEFAULT_FACTOR)
        self._factor = factor = factor if factor >= 1.0 else DEFAULT_FACTOR
        self._limit: Floats = view.total * factor
        self._used: Floats = view.nodes.used[view.nodes.live].sum(axis=0)
        self._admitted = reservations.admitted_in_full(view).sum(axis=0)
        return Hooks(job_enqueueable=self._enqueueable, job_enqueued=self._enqueued)

    def _enqueueable(self, job: Job) -> Vote:
        wanted = job.min_resources
        if wanted is None:
            return Vote.PERMIT
        lacking = reservations.exceeded_names(self._view, self._admitted + wanted, self._limit - self._used, wanted)
        if not lacking:
            return Vote.PERMIT
        text = ", ".join(f"overused {name}" for name in lacking)
        self._view.refuse(job, "ClusterOvercommitted", self._sentence(wanted, lacking))
        self._view.report(job, "Unschedulable", f"resource in cluster is overused: {text}")
        return Vote.REJECT

    def _sentence(self, wanted: Floats, lacking: list[str]) -> str:
        numbers = reservations.numbers(
            self._view,
            lacking,
            wanted,
            self._limit,
            self._used + self._admitted,
            f"the cluster admits {{limit}} ({self._factor:g} times its size)",
        )
        return f"{numbers}. Wait for running work to end, add nodes, or ask for less."

    def _enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            self._admitted += reservations.without_gated(job)
