"""What ``vcctl top`` keeps of the objects of a cluster: a line each, as it holds the whole cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from stromboli.api import core
from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, QUEUES, Kind
from stromboli.api.phases import JobPhase
from stromboli.cli.commanding.api import Api
from stromboli.cli.vc import ages
from stromboli.dashboard.waiting import NOTHING, Why, job_of, waits, why
from stromboli.kube.errors import Forbidden
from stromboli.kube.stores import Identity

OPTIONAL = frozenset({NODES, PODS})
"""What is left out for those who may not list it."""


class _Meta(core.Struct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def identity(self) -> Identity:
        return Identity(self.namespace, self.name, self.uid, self.resource_version)


class _NodeStatus(core.Struct, frozen=True, kw_only=True):
    allocatable: core.ResourceList = {}


class _Node(core.Struct, frozen=True, kw_only=True):
    metadata: _Meta
    status: _NodeStatus = _NodeStatus()


class _PodStatus(core.Struct, frozen=True, kw_only=True):
    start_time: str | None = None


class _Pod(core.Struct, frozen=True, kw_only=True):
    metadata: _Meta
    status: _PodStatus = _PodStatus()


class _JobState(core.Struct, frozen=True, kw_only=True):
    phase: str = ""


class _JobStatus(core.Struct, frozen=True, kw_only=True):
    state: _JobState = _JobState()


class _Job(core.Struct, frozen=True, kw_only=True):
    metadata: _Meta
    status: _JobStatus = _JobStatus()


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who an object is."""

    identity: Identity


class NodeLine(Line, frozen=True, kw_only=True, gc=False):
    """A node: what it offers. Nodes of one size share one tuple."""

    allocatable: tuple[tuple[str, Any], ...]


class PodLine(Line, frozen=True, kw_only=True, gc=False):
    """A pod: since when it runs, in seconds since the epoch; 0 when it does not."""

    started: float


class JobLine(Line, frozen=True, kw_only=True, gc=False):
    """A vcjob: its phase."""

    phase: str


class GroupLine(Line, frozen=True, kw_only=True, gc=False):
    """A PodGroup: whether it waits; if so, since when (as the wire has it), for which vcjob, and why."""

    waits: bool = False
    created: str = ""
    job: str = ""
    why: Why = NOTHING


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was there at one moment."""

    now: float
    nodes: Sequence[NodeLine] = ()
    pods: Sequence[PodLine] = ()
    queues: Sequence[core.Queue] = ()
    groups: Sequence[GroupLine] = ()
    jobs: Sequence[JobLine] = ()


# -- lines -------------------------------------------------------------------------------------------------------------


def node_line(node: _Node) -> NodeLine:
    """The line of a node."""
    return NodeLine(identity=node.metadata.identity, allocatable=_shared(tuple(node.status.allocatable.items())))


@lru_cache(maxsize=4096)
def _shared(amounts: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return amounts


def pod_line(pod: _Pod) -> PodLine:
    """The line of a pod."""
    return PodLine(identity=pod.metadata.identity, started=ages.seconds(pod.status.start_time) or 0.0)


def job_line(job: _Job) -> JobLine:
    """The line of a vcjob."""
    return JobLine(identity=job.metadata.identity, phase=job.status.state.phase or JobPhase.PENDING)


def group_line(group: core.PodGroup) -> GroupLine:
    """The line of a PodGroup."""
    meta = group.metadata
    identity = Identity(meta.namespace, meta.name, meta.uid, meta.resource_version)
    if not waits(group):
        return GroupLine(identity=identity)
    created = meta.creation_timestamp or ""
    return GroupLine(identity=identity, waits=True, created=created, job=job_of(group), why=why(group))


def _queue(queue: core.Queue) -> core.Queue:
    return queue


@dataclass(frozen=True)
class Reading:
    """How a kind is read: the fields that matter, and what is kept of them."""

    struct: type[core.Struct]
    line: Callable[[Any], Any]

    def decode(self, raw: bytes) -> Any:
        """The line of an object as bytes. Raises :class:`~stromboli.api.core.UndecodableObject`."""
        return self.line(core.decode(self.struct, raw))

    def all(self, objects: Iterable[bytes]) -> list[Any]:
        """Lines of the objects that can be read; one that is older than its schema hides no others."""
        found = []
        for raw in objects:
            with suppress(core.UndecodableObject):
                found.append(self.decode(raw))
        return found


READINGS: Mapping[Kind, Reading] = {
    NODES: Reading(_Node, node_line),
    QUEUES: Reading(core.Queue, _queue),
    POD_GROUPS: Reading(core.PodGroup, group_line),
    JOBS: Reading(_Job, job_line),
    PODS: Reading(_Pod, pod_line),
}
"""Everything that is looked at."""


def look_of(now: float, lines: Callable[[Kind], list[Any]]) -> Look:
    """A look made of the lines of each kind."""
    return Look(
        now=now,
        nodes=lines(NODES),
        pods=lines(PODS),
        queues=lines(QUEUES),
        groups=lines(POD_GROUPS),
        jobs=lines(JOBS),
    )


def look_once(api: Api, now: float) -> Look:
    """List the cluster; nodes and pods are left out for those who may not list them. Raises KubeError."""

    def listed(kind: Kind) -> list[Any]:
        try:
            return READINGS[kind].all(api.raw_items(kind))
        except Forbidden:
            if kind not in OPTIONAL:
                raise
            return []

    return look_of(now, listed)
