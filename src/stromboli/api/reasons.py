"""Reasons of conditions and events, and the texts that more than one component writes (spec 01 sections 16.4 to 16.6).

Reasons are API: dashboards and the CLI filter on them. Texts are built here so that events, conditions and CLI agree.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class WaitReason(StrEnum):
    """Why a gang waits, in one word: reasons of the condition ``Admitted``, of explanations and of previews.

    The first seven are given by the scheduler's plugins, the others are what the command line finds.
    """

    CLUSTER_OVERCOMMITTED = "ClusterOvercommitted"
    QUEUE_QUOTA_INSUFFICIENT = "QueueQuotaInsufficient"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_MISCONFIGURED = "QueueMisconfigured"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    RESOURCE_QUOTA_INSUFFICIENT = "ResourceQuotaInsufficient"
    EXTENDER_REJECTED = "ExtenderRejected"
    QUEUE_EXHAUSTED = "QueueExhausted"
    QUEUE_MISSING = "QueueMissing"
    NOT_ADMITTED_YET = "NotAdmittedYet"
    POD_GROUP_MISSING = "PodGroupMissing"
    PODS_MISSING = "PodsMissing"
    PODS_REFUSED = "PodsRefused"
    PODS_GATED = "PodsGated"
    NODES_REFUSE = "NodesRefuse"
    TOPOLOGY_TOO_SMALL = "TopologyTooSmall"
    GANG_INCOMPLETE = "GangIncomplete"
    BINDING_REFUSED = "BindingRefused"
    CLAIMS_NOT_READY = "ClaimsNotReady"
    TASK_DEPENDENCY = "TaskDependency"
    OTHER_SCHEDULER = "OtherScheduler"
    SUSPENDED = "Suspended"
    ABORTED = "Aborted"
    ABOUT_TO_START = "AboutToStart"


NEXT_STEPS: Mapping[WaitReason, str] = {
    WaitReason.CLUSTER_OVERCOMMITTED: "wait for running work to end, add nodes, or ask for less",
    WaitReason.QUEUE_QUOTA_INSUFFICIENT: (
        "wait for the queue's work to end, raise spec.capability, use another queue, or ask for less"
    ),
    WaitReason.QUEUE_NOT_OPEN: "open it with 'vcctl queue operate -n QUEUE -a open', or use another queue",
    WaitReason.QUEUE_MISCONFIGURED: "set spec.parent of the queue to a queue that exists",
    WaitReason.QUEUE_NOT_LEAF: "use one of the queues below it",
    WaitReason.RESOURCE_QUOTA_INSUFFICIENT: "raise the namespace's ResourceQuota, or ask for less",
    WaitReason.EXTENDER_REJECTED: "ask the owner of the extender",
    WaitReason.QUEUE_EXHAUSTED: "wait for the queue's work to end, or raise its deserved amount or weight",
    WaitReason.QUEUE_MISSING: "create the queue with 'vcctl queue create -n QUEUE', or use another",
    WaitReason.NOT_ADMITTED_YET: "wait for the next scheduling cycle; if it lasts, see the scheduler's log",
    WaitReason.POD_GROUP_MISSING: "see the job's events for what its controller could not do",
    WaitReason.PODS_MISSING: "see the job's events for what its controller could not do",
    WaitReason.PODS_REFUSED: "see who refuses the job's pods: a ResourceQuota, a webhook or a policy",
    WaitReason.PODS_GATED: "remove the scheduling gates of the pods, or have their owner do it",
    WaitReason.NODES_REFUSE: "ask for less, change selectors and tolerations, or add nodes that fit",
    WaitReason.TOPOLOGY_TOO_SMALL: "allow a higher tier (highestTierAllowed), use mode soft, or make the gang smaller",
    WaitReason.GANG_INCOMPLETE: "wait for room for the whole gang, lower minAvailable, or ask for less",
    WaitReason.BINDING_REFUSED: "see who refuses the binds: a webhook, a quota or a node",
    WaitReason.CLAIMS_NOT_READY: "create the claims that the pods name, or wait until they are bound",
    WaitReason.TASK_DEPENDENCY: "lower minAvailable to the pods of the tasks that start first",
    WaitReason.OTHER_SCHEDULER: "ask whoever runs that scheduler, or set spec.schedulerName of the job",
    WaitReason.SUSPENDED: "resume it with 'vcctl job resume'",
    WaitReason.ABORTED: "mend what it was aborted for, then resume it with 'vcctl job resume'",
    WaitReason.ABOUT_TO_START: "wait a moment",
}
"""What the owner of a waiting job can do."""

WAITING: Final = "wait for "
IN_VAIN: Final = "; waiting does not help: it would not start in the empty cluster either"


def without_waiting(step: str) -> str:
    """The advice without waiting for something to end, where nothing is in the way that could end."""
    return step.partition(", ")[2].removeprefix("or ") if step.startswith(WAITING) else step


def next_step(reason: WaitReason, *, in_vain: bool = False) -> str:
    """What to do; ``in_vain`` says that what is wanted is by itself more than there may ever be."""
    step = NEXT_STEPS[reason]
    return without_waiting(step) + IN_VAIN if in_vain else step


def advice(reason: WaitReason, *, in_vain: bool = False) -> str:
    """The same as a sentence."""
    step = next_step(reason, in_vain=in_vain)
    return f"{step[:1].upper()}{step[1:]}."


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
    PODS_SCHEDULED = "PodsScheduled"
    FAILED_SCHEDULING = "FailedScheduling"
    EVICT = "Evict"
    UNREADABLE = "Unreadable"
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
