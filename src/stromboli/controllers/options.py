"""The command line of the controller manager, with the defaults of spec 08 section 13.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api import names
from stromboli.controllers import selection
from stromboli.process.flags import FlagError, boolean, duration, integer, repeated, separated, text
from stromboli.process.options import ClientOptions, LeaderOptions, LoggingOptions, ServingOptions

PROGRAM = "stromboli-controllers"
LEASE = "vc-controller-manager"

FEATURE_GATES: Mapping[str, bool] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "CronVolcanoJobSupport": True,
    "QueueCommandSync": True,
    "PriorityClass": True,
    "PodDisruptionBudgetsSupport": True,
    "ResourceTopology": True,
    "CSIStorage": False,
    "SchedulingGatesQueueAdmission": False,
}
"""Gates with their defaults (spec 03 section 2). The last five are accepted here and read elsewhere."""


@dataclass(kw_only=True)
class Options(ClientOptions, ServingOptions, LeaderOptions, LoggingOptions):
    """Flags of the controller manager; durations are seconds."""

    scheduler_name: list[str] = repeated(
        [names.DEFAULT_SCHEDULER], "look after bare pods with this spec.schedulerName (repeatable)"
    )
    controllers: list[str] = repeated(
        ["*,-sharding-controller"], "controllers to run: *, NAME or +NAME, -NAME, by commas; the first match decides"
    )
    worker_threads: int = integer(3, "jobs worked on at a time")
    worker_threads_for_cronjob: int = integer(3, "cron jobs worked on at a time")
    worker_threads_for_podgroup: int = integer(5, "bare pods worked on at a time")
    worker_threads_for_queue: int = integer(5, "queues worked on at a time")
    worker_threads_for_gc: int = integer(1, "expired jobs worked on at a time")
    max_requeue_num: int = integer(15, "failures of an object before it is given up; negative: never")
    inherit_owner_annotations: bool = boolean(True, "copy annotations of a bare pod's owners to its PodGroup")
    listen_address: str = text(":8081", "address of /metrics")
    leader_elect_resource_name: str = text(LEASE, "name of the lease")
    scheduler_configs: list[str] = separated(
        ["volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100"],
        "sharding: name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes of each scheduler",
    )
    shard_sync_period: float = duration("60s", "sharding: pause between two passes")
    enable_node_event_trigger: bool = boolean(True, "sharding: also act on changes of nodes")
    sharding_configmap: str = text(names.SHARDING_CONFIG_MAP, "sharding: ConfigMap with the configuration")
    sharding_configmap_namespace: str = text(names.SYSTEM_NAMESPACE, "sharding: namespace of that ConfigMap")

    @property
    def selection(self) -> list[str]:
        """Items of ``--controllers``; blanks around them are kept, as they always were."""
        return [item for part in self.controllers if part for item in part.split(",")]

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on; one that nobody knows is off."""
        return self.feature_gates.get(name, FEATURE_GATES.get(name, False))

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            FlagError: one line naming the flag, its value and what it takes.
        """
        try:
            selection.validate(self.selection)
        except selection.SelectionError as error:
            raise FlagError(str(error)) from error
        for flag in ("", "_for_cronjob", "_for_podgroup", "_for_queue", "_for_gc"):
            value = getattr(self, f"worker_threads{flag}")
            if value < 1:
                raise FlagError(f"--worker-threads{flag.replace('_', '-')} is {value}: it must be at least 1")
        self.check_logging()
        self.check_leadership()
