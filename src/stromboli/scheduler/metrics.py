"""The scheduler's Prometheus series: one table of names, labels and buckets (spec 04 section 5, spec 08 section 15.1).

Series that name a job or a queue live as long as that object (pain P59): :meth:`SchedulerMetrics.forget_job` and
:meth:`SchedulerMetrics.forget_queue` end them. What a cycle measured is recorded before deletions that arrived
meanwhile are applied, so no series comes back after its object is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from prometheus_client import Counter, Gauge, Histogram

from stromboli.scheduler.core.view import Sample
from stromboli.telemetry.metrics import Metrics, PlainCounter, forget, geometric

Collector = Gauge | Counter | PlainCounter | Histogram


class Form(Enum):
    """What a series is."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Series:
    """One family, without the prefix ``volcano_``."""

    name: str
    form: Form
    help: str
    labels: tuple[str, ...] = ()
    buckets: Sequence[float] = ()

    def declare(self, metrics: Metrics) -> Collector:
        """Declare it on the registry of the process."""
        match self.form:
            case Form.GAUGE:
                return metrics.gauge(self.name, self.help, self.labels)
            case Form.COUNTER:
                return metrics.counter(self.name, self.help, self.labels)
            case Form.HISTOGRAM:
                return metrics.histogram(self.name, self.help, self.labels, buckets=self.buckets)


def _gauge(name: str, help_text: str, *labels: str) -> Series:
    return Series(name, Form.GAUGE, help_text, labels)


def _counter(name: str, help_text: str, *labels: str) -> Series:
    return Series(name, Form.COUNTER, help_text, labels)


