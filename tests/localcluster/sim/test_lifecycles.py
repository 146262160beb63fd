"""The life of a pod, step by step, with a clock that the test holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.localcluster.nodes.lifecycles import (
    PREFIX,
    Placement,
    Settings,
    advance,
    output,
    stop_at,
)
from stromboli.localcluster.nodes.timestamps import stamp
from stromboli.localcluster.storage import Object

START = 1_800_000_000.0
PLACE = Placement("10.64.0.1", "10.0.0.1")


def pod(*containers: Object, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "1",
            "annotations": {PREFIX + key: value for key, value in (annotations or {}).items()},
        },
        "spec": {"nodeName": "n", "containers": list(containers) or [{"name": "main", "image": "i"}], **spec},
        "status": {"phase": "Pending"},
    }


def live(obj: Object, until: float, settings: Settings | None = None) -> list[tuple[float, str]]:
    """Step the pod through its due times; phases with the seconds since the start at which they began."""
    now, seen = START, list[tuple[float, str]]()
    for _ in range(100):
        step = advance(obj, now, settings or Settings(), PLACE)
        if step.status is not None:
            obj["status"] = step.status
        if not seen or seen[-1][1] != obj["status"]["phase"]:
            seen.append((now - START, obj["status"]["phase"]))
        if step.next_at is None or step.next_at > START + until:
            return seen
        now = step.next_at
    raise AssertionError("the pod's life does not settle")


@dataclass(frozen=True)
class Case:
    want: list[tuple[float, str]]
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)


RUNS = [(0.0, "Running")]
CASES = {
    "a service runs until it is deleted": Case(RUNS),
    "a service ignores its command": Case(RUNS, command=["sleep", "1"]),
    "a batch pod ends after the default time": Case(
        [(0, "Running"), (5, "Succeeded")], spec={"restartPolicy": "Never"}
    ),
    "so does one that may restart on failure": Case(
        [(0, "Running"), (5, "Succeeded")], spec={"restartPolicy": "OnFailure"}
    ),
    "a command that can be read decides": Case(
        [(0, "Running"), (2, "Failed")], spec={"restartPolicy": "Never"}, command=["sh", "-c", "sleep 2; exit 3"]
    ),
    "annotations win over the command": Case(
        [(0, "Running"), (9, "Succeeded")],
        {"run-seconds": "9", "exit-code": "0"},
        {"restartPolicy": "Never"},
        ["false"],
    ),
    "an annotation for one container": Case(
        [(0, "Running"), (3, "Failed")], {"run-seconds.main": "3", "exit-code.main": "7"}, {"restartPolicy": "Never"}
    ),
    "nonsense in an annotation counts as absent": Case(
        [(0, "Running"), (5, "Succeeded")], {"run-seconds": "soon"}, {"restartPolicy": "Never"}
    ),
    "a start delay keeps it Pending": Case(
        [(0, "Pending"), (4, "Running"), (9, "Succeeded")], {"start-delay": "4"}, {"restartPolicy": "Never"}
    ),
    "an image that cannot be pulled": Case([(0, "Pending")], {"fail-image-pull": "true"}, {"restartPolicy": "Never"}),
    "a deadline ends it": Case(
        [(0, "Running"), (3, "Failed")], spec={"restartPolicy": "Never", "activeDeadlineSeconds": 3}
    ),
    "a deadline ends a pod that never started": Case(
        [(0, "Pending"), (3, "Failed")],
        {"fail-image-pull": "true"},
        {"restartPolicy": "Never", "activeDeadlineSeconds": 3},
    ),
    "nothing to wait for": Case([(0, "Succeeded")], {"run-seconds": "0"}, {"restartPolicy": "Never"}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_phases(case: Case) -> None:
    container = {"name": "main", "image": "i", "command": case.command}
    assert live(pod(container, annotations=case.annotations, **case.spec), until=60) == case.want


def test_a_running_pod_looks_like_one() -> None:
    obj = pod()
    live(obj, 1)
    status = obj["status"]
    assert (status["podIP"], status["hostIP"], status["startTime"]) == ("10.64.0.1", "10.0.0.1", stamp(START))
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    (main,) = status["containerStatuses"]
    assert (main["ready"], main["started"], main["restartCount"]) == (True, True, 0)
    assert main["state"] == {"running": {"startedAt": stamp(START)}}


def test_an_ended_container_keeps_its_exit_code_and_times() -> None:
    obj = pod(annotations={"exit-code": "7"}, restartPolicy="Never")
    live(obj, 60)
    (main,) = obj["status"]["containerStatuses"]
    ended = main["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")
    assert (ended["startedAt"], ended["finishedAt"]) == (stamp(START), stamp(START + 5))
    assert not main["ready"]


def test_a_failing_container_restarts_with_back_off() -> None:
    obj = pod(annotations={"run-seconds": "1", "exit-code": "1"}, restartPolicy="OnFailure")
    live(obj, 45)
    (main,) = obj["status"]["containerStatuses"]
    # ends at 1, again at 11, ends at 12, again at 32, ends at 33, waits 40 s
    assert obj["status"]["phase"] == "Running"
    assert main["restartCount"] == 2
    assert main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert main["state"]["waiting"]["message"] == "back-off 40s restarting failed container=main"
    assert main["lastState"]["terminated"]["exitCode"] == 1


def test_a_service_that_ends_is_restarted_even_after_success() -> None:
    obj = pod(annotations={"run-seconds": "1"})
    live(obj, 12)
    assert obj["status"]["containerStatuses"][0]["restartCount"] == 1


def test_the_pod_fails_when_one_of_its_containers_does() -> None:
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    obj = pod(*containers, annotations={"run-seconds.b": "9", "exit-code.a": "1"}, restartPolicy="Never")
    assert live(obj, 60) == [(0, "Running"), (9, "Failed")]


def test_init_containers_run_in_turn_before_the_others() -> None:
    init = [{"name": "first", "command": ["sleep", "2"]}, {"name": "second", "command": ["sleep", "3"]}]
    obj = pod(initContainers=init, restartPolicy="Never")
    assert live(obj, 60) == [(0, "Pending"), (5, "Running"), (10, "Succeeded")]
    assert [one["state"]["terminated"]["exitCode"] for one in obj["status"]["initContainerStatuses"]] == [0, 0]


def test_a_failing_init_container_fails_a_pod_that_never_restarts() -> None:
    obj = pod(initContainers=[{"name": "setup", "command": ["false"]}], restartPolicy="Never")
    assert live(obj, 60) == [(0, "Failed")]


def test_a_failing_init_container_keeps_a_service_pending() -> None:
    obj = pod(initContainers=[{"name": "setup", "command": ["false"]}])
    assert live(obj, 15) == [(0, "Pending")]
    assert obj["status"]["initContainerStatuses"][0]["restartCount"] >= 1


def test_a_sidecar_does_not_hold_the_pod_up() -> None:
    obj = pod(initContainers=[{"name": "proxy", "restartPolicy": "Always"}], restartPolicy="Never")
    assert live(obj, 60) == [(0, "Running"), (5, "Succeeded")]


def test_foreign_conditions_stay() -> None:
    obj = pod()
    obj["status"]["conditions"] = [{"type": "example.com/checked", "status": "True"}]
    live(obj, 1)
    assert {"type": "example.com/checked", "status": "True"} in obj["status"]["conditions"]


def test_looking_again_changes_nothing() -> None:
    obj = pod()
    live(obj, 1)
    assert advance(obj, START + 3, Settings(), PLACE).status is None


def test_a_pod_found_late_has_its_past() -> None:
    """After a restart from a state file the time that passed counts."""
    obj = pod(annotations={"run-seconds": "30"}, restartPolicy="Never")
    live(obj, 1)
    late = advance(obj, START + 3600, Settings(), PLACE).status
    assert late is not None
    assert late["phase"] == "Succeeded"
    assert late["containerStatuses"][0]["state"]["terminated"]["finishedAt"] == stamp(START + 30)


@dataclass(frozen=True)
class Stop:
    want: float | None
    grace: int = 30
    annotations: dict[str, str] = field(default_factory=dict)
    phase: str = "Running"
    deleted: bool = True
    settings: Settings = field(default_factory=Settings)


STOPS = {
    "nothing stops what is not deleted": Stop(None, deleted=False),
    "a simulated pod stops at once": Stop(0),
    "it may take its time": Stop(4, annotations={"stop-seconds": "4"}),
    "but not longer than its grace": Stop(2, grace=2, annotations={"stop-seconds": "60"}),
    "a default for all": Stop(3, settings=Settings(stop_seconds=3)),
    "an ended pod does not wait": Stop(0, annotations={"stop-seconds": "9"}, phase="Succeeded"),
}


@pytest.mark.parametrize("case", STOPS.values(), ids=STOPS.keys())
def test_stopping(case: Stop) -> None:
    obj = pod(annotations=case.annotations)
    obj["status"]["phase"] = case.phase
    if case.deleted:
        obj["metadata"]["deletionTimestamp"] = stamp(START + case.grace)
        obj["metadata"]["deletionGracePeriodSeconds"] = case.grace
    want = None if case.want is None else START + case.want
    assert stop_at(obj, case.settings) == want


def test_output_is_what_the_command_echoes() -> None:
    obj = pod({"name": "main", "command": ["sh", "-c", "echo one; echo two"]}, {"name": "other"})
    assert output(obj, "main") == ["one", "two"]
    assert output(obj, "other") == []


@given(
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.floats(0, 20),
    st.integers(0, 3),
    st.lists(st.floats(0, 100), min_size=1, max_size=20),
)
def test_a_pod_never_goes_back(policy: str, seconds: float, code: int, looks: list[float]) -> None:
    """However often and whenever it is looked at: phases only move forward, restarts only up, the end is the end."""
    order = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
    obj = pod(annotations={"run-seconds": str(seconds), "exit-code": str(code)}, restartPolicy=policy)
    phase, restarts = "Pending", 0
    for moment in sorted(looks):
        status = advance(obj, START + moment, Settings(), PLACE).status
        if status is None:
            continue
        assert order[status["phase"]] >= order[phase]
        assert phase not in ("Succeeded", "Failed")
        assert status["containerStatuses"][0]["restartCount"] >= restarts
        obj["status"] = status
        phase, restarts = status["phase"], status["containerStatuses"][0]["restartCount"]
