"""sla: a job that has waited for too long is let in, and keeps what it waits for (spec 06 section 13).

It stands in an earlier tier than the plugins that refuse for lack of room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stromboli.api import durations
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import Depends, Hooks, Key, Order, Plugin, Vote
from stromboli.scheduler.plugins import arguments

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job
    from stromboli.scheduler.core.view import View

WAITING_TIME = "sla-waiting-time"


class Sla(Plugin):
    """Orders jobs by the end of their waiting time, and permits those past it."""

    name: ClassVar[str] = "sla"
    arguments_model = arguments.model("SlaArguments", **{WAITING_TIME: arguments.Duration})

    def open(self, view: View) -> Hooks:
        self._now = view.now
        self._everybodys = _positive(policy.text(self.arguments, WAITING_TIME, ""))
        return Hooks(
            job_order=Order(key=self._key, depends=Depends.NOTHING),
            job_enqueueable=self._vote,
            job_pipelined=self._vote,
        )

    def _waiting_time(self, job: Job) -> float | None:
        """Seconds; the job's own beats the one of the policy."""
        return self._everybodys if job.sla_waiting_time is None else job.sla_waiting_time

    def _key(self, job: Job) -> Key:
        waiting = self._waiting_time(job)
        return (True, 0.0) if waiting is None else (False, job.created + waiting)

    def _vote(self, job: Job) -> Vote:
        waiting = self._waiting_time(job)
        over = waiting is not None and self._now - job.created >= waiting
        return Vote.PERMIT if over else Vote.ABSTAIN


def _positive(text: str) -> float | None:
    try:
        seconds = durations.seconds(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None
