"""Task statuses and the classes they form (spec 04 section 7)."""

from __future__ import annotations

from enum import IntEnum


class TaskStatus(IntEnum):
    """Where a task stands; the value is its index in per-status counters."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def word(self) -> str:
        """The name as users see it in messages: ``Pending``, ``Allocated``, ..."""
        return _WORDS[self]


_WORDS = {status: status.name.capitalize() for status in TaskStatus}

ALLOCATED_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED})
"""Hold resources of their node; queue and job totals count them."""

CHARGED_STATUSES = ALLOCATED_STATUSES | {TaskStatus.PIPELINED}
"""What plugins' accounting sees: allocate events fire for pipelined tasks as well."""

EVICTABLE_STATUSES = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
SCHEDULED_STATUSES = frozenset({TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED})
COMPLETED_STATUSES = frozenset({TaskStatus.FAILED, TaskStatus.SUCCEEDED})
VALID_STATUSES = ALLOCATED_STATUSES | {TaskStatus.SUCCEEDED, TaskStatus.PIPELINED, TaskStatus.PENDING}
READY_STATUSES = ALLOCATED_STATUSES | {TaskStatus.SUCCEEDED}
TERMINATED_STATUSES = COMPLETED_STATUSES
"""Tasks in these statuses stay in their job but are not on any node."""
