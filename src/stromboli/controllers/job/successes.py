"""Replicas whose success has been counted, remembered in the job's status so that no success is ever run again.

A succeeded pod may disappear at any time: its node is removed, or the cluster collects finished pods. The record lives
in ``status.controlledResources`` as ``succeeded-<task>: 0-3,7``, written together with the counters it explains.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api.batch import Job
from stromboli.controllers.job import indexes

_PREFIX = "succeeded-"


def of(job: Job, task: str) -> frozenset[int]:
    """Indexes of the task's replicas that are known to have succeeded."""
    return indexes.parse(job.status.controlled_resources.get(_PREFIX + task, ""))


def record(controlled: dict[str, str], succeeded: Mapping[str, frozenset[int]]) -> None:
    """Replace the record in ``controlled`` by ``succeeded``, indexes by task."""
    for key in [key for key in controlled if key.startswith(_PREFIX)]:
        del controlled[key]
    for task, found in succeeded.items():
        if found:
            controlled[_PREFIX + task] = indexes.format(found)
