"""What one reconcile of a job sees: a frozen picture from which the plan follows, and nothing else.

The picture already holds what this process did but the watch has not shown yet (see :mod:`.ledger`), so planning never
has to wonder about a cache that lags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.api.batch import Job
from stromboli.api.core import PodGroup, Queue
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.policies import Occurrence

if TYPE_CHECKING:
    from stromboli.controllers.job.deciding import TimerKey
    from stromboli.controllers.job.plugins import JobPlugin


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One job and everything that decides what happens to it next."""

    job: Job
    members: tuple[Member, ...] = ()
    """Pods whose controller is this very job, by UID."""
    group: PodGroup | None = None
    """The job's PodGroup; None also when it is being deleted."""
    queue: Queue | None = None
    claims: frozenset[str] = frozenset()
    """Names of the PersistentVolumeClaims in the job's namespace."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Values of the PriorityClasses by name."""
    plugins: tuple[JobPlugin, ...] = ()
    """The job's plugins, configured, in the order in which they decorate pods."""
    plugin_error: str = ""
    """Why the job's plugins cannot be configured; a job can be killed without them, but not synced."""
    reported: tuple[Occurrence, ...] = ()
    """Occurrences that no present state shows any more (evictions) or ever did (commands), oldest first."""
    attention: Mapping[str, float] = field(default_factory=dict)
    """When each scheduler was last seen at work, seconds since the epoch, by name (see :mod:`.attention`)."""
    timers: Mapping[TimerKey, float] = field(default_factory=dict)
    """When each delayed action is due, seconds since the epoch."""
