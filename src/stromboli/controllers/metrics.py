"""The series of the controller manager (spec 03 section 12), written after what they count has been stored.

Series that name an object go with the object.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from stromboli.api.batch import Job
from stromboli.api.phases import JobFlowPhase, JobPhase
from stromboli.kube.controlling import Outcome
from stromboli.telemetry.metrics import Metrics, forget, geometric

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram

    from stromboli.telemetry.metrics import PlainCounter

_JOB_LABELS = ("job_name", "queue_name")
_FLOW_LABELS = ("jobflow_namespace",)
_GROUP_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class ControllerMetrics:
    """Counts jobs, pods, queues and the work of the controllers."""

    def __init__(self, metrics: Metrics) -> None:
        self._finished = {
            JobPhase.COMPLETED: metrics.counter("job_completed_phase_count", "Jobs that completed", _JOB_LABELS),
            JobPhase.FAILED: metrics.counter("job_failed_phase_count", "Jobs that failed", _JOB_LABELS),
        }
        self._flows = {
            JobFlowPhase.SUCCEED: metrics.counter("jobflow_succeed_phase_count", "Flows that succeeded", _FLOW_LABELS),
            JobFlowPhase.FAILED: metrics.counter(
                "jobflow_failed_phase_count", "Flows that failed before they ran", _FLOW_LABELS
            ),
        }
        self._latency = metrics.histogram(
            "controller_job_to_pod_creation_latency_milliseconds",
            "Time from the creation of a job to that of its pod",
            buckets=geometric(50, 60000, 30),
        )
        self._groups = {
            phase: metrics.gauge(
                f"queue_pod_group_{phase.lower()}_count", f"PodGroups of a queue in phase {phase}", ("queue_name",)
            )
            for phase in _GROUP_PHASES
        }
        self._reconciled = metrics.counter(
            "controller_reconcile_total", "Passes over an object, by outcome", ("controller", "outcome")
        )
        self._seconds = metrics.histogram(
            "controller_reconcile_duration_seconds",
            "Time of one pass over an object",
            ("controller",),
            buckets=geometric(0.001, 60, 16),
        )
        self._depth = metrics.gauge("controller_queue_depth", "Objects that wait for their pass", ("controller",))
        self._of_pass = cache(self._find_series)

    def phase_entered(self, job: Job, phase: str) -> None:
        """A job's new phase was stored."""
        for counted, counter in self._finished.items():
            if counted == phase:
                counter.labels(f"{job.namespace}/{job.name}", job.spec.queue).inc()

    def flow_ended(self, namespace: str, phase: str) -> None:
        """A flow has succeeded, or failed before it ran."""
        self._flows[JobFlowPhase(phase)].labels(namespace).inc()

    def pod_created(self, seconds: float) -> None:
        """A pod was created, ``seconds`` after its job."""
        self._latency.observe(seconds * 1000)

    def job_gone(self, namespace: str, name: str, queue: str) -> None:
        """Forget the series of a job."""
        for counter in self._finished.values():
            forget(counter, f"{namespace}/{name}", queue)

    def groups_counted(self, queue: str, by_phase: dict[str, int]) -> None:
        """PodGroups of a queue by phase."""
        for phase, gauge in self._groups.items():
            gauge.labels(queue).set(by_phase.get(phase, 0))

    def queue_gone(self, queue: str) -> None:
        """Forget the series of a queue."""
        for gauge in self._groups.values():
            forget(gauge, queue)

    def _find_series(self, controller: str, outcome: str) -> tuple[Counter | PlainCounter, Histogram, Gauge]:
        """The series of a pass. There are few of them, and each is looked up once."""
        found = self._reconciled.labels(controller, outcome), self._seconds.labels(controller)
        return *found, self._depth.labels(controller)

    def reconciled(self, controller: str, outcome: Outcome, seconds: float, depth: int) -> None:
        """One pass of a controller over an object."""
        passes, duration, waiting = self._of_pass(controller, outcome.value)
        passes.inc()
        duration.observe(seconds)
        waiting.set(depth)
