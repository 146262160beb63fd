"""Reasons of conditions and events, and the texts that more than one component writes (spec 01 sections 16.4 to 16.6).

Reasons are API: dashboards and the CLI filter on them. Texts are built here so that events, conditions and CLI agree.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MESSAGE_LIMIT: Final = 1024
"""Longest message that the API server accepts in an event, in characters."""


class PodGroupReason(StrEnum):
    """Reasons of PodGroup conditions. READY is a sentence: quirk, kept because it is API."""

    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
    POD_FAILED = "PodFailed"
    POD_DELETED = "PodDeleted"
    READY = "tasks in gang are ready to be scheduled"


class PodConditionReason(StrEnum):
    """Reasons of pod conditions that the scheduler writes."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULABLE = "Schedulable"
    SCHEDULER_ERROR = "SchedulerError"
    EVICT = "Evict"
    PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class EventType(StrEnum):
    """Types of Kubernetes events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventReason(StrEnum):
    """Reasons of Kubernetes events."""

    # Jobs
    COMMAND_ISSUED = "CommandIssued"
    EXECUTE_ACTION = "ExecuteAction"
    PLUGIN_ERROR = "PluginError"
    PVC_ERROR = "PVCError"
    POD_GROUP_ERROR = "PodGroupError"
    JOB_STATUS_ERROR = "JobStatusError"
    POD_GROUP_PENDING = "PodGroupPending"
    FAILED_CREATE = "FailedCreate"
    FAILED_DELETE = "FailedDelete"
    # PodGroups and pods
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULED = "Scheduled"
    FAILED_SCHEDULING = "FailedScheduling"
    EVICT = "Evict"
    # Queues
    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"
    SYNC_QUEUE = "SyncQueue"
    # Flows
    CREATED = "Created"
    SYNC_JOB_FLOW = "SyncJobFlow"
    SYNC_JOB_TEMPLATE = "SyncJobTemplate"
    # CronJobs
    SAW_COMPLETED_JOB = "SawCompletedJob"
    SUCCESSFUL_CREATE = "SuccessfulCreate"
    SUCCESSFUL_DELETE = "SuccessfulDelete"
    ORPHANED_JOB = "OrphanedJob"
    STALE_REFERENCE = "StaleReference"
    FORBID_CONCURRENT = "ForbidConcurrent"
    REPLACE_CONCURRENT = "ReplaceConcurrent"
    FAILED_GET = "FailedGet"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    FOREIGN_JOB = "ForeignJob"
    INVALID_SCHEDULE = "InvalidSchedule"
    UNSUPPORTED_SCHEDULE = "UnsupportedSchedule"
    TOO_MANY_MISSED_TIMES = "TooManyMissedTimes"
    INVALID_TIME_ZONE = "InvalidTimeZone"
    UNPARSEABLE_SCHEDULE = "UnParseableCronJobSchedule"
    # Admission
    ADMIT = "Admit"


POD_GROUP_READY: Final = "pod group is ready"
POD_GROUP_NOT_READY: Final = "pod group is not ready"
ALL_NODES_UNAVAILABLE: Final = "all nodes are unavailable"


def gang_unschedulable(missing: int, total: int, fit_error: str) -> str:
    """Message of the Unschedulable condition and event of a PodGroup; ``missing`` may be 0 or less."""
    return f"{missing}/{total} tasks in gang unschedulable: {fit_error}"


def pipelined(namespace: str, name: str, node: str) -> str:
    """Message of a pod that waits for resources that are being released."""
    return (
        f"Pod {namespace}/{name} can possibly be assigned to {node}, "
        "once resource is released and minAvailable is satisfied"
    )


def schedulable(namespace: str, name: str, node: str) -> str:
    """Message of a pod that waits only for the rest of its gang."""
    return f"Pod {namespace}/{name} can possibly be assigned to {node}, once minAvailable is satisfied"


def assigned(namespace: str, name: str, node: str) -> str:
    """Message of the Scheduled event of a pod."""
    return f"Successfully assigned {namespace}/{name} to {node}"


def bind_failed(node: str, error: str) -> str:
    """Message of a pod that could not be bound."""
    return f"failed to bind to node {node}: {error}"


def evicted(reason: str) -> str:
    """Message of the Evict condition and event of a pod."""
    return f"Pod is evicted, because of {reason}"


def preempting(scheduler: str) -> str:
    """Message of the DisruptionTarget condition of a victim."""
    return f"{scheduler}: preempting to accommodate a higher priority pod"


def bounded(message: str, limit: int = MESSAGE_LIMIT) -> str:
    """The message, cut at ``limit`` characters with an ellipsis."""
    return message if len(message) <= limit else message[: limit - 3] + "..."
