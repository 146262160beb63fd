"""What pods ask for: the cases of spec 04 section 35."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.api.core import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements
from stromboli.api.requests import RequestRules, pod_request, pod_request_without_init
from stromboli.api.resources import Dimension, ResourceVector


def asks(
    cpu: str, memory: str = "0", *, name: str = "c", always: bool = False, more: dict[str, str] | None = None
) -> Container:
    requests: dict[str, str | int | float] = {"cpu": cpu, "memory": memory, **(more or {})}
    return Container(
        name=name,
        resources=ResourceRequirements(requests=requests),
        restart_policy="Always" if always else None,
    )


def pod(*containers: Container, init: tuple[Container, ...] = (), **spec: object) -> Pod:
    return Pod(spec=PodSpec(containers=containers, init_containers=init, **spec))  # type: ignore[arg-type]


G = 10**9
CPU: dict[str, tuple[Pod, tuple[float, float]]] = {
    "containers add up": (pod(asks("1", "1G"), asks("2", "1G")), (3000, 2 * G)),
    "init containers run one after the other": (
        pod(asks("1", "1G"), asks("2", "1G"), init=(asks("2", "5G"), asks("2", "1G"))),
        (3000, 5 * G),
    ),
    "a sidecar runs beside": (pod(asks("1"), init=(asks("1", always=True),)), (2000, 0)),
    "sidecars stay": (
        pod(asks("1"), init=(asks("5"), asks("1", always=True), asks("2", always=True), asks("3", always=True))),
        (7000, 0),
    ),
    "an init container runs beside the sidecars before it": (
        pod(
            asks("1"),
            init=(asks("5"), asks("1", always=True), asks("2", always=True), asks("5"), asks("3", always=True)),
        ),
        (8000, 0),
    ),
    "a large init container wins": (
        pod(asks("100m"), init=(asks("10m", always=True), asks("200m"))),
        (210, 0),
    ),
    "pod-level amounts replace, overhead adds": (
        pod(
            asks("100m"),
            init=(asks("10m", always=True), asks("200m")),
            resources=ResourceRequirements(requests={"cpu": "250m", "memory": "100Mi"}),
            overhead={"cpu": "250m", "memory": "100Mi"},
        ),
        (500, 200 * 1024**2),
    ),
    "pod-level amounts replace only what they name": (
        pod(asks("1", "1G"), resources=ResourceRequirements(requests={"memory": "2G"})),
        (1000, 2 * G),
    ),
}


@pytest.mark.parametrize("name", CPU)
def test_request(name: str) -> None:
    found, (cpu, memory) = pod_request(CPU[name][0]), CPU[name][1]
    assert found == ResourceVector(cpu, memory, {"pods": 1.0})


def test_without_init_containers() -> None:
    found = pod_request_without_init(
        pod(asks("1", "1G"), asks("2", "1G"), init=(asks("9"),), overhead={"cpu": "500m", "memory": "1G"})
    )
    assert found == ResourceVector(3500, 3 * G, {})


def test_pod_level_huge_pages_replace_and_other_names_do_not() -> None:
    huge, gpu = "hugepages-2Mi", "nvidia.com/gpu"
    level = ResourceRequirements(requests={huge: "4Mi", gpu: "7"})
    found = pod_request(pod(asks("1", more={huge: "2Mi", gpu: "1"}), resources=level))
    assert found.get(huge) == 4 * 1024**2 * 1000
    assert found.get(gpu) == 1000


def resized(spec: str, status: str, reason: str = "", *, resize: str = "", level: str = "") -> Pod:
    conditions = (PodCondition(type="PodResizePending", status="True", reason=reason),) if reason else ()
    actual = ContainerStatus(
        name="c",
        resources=ResourceRequirements(requests={"cpu": status}),
        allocated_resources={"cpu": status},
    )
    return Pod(
        spec=PodSpec(
            containers=(asks(spec),),
            resources=ResourceRequirements(requests={"cpu": level}) if level else None,
        ),
        status=PodStatus(container_statuses=(actual,), conditions=conditions, resize=resize),
    )


RESIZED: dict[str, tuple[Pod, float]] = {
    "the larger of wanted and given": (resized("2", "1"), 2000),
    "a shrinking pod keeps what it has": (resized("1", "2"), 2000),
    "an infeasible wish does not count": (resized("2", "1", "Infeasible"), 1000),
    "infeasible, in the older form": (resized("2", "1", resize="Infeasible"), 1000),
    "a deferred wish counts": (resized("2", "1", "Deferred"), 2000),
    "pod-level amounts win": (resized("2", "1", "Infeasible", level="4"), 4000),
}


@pytest.mark.parametrize("name", RESIZED)
def test_resize(name: str) -> None:
    found, want = RESIZED[name]
    assert pod_request(found).cpu == want


def test_gates_switch_both_off() -> None:
    rules = RequestRules(pod_level_resources=False, in_place_resize=False)
    assert pod_request(resized("2", "3", level="4"), rules).cpu == 2000


def test_resources_that_devices_account_for_are_left_out() -> None:
    rules = RequestRules(ignored={"volcano.sh/vgpu-number"})
    found = pod_request(pod(asks("1", more={"volcano.sh/vgpu-number": "1"})), rules)
    assert found == ResourceVector(1000, 0, {"pods": 1.0})


def test_a_pod_that_asks_for_nothing_is_empty() -> None:
    assert pod_request(core.Pod()).is_empty()


amounts = st.integers(0, 8).map(str)
ordinary = st.builds(asks, amounts)
initial = st.builds(lambda cpu, always: asks(cpu, always=always), amounts, st.booleans())


@given(st.lists(ordinary, max_size=3), st.lists(initial, max_size=4))
def test_a_request_covers_every_moment_of_the_pod_s_life(regular: list[Container], init: list[Container]) -> None:
    found = pod_request(pod(*regular, init=tuple(init)))
    sidecars = ResourceVector()
    for container in init:
        own = ResourceVector.from_list(container.resources.requests)
        assert (own + sidecars).less_equal(found, Dimension.ZERO)
        if container.restart_policy == "Always":
            sidecars += own
    for container in regular:
        sidecars += ResourceVector.from_list(container.resources.requests)
    assert sidecars.less_equal(found, Dimension.ZERO)
