"""The status of a flow: spec 03 sections 5.4 and 5.7."""

from __future__ import annotations

from datetime import datetime

import pytest

from stromboli.controllers.jobflow.status import LONGEST_HISTORY, compose
from tests.controllers.jobflow.flows import CREATED, flow, job, step, view

NOW = datetime.fromisoformat("2026-06-24T10:00:00Z").timestamp()
LISTS = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs", "unKnowJobs")

IN_LISTS = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
    "": "unKnowJobs",
    "Aborting": "unKnowJobs",
    "Aborted": "unKnowJobs",
    "Restarting": "unKnowJobs",
    "Completing": None,
    "Terminating": None,
}


@pytest.mark.parametrize(("phase", "title"), IN_LISTS.items())
def test_which_list_a_job_is_in(phase: str, title: str | None) -> None:
    found = compose(view(flow(step("a")), job("f-a", phase)), now=NOW)
    assert {one: found[one] for one in LISTS} == {one: ["f-a"] if one == title else [] for one in LISTS}


def test_a_running_job() -> None:
    counts = {"t": {"phase": {"Running": 1}}}
    found = compose(view(flow(step("a")), job("f-a", "Running", taskStatusCount=counts)), now=NOW)
    assert found["state"] == {"phase": "Running"}
    assert found["conditions"] == {"f-a": {"phase": "Running", "createTime": CREATED, "taskStatusCount": counts}}
    assert found["jobStatusList"] == [
        {
            "name": "f-a",
            "state": "Running",
            "startTimestamp": CREATED,
            "runningHistories": [{"startTimestamp": "2026-06-24T10:00:00Z", "state": "Running"}],
        }
    ]


def test_a_completed_job_has_an_end() -> None:
    jobs = (job("f-a", "Completed", retryCount=1, runningDuration="1s"), job("f-b", "Running"))
    first, second = compose(view(flow(step("a"), step("b", "a")), *jobs), now=NOW)["jobStatusList"]
    assert (first["endTimestamp"], first["restartCount"]) == ("2026-06-24T09:00:01Z", 1)
    assert "endTimestamp" not in second


HISTORIES = {
    "unchanged": ([{"state": "Completed"}], "Completed", [{"state": "Completed"}]),
    "changed": (
        [{"startTimestamp": CREATED, "state": "Running"}],
        "Completed",
        [
            {"startTimestamp": CREATED, "state": "Running", "endTimestamp": "2026-06-24T10:00:00Z"},
            {"startTimestamp": "2026-06-24T10:00:00Z", "state": "Completed"},
        ],
    ),
    "none yet": ([], "", None),
}


@pytest.mark.parametrize(("before", "phase", "want"), HISTORIES.values(), ids=HISTORIES.keys())
def test_histories(before: list[dict[str, str]], phase: str, want: list[dict[str, str]] | None) -> None:
    status = {"jobStatusList": [{"name": "f-a", "state": "Running", "runningHistories": before}]}
    [entry] = compose(view(flow(step("a"), status=status), job("f-a", phase)), now=NOW)["jobStatusList"]
    assert entry.get("runningHistories") == want


def test_histories_are_bounded() -> None:
    before = [{"startTimestamp": CREATED, "state": state} for state in ("Running", "Restarting") * 40]
    status = {"jobStatusList": [{"name": "f-a", "state": "Restarting", "runningHistories": before}]}
    [entry] = compose(view(flow(step("a"), status=status), job("f-a", "Running")), now=NOW)["jobStatusList"]
    assert len(entry["runningHistories"]) == LONGEST_HISTORY
    assert entry["runningHistories"][-1]["state"] == "Running"


def test_entries_of_jobs_that_are_gone_stay_and_count() -> None:
    status = {"jobStatusList": [{"name": "f-a", "state": "Completed"}], "state": {"phase": "Running"}}
    found = compose(view(flow(step("a"), step("b", "a"), status=status), job("f-b", "Completed")), now=NOW)
    assert [(one["name"], one["state"]) for one in found["jobStatusList"]] == [
        ("f-a", "Completed"),
        ("f-b", "Completed"),
    ]
    assert found["state"] == {"phase": "Succeed"}


def test_a_duration_that_is_none_costs_only_the_end_time() -> None:
    [entry] = compose(view(flow(step("a")), job("f-a", "Failed", runningDuration="long")), now=NOW)["jobStatusList"]
    assert "endTimestamp" not in entry
