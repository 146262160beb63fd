"""The series of the controller manager: spec 03 section 12, P59."""

from __future__ import annotations

from stromboli.controllers.metrics import ControllerMetrics
from stromboli.kube.controlling import Outcome
from stromboli.telemetry.metrics import Metrics
from tests.controllers.building import job


def series(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line and not line.startswith("#")]


def test_series_of_many_short_jobs_and_queues_go_with_them() -> None:
    metrics = Metrics()
    counted = ControllerMetrics(metrics)
    baseline = series(metrics)
    for number in range(500):
        model = job(f"job-{number}").model()
        counted.phase_entered(model, "Completed" if number % 2 else "Failed")
        counted.groups_counted(f"queue-{number}", {"Running": number})
    assert len(series(metrics)) == len(baseline) + 500 + 500 * 5
    for number in range(500):
        counted.job_gone("default", f"job-{number}", "default")
        counted.queue_gone(f"queue-{number}")
    counted.job_gone("default", "never-counted", "default")
    assert series(metrics) == baseline


def test_only_completion_and_failure_are_counted() -> None:
    metrics = Metrics()
    counted = ControllerMetrics(metrics)
    for phase in ("Pending", "Running", "Terminated", "Aborted"):
        counted.phase_entered(job().model(), phase)
    assert not any("phase_count{" in line for line in series(metrics))


def test_the_buckets_of_the_creation_latency() -> None:
    metrics = Metrics()
    ControllerMetrics(metrics).pod_created(0.06)
    name = "volcano_controller_job_to_pod_creation_latency_milliseconds"
    bounds = [line.split('le="')[1].split('"')[0] for line in series(metrics) if line.startswith(f"{name}_bucket")]
    assert len(bounds) == 31
    assert (bounds[0], bounds[-2], bounds[-1]) == ("50.0", "60000.0", "+Inf")
    assert f"{name}_sum 60.0" in series(metrics)


def test_passes_are_counted_by_outcome() -> None:
    metrics = Metrics()
    ControllerMetrics(metrics).reconciled("job-controller", Outcome.ERROR, 0.1, 3)
    assert 'volcano_controller_reconcile_total{controller="job-controller",outcome="error"} 1.0' in series(metrics)
    assert 'volcano_controller_queue_depth{controller="job-controller"} 3.0' in series(metrics)


def test_flows_are_counted_by_namespace() -> None:
    metrics = Metrics()
    counted = ControllerMetrics(metrics)
    for phase in ("Succeed", "Succeed", "Failed"):
        counted.flow_ended("ml", phase)
    assert 'volcano_jobflow_succeed_phase_count{jobflow_namespace="ml"} 2.0' in series(metrics)
    assert 'volcano_jobflow_failed_phase_count{jobflow_namespace="ml"} 1.0' in series(metrics)
