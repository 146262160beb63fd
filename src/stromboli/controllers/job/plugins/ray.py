"""``ray``: starts head and workers of a Ray cluster, behind one Service (spec 02 section 22.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import kinds, names
from stromboli.api.batch import Job, TaskSpec
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, PluginError, Replica
from stromboli.controllers.job.plugins.arguments import Value, read
from stromboli.controllers.job.plugins.containers import expose, regular
from stromboli.controllers.job.plugins.hosts import address
from stromboli.kube.json import JsonObject

_DEFAULTS: dict[str, Value] = {
    "head": "head",
    "headContainer": "head",
    "worker": "worker",
    "workerContainer": "worker",
    "port": 6379,
    "dashboardPort": 8265,
    "clientPort": 10001,
}


class Ray:
    """Arguments name tasks and containers of head and workers, and three ports."""

    name: ClassVar[str] = "ray"
    order: ClassVar[int] = 10
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, _DEFAULTS)
        self._head, self._head_container = str(values["head"]), str(values["headContainer"])
        self._worker, self._worker_container = str(values["worker"]), str(values["workerContainer"])
        self._ports = {
            "gcs": int(values["port"]),
            "dashboard": int(values["dashboardPort"]),
            "client-server": int(values["clientPort"]),
        }

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Replace the command of the head's or the worker's container. Raises PluginError without a head task."""
        head = self._head_task(replica.job)
        own = pods.task_name(replica.task)
        if own == self._head:
            for container in _named(pod, self._head_container):
                container["command"] = ["sh", "-c", self._head_command()]
                for name, port in self._ports.items():
                    expose([container], name, port)
        elif own == self._worker:
            command = f"ray start --block --address={address(replica.job, head, 0)}:{self._ports['gcs']}"
            for container in _named(pod, self._worker_container):
                container["command"] = ["sh", "-c", command]

    def _head_command(self) -> str:
        return (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={self._ports['gcs']}"
            f" --dashboard-port={self._ports['dashboard']} --ray-client-server-port={self._ports['client-server']}"
        )

    def _head_task(self, job: Job) -> TaskSpec:
        found = next((one for one in job.spec.tasks if pods.task_name(one) == self._head), None)
        if found is None:
            raise PluginError(f"job {job.name} doesn't have head task {self._head}")
        return found

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """The Service of the head. It targets port numbers, which a container may have named otherwise."""
        return (Attachment(kind=kinds.SERVICES, name=f"{job.name}-head-svc", build=lambda: self._service(job)),)

    def _service(self, job: Job) -> JsonObject:
        selector = {
            names.JOB_NAME: job.name,
            names.JOB_NAMESPACE: job.namespace,
            names.TASK_SPEC: self._head,
        }
        ports = [
            {"name": name, "protocol": "TCP", "port": port, "targetPort": port} for name, port in self._ports.items()
        ]
        return {"spec": {"selector": selector, "ports": ports}}


def _named(pod: JsonObject, name: str) -> list[JsonObject]:
    return [container for container in regular(pod) if container.get("name") == name]
