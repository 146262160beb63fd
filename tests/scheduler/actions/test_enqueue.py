"""enqueue (spec 05 section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, Vote
from stromboli.scheduler.core.records import Job
from stromboli.testing.builders import node, pod_group, queue
from tests.scheduler.core.worlds import plugin_of, policy, run_cycle, world


def phases(mirror: Mirror) -> dict[str, str]:
    return {job.name: job.phase.word for job in mirror.jobs.values()}


@dataclass(frozen=True)
class Case:
    phase: str
    reserve: bool
    vote: Vote
    want: str


CASES = {
    "admitted without asking when nothing is reserved": Case("Pending", False, Vote.REJECT, "Inqueue"),
    "an empty phase is pending": Case("", False, Vote.ABSTAIN, "Inqueue"),
    "let in": Case("Pending", True, Vote.PERMIT, "Inqueue"),
    "refused": Case("Pending", True, Vote.REJECT, "Pending"),
    "admitted before": Case("Inqueue", True, Vote.REJECT, "Inqueue"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_group(case: Case) -> None:
    group = pod_group("g").members(1).phase(case.phase)
    mirror = world(queue().build(), (group.reserve(cpu=1) if case.reserve else group).build())
    plugins = {"test": plugin_of(Hooks(job_enqueueable=lambda _: case.vote))}
    run_cycle(mirror, policy("test", actions="enqueue"), plugins=plugins)
    assert phases(mirror) == {"g": case.want}


def test_a_refused_group_does_not_hold_up_others() -> None:
    mirror = world(
        queue().build(),
        [
            pod_group(name).members(1).phase("Pending").reserve(cpu=1).born(index).build()
            for index, name in enumerate("abc")
        ],
    )
    hooks = Hooks(job_enqueueable=lambda job: Vote.REJECT if job.name == "a" else Vote.PERMIT)
    run_cycle(mirror, policy("test", actions="enqueue"), plugins={"test": plugin_of(hooks)})
    assert phases(mirror) == {"a": "Pending", "b": "Inqueue", "c": "Inqueue"}


def test_queues_take_turns_and_plugins_hear_of_every_admission() -> None:
    mirror = world(
        queue("q1").build(),
        queue("q2").born(1).build(),
        [
            pod_group(f"{name}{index}").queue(name).members(1).phase("Pending").reserve(cpu=1).born(index).build()
            for name in ("q1", "q2")
            for index in range(2)
        ],
    )
    heard: list[str] = []

    def enqueued(job: Job) -> None:
        heard.append(job.name)

    hooks = Hooks(job_enqueueable=lambda _: Vote.PERMIT, job_enqueued=enqueued)
    run_cycle(mirror, policy("test", actions="enqueue"), plugins={"test": plugin_of(hooks)})
    assert heard == ["q10", "q11", "q20", "q21"], "without a queue order the older queue stays first"


def test_a_group_of_an_unknown_queue_is_not_admitted() -> None:
    mirror = world(queue().build(), pod_group("g").queue("lost").phase("Pending").build())
    run_cycle(mirror, policy(actions="enqueue"))
    assert phases(mirror) == {"g": "Pending"}


def test_what_proportion_and_overcommit_admit() -> None:

    mirror = world(
        node("n").offer(cpu=8, memory="8G").build(),
        queue("small").cap(cpu=1, memory="1G").build(),
        pod_group("large").queue("small").members(1).phase("Pending").reserve(cpu=8, memory="8G").build(),
    )
    run_cycle(mirror, policy("proportion", actions="enqueue"))
    assert phases(mirror) == {"large": "Pending"}
