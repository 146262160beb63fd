"""Events on pods, PodGroups and what cannot be used, in the scheduler's words: object, type and reason."""

from __future__ import annotations

from stromboli.api.kinds import POD_GROUPS, PODS, Kind
from stromboli.kube.events import EventType, Recorder, Reference
from stromboli.scheduler.core.results import TaskRef


class PodEvents:
    """Records events about what the scheduler decides; recording never waits and never fails."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def pod(self, task: TaskRef, type: str, reason: str, message: str) -> None:
        """An event on a pod."""
        regarding = Reference.to(PODS, task.namespace, task.name, task.uid)
        self._recorder.event(regarding, EventType(type), reason, message)

    def about(self, kind: Kind, namespace: str, name: str, uid: str, reason: str, message: str) -> None:
        """A warning about any object."""
        self._recorder.event(Reference.to(kind, namespace, name, uid), EventType.WARNING, reason, message)

    def pod_group(self, job_id: str, uid: str, type: str, reason: str, message: str) -> None:
        """An event on the PodGroup of a job."""
        namespace, _, name = job_id.partition("/")
        self._recorder.event(Reference.to(POD_GROUPS, namespace, name, uid), EventType(type), reason, message)
