"""From pods and PodGroups to tasks and jobs (spec 04 sections 7, 9 and 10)."""

from __future__ import annotations

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core import amounts, reading
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import PodBuilder, pod, pod_group
from tests.scheduler.core.worlds import world

STATUSES: dict[str, tuple[PodBuilder, TaskStatus]] = {
    "pending without node": (pod("p"), TaskStatus.PENDING),
    "pending with node": (pod("p").on("n", "Pending"), TaskStatus.BOUND),
    "running": (pod("p").on("n"), TaskStatus.RUNNING),
    "running and deleted": (pod("p").on("n").deleting(), TaskStatus.RELEASING),
    "pending and deleted": (pod("p").deleting(), TaskStatus.RELEASING),
    "succeeded and deleted": (pod("p").on("n", "Succeeded").deleting(), TaskStatus.SUCCEEDED),
    "failed": (pod("p").on("n", "Failed"), TaskStatus.FAILED),
    "unknown": (pod("p").on("n", "Unknown"), TaskStatus.UNKNOWN),
    "something new": (pod("p").on("n", "Dreaming"), TaskStatus.UNKNOWN),
}


@pytest.mark.parametrize(("builder", "want"), STATUSES.values(), ids=STATUSES.keys())
def test_status(builder: PodBuilder, want: TaskStatus) -> None:
    assert reading.status_of(builder.build()) == want


@pytest.mark.parametrize(
    ("written", "spec", "want"),
    [(None, None, 1), (None, 5, 5), ("7", 5, 7), ("-3", None, -3), ("much", 5, 5), ("99999999999", 5, 5)],
)
def test_priority(written: str | None, spec: int | None, want: int) -> None:
    builder = pod("p") if spec is None else pod("p").priority(spec)
    if written is not None:
        builder = builder.annotate(**{names.TASK_PRIORITY: written})
    assert reading.priority_of(builder.build()) == want


@pytest.mark.parametrize(
    ("name", "want"), [("a", None), ("a-1", None), ("job-task-12", 12), ("job-task-x", None), ("a-b-c-3", 3)]
)
def test_index(name: str, want: int | None) -> None:
    assert reading.index_of(name) == want


@pytest.mark.parametrize(
    ("annotations", "labels", "want_pod", "want_group"),
    [
        ({}, {}, True, False),
        ({names.PREEMPTABLE: "false"}, {names.PREEMPTABLE: "true"}, False, False),
        ({}, {names.PREEMPTABLE: "true"}, True, True),
        ({names.PREEMPTABLE: "perhaps"}, {}, False, False),
    ],
)
def test_preemptable(annotations: dict[str, str], labels: dict[str, str], want_pod: bool, want_group: bool) -> None:
    assert reading.preemptable(annotations, labels, absent=True) is want_pod
    assert reading.preemptable(annotations, labels, absent=False) is want_group


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        ({}, ""),
        ({names.REVOCABLE_ZONE: "*"}, "*"),
        ({names.REVOCABLE_ZONE: "z", names.PREEMPTABLE: "true"}, ""),
        ({names.PREEMPTABLE: "true"}, "*"),
    ],
)
def test_revocable_zone(annotations: dict[str, str], want: str) -> None:
    assert reading.revocable_zone(annotations) == want


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        ({}, None),
        ({names.SLA_WAITING_TIME: "1m"}, 60.0),
        ({names.SLA_WAITING_TIME: "soon", names.SLA_WAITING_TIME_LEGACY: "2m"}, 120.0),
        ({names.SLA_WAITING_TIME: "-1m"}, None),
    ],
)
def test_waiting_time(annotations: dict[str, str], want: float | None) -> None:
    assert reading.sla_waiting_time(annotations) == want


def test_gates() -> None:
    gate = names.QUEUE_ALLOCATION_GATE
    mirror = world(
        pod("none").build(),
        pod("queue").gated(gate).annotate(**{gate: "true"}).build(),
        pod("both").gated(gate, "other").build(),
    )
    told = {name: mirror.tasks[f"ns/{name}"] for name in ("none", "queue", "both")}
    assert [told[name].gated for name in told] == [False, True, True]
    assert [told[name].queue_gate_only for name in told] == [False, True, False]
    assert [told[name].gate_opt_in for name in told] == [False, True, False]


def test_host_ports_of_containers_and_sidecars() -> None:
    sidecar = core.Container(
        name="s", restart_policy="Always", ports=(core.ContainerPort(host_port=9, host_ip="1.2.3.4"),)
    )
    init = core.Container(name="i", ports=(core.ContainerPort(host_port=7),))
    built = pod("p").host_port(80)._spec(init_containers=(sidecar, init)).build()
    assert reading.host_ports(built) == (("0.0.0.0", "TCP", 80), ("1.2.3.4", "TCP", 9))


def test_job_fields() -> None:
    group = (
        pod_group("g")
        .members(3, a=1, b=2)
        .annotate(**{names.JDB_MAX_UNAVAILABLE: "20%", names.PREEMPTABLE: "true"})
        .reserve(cpu=2, memory="1Gi")
    )
    job = world(group.build()).jobs["ns/g"]
    assert (job.min_member, job.role_total) == (3, 3)
    assert job.disruption_budget == ("max-unavailable", "20%")
    assert job.preemptable
    minimum = job.min_resources
    assert minimum is not None
    assert minimum[:2].tolist() == [2000, 2**30]
    assert world(pod_group("h").build()).jobs["ns/h"].min_resources is None


def test_amounts_go_there_and_back() -> None:
    listed = {"cpu": "1500m", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": "2", "count/pods": "9", "odd": "1"}
    read = amounts.read(listed)
    assert read == {"cpu": 1500.0, "memory": 2.0**30, "pods": 3.0, "nvidia.com/gpu": 2000.0}
    assert amounts.write(read) == {"cpu": "1500m", "memory": "1Gi", "pods": "3", "nvidia.com/gpu": "2"}


def container(cpu: str = "", memory: str = "", restart: str | None = None) -> core.Container:
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return core.Container(
        name="c", restart_policy=restart, resources=core.ResourceRequirements(requests=dict(requests))
    )


MIB = 1024.0 * 1024.0
NONZERO: dict[str, tuple[core.PodSpec, tuple[float, float]]] = {
    "nothing asked": (core.PodSpec(containers=(container(),)), (100.0, 200 * MIB)),
    "one of two asked": (core.PodSpec(containers=(container("1"), container(memory="1Mi"))), (1100.0, 201 * MIB)),
    "init at its peak": (
        core.PodSpec(containers=(container("1", "1Mi"),), init_containers=(container("5", "1Mi"),)),
        (5000.0, MIB),
    ),
    "sidecar under init": (
        core.PodSpec(
            containers=(container("1", "1Mi"),),
            init_containers=(container("2", "1Mi", "Always"), container("5", "1Mi")),
        ),
        (7000.0, 2 * MIB),
    ),
    "overhead": (core.PodSpec(containers=(container("1", "1Mi"),), overhead={"cpu": "1"}), (2000.0, MIB)),
}


@pytest.mark.parametrize(("spec", "want"), NONZERO.values(), ids=NONZERO.keys())
def test_nonzero_requests(spec: core.PodSpec, want: tuple[float, float]) -> None:
    assert amounts.nonzero_request(core.Pod(spec=spec)) == want
