"""Plugins that exist only in upstream tests; the vectors' ``note`` says what each does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from stromboli.scheduler.core.plugin import Hooks, Plugin, Vote
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.view import View


class Rejecter(Plugin):
    """Rejects the PodGroup ``pgA`` and permits every other."""

    name = "test-rejecter"

    def open(self, view: View) -> Hooks:
        """Registers the vote."""
        return Hooks(job_enqueueable=_vote)


def _vote(job: Job) -> Vote:
    return Vote.REJECT if job.name == "pgA" else Vote.PERMIT


class Fake(Plugin):
    """Offers every candidate of priority 10 as a victim."""

    name = "fake"

    def open(self, view: View) -> Hooks:
        """Registers the victims."""
        return Hooks(victim_tasks=[_victims])


def _victims(candidates: Sequence[Task]) -> Collection[Task]:
    return [task for task in candidates if task.priority == 10]


PLUGINS: Mapping[str, type[Plugin]] = {plugin.name: plugin for plugin in (Rejecter, Fake)}
