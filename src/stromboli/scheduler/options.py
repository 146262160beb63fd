"""The scheduler's command line: every flag of spec 04 section 1 with its default, and what the environment adds.

``--check-config`` and ``--scheduled-events`` are additions of ours. The groups that all processes share are inherited.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.process.flags import FlagError, boolean, duration, integer, number, repeated, separated, text
from stromboli.process.options import ClientOptions, LeaderOptions, LoggingOptions, ServingOptions

PROGRAM = "stromboli-scheduler"
DEFAULT_SCHEDULER_NAME = "volcano"
BY_SIZE, ON_PODS, ON_POD_GROUPS = SCHEDULED_EVENTS = ("auto", "pods", "podgroups")
"""Who is told of bound pods; see :mod:`stromboli.scheduler.placements`."""

FEATURE_GATES: Mapping[str, bool] = {
    "WorkLoadSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "PriorityClass": True,
    "ResourceTopology": True,
    "CSIStorage": False,
    "StorageCapacityScoring": False,
    "SchedulingGatesQueueAdmission": False,
    "DynamicResourceAllocation": True,
    "DRAConsumableCapacity": False,
    "DRADeviceTaints": False,
    "DRAPartitionableDevices": False,
    "DRAPrioritizedList": True,
    "DRAAdminAccess": True,
    "PodSchedulingReadiness": True,
    "PodLevelResources": True,
    "InPlacePodVerticalScaling": True,
}
"""Gates that the scheduler reads, with their defaults (spec 04 section 4; Kubernetes' own as in 1.35)."""


@dataclass(kw_only=True)
class Options(ClientOptions, ServingOptions, LeaderOptions, LoggingOptions):
    """Flags of the scheduler process; durations are seconds."""

    scheduler_name: list[str] = repeated(
        [DEFAULT_SCHEDULER_NAME], "handle pods with this spec.schedulerName (repeatable)"
    )
    scheduler_conf: str = text("", "policy file; watched, and reloaded when its content changes")
    disable_default_scheduler_config: bool = boolean(
        False, "end the process when the policy file is missing or invalid"
    )
    check_config: str = text("", "print the effective policy of this file and exit; 1 when it is invalid")
    schedule_period: float = duration("1s", "pause between scheduling cycles")
    resync_period: float = duration("0", "informer resync; 0 means never")
    default_queue: str = text("default", "queue of PodGroups that name none; created if missing")
    enable_pprof: bool = boolean(False, "serve /debug/pprof")
    priority_class: bool = boolean(True, "honour PriorityClasses of PodGroups")
    kube_api_qps: float = number(2000.0, "sustained requests a second to the API server")
    kube_api_burst: int = integer(2000, "requests to the API server allowed at once")
    minimum_feasible_nodes: int = integer(100, "least number of nodes to find before the search may stop")
    minimum_percentage_nodes_to_find: int = integer(5, "least percentage of nodes to find before the search may stop")
    percentage_nodes_to_find: int = integer(0, "percentage of nodes to find; 0 or less adapts, 100 or more means all")
    plugins_dir: str = text("", "directory of plugins (NAME.py) to load")
    csi_storage: bool = boolean(False, "with gate CSIStorage: check the capacity of CSI storage")
    node_selector: list[str] = separated([], "use only nodes with one of these labels, each as key:value")
    cache_dumper: bool = boolean(True, "write the cache to --cache-dump-dir on SIGUSR1")
    cache_dump_dir: str = text("/tmp", "directory of cache dumps")  # noqa: S108 - the documented default
    node_worker_threads: int = integer(20, "accepted for compatibility; nodes are applied in order")
    gate_removal_worker_num: int = integer(5, "workers that remove the queue-allocation scheduling gate")
    ignored_provisioners: list[str] = separated([], "provisioners whose volumes do not count against attach limits")
    resource_sync_timeout: float = duration("60s", "longest wait for the first lists; 0 does not wait")
    scheduler_sharding_mode: str = text("none", "none, hard or soft")
    scheduler_sharding_name: str = text("volcano", "own NodeShard")
    scheduled_events: str = text(
        BY_SIZE,
        "who is told of bound pods: pods, podgroups (one event for those of a second), or auto: podgroups of more than "
        "50 pods, else pods (Stromboli's own)",
    )
    leader_elect_resource_name: str = text(DEFAULT_SCHEDULER_NAME, "name of the lease")

    @property
    def component(self) -> str:
        """Source of events: the single scheduler name, or ``volcano`` when there are several (spec 04 section 1)."""
        return self.scheduler_name[0] if len(self.scheduler_name) == 1 else DEFAULT_SCHEDULER_NAME

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on; gates that nobody knows are off."""
        return self.feature_gates.get(name, FEATURE_GATES.get(name, False))

    @property
    def watches_priority_classes(self) -> bool:
        """Flag and gate must both be on."""
        return self.priority_class and self.gate("PriorityClass")

    @property
    def of_cycles(self) -> dict[str, object]:
        """What plugins look at, by the name under which they find it in a cycle's options. Plain data."""
        return {
            "feature-gates": dict(self.feature_gates),
            "csi-storage": self.csi_storage,
            "ignored-provisioners": tuple(self.ignored_provisioners),
        }

    @property
    def of_snapshots(self) -> dict[str, object]:
        """What a snapshot has to say of the process, for its cycles to be repeated elsewhere. Plain data."""
        return {
            **self.of_cycles,
            "default-queue": self.default_queue,
            "scheduler-sharding-mode": self.scheduler_sharding_mode,
            "scheduler-sharding-name": self.scheduler_sharding_name,
        }

    @property
    def shards(self) -> bool:
        """Whether node sharding is on; an unknown mode behaves as ``none``."""
        return self.scheduler_sharding_mode in ("hard", "soft")

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            FlagError: one line naming the flag, its value and what it takes.
        """
        if self.schedule_period < 0:
            raise FlagError(f"--schedule-period is {self.schedule_period}s: it cannot be negative")
        if self.scheduled_events not in SCHEDULED_EVENTS:
            expected = f"{', '.join(SCHEDULED_EVENTS[:-1])} or {SCHEDULED_EVENTS[-1]}"
            raise FlagError(f'invalid argument "{self.scheduled_events}" for --scheduled-events: expected {expected}')
        self.check_logging()
        self.check_leadership()


@dataclass(frozen=True, slots=True)
class Environment:
    """What the scheduler reads from environment variables (spec 04 section 1)."""

    bind_batch: int = 1
    partition: Partition | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> Environment:
        """Read ``BATCH_BIND_NUM``, ``MULTI_SCHEDULER_ENABLE``, ``SCHEDULER_POD_NAME`` and ``SCHEDULER_NUM``.

        Raises:
            FlagError: partitioning is on but the own pod name has no ordinal.
        """
        environ = os.environ if environ is None else environ
        batch = _whole_number(environ.get("BATCH_BIND_NUM"), 1)
        return cls(bind_batch=batch if batch > 0 else 1, partition=Partition.read(environ))


@dataclass(frozen=True, slots=True)
class Partition:
    """Own place among several schedulers that share the pods by consistent hashing."""

    own: str
    members: tuple[str, ...]

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Partition | None:
        """None unless ``MULTI_SCHEDULER_ENABLE`` is exactly ``true``."""
        if environ.get("MULTI_SCHEDULER_ENABLE") != "true":
            return None
        own = environ.get("SCHEDULER_POD_NAME", "")
        base, dash, _ordinal = own.rpartition("-")
        if not dash:
            raise FlagError(f'SCHEDULER_POD_NAME is "{own}": MULTI_SCHEDULER_ENABLE needs a pod name like NAME-0')
        number_of_members = _whole_number(environ.get("SCHEDULER_NUM"), 1)
        return cls(own, tuple(f"{base}-{ordinal}" for ordinal in range(number_of_members)))


def _whole_number(value: str | None, default: int) -> int:
    try:
        return int(value or "")
    except ValueError:
        return default
