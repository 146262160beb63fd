"""Gauges about shared cards."""

from __future__ import annotations

from stromboli.api import names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.view import Sample
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.plugins.deviceshare import vgpu_metrics
from stromboli.telemetry.metrics import Metrics
from tests.scheduler.plugins.deviceshare.stage import asking, card, cluster, gpu_node, member, opened, slice_of

DEVICE = "vgpu_device_"


def samples(mirror: Mirror) -> dict[tuple[str, str], float | None]:
    """Values by name and pod or card; None for series that end. As if enough time had passed."""
    mirror.memory.pop(vgpu_metrics.LAST, None)
    session = opened(mirror, VGPUEnable=True)
    session.refusals("p")
    return {_key(sample): None if sample.ended else sample.value for sample in session.view.samples}


def _key(sample: Sample) -> tuple[str, str]:
    labels = dict(sample.labels)
    return sample.name.removeprefix(DEVICE), labels.get("podName", labels["devID"])


def used_by(*pods: str) -> Mirror:
    holders = [
        asking(member(name, **{names.VGPU_IDS: "GPU-0,NVIDIA,1000,20:"}).on("n1"), slice_of(1, 1000, 20))
        for name in pods
    ]
    return cluster(gpu_node("n1", card("GPU-0")), *holders, asking(member("p"), slice_of(1, 10)))


def test_cards_are_measured_once_somebody_has_asked_about_their_node() -> None:
    mirror = used_by("a", "b")
    assert samples(mirror) == {}
    assert samples(mirror) == {
        ("shared_number", "GPU-0"): 2,
        ("allocated_memory", "GPU-0"): 2000,
        ("allocated_cores", "GPU-0"): 40,
        ("memory_limit", "GPU-0"): 16384,
        ("memory_allocation_for_a_certain_pod", "ns/a"): 1000,
        ("core_allocation_for_a_certain_pod", "ns/a"): 20,
        ("memory_allocation_for_a_certain_pod", "ns/b"): 1000,
        ("core_allocation_for_a_certain_pod", "ns/b"): 20,
    }
    assert samples(mirror) == {}, "nothing has changed"


def test_series_end_with_their_pods_and_nodes() -> None:
    mirror = used_by("a", "b")
    samples(mirror)
    samples(mirror)
    mirror.delete_pod("ns/a")
    assert samples(mirror) == {
        ("shared_number", "GPU-0"): 1,
        ("allocated_memory", "GPU-0"): 1000,
        ("allocated_cores", "GPU-0"): 20,
        ("memory_allocation_for_a_certain_pod", "ns/a"): None,
        ("core_allocation_for_a_certain_pod", "ns/a"): None,
    }
    mirror.delete_pod("ns/b")
    mirror.delete_node("n1")
    assert set(samples(mirror).values()) == {None}
    assert samples(mirror) == {}


def test_what_was_measured_is_exposed_and_ends() -> None:
    registry = Metrics()
    metrics = SchedulerMetrics(registry)
    labels = (("devID", "GPU-0"), ("NodeName", "n1"))
    metrics.record([Sample(f"{DEVICE}memory_limit", labels, 5.0)])
    assert b'volcano_vgpu_device_memory_limit{NodeName="n1",devID="GPU-0"} 5.0' in registry.render()
    metrics.record([Sample(f"{DEVICE}memory_limit", labels, 0.0, ended=True)])
    assert b"GPU-0" not in registry.render()
