"""Names and life of the scheduler's series."""

from __future__ import annotations

import pytest

from stromboli.api import kinds
from stromboli.scheduler.core.view import Sample
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.builders import node
from tests.scheduler.shell.stage import Stage, gang


@pytest.fixture
def registry() -> Metrics:
    return Metrics()


@pytest.fixture
def series(registry: Metrics) -> SchedulerMetrics:
    return SchedulerMetrics(registry)


FAMILIES = """
e2e_scheduling_latency_milliseconds histogram
open_session_duration_milliseconds histogram
e2e_job_scheduling_latency_milliseconds histogram
e2e_job_scheduling_duration gauge
e2e_job_scheduling_start_time gauge
e2e_job_scheduling_last_time gauge
plugin_scheduling_latency_milliseconds histogram
action_scheduling_latency_milliseconds histogram
task_scheduling_latency_milliseconds histogram
scheduling_stage_duration_milliseconds histogram
schedule_attempts_total counter
pod_preemption_victims gauge
total_preemption_attempts gauge
unschedule_task_count gauge
unschedule_job_count gauge
job_retry_counts gauge
job_share gauge
namespace_share gauge
namespace_weight gauge
namespace_weighted_share gauge
queue_allocated_milli_cpu gauge
queue_request_memory_bytes gauge
queue_deserved_scalar_resources gauge
queue_capacity_milli_cpu gauge
queue_real_capacity_memory_bytes gauge
queue_inqueue_scalar_resources gauge
queue_share gauge
queue_weight gauge
queue_overused gauge
"""


@pytest.mark.parametrize("family", FAMILIES.split("\n")[1:-1])
def test_series_are_declared_with_their_contract_names(
    registry: Metrics, series: SchedulerMetrics, family: str
) -> None:
    assert f"# TYPE volcano_{family}\n" in registry.render().decode()


def samples(registry: Metrics, text: str) -> list[str]:
    return [line for line in registry.render().decode().splitlines() if text in line and not line.startswith("#")]


def sample(name: str, value: float, **labels: str) -> Sample:
    return Sample(name, tuple(labels.items()), value)


def test_scalar_that_disappears_is_reported_as_zero_for_its_own_amount_only(
    registry: Metrics, series: SchedulerMetrics
) -> None:
    cpu = sample("queue_allocated_milli_cpu", 1000, queue_name="q")
    gpu = sample("queue_allocated_scalar_resources", 2000, queue_name="q", resource="nvidia.com/gpu")
    series.record([cpu, gpu, sample("queue_deserved_milli_cpu", 1000, queue_name="q")])
    series.record([cpu, sample("queue_deserved_milli_cpu", 1000, queue_name="q")])
    assert samples(registry, "nvidia.com/gpu") == [
        'volcano_queue_allocated_scalar_resources{queue_name="q",resource="nvidia.com/gpu"} 0.0'
    ]


def test_series_count_returns_to_its_baseline_after_many_jobs_and_queues(
    registry: Metrics, series: SchedulerMetrics
) -> None:
    baseline = len(samples(registry, ""))
    for number in range(500):
        name = f"job-{number}"
        for gauge in ("e2e_job_scheduling_duration", "e2e_job_scheduling_start_time", "e2e_job_scheduling_last_time"):
            series.measure(gauge, 1, job_name=name, queue="q", job_namespace="ns")
        series.record(
            [
                sample("unschedule_task_count", 1, job_id=name),
                sample("job_retry_counts", 1, job_id=name),
                sample("job_share", 1, job_ns="ns", job_id=name),
                sample("queue_share", 1, queue_name=name),
                sample("queue_allocated_scalar_resources", 1, queue_name=name, resource="example.com/chip"),
            ]
        )
    assert len(samples(registry, "")) >= baseline + 500 * 8
    for number in range(500):
        series.forget_job("ns", f"job-{number}", "q")
        series.forget_queue(f"job-{number}")
    assert len(samples(registry, "")) == baseline


def test_forgetting_what_was_never_seen_is_harmless(series: SchedulerMetrics) -> None:
    series.forget_job("ns", "never", "q")
    series.forget_queue("never")


def test_samples_that_nobody_declared_are_ignored(registry: Metrics, series: SchedulerMetrics) -> None:
    before = registry.render()
    series.record([sample("made_up", 1), sample("queue_share", 1, wrong_label="q")])
    assert registry.render() == before


def test_clock_that_went_back_counts_as_zero(registry: Metrics, series: SchedulerMetrics) -> None:
    series.measure("task_scheduling_latency_milliseconds", -5, stage="Bound")
    assert samples(registry, 'task_scheduling_latency_milliseconds_sum{stage="Bound"}') == [
        'volcano_task_scheduling_latency_milliseconds_sum{stage="Bound"} 0.0'
    ]


def test_counters_add_up(registry: Metrics, series: SchedulerMetrics) -> None:
    series.record([sample("job_retry_counts", 1, job_id="j")] * 3)
    assert samples(registry, "job_retry_counts") == ['volcano_job_retry_counts{job_id="j"} 3.0']


async def test_job_series_tell_of_its_placement_and_end_with_it(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 1))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    labels = '{job_name="job",job_namespace="ns",queue="default"}'
    await stage.until(lambda: samples(stage.registry, f"job_scheduling_last_time{labels}"), "series")
    assert samples(stage.registry, f"job_scheduling_duration{labels}")
    assert samples(stage.registry, f"job_scheduling_start_time{labels}")
    await stage.until(lambda: samples(stage.registry, 'task_scheduling_latency_milliseconds_count{stage="Bound"} 1'))
    assert samples(stage.registry, 'action_scheduling_latency_milliseconds_count{action="allocate"}')
    stage.server.remove(kinds.PODS, "job-0", "ns")
    stage.server.remove(kinds.POD_GROUPS, "job", "ns")
    await stage.until(lambda: not samples(stage.registry, 'job_name="job"'), "series ended")