def _histogram(name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Series:
    return Series(name, Form.HISTOGRAM, help_text, labels, buckets)


AMOUNTS = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
_JOB = ("job_name", "queue", "job_namespace")

CYCLE = "e2e_scheduling_latency_milliseconds"
OPENING = "open_session_duration_milliseconds"
PLUGIN = "plugin_scheduling_latency_milliseconds"
ACTION = "action_scheduling_latency_milliseconds"
TASK = "task_scheduling_latency_milliseconds"
STAGE = "scheduling_stage_duration_milliseconds"
JOB_LATENCY = "e2e_job_scheduling_latency_milliseconds"
JOB_DURATION = "e2e_job_scheduling_duration"
JOB_START = "e2e_job_scheduling_start_time"
JOB_LAST = "e2e_job_scheduling_last_time"

_CARD = ("devID", "NodeName")

TABLE: tuple[Series, ...] = (
    _histogram(CYCLE, "one scheduling cycle", geometric(1, 5000, 20)),
    _histogram(OPENING, "opening a session", geometric(1, 5000, 20)),
    _histogram(PLUGIN, "time in a plugin's hook", geometric(0.1, 100, 15), "plugin", "OnSession"),
    _histogram(ACTION, "time of an action", geometric(1, 2000, 20), "action"),
    _histogram(TASK, "from a pod's creation to a stage", geometric(50, 60000, 30), "stage"),
    _histogram(STAGE, "time of a stage", geometric(0.1, 500, 20), "stage"),
    _histogram(JOB_LATENCY, "from a PodGroup's creation to a placement", geometric(100, 120000, 30)),
    _gauge(JOB_DURATION, "the same in milliseconds, latest for each job", *_JOB),
    _gauge(JOB_START, "creation of the PodGroup in seconds since the epoch", *_JOB),
    _gauge(JOB_LAST, "latest placement in seconds since the epoch", *_JOB),
    _counter("schedule_attempts_total", "declared for dashboards; not counted", "result"),
    _gauge("pod_preemption_victims", "victims on the node examined last by preempt"),
    _counter("total_preemption_attempts", "nodes tried by preempt"),
    _gauge("unschedule_task_count", "tasks that a job still lacks", "job_id"),
    _gauge("unschedule_job_count", "jobs that are not ready"),
    _counter("job_retry_counts", "cycles in which a job was not ready", "job_id"),
    _gauge("job_share", "dominant share of a job", "job_ns", "job_id"),
    *(
        _gauge(f"namespace_{name}", "declared for dashboards; not computed", "namespace_name")
        for name in ("share", "weight", "weighted_share")
    ),
    *(_gauge(f"queue_{amount}_milli_cpu", f"{amount} of a queue", "queue_name") for amount in AMOUNTS),
    *(_gauge(f"queue_{amount}_memory_bytes", f"{amount} of a queue", "queue_name") for amount in AMOUNTS),
    *(
        _gauge(f"queue_{amount}_scalar_resources", f"{amount} of a queue", "queue_name", "resource")
        for amount in AMOUNTS
    ),
    *(_gauge(f"queue_{name}", f"{name} of a queue", "queue_name") for name in ("share", "weight", "overused")),
    _gauge("vgpu_device_shared_number", "Pods on a card", *_CARD),
    _gauge("vgpu_device_allocated_memory", "Memory of a card that pods hold, in MiB", *_CARD),
    _gauge("vgpu_device_allocated_cores", "Cores of a card that pods hold, in percent", *_CARD),
    _gauge("vgpu_device_memory_limit", "Memory of a card, in MiB", *_CARD),
    _gauge("vgpu_device_memory_allocation_for_a_certain_pod", "Memory of a card held by a pod", *_CARD, "podName"),
    _gauge("vgpu_device_core_allocation_for_a_certain_pod", "Cores of a card held by a pod", *_CARD, "podName"),
)


class SchedulerMetrics:
    """The series of :data:`TABLE` on the registry of the process."""

    def __init__(self, metrics: Metrics) -> None:
        self._series = {series.name: (series, series.declare(metrics)) for series in TABLE}
        self._scalars: dict[tuple[str, str], set[str]] = {}
        self._histograms: dict[tuple[str, tuple[tuple[str, str], ...]], Histogram] = {}
        """By name and labels: those that are observed for every pod. Histograms name no object, so none ever ends."""

    def measure(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge, add to a counter or observe a histogram; a clock that went back counts as 0.

        A name that is not in the table is ignored: plugins from elsewhere may measure what nobody declared.
        """
        self._measure(name, value, labels)

    def record(self, samples: Iterable[Sample]) -> None:
        """Take in what plugins and actions measured in one cycle.

        A scalar that a queue had in an earlier cycle and lacks in these samples is set to 0, for that amount only.
        """
        measured: dict[tuple[str, str], set[str]] = {}
        for sample in samples:
            labels = dict(sample.labels)
            if sample.ended:
                self._end(sample.name, labels)
                continue
            self._measure(sample.name, sample.value, labels)
            amount = sample.name.removeprefix("queue_").removesuffix("_scalar_resources").removesuffix("_milli_cpu")
            if amount in AMOUNTS and "queue_name" in labels:
                resources = measured.setdefault((labels["queue_name"], amount), set())
                resources.update(filter(None, [labels.get("resource")]))
        for (queue, amount), resources in measured.items():
            known = self._scalars.setdefault((queue, amount), set())
            for resource in known - resources:
                self.measure(f"queue_{amount}_scalar_resources", 0.0, queue_name=queue, resource=resource)
            known.update(resources)

    def forget_queue(self, queue: str) -> None:
        """End all series of a queue that was deleted."""
        for series, collector in self._series.values():
            if series.labels == ("queue_name",):
                forget(collector, queue)
        for amount in AMOUNTS:
            collector = self._series[f"queue_{amount}_scalar_resources"][1]
            for resource in self._scalars.pop((queue, amount), ()):
                forget(collector, queue, resource)

    def forget_job(self, namespace: str, name: str, queue: str) -> None:
        """End all series of a job that left the cache."""
        for series, collector in self._series.values():
            match series.labels:
                case ("job_id",):
                    forget(collector, name)
                case ("job_ns", "job_id"):
                    forget(collector, namespace, name)
                case labels if labels == _JOB:
                    forget(collector, name, queue, namespace)

    def _end(self, name: str, labels: Mapping[str, str]) -> None:
        found = self._series.get(name)
        if found is not None and set(labels) == set(found[0].labels):
            series, collector = found
            forget(collector, *(labels[label] for label in series.labels))

    def _measure(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        key = (name, tuple(labels.items()))
        known = self._histograms.get(key)
        if known is not None:
            known.observe(max(value, 0.0))
            return
        found = self._series.get(name)
        if found is None or set(labels) != set(found[0].labels):
            return
        series, collector = found
        child = collector.labels(*(labels[label] for label in series.labels)) if labels else collector
        if isinstance(child, Gauge):
            child.set(value)
        elif isinstance(child, Histogram):
            self._histograms[key] = child
            child.observe(max(value, 0.0))
        else:
            child.inc(max(value, 0.0))
