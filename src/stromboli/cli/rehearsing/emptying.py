"""Whether a job would start if nothing else were in the cluster: where it would not, waiting is no advice."""

from __future__ import annotations

import re

from stromboli.api import core
from stromboli.api.reasons import IN_VAIN, WAITING
from stromboli.api.reasons import without_waiting as without_waiting  # for those who ask here
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.engine import Rehearsal
from stromboli.cli.rehearsing.policies import PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy

CYCLES = 8
"""Cycles after which a job that has not started is said to wait."""
FOR_OTHERS = "wait for running work to end, "
HOPELESS = IN_VAIN
HOPELESS_REST = "; waiting does not help: the empty cluster has no room for more of it either"
NOTHING_TAKEN = re.compile(r", of which [^\s,]+ 0(?:, [^\s,]+ 0)* is taken")
"""What is told of an amount that nobody has a part of; of the empty cluster it goes without saying."""


def submitted(snapshot: Snapshot, job: JsonObject) -> Snapshot:
    """The snapshot with the job's PodGroup, and its pods to come once that is admitted."""
    priorities = list(snapshot.of(core.PriorityClass))
    group = members.pod_group(job, priorities, snapshot.taken)
    return snapshot.with_objects(group, awaited=members.pods(job, priorities))


def starts_alone(snapshot: Snapshot, policy: Policy, job: JsonObject, plugins: Plugins = PLUGINS) -> bool:
    """Whether the job starts in the cluster of the snapshot without any work."""
    minimum = (job.get("spec") or {}).get("minAvailable") or 0
    return placed_alone(snapshot, policy, job, plugins) >= max(minimum, 1)


def placed_alone(snapshot: Snapshot, policy: Policy, job: JsonObject, plugins: Plugins = PLUGINS) -> int:
    """How many of the job's pods find a node in the cluster of the snapshot without any work."""
    alone = Rehearsal(submitted(snapshot.without_work(), job), policy, plugins)
    alone.settle(CYCLES)
    return len(alone.placed(f"{json.key_of(job)[0]}/{members.group_name(job)}"))


def with_waiting(step: str) -> str:
    """The advice for a job that only has to wait until others are done."""
    return step if step.startswith(WAITING) else FOR_OTHERS + step
