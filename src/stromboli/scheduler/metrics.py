"""The scheduler's Prometheus series: names, labels and buckets of spec 04 section 5 and spec 08 section 15.1.

Series that name a job or a queue live as long as that object (pain P59): :meth:`SchedulerMetrics.forget_job` and
:meth:`SchedulerMetrics.forget_queue` end them, and a later sample for a forgotten object is dropped by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from stromboli.telemetry.metrics import Metrics, forget, geometric

AMOUNTS = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
_JOB_LABELS = ("job_name", "queue", "job_namespace")


class SchedulerMetrics:
    """Declares the series once, on the registry of the process."""

    def __init__(self, metrics: Metrics) -> None:
        self.cycle = metrics.histogram(
            "e2e_scheduling_latency_milliseconds", "one scheduling cycle", buckets=geometric(1, 5000, 20)
        )
        self.opening = metrics.histogram(
            "open_session_duration_milliseconds", "opening a session", buckets=geometric(1, 5000, 20)
        )
        self.plugin = metrics.histogram(
            "plugin_scheduling_latency_milliseconds",
            "time in a plugin's hook",
            ("plugin", "OnSession"),
            buckets=geometric(0.1, 100, 15),
        )
        self.action = metrics.histogram(
            "action_scheduling_latency_milliseconds", "time of an action", ("action",), buckets=geometric(1, 2000, 20)
        )
        self.task = metrics.histogram(
            "task_scheduling_latency_milliseconds",
            "from a pod's creation to a stage",
            ("stage",),
            buckets=geometric(50, 60000, 30),
        )
        self.stage = metrics.histogram(
            "scheduling_stage_duration_milliseconds", "time of a stage", ("stage",), buckets=geometric(0.1, 500, 20)
        )
        self.attempts = metrics.counter("schedule_attempts_total", "attempts to schedule a pod, by result", ("result",))
        self._declare_jobs(metrics)
        self._declare_queues(metrics)
        self._declare_namespaces(metrics)

    def _declare_jobs(self, metrics: Metrics) -> None:
        self.job_latency = metrics.histogram(
            "e2e_job_scheduling_latency_milliseconds",
            "from a PodGroup's creation to the placement of its task",
            buckets=geometric(100, 120000, 30),
        )
        self.job_duration = metrics.gauge("e2e_job_scheduling_duration", "the same, latest for each job", _JOB_LABELS)
        self.job_start = metrics.gauge("e2e_job_scheduling_start_time", "creation of the PodGroup", _JOB_LABELS)
        self.job_last = metrics.gauge("e2e_job_scheduling_last_time", "latest placement", _JOB_LABELS)
        self.victims = metrics.gauge("pod_preemption_victims", "victims on the node examined last by preempt")
        self.preemptions = metrics.counter("total_preemption_attempts", "nodes tried by preempt")
        self.unschedulable_tasks = metrics.gauge("unschedule_task_count", "tasks that a job still lacks", ("job_id",))
        self.unschedulable_jobs = metrics.gauge("unschedule_job_count", "jobs that are not ready")
        self.retries = metrics.counter("job_retry_counts", "cycles in which a job was not ready", ("job_id",))
        self.job_share = metrics.gauge("job_share", "dominant share of a job", ("job_ns", "job_id"))

    def _declare_queues(self, metrics: Metrics) -> None:
        self.queue_amounts = {
            f"{amount}_{unit}": metrics.gauge(f"queue_{amount}_{unit}", f"{amount} of a queue", ("queue_name",))
            for amount, unit in product(AMOUNTS, ("milli_cpu", "memory_bytes"))
        }
        self.queue_scalars = {
            amount: metrics.gauge(
                f"queue_{amount}_scalar_resources", f"{amount} of a queue", ("queue_name", "resource")
            )
            for amount in AMOUNTS
        }
        self.queue_share = metrics.gauge("queue_share", "share of a queue", ("queue_name",))
        self.queue_weight = metrics.gauge("queue_weight", "weight of a queue", ("queue_name",))
        self.queue_overused = metrics.gauge("queue_overused", "whether a queue is over its deserved", ("queue_name",))
        self._known_scalars: dict[tuple[str, str], set[str]] = {}

    @staticmethod
    def _declare_namespaces(metrics: Metrics) -> None:
        for name in ("namespace_share", "namespace_weight", "namespace_weighted_share"):
            metrics.gauge(name, "declared for dashboards; not computed", ("namespace_name",))

    def observe_milliseconds(self, stage: str, milliseconds: float) -> None:
        """Time from a pod's creation to ``stage``; a clock that went back counts as 0."""
        self.task.labels(stage).observe(max(milliseconds, 0.0))

    def set_queue_amount(self, queue: str, amount: str, resources: Mapping[str, float]) -> None:
        """One of :data:`AMOUNTS` of a queue: ``cpu`` in milli, ``memory`` in bytes, everything else a scalar.

        A scalar that this queue had before and has no longer is set to 0, for this amount only.
        """
        self.queue_amounts[f"{amount}_milli_cpu"].labels(queue).set(resources.get("cpu", 0.0))
        self.queue_amounts[f"{amount}_memory_bytes"].labels(queue).set(resources.get("memory", 0.0))
        scalars = {name: value for name, value in resources.items() if name not in ("cpu", "memory")}
        known = self._known_scalars.setdefault((queue, amount), set())
        for name in known | set(scalars):
            self.queue_scalars[amount].labels(queue, name).set(scalars.get(name, 0.0))
        known.update(scalars)

    def forget_queue(self, queue: str) -> None:
        """End all series of a queue that was deleted."""
        for gauge in (*self.queue_amounts.values(), self.queue_share, self.queue_weight, self.queue_overused):
            forget(gauge, queue)
        for amount in AMOUNTS:
            for resource in self._known_scalars.pop((queue, amount), ()):
                forget(self.queue_scalars[amount], queue, resource)

    def forget_job(self, namespace: str, name: str, queue: str) -> None:
        """End all series of a job that left the cache."""
        for gauge in (self.job_duration, self.job_start, self.job_last):
            forget(gauge, name, queue, namespace)
        for series in (self.unschedulable_tasks, self.retries):
            forget(series, name)
        forget(self.job_share, namespace, name)
