"""From a job as plain data to the model that passes work with, each spec once.

Reading a job costs more than looking at it, and most of what is read is the same again: a job's status changes several
times as often as its spec, and jobs that are submitted by the thousand differ in little but their names. So the models
of the last specs are kept by their content, checked, and shared by all jobs that have them; and of the jobs that were
read last the whole model is kept, by UID and version. Models are read-only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

from stromboli.api.batch import MOST_REPLICAS, Job, JobSpec
from stromboli.controllers.job import policies
from stromboli.controllers.job.memo import MOST
from stromboli.kube import json
from stromboli.kube.json import JsonObject

K = TypeVar("K")
V = TypeVar("V")

LARGEST_KEPT = 64 * 2**10
"""Bytes of a spec that is kept; models take ten times as much, and few are larger."""


class Reader:
    """Reads jobs, and remembers the last ``most`` of them and of their specs."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._jobs: OrderedDict[str, tuple[str, Job]] = OrderedDict()
        self._specs: OrderedDict[bytes, JobSpec] = OrderedDict()

    def read(self, raw: JsonObject) -> Job:
        """The job. Raises ValueError, naming the field, for one that cannot be read or acted upon."""
        uid, version = json.uid_of(raw), json.resource_version_of(raw)
        known = self._jobs.get(uid)
        if known is not None and version and known[0] == version:
            self._jobs.move_to_end(uid)
            return known[1]
        job = self._read(raw)
        if uid:
            _keep(self._jobs, uid, (version, job), self._most)
        return job

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._jobs.pop(uid, None)

    def __len__(self) -> int:
        """Jobs that are remembered."""
        return len(self._jobs)

    def _read(self, raw: JsonObject) -> Job:
        content = json.encode(raw.get("spec"))
        spec = self._specs.get(content)
        if spec is None:
            job = _checked(Job.from_wire(raw))
            if len(content) <= LARGEST_KEPT:
                _keep(self._specs, content, job.spec, self._most)
            return job
        self._specs.move_to_end(content)
        job = Job.from_wire({field: value for field, value in raw.items() if field != "spec"})
        job.spec = spec
        return job


def _keep(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)


def _checked(job: Job) -> Job:
    policies.check(job)
    _check_sizes(job)
    return job


def _check_sizes(job: Job) -> None:
    """Refuse what could only stop the controller, as admission does; the text names the field."""
    total = 0
    for position, task in enumerate(job.spec.tasks):
        total += task.replicas
        if total > MOST_REPLICAS:
            raise ValueError(
                f"spec.tasks[{position}].replicas: too many replicas: {job.spec.total_replicas} in all tasks, "
                f"must be at most {MOST_REPLICAS}"
            )
