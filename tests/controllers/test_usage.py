"""What a pod is charged: effective requests and limits as Kubernetes computes them."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import quantities
from stromboli.api.core import PodSpec, from_builtins
from stromboli.controllers import usage


def container(cpu: str | None = None, *, sidecar: bool = False, limit: str | None = None) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if cpu is not None:
        resources["requests"] = {"cpu": cpu}
    if limit is not None:
        resources["limits"] = {"cpu": limit}
    return {"name": "c", "resources": resources, **({"restartPolicy": "Always"} if sidecar else {})}


CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "containers add up": ({"containers": [container("1"), container("2")]}, "3"),
    "an init container counts alone": ({"containers": [container("1")], "initContainers": [container("4")]}, "4"),
    "a smaller init container does not count": (
        {"containers": [container("3")], "initContainers": [container("2")]},
        "3",
    ),
    "a sidecar runs beside the containers": (
        {"containers": [container("1")], "initContainers": [container("2", sidecar=True)]},
        "3",
    ),
    "an init container runs beside the sidecars before it": (
        {"containers": [container("1")], "initContainers": [container("2", sidecar=True), container("3")]},
        "5",
    ),
    "but not beside those after it": (
        {"containers": [container("1")], "initContainers": [container("3"), container("2", sidecar=True)]},
        "3",
    ),
    "the pod's own amount replaces the sum": (
        {"containers": [container("1")], "resources": {"requests": {"cpu": "7"}}},
        "7",
    ),
    "overhead comes on top": ({"containers": [container("1")], "overhead": {"cpu": "500m"}}, "1500m"),
    "nothing is asked for": ({"containers": [container()]}, None),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_effective_requests(spec: dict[str, Any], want: str | None) -> None:
    found = usage.to_wire(usage.of_pod(from_builtins(PodSpec, spec)))
    named = {} if want is None else {"cpu": want, "requests.cpu": want}
    assert quantities.equal(found, {"count/pods": "1", "pods": "1", **named})


def test_overhead_raises_a_limit_only_where_there_is_one() -> None:
    limited = from_builtins(PodSpec, {"containers": [container(limit="1")], "overhead": {"cpu": "1", "memory": "1Mi"}})
    found = usage.to_wire(usage.of_pod(limited))
    assert found["limits.cpu"] == "2"
    assert "limits.memory" not in found


def test_what_is_nobodys_resource_is_not_charged() -> None:
    amounts = {"kubernetes.io/batch-cpu": "1", "requests.example.com/x": "1", "example.com/gpu": "2"}
    spec = from_builtins(PodSpec, {"containers": [{"name": "c", "resources": {"requests": amounts}}]})
    assert usage.of_pod(spec).keys() == {"count/pods", "pods", "example.com/gpu", "requests.example.com/gpu"}


def test_sums_leave_out_what_is_taken_no_times() -> None:
    one = usage.of_pod(from_builtins(PodSpec, {"containers": [container("1")]}))
    assert usage.total([(0, one)]) == {}
    assert usage.total([(2, one), (1, one)])["cpu"] == 3


def test_bytes_are_written_in_binary_units() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}
    assert usage.to_wire(usage.of_pod(from_builtins(PodSpec, spec)))["memory"] == "1Gi"
