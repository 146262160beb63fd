"""``flow.volcano.sh/v1alpha1``: JobFlow and JobTemplate (spec 01 sections 9 and 10)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds, phases
from stromboli.api.batch import JobSpec, TaskState
from stromboli.api.kinds import Kind
from stromboli.api.meta import Resource
from stromboli.api.modelling import REQUIRED, Count, Model, Schema, Time

TaskName = Annotated[str, Schema(max_length=253)]
Port = Annotated[int, Schema(minimum=0, maximum=65535)]


class HttpHeader(Model):
    """A header of a probe."""

    name: Annotated[str, REQUIRED] = ""
    value: Annotated[str, REQUIRED] = ""


class HttpGet(Model):
    """An HTTP probe of a task."""

    task_name: TaskName = ""
    path: str = ""
    port: Port = 0
    http_header: HttpHeader | None = None


class TcpSocket(Model):
    """A TCP probe of a task."""

    task_name: TaskName = ""
    port: Annotated[Port, REQUIRED] = 0


class TaskStatus(Model):
    """A phase that a task must have."""

    task_name: TaskName = ""
    phase: Annotated[str, Schema(max_length=63)] = ""


class Probe(Model):
    """Conditions of a dependency beyond completion."""

    http_get_list: list[HttpGet] = []
    tcp_socket_list: list[TcpSocket] = []
    task_status_list: list[TaskStatus] = []


class DependsOn(Model):
    """Steps that must be completed first."""

    targets: list[str] = []
    probe: Probe | None = None


class Patch(Model):
    """Changes of a step to its template."""

    job_spec: JobSpec = Field(default_factory=JobSpec)


class Flow(Model):
    """One step: the name is that of a JobTemplate of the namespace."""

    name: Annotated[str, REQUIRED, Schema(min_length=1)] = ""
    depends_on: DependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(Model):
    """Steps and what becomes of their Jobs (section 9.1)."""

    flows: list[Flow] = []
    job_retain_policy: Annotated[str, Schema(enum=tuple(phases.JobRetainPolicy))] = ""


class RunningHistory(Model):
    """A stretch of time in one state."""

    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    state: str = ""


class FlowJobStatus(Model):
    """Status of one Job of a flow."""

    name: str = ""
    state: str = ""
    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    restart_count: Count = 0
    running_histories: list[RunningHistory] = []


class FlowCondition(Model):
    """Condition of one Job of a flow."""

    phase: str = ""
    create_time: Time | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskState] = {}


class JobFlowState(Model):
    """Phase of a flow."""

    phase: Annotated[str, Schema(enum=tuple(phases.JobFlowPhase))] = ""


class JobFlowStatus(Model):
    """What the JobFlow controller observed (section 9.2)."""

    pending_jobs: list[str] = []
    running_jobs: list[str] = []
    failed_jobs: list[str] = []
    completed_jobs: list[str] = []
    terminated_jobs: list[str] = []
    unknown_jobs: list[str] = Field(default_factory=list, alias="unKnowJobs")  # the spelling is API
    job_status_list: list[FlowJobStatus] = []
    conditions: dict[str, FlowCondition] = {}
    state: JobFlowState = Field(default_factory=JobFlowState)


class JobFlow(Resource):
    """Runs Jobs in the order of their dependencies."""

    KIND: ClassVar[Kind] = kinds.JOB_FLOWS

    spec: JobFlowSpec = Field(default_factory=JobFlowSpec)
    status: JobFlowStatus = Field(default_factory=JobFlowStatus)


class JobTemplateStatus(Model):
    """What the JobTemplate controller observed."""

    job_depends_on_list: list[str] = []


class JobTemplate(Resource):
    """A Job spec that flows make Jobs from."""

    KIND: ClassVar[Kind] = kinds.JOB_TEMPLATES

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobTemplateStatus = Field(default_factory=JobTemplateStatus)
