"""What a plan asks for, as data. The executor performs operations in the order of the plan and stops at an error.

Each operation may be performed again at no harm: that is what makes a plan safe to repeat after any failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from stromboli.controllers.job.members import Member
from stromboli.controllers.job.plugins import Attachment
from stromboli.kube.events import EventType
from stromboli.kube.json import JsonObject


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell the owner of the job, through an Event."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PatchJob:
    """Merge-patch metadata or spec of the job itself."""

    patch: JsonObject


@dataclass(frozen=True, slots=True)
class KeepAttachment:
    """Create an object of a plugin, or replace it when it is stale."""

    attachment: Attachment


@dataclass(frozen=True, slots=True)
class DropAttachment:
    """Delete an object of a plugin."""

    attachment: Attachment


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create a PersistentVolumeClaim for a volume of the job."""

    manifest: JsonObject


@dataclass(frozen=True, slots=True)
class CreatePodGroup:
    """Create the PodGroup."""

    manifest: JsonObject


@dataclass(frozen=True, slots=True)
class PatchPodGroup:
    """Merge-patch the PodGroup's spec."""

    name: str
    patch: JsonObject


@dataclass(frozen=True, slots=True)
class DeletePodGroup:
    """Delete the PodGroup of that UID."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Create pods, several at a time. Failures are collected; the others are created all the same."""

    manifests: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class RemovePods:
    """Mark pods as removed on purpose, then delete them, each by UID, several at a time."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write the status if it differs from the stored one, on condition that the job has not changed meanwhile."""

    status: JsonObject


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Have the job looked at again, though nothing may change meanwhile: at once, or after so many ``seconds``."""

    seconds: float = 0.0


Operation: TypeAlias = (
    RecordEvent
    | PatchJob
    | KeepAttachment
    | DropAttachment
    | CreateClaim
    | CreatePodGroup
    | PatchPodGroup
    | DeletePodGroup
    | CreatePods
    | RemovePods
    | WriteStatus
    | LookAgain
)
