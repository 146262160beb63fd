"""``tensorflow``: describes the training cluster in ``TF_CONFIG`` (spec 02 section 22.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import orjson

from stromboli.api import names
from stromboli.api.batch import Job
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import read
from stromboli.controllers.job.plugins.containers import add_env, regular
from stromboli.controllers.job.plugins.hosts import addresses
from stromboli.kube.json import JsonObject

_ROLES = ("ps", "worker", "chief", "evaluator")
"""In the order in which the cluster lists them."""
_PRECEDENCE = ("chief", "worker", "ps", "evaluator")
"""In the order in which a task is matched with a role."""


class TensorFlow:
    """Arguments name the task of each role, and the port."""

    name: ClassVar[str] = "tensorflow"
    order: ClassVar[int] = 10
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, {**{role: role for role in _ROLES}, "port": 2222})
        self._tasks = {role: str(values[role]) for role in _ROLES}
        self._port = int(values["port"])

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Add ``TF_CONFIG``; a job of one pod has no cluster to describe."""
        tasks = replica.job.spec.tasks
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return
        own = pods.task_name(replica.task)
        role = next((one for one in _PRECEDENCE if self._tasks[one] == own), own)
        config = {"cluster": self._cluster(replica.job), "task": {"type": role, "index": replica.index}}
        add_env(regular(pod), (names.ENV_TF_CONFIG, orjson.dumps(config).decode()))

    def _cluster(self, job: Job) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for role in _ROLES:
            task = next((one for one in job.spec.tasks if pods.task_name(one) == self._tasks[role]), None)
            hosts = addresses(job, task) if task is not None else []
            if hosts:
                found[role] = [f"{host}:{self._port}" for host in hosts]
        return found

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """None."""
        return ()
