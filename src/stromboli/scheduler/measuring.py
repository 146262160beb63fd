"""From what happened to the series of :mod:`stromboli.scheduler.metrics` (spec 04 section 5)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api import core
from stromboli.scheduler import metrics as series
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.results import Bind, CycleResult
from stromboli.scheduler.metrics import SchedulerMetrics

_HOOKS = {"plugin-open": "OnSessionOpen", "plugin-close": "OnSessionClose"}


class Measuring:
    """Observes cycles, binds and the lives of objects."""

    def __init__(self, metrics: SchedulerMetrics, mirror: Mirror, default_queue: str) -> None:
        self._metrics = metrics
        self._mirror = mirror
        self._default_queue = default_queue

    def cycle(self, result: CycleResult, seconds: float, now: float) -> None:
        """A cycle ended after ``seconds``; call before changes that waited for its end are applied."""
        self._metrics.measure(series.CYCLE, seconds * 1000)
        for (what, name), elapsed in result.timings.items():
            self._timing(what, name, elapsed * 1000)
        self._metrics.record(result.samples)
        self._assumed(result.binds, now)

    def bound(self, bind: Bind, now: float) -> None:
        """The API server accepted a bind."""
        task = self._mirror.task_by_uid(bind.task.uid)
        if task is not None and task.created:
            self._metrics.measure(series.TASK, (now - task.created) * 1000, stage="Bound")

    def prepared(self, bind: Bind, seconds: float, now: float) -> None:
        """What a pod needed before its bind was made ready."""
        self._metrics.measure(series.STAGE, seconds * 1000, stage="PreBind")
        task = self._mirror.task_by_uid(bind.task.uid)
        if task is not None and task.created:
            self._metrics.measure(series.TASK, (now - task.created) * 1000, stage="PreBound")

    def bind_took(self, seconds: float) -> None:
        """A bind request was answered."""
        self._metrics.measure(series.STAGE, seconds * 1000, stage="Bind")

    def added(self, obj: core.Object, now: float) -> None:
        """An object came into the mirror, or was left out of it, since it cannot be read."""
        match obj:
            case core.Pod() if not obj.spec.node_name:
                task = self._mirror.task_by_uid(obj.uid)
                if task is not None and task.created:
                    self._metrics.measure(series.TASK, (now - task.created) * 1000, stage="Watched")
            case core.PodGroup():
                job = self._mirror.jobs.get(f"{obj.namespace}/{obj.name}")
                if job is not None and job.uid == obj.uid:
                    self._metrics.measure(series.JOB_START, job.created, **self._labels(obj))

    def deleted(self, obj: core.Object) -> None:
        """An object left the mirror: its series end."""
        match obj:
            case core.PodGroup():
                self._metrics.forget_job(obj.namespace, obj.name, obj.spec.queue or self._default_queue)
            case core.Queue():
                self._metrics.forget_queue(obj.name)

    def _timing(self, what: str, name: str, milliseconds: float) -> None:
        if what == "open":
            self._metrics.measure(series.OPENING, milliseconds)
        elif what == "action":
            self._metrics.measure(series.ACTION, milliseconds, action=name)
        elif what in _HOOKS:
            self._metrics.measure(series.PLUGIN, milliseconds, plugin=name, OnSession=_HOOKS[what])

    def _assumed(self, binds: Iterable[Bind], now: float) -> None:
        jobs: dict[str, Job] = {}
        for bind in binds:
            task = self._mirror.task_by_uid(bind.task.uid)
            if task is None:
                continue
            if task.created:
                self._metrics.measure(series.TASK, (now - task.created) * 1000, stage="Assumed")
            job = task.job
            if job is not None and job.pod_group is not None:
                self._metrics.measure(series.JOB_LATENCY, max(now - job.created, 0.0) * 1000)
                jobs[job.id] = job
        for job in jobs.values():
            if job.pod_group is not None:
                labels = self._labels(job.pod_group)
                self._metrics.measure(series.JOB_DURATION, max(now - job.created, 0.0) * 1000, **labels)
                self._metrics.measure(series.JOB_LAST, now, **labels)

    def _labels(self, group: core.PodGroup) -> dict[str, str]:
        return {
            "job_name": group.name,
            "queue": group.spec.queue or self._default_queue,
            "job_namespace": group.namespace,
        }
