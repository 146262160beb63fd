"""What is done for a flow: spec 03 sections 5.2, 5.3, 5.5; probes as documented."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from stromboli.controllers.jobflow.conditions import Question, questions
from stromboli.controllers.jobflow.planning import Plan, plan
from stromboli.controllers.jobflow.view import View
from stromboli.kube.json import JsonObject
from tests.controllers.jobflow.flows import flow, job, step, view

PAIR = (step("a"), step("b", "a"))
DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


def done(name: str, phase: str = "Completed") -> JsonObject:
    return {"jobStatusList": [{"name": name, "state": phase}], "state": {"phase": "Running"}}


class Case(NamedTuple):
    view: View
    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    phase: str | None = None


CASES = {
    "a new flow": Case(view(flow(*PAIR)), ("a",), phase="Pending"),
    "the first runs": Case(view(flow(*PAIR), job("f-a", "Running")), phase="Running"),
    "the first is done": Case(view(flow(*PAIR), job("f-a", "Completed")), ("b",), phase="Running"),
    "the first is almost done": Case(view(flow(*PAIR), job("f-a", "Completing")), phase="Running"),
    "the first failed": Case(view(flow(*PAIR), job("f-a", "Failed")), phase="Failed"),
    "the first was terminated": Case(view(flow(*PAIR), job("f-a", "Terminated")), phase="Failed"),
    "both branches start": Case(view(flow(*DIAMOND), job("f-a", "Completed")), ("b", "c"), phase="Running"),
    "one branch is done": Case(
        view(flow(*DIAMOND), job("f-a", "Completed"), job("f-b", "Completed"), job("f-c", "Running")), phase="Running"
    ),
    "a failing branch": Case(
        view(flow(*DIAMOND), job("f-a", "Completed"), job("f-b", "Failed"), job("f-c", "Running")), phase="Failed"
    ),
    "no targets": Case(view(flow({"name": "a", "dependsOn": {"targets": []}})), ("a",), phase="Pending"),
    "null targets": Case(view(flow({"name": "a", "dependsOn": {"targets": None}})), ("a",), phase="Pending"),
    "a target that is no step": Case(view(flow(step("a", "ghost"))), phase="Pending"),
    "the last of two with one name": Case(view(flow(step("a", "ghost"), step("a"))), ("a",), phase="Pending"),
    "no steps": Case(view(flow()), phase="Succeed"),
    "failed is the end": Case(view(flow(*PAIR, status={"state": {"phase": "Failed"}}))),
    "terminating is the end": Case(view(flow(*PAIR, status={"state": {"phase": "Terminating"}}))),
    "a job in the way": Case(view(flow(*PAIR), strangers=("f-a",)), phase="Pending"),
    "kept after success": Case(
        view(flow(step("a"), status={"state": {"phase": "Succeed"}}), job("f-a", "Completed")), phase="Succeed"
    ),
    "cleared after success": Case(
        view(
            flow(step("a"), status={"state": {"phase": "Succeed"}}, jobRetainPolicy="delete"), job("f-a", "Completed")
        ),
        delete=("f-a",),
    ),
    "not cleared before success is on record": Case(
        view(flow(step("a"), jobRetainPolicy="delete"), job("f-a", "Completed")), phase="Succeed"
    ),
}


def only(found: Plan) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    return found.create, found.delete, None if found.status is None else found.status["state"]["phase"]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_plan(case: Case) -> None:
    assert only(plan(case.view, {}, now=0)) == (case.create, case.delete, case.phase)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_that_was_deleted_is_not_run_again(phase: str) -> None:
    """Defect 12 of spec 03 section 13."""
    assert plan(view(flow(step("a"), status=done("f-a", phase))), {}, now=0).create == ()


def test_an_unfinished_job_that_was_deleted_is_made_again() -> None:
    assert plan(view(flow(step("a"), status=done("f-a", "Running"))), {}, now=0).create == ("a",)


def test_what_was_completed_and_deleted_still_counts_as_a_dependency() -> None:
    assert plan(view(flow(*PAIR, status=done("f-a"))), {}, now=0).create == ("b",)


def test_a_missing_template_holds_up_nothing_else() -> None:
    seen = view(flow(step("a"), step("b")))
    found = plan(View(seen.flow, seen.jobs, {"b": seen.templates["b"]}), {}, now=0)
    assert (found.create, found.without_template) == (("b",), ("a",))
    assert found.status is not None


# -- probes ------------------------------------------------------------------------------------------------------------

HTTP = {"httpGetList": [{"taskName": "t", "path": "/ready", "port": 80, "httpHeader": {"name": "x", "value": "y"}}]}
TCP = {"tcpSocketList": [{"taskName": "t", "port": 5432}]}
ASKED = {
    "http": (HTTP, Question("f-a", "t", 80, "/ready", ("x", "y"))),
    "tcp": (TCP, Question("f-a", "t", 5432)),
    "http without a path": ({"httpGetList": [{"taskName": "t", "port": 80}]}, Question("f-a", "t", 80, "/")),
}


def probed(probe: JsonObject, phase: str, **status: Any) -> View:
    return view(flow(step("a"), step("b", "a", probe=probe)), job("f-a", phase, **status))


@pytest.mark.parametrize(("probe", "question"), ASKED.values(), ids=ASKED.keys())
def test_a_step_with_a_probe_starts_when_the_answer_is_yes(probe: JsonObject, question: Question) -> None:
    seen = probed(probe, "Running")
    assert list(questions(seen)) == [question]
    assert plan(seen, {question: True}, now=0).create == ("b",)
    refused = plan(seen, {question: False}, now=0)
    assert (refused.create, refused.ask_again) == ((), True)
    assert plan(seen, {}, now=0).create == (), "nobody to ask yet"


@pytest.mark.parametrize("phase", ["", "Pending", "Failed"])
def test_nobody_asks_a_job_that_does_not_run(phase: str) -> None:
    seen = probed(TCP, phase)
    assert list(questions(seen)) == []
    assert plan(seen, {}, now=0).create == ()


def test_a_completed_job_has_been_ready_unless_a_pod_of_it_says_no() -> None:
    seen = probed(TCP, "Completed")
    assert plan(seen, {}, now=0).create == ("b",)
    assert plan(seen, {Question("f-a", "t", 5432): False}, now=0).create == ()


def test_every_condition_must_hold() -> None:
    seen = probed({**HTTP, **TCP}, "Running")
    http, tcp = questions(seen)
    assert plan(seen, {http: True, tcp: False}, now=0).create == ()
    assert plan(seen, {http: True, tcp: True}, now=0).create == ("b",)


def test_nothing_is_asked_for_a_step_that_is_made() -> None:
    seen = view(flow(step("a"), step("b", "a", probe=TCP)), job("f-a", "Running"), job("f-b", "Pending"))
    assert list(questions(seen)) == []
    assert not plan(seen, {}, now=0).ask_again


TASKS = {
    "all run": ("t", "Running", {"t": {"Running": 1}}, True),
    "it has run": ("t", "Running", {"t": {"Succeeded": 1}}, True),
    "pending is not running": ("t", "Running", {"t": {"Pending": 1}}, False),
    "succeeded": ("t", "Succeeded", {"t": {"Succeeded": 1}}, True),
    "completed means succeeded": ("t", "Completed", {"t": {"Succeeded": 1}}, True),
    "running is not succeeded": ("t", "Succeeded", {"t": {"Running": 1}}, False),
    "any task": ("", "Running", {"t": {"Running": 1}}, True),
    "a task that is none": ("u", "Running", {"t": {"Running": 1}}, False),
    "no counts yet": ("t", "Running", {}, False),
    "failed": ("t", "Failed", {"t": {"Failed": 1}}, True),
}


@pytest.mark.parametrize(("task", "phase", "counts", "want"), TASKS.values(), ids=TASKS.keys())
def test_a_task_must_have_a_phase(task: str, phase: str, counts: dict[str, dict[str, int]], want: bool) -> None:
    probe = {"taskStatusList": [{"taskName": task, "phase": phase}]}
    found = {name: {"phase": numbers} for name, numbers in counts.items()}
    assert (plan(probed(probe, "Running", taskStatusCount=found), {}, now=0).create == ("b",)) is want


def test_an_empty_probe_is_none() -> None:
    assert plan(probed({"httpGetList": []}, "Running"), {}, now=0).create == ()
    assert plan(probed({"httpGetList": []}, "Completed"), {}, now=0).create == ("b",)
