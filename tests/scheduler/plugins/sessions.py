"""A session with one or a few plugins, opened over a small cluster, and short questions to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Arguments, PluginOption, Policy, Switches
from stromboli.scheduler.core.records import Job, Node, Queue, SubJob, Task
from tests.scheduler.core.worlds import open_cycle, world
from tests.scheduler.plugins.probing import Probe

Given = core.Object | Iterable[core.Object]


def option(name: str, arguments: Arguments | None = None, **switches: bool) -> PluginOption:
    """A plugin entry with arguments and some switches changed."""
    return PluginOption(name, Switches(**switches), arguments or {})


class Session:
    """An open session; pods and jobs are named without their namespace."""

    def __init__(
        self,
        *given: Given,
        plugins: Sequence[str | PluginOption],
        mirror: Mirror | None = None,
        options: Mapping[str, object] | None = None,
        actions: str = "enqueue allocate backfill",
    ) -> None:
        tier = tuple(PluginOption(one) if isinstance(one, str) else one for one in plugins)
        self.mirror = world(*given) if mirror is None else mirror
        self.cycle = open_cycle(self.mirror, Policy(tuple(actions.split()), (tier,)), options=options)
        assert not self.cycle.result.problems
        self.combination = self.cycle.combination
        self.view = self.cycle.view
        self._probe = Probe(self.cycle)

    def task(self, name: str) -> Task:
        """A pod."""
        return next(task for task in self.mirror.tasks.values() if task.name == name)

    def tasks(self, *names: str) -> list[Task]:
        """Pods in the order given."""
        return [self.task(name) for name in names]

    def job(self, name: str) -> Job:
        """A PodGroup."""
        return next(job for job in self.mirror.jobs.values() if job.name == name)

    def sub_job(self, name: str) -> SubJob:
        """The only sub-job of a PodGroup."""
        (sub_job,) = self.job(name).sub_jobs.values()
        return sub_job

    def queue(self, name: str) -> Queue:
        """A queue."""
        return self.mirror.queues[name]

    def node(self, name: str) -> Node:
        """A node."""
        return self.mirror.nodes_by_name[name]

    def refusals(self, pod: str) -> dict[str, list[str]]:
        """Texts of the reasons by refused node."""
        refused = self._probe.refusals(self.task(pod))
        return {node: [text for text, _ in reasons] for node, reasons in refused.items()}

    def scores(self, pod: str, *nodes: str) -> dict[str, float]:
        """Score by node, of those given or of all, rounded to tenths."""
        names = nodes or [node.name for node in self.view.node_list if node is not None]
        scores = self._probe.scores(self.task(pod), self._probe.rows(names))
        return {node: round(score, 1) for node, score in scores.items()}

    def preemptable(self, preemptor: str, *candidates: str) -> list[str]:
        """Names of the pods that may be evicted for a pod of the same queue."""
        return _names(self.combination.preemptable(self.task(preemptor), self.tasks(*candidates)))

    def reclaimable(self, reclaimer: str, *candidates: str) -> list[str]:
        """Names of the pods that may be evicted for a pod of another queue."""
        return _names(self.combination.reclaimable(self.task(reclaimer), self.tasks(*candidates)))

    def victim_tasks(self, *candidates: str) -> list[str]:
        """Names of pods that plugins want moved."""
        return sorted(_names(self.combination.victim_tasks(self.tasks(*candidates))))

    def place(self, pod: str, node: str) -> None:
        """Allocates a pod and decides on it."""
        statement = self.cycle.statement()
        statement.allocate(self.task(pod), self.node(node))
        statement.commit()

    def evict(self, pod: str) -> None:
        """Evicts a pod and decides on it."""
        statement = self.cycle.statement()
        statement.evict(self.task(pod), "test")
        statement.commit()

    def job_order(self) -> list[str]:
        """Names of all jobs in the order in which they are served."""
        return [job.name for job in self.combination.job_ordering.sorted(self.view.jobs.values())]

    def queue_order(self) -> list[str]:
        """Names of all queues in the order in which they are served."""
        return [queue.name for queue in self.combination.queue_ordering.sorted(self.view.queues.values())]

    def task_order(self, *pods: str) -> list[str]:
        """Names of pods in the order in which they are served."""
        return _names(self.combination.task_ordering.sorted(self.tasks(*pods)))

    def events(self) -> list[str]:
        """Messages of the events on PodGroups so far."""
        return [event.message for event in self.view.events]


def _names(tasks: Iterable[Task]) -> list[str]:
    return [task.name for task in tasks]


def allowed_rows(session: Session, pod: str) -> set[str]:
    """Nodes that take a pod as far as filters go, by the way that actions ask."""
    evaluation = session.cycle.searches.of(session.task(pod))
    rows = evaluation.feasible(None, resources=False)
    return {node.name for node in session.view.row_nodes(rows)}


def totals(session: Session, pod: str, nodes: Sequence[str]) -> dict[str, float]:
    """Final scores among some nodes, by the way that actions ask."""
    evaluation = session.cycle.searches.of(session.task(pod))
    rows = np.array([session.node(name).row for name in nodes], dtype=np.intp)
    return dict(zip(nodes, evaluation.totals(rows).tolist(), strict=True))
