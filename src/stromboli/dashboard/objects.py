"""What the dashboard keeps of the objects it watches: no more than it shows, for tens of thousands of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from stromboli.api import core, names
from stromboli.api.core.meta import Object, Struct
from stromboli.api.quantities import BadQuantity
from stromboli.api.requests import pod_request
from stromboli.kube.stores import Identity

ENDED: Final = frozenset({"Succeeded", "Failed"})


class TaskSpec(Struct, frozen=True, kw_only=True):
    """A task of a vcjob: how many pods."""

    name: str = ""
    replicas: int = 0


class JobSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a vcjob, without templates."""

    queue: str = ""
    min_available: int = 0
    priority_class_name: str = ""
    tasks: tuple[TaskSpec, ...] = ()


class JobState(Struct, frozen=True, kw_only=True):
    """Where a vcjob stands."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class JobStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a vcjob: counts of its pods."""

    state: JobState = JobState()
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class Job(Object, frozen=True, kw_only=True):
    """A vcjob."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class PodSight(msgspec.Struct, frozen=True, gc=False):
    """A pod in one line: whose it is, where it runs, since when, and what it asks for."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    phase: str = ""
    node: str = ""
    owner: str = ""
    """Name of its vcjob, else of its PodGroup; empty for other pods."""
    bound: float = 0.0
    """When it got its node, in seconds since the epoch; 0 when that is not known."""
    requests: Mapping[str, float] = {}

    @property
    def identity(self) -> Identity:
        """Who it is."""
        return Identity(self.namespace, self.name, self.uid, self.resource_version)

    @property
    def holds(self) -> bool:
        """Whether it takes room on a node."""
        return bool(self.node) and not self.ended

    @property
    def ended(self) -> bool:
        """Whether it has run to its end."""
        return self.phase in ENDED


def is_ready(node: core.Node) -> bool:
    """Whether the node says that it is ready."""
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)


def pod_sight(raw: bytes) -> PodSight:
    """The line of a pod. Raises :class:`~stromboli.api.core.UndecodableObject`."""
    pod = core.decode(core.Pod, raw)
    meta = pod.metadata
    return PodSight(
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
        pod.status.phase,
        pod.spec.node_name,
        _owner(meta),
        _bound(pod),
        _requests(pod),
    )


def _owner(meta: core.ObjectMeta) -> str:
    for found in (meta.annotations, meta.labels):
        if name := found.get(names.JOB_NAME):
            return name
    return meta.annotations.get(names.GROUP_NAME, "")


def _bound(pod: core.Pod) -> float:
    moments = (item.last_transition_time for item in pod.status.conditions if item.type == "PodScheduled")
    try:
        return core.timestamp(next(moments, None) or pod.status.start_time) if pod.spec.node_name else 0.0
    except ValueError:
        return 0.0


def _requests(pod: core.Pod) -> Mapping[str, float]:
    try:
        request = pod_request(pod)
    except BadQuantity:
        return {}
    scalars = request.scalars or {}
    found = {names.CPU: request.cpu / 1000, names.MEMORY: request.memory}
    found |= {name: value / 1000 for name, value in scalars.items() if name != names.PODS}
    return _shared(tuple(found.items()))


@lru_cache(maxsize=4096)
def _shared(items: tuple[tuple[str, float], ...]) -> Mapping[str, float]:
    """One mapping for all pods that ask for the same."""
    return dict(items)
