"""Enumerations, spellings, generated names and texts."""

from __future__ import annotations

import pytest

from stromboli.api import booleans, names, phases, reasons


def test_what_users_may_write_in_policies() -> None:
    assert {"PodRunning", "OutOfSync", "CommandIssued"}.isdisjoint(phases.USER_JOB_EVENTS)
    assert "*" in phases.USER_JOB_EVENTS
    assert {"SyncJob", "EnqueueJob", "SyncQueue"}.isdisjoint(phases.USER_JOB_ACTIONS)
    assert "RestartPartition" in phases.USER_JOB_ACTIONS


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_true_spellings(text: str) -> None:
    assert booleans.parse(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_false_spellings(text: str) -> None:
    assert booleans.parse(text) is False


@pytest.mark.parametrize("text", ["", "yes", "TrUe", "on", " true"])
def test_other_spellings_are_no_booleans(text: str) -> None:
    assert booleans.parse(text) is None


def test_generated_names() -> None:
    assert names.job_pod_name("test-job", "test-task", 0) == "test-job-test-task-0"
    assert names.job_pod_group_name("test-job", "U") == "test-job-U"
    assert names.cron_job_child_name("nightly", 28_500_059 * 60 + 59) == "nightly-28500059"
    assert names.command_name_prefix("myjob", "AbortJob") == "myjob-abortjob-"
    assert names.unqualified(names.qualified("ns", "template")) == ("ns", "template")
    assert names.unqualified("ns.with.dots") is None
    assert names.bare_pod_group_name("U") == "podgroup-U"
    assert names.job_flow_child_name("flow", "a") == "flow-a"


def test_long_messages_are_cut() -> None:
    assert reasons.bounded("short") == "short"
    cut = reasons.bounded("x" * 5000)
    assert (len(cut), cut[-3:]) == (reasons.MESSAGE_LIMIT, "...")


TEXTS = {
    reasons.gang_unschedulable(2, 3, "no room"): "2/3 tasks in gang unschedulable: no room",
    reasons.pipelined("ns", "p", "n"): (
        "Pod ns/p can possibly be assigned to n, once resource is released and minAvailable is satisfied"
    ),
    reasons.schedulable("ns", "p", "n"): "Pod ns/p can possibly be assigned to n, once minAvailable is satisfied",
    reasons.assigned("ns", "p", "n"): "Successfully assigned ns/p to n",
    reasons.bind_failed("n", "conflict"): "failed to bind to node n: conflict",
    reasons.evicted("reclaim"): "Pod is evicted, because of reclaim",
    reasons.preempting("volcano"): "volcano: preempting to accommodate a higher priority pod",
}


def test_texts_are_the_documented_ones() -> None:
    for found, want in TEXTS.items():
        assert found == want
