"""``mpi``: tells the launcher its workers, and opens their port (spec 02 section 22.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import names
from stromboli.api.batch import Job
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import read
from stromboli.controllers.job.plugins.containers import add_env, every, expose
from stromboli.controllers.job.plugins.hosts import distinct_addresses
from stromboli.kube.json import JsonObject

_PORT_NAME = "mpijob-port"


class Mpi:
    """Arguments name the tasks of launcher and workers, and the port."""

    name: ClassVar[str] = "mpi"
    order: ClassVar[int] = 10
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, {"master": "master", "worker": "worker", "port": 22})
        self._master, self._worker = str(values["master"]), str(values["worker"])
        self._port = int(values["port"])

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Add the port everywhere and ``MPI_HOST`` to the master; a master without workers is left as it is."""
        containers = every(pod)
        if pods.task_name(replica.task) == self._master:
            worker = next((one for one in replica.job.spec.tasks if pods.task_name(one) == self._worker), None)
            if worker is None:
                return
            add_env(containers, (names.ENV_MPI_HOST, ",".join(distinct_addresses(replica.job, worker))))
        expose(containers, _PORT_NAME, self._port)

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """None."""
        return ()
