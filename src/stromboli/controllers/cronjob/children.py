"""The jobs of a CronJob as its controller sees them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from stromboli.api import kinds, names
from stromboli.api.batch import CronJob
from stromboli.api.core import timestamp
from stromboli.api.phases import FINISHED_JOB_PHASES
from stromboli.kube import json
from stromboli.kube.json import JsonObject


@dataclass(frozen=True, slots=True)
class Child:
    """A job that a CronJob controls."""

    name: str
    uid: str
    phase: str = ""
    created: str = ""
    ended: str = ""
    deleting: bool = False

    @property
    def finished(self) -> bool:
        """Whether it will not run again."""
        return self.phase in FINISHED_JOB_PHASES

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> Child:
        """The child that a vcjob is."""
        meta = json.metadata(job)
        state = (job.get("status") or {}).get("state") or {}
        return cls(
            name=str(meta.get("name") or ""),
            uid=json.uid_of(job),
            phase=str(state.get("phase") or ""),
            created=str(meta.get("creationTimestamp") or ""),
            ended=str(state.get("lastTransitionTime") or ""),
            deleting=meta.get("deletionTimestamp") is not None,
        )

    def slot(self, cron_job: str) -> int | None:
        """The start, in seconds, that its name says it was made for; None when it has some other name."""
        prefix, dash, number = self.name.rpartition("-")
        return int(number) * 60 if dash and prefix == cron_job and number.isdecimal() else None


def controller_of(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that controls a job, whatever it is."""
    owners = json.metadata(job).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def cron_job_uid(job: Mapping[str, Any]) -> str | None:
    """UID of the CronJob that controls a job; None when none does."""
    owner = controller_of(job)
    return str(owner.get("uid") or "") if owner is not None and owner.get("kind") == kinds.CRON_JOBS.kind else None


def build(cron_job: CronJob, template: Mapping[str, Any], start: int, zone: tzinfo | None) -> JsonObject:
    """The job of one start. ``template`` is ``spec.jobTemplate`` as stored; without ``zone`` no time is noted."""
    meta = template.get("metadata") or {}
    notes = dict(meta.get("annotations") or {})
    if zone is not None:
        notes[names.CRON_JOB_SCHEDULED_TIMESTAMP] = rfc3339(start, zone)
    return {
        "apiVersion": kinds.JOBS.api_version,
        "kind": kinds.JOBS.kind,
        "metadata": {
            "name": names.cron_job_child_name(cron_job.name, start),
            "namespace": cron_job.namespace,
            "labels": dict(meta.get("labels") or {}),
            "annotations": notes,
            "ownerReferences": [cron_job.owner_reference().to_wire()],
        },
        "spec": dict(template.get("spec") or {}),
    }


def rfc3339(moment: float, zone: tzinfo = UTC) -> str:
    """A moment as the wire has it, to the second."""
    return datetime.fromtimestamp(int(moment), zone).isoformat().replace("+00:00", "Z")


def age_order(child: Child) -> tuple[bool, float, str]:
    """Oldest first, equal ages by name, those without an age last."""
    return (not child.created, timestamp(child.created), child.name)
