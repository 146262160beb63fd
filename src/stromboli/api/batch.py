"""``batch.volcano.sh/v1alpha1``: Job and CronJob (spec 01 sections 3 to 5).

Absent and zero are the same except where the default is ``None``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from stromboli.api import kinds, phases
from stromboli.api.corev1.claims import PersistentVolumeClaimSpec
from stromboli.api.corev1.pods import PodTemplateSpec
from stromboli.api.kinds import Kind
from stromboli.api.meta import EmbeddedObjectMeta, ObjectReference, Resource
from stromboli.api.modelling import (
    ATOMIC,
    LABEL,
    REQUIRED,
    SUBDOMAIN,
    Count,
    Int32,
    Int64,
    Model,
    Schema,
    Time,
)
from stromboli.api.topologies import NetworkTopologySpec

MOST_REPLICAS: Final = 1_000_000
"""A job of more pods is not accepted: it could only stop its controller."""

PolicyEvent = Annotated[str, Schema(enum=tuple(phases.JobEvent))]


class LifecyclePolicy(Model):
    """What to do when something happens to a Job or task (section 3.2)."""

    action: str = ""
    """Action to run."""
    event: PolicyEvent = ""
    """Single trigger."""
    events: list[PolicyEvent] = []
    """Trigger list, together with `event`."""
    exit_code: Int32 | None = None
    """Trigger on the exit code of a failed pod's first container."""
    timeout: str | None = None
    """Delay before the action, as a Go duration."""

    def triggers(self) -> list[str]:
        """The effective events: ``events`` and ``event``, without repeats."""
        return list(dict.fromkeys([*self.events, *([self.event] if self.event else [])]))


class VolumeSpec(Model):
    """A claim mounted in every container of a Job, by name or to be made (section 3.3)."""

    mount_path: Annotated[str, REQUIRED, Schema(min_length=1, pattern=r"^[^:]+$")] = ""
    """Where the volume is mounted."""
    volume_claim_name: Annotated[str, Schema(max_length=253)] = ""
    """Name of the claim; written back for generated claims."""
    volume_claim: PersistentVolumeClaimSpec | None = None
    """The claim to make."""


class DependsOn(Model):
    """Tasks that must be ready before this one starts (section 3.4)."""

    name: list[str] = []
    """Names of the tasks."""
    iteration: str = ""
    """`any` or `all`; `any` needs more than one name."""


class PartitionPolicySpec(Model):
    """Split of a task into partitions (section 3.5)."""

    total_partitions: Annotated[Int32, REQUIRED, Schema(minimum=1)] = 0
    """Number of partitions."""
    partition_size: Annotated[Int32, REQUIRED, Schema(minimum=1)] = 0
    """Pods of a partition."""
    network_topology: NetworkTopologySpec | None = None
    """Topology of each partition."""
    min_partitions: Annotated[Count, Schema(default=0)] = 0
    """Partitions that must be schedulable."""


class TaskSpec(Model):
    """Pods of one kind within a Job (section 4.2)."""

    name: Annotated[str, Schema(max_length=63, pattern=LABEL)] = ""
    """Name, unique in the Job."""
    replicas: Count = 0
    """Number of pods; none when absent."""
    min_available: Count | None = None
    """Pods that must run at once."""
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    """Pod template; its name is ignored."""
    policies: list[LifecyclePolicy] = []
    """Policies of the task; they win over the Job's."""
    topology_policy: Annotated[str, Schema(enum=tuple(phases.NumaPolicy))] = ""
    """NUMA policy."""
    max_retry: Count = 0
    """Container restarts before the task counts as failed."""
    depends_on: DependsOn | None = None
    """Tasks to wait for."""
    partition_policy: PartitionPolicySpec | None = None
    """Split into partitions."""


class JobSpec(Model):
    """What a Job runs (section 4.1); also the heart of CronJobs, JobTemplates and flow patches."""

    scheduler_name: Annotated[str, Schema(max_length=63)] = ""
    """Scheduler of pods whose template names none."""
    min_available: Count = 0
    """Gang size."""
    volumes: list[VolumeSpec] = []
    """Claims mounted in every container."""
    tasks: Annotated[list[TaskSpec], Schema(min_items=1)] = []
    """The tasks."""
    policies: list[LifecyclePolicy] = []
    """Policies of the Job."""
    plugins: dict[str, list[str]] = {}
    """Job plugins and their arguments."""
    running_estimate: str | None = None
    """Expected run time, as a Go duration."""
    queue: Annotated[str, Schema(default="default", max_length=253, pattern=SUBDOMAIN)] = ""
    """Queue."""
    max_retry: Annotated[Count, Schema(default=3)] = 0
    """Restarts before the Job fails."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds a finished Job is kept; for ever when absent."""
    priority_class_name: Annotated[str, Schema(max_length=253, pattern=SUBDOMAIN)] = ""
    """Priority of the Job, and of pods that have none."""
    min_success: Annotated[Int32 | None, Schema(minimum=1)] = None
    """Pods whose success completes the Job."""
    network_topology: NetworkTopologySpec | None = None
    """Topology of the gang."""

    def task(self, name: str) -> TaskSpec | None:
        """The task of that name."""
        return next((task for task in self.tasks if task.name == name), None)

    @property
    def total_replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)


