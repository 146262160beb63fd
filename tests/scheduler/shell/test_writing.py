"""What is written about jobs: grouping, merging of successive cycles, and the patch itself."""

from __future__ import annotations

from stromboli.api import core
from stromboli.scheduler.conditions import MESSAGE_LIMIT
from stromboli.scheduler.core.results import CycleResult, PodGroupUpdate, PodUpdate, TaskRef
from stromboli.scheduler.core.view import JobEvent
from stromboli.scheduler.writing import JobWrites, by_job, pod_group_patch


def update(phase: str = "Running", job: str = "ns/j", message: str = "", **counters: int) -> PodGroupUpdate:
    condition = core.PodGroupCondition(
        type="Unschedulable", status="True", reason="NotEnoughResources", message=message
    )
    return PodGroupUpdate(job, "uid-1", core.PodGroupStatus(phase=phase, conditions=(condition,), **counters))


def pod(name: str, message: str = "why") -> PodUpdate:
    return PodUpdate(TaskRef("ns", name, f"uid-{name}", "ns/j"), "Unschedulable", message)


def event(message: str) -> JobEvent:
    return JobEvent("ns/j", "uid-1", "Warning", "Unschedulable", message)


def test_patch_touches_only_the_status_of_this_very_group_at_this_version() -> None:
    patch = pod_group_patch(update(running=2, message="m"), "7")
    assert patch == {
        "metadata": {"uid": "uid-1", "resourceVersion": "7"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "m"}],
            "running": 2,
            "succeeded": None,
            "failed": None,
        },
    }


def test_message_is_bounded() -> None:
    patch = pod_group_patch(update(message="x" * 100_000), "7")
    assert len(patch["status"]["conditions"][0]["message"]) == MESSAGE_LIMIT


def test_decisions_are_grouped_by_job() -> None:
    result = CycleResult(
        "s",
        pod_groups=[update(), update(job="ns/other")],
        events=[event("e")],
        pods=[pod("a"), pod("b")],
    )
    writes = by_job(result, {"ns/j": "7"})
    assert set(writes) == {"ns/j", "ns/other"}
    assert writes["ns/j"].resource_version == "7"
    assert writes["ns/j"].events == [event("e")]
    assert set(writes["ns/j"].pods) == {"uid-a", "uid-b"}
    assert writes["ns/other"].resource_version == ""


def test_later_cycle_overrides_and_keeps_what_only_the_earlier_one_says() -> None:
    earlier = JobWrites(update("Inqueue"), "7", [event("old")], {"uid-a": pod("a", "old"), "uid-b": pod("b")})
    later = JobWrites(update("Running"), "8", [event("new")], {"uid-a": pod("a", "new")})
    both = earlier.followed_by(later)
    assert (both.group, both.resource_version, both.events) == (update("Running"), "8", [event("new")])
    assert both.pods == {"uid-a": pod("a", "new"), "uid-b": pod("b")}


def test_later_cycle_without_a_status_leaves_the_earlier_one_to_be_written() -> None:
    both = JobWrites(update("Running"), "7").followed_by(JobWrites(events=[event("e")]))
    assert (both.group, both.resource_version) == (update("Running"), "7")
