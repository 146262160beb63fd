"""Every enumeration of the API (spec 01 section 16).

Members are their wire text (``JobPhase.RUNNING == "Running"``). Reading foreign objects must accept texts that are not
listed, so models keep plain text and code compares with members.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobPhase(StrEnum):
    """``status.state.phase`` of a Job; empty means not yet initialised and is handled as Pending."""

    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


FINISHED_JOB_PHASES: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})
"""Phases that end a Job, for its time to live and a CronJob's history. Aborted Jobs can be resumed."""


class JobEvent(StrEnum):
    """What happened to a Job (spec 01 section 16.2), in the order of the CRD's enumeration."""

    ANY = "*"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    JOB_UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"
    TASK_FAILED = "TaskFailed"


USER_JOB_EVENTS: Final = frozenset(JobEvent) - {JobEvent.POD_RUNNING, JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED}
"""Events that users may name in policies; the schema accepts the others, admission refuses them."""


class JobAction(StrEnum):
    """What is done to a Job, task, pod or partition (spec 01 section 16.3)."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"
    ENQUEUE_JOB = "EnqueueJob"


USER_JOB_ACTIONS: Final = frozenset(JobAction) - {JobAction.SYNC_JOB, JobAction.ENQUEUE_JOB}
"""Actions that users may name in policies."""


class QueueAction(StrEnum):
    """What is done to a queue."""

    SYNC_QUEUE = "SyncQueue"
    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


class FlowAction(StrEnum):
    """What is done to a JobFlow or JobTemplate."""

    SYNC_JOB_FLOW = "SyncJobFlow"
    SYNC_JOB_TEMPLATE = "SyncJobTemplate"


class PodGroupPhase(StrEnum):
    """``status.phase`` of a PodGroup; empty is treated as Pending."""

    PENDING = "Pending"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    INQUEUE = "Inqueue"
    COMPLETED = "Completed"


class PodGroupConditionType(StrEnum):
    """Types of PodGroup conditions; the last two are additions of ours, which name a cause while they are False."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULED = "Scheduled"
    ADMITTED = "Admitted"
    FITS = "Fits"


class QueueState(StrEnum):
    """``status.state`` of a queue; empty until the first sync."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class JobFlowPhase(StrEnum):
    """``status.state.phase`` of a JobFlow. The spelling of SUCCEED is the API's; TERMINATING is never entered."""

    SUCCEED = "Succeed"
    TERMINATING = "Terminating"
    FAILED = "Failed"
    RUNNING = "Running"
    PENDING = "Pending"


class JobRetainPolicy(StrEnum):
    """What happens to the Jobs of a JobFlow that succeeded."""

    RETAIN = "retain"
    DELETE = "delete"


class ConcurrencyPolicy(StrEnum):
    """What a CronJob does when its last Job still runs."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class NetworkTopologyMode(StrEnum):
    """Whether a topology constraint is a must."""

    HARD = "hard"
    SOFT = "soft"


class NumaPolicy(StrEnum):
    """``topologyPolicy`` of a task."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class Iteration(StrEnum):
    """How many of the tasks named in ``dependsOn`` must be ready; anything but ``any`` behaves as ``all``."""

    ANY = "any"
    ALL = "all"


class MemberType(StrEnum):
    """Type of a HyperNode's member."""

    NODE = "Node"
    HYPER_NODE = "HyperNode"


class DequeueStrategy(StrEnum):
    """What a queue does when its head cannot be scheduled: stop, or try the next."""

    FIFO = "fifo"
    TRAVERSE = "traverse"


class NumaPolicyKey(StrEnum):
    """Keys of ``spec.policies`` of a Numatopology."""

    CPU_MANAGER_POLICY = "CPUManagerPolicy"
    TOPOLOGY_MANAGER_POLICY = "TopologyManagerPolicy"


class PodPhase(StrEnum):
    """``status.phase`` of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
