"""Taking the picture of a job that a plan is made from: caches, corrected by what this process did itself."""

from __future__ import annotations

from dataclasses import replace

from stromboli.api import kinds, names
from stromboli.api.batch import Job
from stromboli.api.core import Pod, PodGroup
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job import plugins
from stromboli.controllers.job.ledger import JobLedger
from stromboli.controllers.job.members import Member, job_of, member_of
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.plugins import JobPlugin, PluginError

BY_JOB = "job-uid"
"""Index of pods by the UID of the Job that controls them."""
BY_QUEUE = "job-queue"
"""Index of jobs by queue."""
BY_CLAIM = "job-claim"
"""Index of jobs by the claims that they name, as ``namespace/name``."""


class Observer:
    """Reads the informers for one job at a time."""

    def __init__(self, informers: SharedInformers, *, priority_classes: bool = True) -> None:
        self._pods = informers.pods.store
        self._groups = informers.pod_groups.store
        self._queues = informers.queues.store
        self._claims = informers.claims.store
        self._priorities = informers.priority_classes.store if priority_classes else ()
        self._pods.add_index(BY_JOB, _job_uids)

    def observe(self, job: Job, memory: JobLedger, moment: float) -> Observed:
        """The picture of ``job`` at ``moment`` (steady time), without what was reported and without timers."""
        configured, complaint = _configured(job)
        return Observed(
            job=job,
            members=self._members(job, memory, moment),
            group=self._group(job, memory),
            queue=self._queues.get(("", job.spec.queue or names.DEFAULT_QUEUE)),
            claims=frozenset(claim.name for claim in self._claims.list(job.namespace))
            if job.spec.volumes
            else frozenset(),
            priorities={one.name: one.value for one in self._priorities},
            plugins=configured,
            plugin_error=complaint,
        )

    def _members(self, job: Job, memory: JobLedger, moment: float) -> tuple[Member, ...]:
        found = {
            member.uid: _as_removed(member) if member.uid in memory.removed else member
            for member in map(member_of, self._pods.by_index(BY_JOB, job.uid))
            if member is not None
        }
        memory.doubt(moment)
        for created in memory.created.values():
            if created.member.uid not in memory.removed:
                found.setdefault(created.member.uid, created.member)
        memory.pods = len(found)
        return tuple(found.values())

    def _group(self, job: Job, memory: JobLedger) -> PodGroup | None:
        namespace, name = job.namespace, job.name
        group = self._groups.get((namespace, names.job_pod_group_name(name, job.uid)))
        if group is None:
            legacy = self._groups.get((namespace, name))
            group = legacy if legacy is not None and _owned_by(legacy, job) else None
        if group is None or group.deleting or group.uid in memory.removed_groups:
            return None
        return group


def _as_removed(member: Member) -> Member:
    return replace(member, terminating=True, marked=True)


def _configured(job: Job) -> tuple[tuple[JobPlugin, ...], str]:
    try:
        return plugins.configured(job), ""
    except PluginError as error:
        return (), str(error)


def _job_uids(pod: Pod) -> tuple[str, ...]:
    owner = job_of(pod)
    return (owner[1],) if owner else ()


def _owned_by(group: PodGroup, job: Job) -> bool:
    return any(owner.kind == kinds.JOBS.kind and owner.uid == job.uid for owner in group.metadata.owner_references)