class JobState(Model):
    """Phase of a Job, and since when."""

    phase: Annotated[str, Schema(enum=tuple(phases.JobPhase))] = ""
    """Phase; empty before the first sync."""
    reason: str = ""
    """Not written."""
    message: str = ""
    """Not written."""
    last_transition_time: Time | None = None
    """When the phase was entered."""


class TaskState(Model):
    """Pods of a task, by phase."""

    phase: dict[str, Int32] = {}
    """Number of pods of each phase; absent is 0."""


class JobCondition(Model):
    """A phase that the Job has reached, and when last."""

    status: Annotated[str, REQUIRED] = ""
    """Phase."""
    last_transition_time: Time | None = None
    """When it was entered."""


class JobStatus(Model):
    """What the Job controller observed (section 4.3)."""

    state: JobState = Field(default_factory=JobState)
    """Phase."""
    min_available: Count = 0
    """Copy of the spec's."""
    task_status_count: dict[str, TaskState] = {}
    """Pod counts by task."""
    pending: Count = 0
    """Pending pods."""
    running: Count = 0
    """Running pods."""
    succeeded: Count = 0
    """Succeeded pods."""
    failed: Count = 0
    """Failed pods."""
    terminating: Count = 0
    """Pods being deleted."""
    unknown: Count = 0
    """Pods in any other phase."""
    version: Count = 0
    """Incremented by every kill of the whole Job."""
    retry_count: Count = 0
    """Restarts so far."""
    running_duration: str | None = None
    """From creation to the last kill, as a Go duration."""
    controlled_resources: dict[str, str] = {}
    """What has been made for the Job."""
    conditions: list[JobCondition] = []
    """Phases reached, oldest first."""


class Job(Resource):
    """A batch job: tasks that run as a gang."""

    KIND: ClassVar[Kind] = kinds.JOBS

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)


class JobTemplateSpec(Model):
    """What the Jobs of a CronJob look like; the name is ignored."""

    metadata: EmbeddedObjectMeta = Field(default_factory=EmbeddedObjectMeta)
    spec: JobSpec = Field(default_factory=JobSpec)


class CronJobSpec(Model):
    """When and how a CronJob makes Jobs (section 5.1)."""

    schedule: Annotated[str, REQUIRED] = ""
    """Five-field cron or @descriptor."""
    time_zone: str | None = None
    """IANA name; the controller's own zone when absent."""
    starting_deadline_seconds: Annotated[Int64 | None, Schema(minimum=0)] = None
    """How late a Job may start."""
    concurrency_policy: Annotated[str, Schema(default="Allow", enum=tuple(phases.ConcurrencyPolicy))] = ""
    """What to do when the last Job still runs."""
    suspend: Annotated[bool | None, Schema(default=False)] = None
    """Whether to make no Jobs for now."""
    job_template: Annotated[JobTemplateSpec, REQUIRED] = Field(default_factory=JobTemplateSpec)
    """The Jobs to make."""
    successful_jobs_history_limit: Annotated[Count | None, Schema(default=3)] = None
    """Completed Jobs to keep."""
    failed_jobs_history_limit: Annotated[Count | None, Schema(default=1)] = None
    """Failed Jobs to keep."""


class CronJobStatus(Model):
    """What the CronJob controller did (section 5.2)."""

    active: Annotated[list[ObjectReference], ATOMIC] = []
    """Jobs that run."""
    last_schedule_time: Time | None = None
    """Slot acted upon last."""
    last_successful_time: Time | None = None
    """When a Job completed last."""


class CronJob(Resource):
    """Makes Jobs on a schedule."""

    KIND: ClassVar[Kind] = kinds.CRON_JOBS

    spec: CronJobSpec = Field(default_factory=CronJobSpec)
    status: CronJobStatus = Field(default_factory=CronJobStatus)
