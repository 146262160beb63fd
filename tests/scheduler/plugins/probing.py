"""Asks an open session every question of a vector's ``probe`` and ``calls``, and says where the answers differ.

A probe is what upstream's session answered right after opening, function by function; unlike the outcome of a cycle it
shows which plugin answers differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.plugin import Filter, Purpose, Score
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.reasons import Code
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Rows
from tests.conformance import clusters, sessions
from tests.conformance.comparing import JsonObject, differ, differing_maps

CODES = {
    "UnschedulableAndUnresolvable": Code.UNRESOLVABLE,
    "Unschedulable": Code.UNSCHEDULABLE,
    "Error": Code.ERROR,
}


def opened(case: JsonObject) -> Cycle:
    """A session over the vector's cluster, just opened."""
    mirror = clusters.build(case["input"])
    return sessions.open_cycle(case, mirror, clusters.policy_of(case["input"]))


def differences(case: JsonObject) -> list[str]:
    """Where the answers of a session opened here differ from the probe, which was recorded without node loads."""
    probe = Probe(opened({**case, "input": {**case["input"], "nodeUsage": None}}))
    probe.unstable = frozenset(case.get("probeUnstable") or ())
    return [*map(str, probe.cycle.result.problems), *probe.differences(case["probe"])]


class Probe:
    """The questions, by section of the probe."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.combination = cycle.combination
        self.tasks = {task.key: task for job in cycle.view.jobs.values() for task in job.tasks.values()}
        self.unstable: frozenset[str] = frozenset()

    def differences(self, want: JsonObject) -> Iterator[str]:
        sections: Mapping[str, Callable[[Any], Iterable[str]]] = {
            "jobs": self.jobs,
            "jobOrder": self.job_order,
            "queueOrder": self.queue_order,
            "taskOrder": self.task_order,
            "queues": self.queues,
            "pendingTasks": self.pending_tasks,
            "victims": self.victims,
            "victimTasks": self.victim_tasks,
            "hyperNodes": self.hyper_nodes,
        }
        for name, section in sections.items():
            if want.get(name) and not _panicked(want[name]):
                yield from section(want[name])

    # Jobs and queues

    def jobs(self, want: JsonObject) -> Iterator[str]:
        for job_id, answers in want.items():
            job = self.cycle.view.jobs[job_id]
            invalid = self.combination.job_valid(job)
            got: JsonObject = {
                "valid": invalid and {"reason": invalid.reason, "message": invalid.message, "pass": False},
                "ready": self.combination.job_ready(job),
                "pipelined": self.combination.job_pipelined(job),
                "starving": self.combination.job_starving(job),
                "enqueueable": self.combination.job_enqueueable(job),
            }
            known = _known(answers)
            if got["enqueueable"] and self._admits_more(job):
                known.pop("enqueueable", None)
            yield from differing_maps(f"job {job_id}", known, {key: got[key] for key in known})

    def _admits_more(self, job: Job) -> bool:
        """overcommit lets in on purpose what upstream keeps out, when it is due to the queue."""
        spec = job.queue.resource.spec if job.queue is not None else None
        due = spec is not None and (spec.deserved or spec.guarantee.resource)
        return bool(due) and self.cycle.policy.option("overcommit") is not None

    def job_order(self, want: Sequence[str]) -> Iterator[str]:
        yield from differ("jobOrder", want, [job.id for job in self._sorted_jobs()])

    def _sorted_jobs(self) -> list[Job]:
        jobs = sorted(self.cycle.view.jobs.values(), key=lambda job: job.id)
        return self.combination.job_ordering.sorted(jobs)

    def queue_order(self, want: Sequence[str]) -> Iterator[str]:
        queues = sorted(self.cycle.view.queues.values(), key=lambda queue: queue.name)
        got = [queue.name for queue in self.combination.queue_ordering.sorted(queues)]
        yield from differ("queueOrder", want, [name for name in got if name in want])

    def task_order(self, want: Mapping[str, Sequence[str]]) -> Iterator[str]:
        for job_id, order in want.items():
            tasks = [self.tasks[key] for key in sorted(order)]
            yield from differ(
                f"taskOrder {job_id}", order, [t.key for t in self.combination.task_ordering.sorted(tasks)]
            )

    def queues(self, want: JsonObject) -> Iterator[str]:
        for name, answers in want.items():
            queue = self.cycle.view.queues[name]
            if "overused" in answers and not _panicked(answers["overused"]):
                yield from differ(f"overused {name}", answers["overused"], self.combination.overused(queue))
            for key, answer in _known(answers.get("allocatable") or {}).items():
                got = self.combination.allocatable(queue, self.tasks[key])
                yield from differ(f"allocatable {name} {key}", answer, got)
            for key, answer in _known(answers.get("preemptive") or {}).items():
                got = self.combination.preemptive(queue, [self.tasks[key]])
                yield from differ(f"preemptive {name} {key}", answer, got)

    # Nodes

    def pending_tasks(self, want: JsonObject) -> Iterator[str]:
        for key, answers in want.items():
            task = self.tasks[key]
            error = self.combination.prepare(task)
            if (answers.get("prePredicate") is None) != (error is None):
                yield f"prePredicate {key}: want {answers.get('prePredicate')}, got {error}"
            if error is None and not _panicked(answers):
                yield from self._nodes(key, task, answers)

    def _nodes(self, key: str, task: Task, answers: JsonObject) -> Iterator[str]:
        errors = answers.get("predicateErrors") or {}
        refused = self.refusals(task)
        yield from differing_maps(
            f"predicate {key}",
            {node: _statuses(error) for node, error in errors.items()},
            {node: _texts(statuses) for node, statuses in refused.items()},
        )
        rows = self.rows(node for node in self._names() if node not in errors)
        for plugin, scores in (answers.get("pluginScores") or {}).items():
            yield from self._scores(f"score {plugin} {key}", plugin, task, rows, scores)

    def _scores(self, where: str, plugin: str, task: Task, rows: Rows, want: JsonObject) -> Iterator[str]:
        if not any(want.values()):
            return  # upstream's probe does not say where the task's gang is, without which nothing is scored
        got = self.scores(task, rows, plugin)
        wanted = {node: self._summed(want, node) for node in got}
        if len(set(wanted.values())) == 1 and not any(got.values()):
            return  # what is the same for every node decides nothing and may be left out
        for node, score in got.items():
            if not math.isclose(wanted[node], score, rel_tol=1e-9, abs_tol=1e-6):
                yield f"{where} {node}: want {wanted[node]}, got {score}"

    @staticmethod
    def _summed(want: JsonObject, node: str) -> float:
        return float(sum(scores.get(node, 0) for scores in want.values() if isinstance(scores, dict)))

    def _names(self) -> list[str]:
        return [node.name for node in self.cycle.view.node_list if node is not None]

    def rows(self, names: Iterable[str]) -> Rows:
        """Rows of nodes by name."""
        return np.array([self.cycle.view.nodes_by_name[name].row for name in names], dtype=np.intp)

    def refusals(self, task: Task) -> dict[str, list[tuple[str, Code]]]:
        """Per refused node the reasons of the first plugin that refuses it."""
        found: dict[str, list[tuple[str, Code]]] = {}
        for _, filters in self.combination.filters:
            for name in self._names():
                if name not in found:
                    statuses = list(_ask(filters, task, self.rows([name])))
                    if statuses:
                        found[name] = statuses
        return found

    def scores(self, task: Task, rows: Rows, plugin: str | None = None) -> dict[str, float]:
        """The sum of the scores of one plugin (None: of all) per node."""
        total = np.zeros(len(rows))
        for option, scores in self._score_hooks():
            if plugin is None or option.name == plugin:
                for score in scores:
                    total += _rate(score, task, rows)
        return {node.name: float(total[at]) for at, node in enumerate(self.cycle.view.row_nodes(rows))}

    def _score_hooks(self) -> Iterator[tuple[PluginOption, Sequence[Score]]]:
        for member in self.combination._members("node_order"):
            yield member.option, member.hooks.scores

    # Victims

    def victims(self, want: JsonObject) -> Iterator[str]:
        for key, answers in want.items():
            task = self.tasks[key]
            for what, ask, same_queue in (
                ("preemptable", self.combination.preemptable, True),
                ("reclaimable", self.combination.reclaimable, False),
            ):
                if what in answers and not _panicked(answers[what]):
                    chosen = [victim.key for victim in ask(task, self._running(task, same_queue=same_queue))]
                    yield from differ(f"{what} {key}", sorted(answers[what]), sorted(chosen))

    def _running(self, task: Task, *, same_queue: bool) -> list[Task]:
        assert task.job is not None
        return [
            other
            for _, other in sorted(self.tasks.items())
            if other.status == TaskStatus.RUNNING
            and other.job is not None
            and other.job is not task.job
            and (other.job.queue is task.job.queue) is same_queue
        ]

    def victim_tasks(self, want: Sequence[str]) -> Iterator[str]:
        running = [task for _, task in sorted(self.tasks.items()) if task.status == TaskStatus.RUNNING]
        got = self.combination.victim_tasks(running)
        yield from differ("victimTasks", len(want), len(got))  # upstream takes those of a job in arbitrary order

    # HyperNodes

    def hyper_nodes(self, want: JsonObject) -> Iterator[str]:
        for job_id, answers in want.items():
            job = self.cycle.view.jobs[job_id]
            yield from self._gradients(job_id, job, None, answers)
            for sub_id, sub_answers in (answers.get("subJobs") or {}).items():
                sub_job = job.sub_jobs[sub_id]
                yield from self._gradients(sub_id, job, sub_id, sub_answers)
                rows = self.cycle.view.hyper_nodes.rows
                got = self.combination.hyper_node_scores(sub_job, rows)
                for by_name in (sub_answers.get("hyperNodeOrder") or {}).values():
                    yield from close_maps(f"hyperNodeOrder {sub_id}", by_name, got)

    def _gradients(self, where: str, job: Job, sub_id: str | None, answers: JsonObject) -> Iterator[str]:
        for name, purpose in (("gradients", Purpose.ALLOCATE), ("evictGradients", Purpose.EVICT)):
            if name in answers:
                sub_job = job.sub_jobs[sub_id] if sub_id else None
                got = self.combination.gradient(job, sub_job, ROOT_HYPER_NODE, purpose)
                yield from self._same_gradient(f"{name} {where}", answers[name] or [], got, purpose)

    @staticmethod
    def _same_gradient(
        where: str, want: Sequence[Sequence[str]], got: Sequence[Sequence[str]], purpose: Purpose
    ) -> Iterator[str]:
        """Which HyperNodes are left out of a group for eviction is arbitrary upstream; some tests name two alike."""
        if purpose is Purpose.EVICT or any(len(set(group)) < len(group) for group in want):
            yield from differ(where, [len(group) for group in want], [len(group) for group in got])
        else:
            yield from differ(where, want, [sorted(group) for group in got])


def call_differences(case: JsonObject) -> list[str]:
    """Where answers to the calls that the upstream test made itself differ."""
    probe = Probe(opened(case))
    found: list[str] = list(probe.cycle.result.problems)
    for call in case["observed"].get("calls") or ():
        found += _call(probe, call["fn"], call["args"], call["result"])
    return found


def _call(probe: Probe, fn: str, args: JsonObject, want: Any) -> Iterator[str]:
    where = f"{fn} {args}"
    match fn:
        case "NodeOrderFn":
            rows = probe.rows([args["node"]])
            (got,) = probe.scores(probe.tasks[args["task"]], rows).values()
            yield from close_maps(where, {"": want}, {"": got})
        case "PredicateFn":
            refused = probe.refusals(probe.tasks[args["task"]]).get(args["node"], [])
            yield from differ(where, _statuses(want) if want else [], _texts(refused))
        case "BatchNodeOrderFn":
            yield from _batch(probe, where, args, want)
        case "HyperNodeOrderMapFn":
            yield from _hyper_node_order(probe, where, args, want)
        case "JobEnqueued":
            probe.combination.job_enqueued(probe.cycle.view.jobs[args["job"]])
        case "JobEnqueueable" if isinstance(args["job"], str):
            yield from differ(where, want, probe.combination.job_enqueueable(probe.cycle.view.jobs[args["job"]]))
        case "VictimTasks":
            chosen = probe.combination.victim_tasks([probe.tasks[key] for key in args["tasks"]])
            yield from differ(where, len(want), len(chosen))


def _batch(probe: Probe, where: str, args: JsonObject, want: Any) -> Iterator[str]:
    named = args["task"]
    key = named if isinstance(named, str) else named["task"]
    task = probe.tasks[key]
    if isinstance(named, dict) and task.job is not None and task.sub_job is not None:
        for field, owner in (("jobAllocatedHyperNode", task.job), ("subJobAllocatedHyperNode", task.sub_job)):
            if field in named:
                owner.allocated_hyper_node = named[field]
        if "subJobAllocatedHyperNode" not in named and "jobAllocatedHyperNode" in named:
            task.sub_job.allocated_hyper_node = named["jobAllocatedHyperNode"]
    got = probe.scores(task, probe.rows(args["nodes"]))
    yield from close_maps(where, {node: (want or {}).get(node, 0.0) for node in args["nodes"]}, got)


def _hyper_node_order(probe: Probe, where: str, args: JsonObject, want: Any) -> Iterator[str]:
    job = next(job for job in probe.cycle.view.jobs.values() if args["subJob"] in job.sub_jobs)
    rows = probe.cycle.view.hyper_nodes.rows
    got = probe.combination.hyper_node_scores(job.sub_jobs[args["subJob"]], rows)
    for by_name in want.values():
        yield from close_maps(where, by_name, got)


def _ask(filters: Sequence[Filter], task: Task, row: Rows) -> Iterator[tuple[str, Code]]:
    for filter_ in filters:
        answer = filter_.refuse(task, row)
        if answer is not None and answer[0]:
            reason = filter_.reasons[int(answer[0]) - 1]
            yield reason.text, reason.code
            if reason.code.aborts:
                return


def _rate(score: Score, task: Task, rows: Rows) -> Floats:
    if score.concerns is not None and not score.concerns(task):
        return np.zeros(len(rows))
    raw = score.rate(task, rows)
    if raw is None:
        return np.zeros(len(rows))
    return score.normalise(raw) if score.normalise is not None else raw


def _statuses(error: JsonObject) -> list[tuple[str, Code]]:
    return sorted((status["reason"], CODES[status["code"]]) for status in error["status"])


def _texts(statuses: Iterable[tuple[str, Code]]) -> list[tuple[str, Code]]:
    return sorted(statuses)


def _known(answers: JsonObject) -> JsonObject:
    return {key: answer for key, answer in answers.items() if not _panicked(answer)}


def _panicked(answer: object) -> bool:
    return isinstance(answer, dict) and "panic" in answer


def close_maps(where: str, want: Mapping[str, float], got: Mapping[str, float]) -> Iterator[str]:
    """One line for every number that differs by more than rounding."""
    for key, number in want.items():
        if not math.isclose(float(number), got.get(key, 0.0), rel_tol=1e-6, abs_tol=1e-6):
            yield f"{where} {key}: want {number}, got {got.get(key)}"
