"""What a cycle decided, as data for the shell to carry out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from stromboli.api import core
from stromboli.scheduler.core.extensions import BindExtension
from stromboli.scheduler.core.view import Fault, JobEvent, Sample, Shortage


class TaskRef(msgspec.Struct, frozen=True, gc=False):
    """Identity of a pod and the job it belongs to."""

    namespace: str
    name: str
    uid: str
    job_id: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class Bind(msgspec.Struct, frozen=True, gc=False):
    """A committed allocation: the mirror holds the task as Binding until it is confirmed or ``bind_failed``."""

    task: TaskRef
    node: str
    extension: BindExtension | None = None
    annotations: Mapping[str, str] = {}
    """All annotations of the pod, those of the extension included (spec 04 section 19)."""


class Evict(msgspec.Struct, frozen=True, gc=False):
    """A committed eviction: the mirror holds the task as Releasing until the pod goes, or ``evict_failed``."""

    task: TaskRef
    reason: str
    """``preempt``, ``reclaim``, ... (spec 04 section 20)"""
    job_uid: str = ""


@dataclass(frozen=True, slots=True)
class PodGroupUpdate:
    """A PodGroup whose status is to be written (spec 04 section 30.1); only those that differ are listed."""

    job_id: str
    uid: str
    status: core.PodGroupStatus


class PodUpdate(msgspec.Struct, frozen=True, gc=False):
    """A PodScheduled condition that is to be written: status False, with an event of the same message."""

    task: TaskRef
    reason: str
    message: str
    nominated_node: str = ""
    """Written when not empty."""


@dataclass(frozen=True, slots=True)
class QueueUpdate:
    """``status.allocated`` of a queue whose amount differs from what the API server holds."""

    name: str
    uid: str
    allocated: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobReport:
    """Why a job waits, with numbers; for ``explain`` and the events of the cycle."""

    job_id: str
    phase: str
    min_member: int
    counts: Mapping[str, int]
    invalid: str = ""
    message: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)
    """Fit message by pod name."""
    notes: tuple[str, ...] = ()
    """What no node is to blame for: queues that give nothing more, HyperNodes too small for the gang."""
    shortages: tuple[Shortage, ...] = ()
    """What is short by how much, and whose limit it is, when the job is not admitted for want of it."""


@dataclass(slots=True)
class CycleResult:
    """Everything a cycle decided. Lists are in the order of the decisions."""

    session_id: str
    binds: list[Bind] = field(default_factory=list)
    evictions: list[Evict] = field(default_factory=list)
    pod_groups: list[PodGroupUpdate] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)
    """Events on PodGroups."""
    pods: list[PodUpdate] = field(default_factory=list)
    queues: list[QueueUpdate] = field(default_factory=list)
    gate_removals: list[TaskRef] = field(default_factory=list)
    """Pods whose queue-allocation gate is to be removed (spec 04 section 33)."""
    samples: list[Sample] = field(default_factory=list)
    timings: dict[tuple[str, str], float] = field(default_factory=dict)
    """Seconds by (``open``/``action``/``plugin-open``/``plugin-close``/``close``, name)."""
    reports: list[JobReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One line each: unknown plugins, failing plugins or actions."""
    warnings: list[str] = field(default_factory=list)
    """One line each: objects that cannot be used as they are, such as a queue without its parent."""
    faults: list[Fault] = field(default_factory=list)
    """Those of the warnings that are about one object, for an event on it."""
