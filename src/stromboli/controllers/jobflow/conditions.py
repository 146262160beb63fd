"""What must hold before a step may start. Pure.

Without a probe a dependency holds once its job is Completed. With one the job need not end: the dependency holds as
soon as every condition of the probe does, which is how a step waits for a server that another one runs. A job that
is Completed has been through everything, so what can no longer be observed of it counts as having been so.

HTTP and TCP conditions are *questions* here: somebody asks them on the network and hands the answers back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from stromboli.api.batch import Job, TaskSpec
from stromboli.api.flow import Flow, HttpGet, Probe, TcpSocket
from stromboli.api.phases import JobPhase, PodPhase
from stromboli.controllers.jobflow.progress import Stage, stage
from stromboli.controllers.jobflow.view import View


@dataclass(frozen=True, slots=True)
class Question:
    """Does every running pod of a task (of all tasks if it is empty) of ``job`` answer?

    Without ``path`` it is enough that the port accepts connections.
    """

    job: str
    task: str
    port: int
    path: str | None = None
    header: tuple[str, str] | None = None


_SYNONYMS: Final = {"Completed": PodPhase.SUCCEEDED}
_REACHED: Final[Mapping[str, frozenset[str]]] = {
    PodPhase.RUNNING: frozenset({PodPhase.RUNNING, PodPhase.SUCCEEDED}),
}
"""Phases that show that another was reached before."""


def questions(view: View) -> Iterator[Question]:
    """Everything that has to be asked now: probes of steps that are not made, at jobs that are under way or done."""
    for step in view.steps.values():
        if not view.is_made(step.name) and step.depends_on is not None and step.depends_on.probe is not None:
            for target in step.depends_on.targets:
                if _worth_asking(view, target):
                    yield from _questions(step.depends_on.probe, view.job_name(target))


def is_ready(view: View, step: Flow, answers: Mapping[Question, bool]) -> bool:
    """Whether a step may start. A question without an answer has none because nothing is left to be asked."""
    depends = step.depends_on
    return depends is None or all(_holds(view, target, depends.probe, answers) for target in depends.targets)


def is_watching(view: View) -> bool:
    """Whether some step waits for an answer from the network, which nothing will announce."""
    return next(questions(view), None) is not None


def _worth_asking(view: View, target: str) -> bool:
    return target in view.steps and stage(view.phase_of(target)) in (Stage.UNDER_WAY, Stage.DONE)


def _questions(probe: Probe, job: str) -> Iterator[Question]:
    yield from (_http(one, job) for one in probe.http_get_list)
    yield from (_tcp(one, job) for one in probe.tcp_socket_list)


def _http(one: HttpGet, job: str) -> Question:
    header = (one.http_header.name, one.http_header.value) if one.http_header and one.http_header.name else None
    return Question(job, one.task_name, one.port, one.path or "/", header)


def _tcp(one: TcpSocket, job: str) -> Question:
    return Question(job, one.task_name, one.port)


def _holds(view: View, target: str, probe: Probe | None, answers: Mapping[Question, bool]) -> bool:
    if target not in view.steps:
        return False
    phase = view.phase_of(target)
    done = phase == JobPhase.COMPLETED
    if probe is None or not (probe.http_get_list or probe.tcp_socket_list or probe.task_status_list):
        return done
    if stage(phase) not in (Stage.UNDER_WAY, Stage.DONE):
        return False
    asked = _questions(probe, view.job_name(target))
    return all(answers.get(one, done) for one in asked) and _tasks_are(view.job_of(target), probe, done=done)


def _tasks_are(job: Job | None, probe: Probe, *, done: bool) -> bool:
    return all(_task_is(job, one.task_name, one.phase, done=done) for one in probe.task_status_list)


def _task_is(job: Job | None, task: str, phase: str, *, done: bool) -> bool:
    wanted = _SYNONYMS.get(phase, phase)
    if done and wanted != PodPhase.FAILED:
        return True
    if job is None:
        return False
    found = [one for one in job.spec.tasks if task in ("", one.name)]
    return bool(found) and all(_count(job, one.name, wanted) >= _enough(one) for one in found)


def _count(job: Job, task: str, phase: str) -> int:
    counts = job.status.task_status_count.get(task)
    return sum(_present(counts.phase, _REACHED.get(phase, (phase,)))) if counts is not None else 0


def _present(counts: Mapping[str, int], phases: Iterable[str]) -> Iterator[int]:
    return (counts.get(phase, 0) for phase in phases)


def _enough(task: TaskSpec) -> int:
    """Pods of a task that must have the phase: as many as the job needs of it."""
    return max(1, task.replicas if task.min_available is None else task.min_available)
