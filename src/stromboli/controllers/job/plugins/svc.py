"""``svc``: makes the pods of a job find each other, by DNS and by a list of hosts (spec 02 section 22.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import kinds, names
from stromboli.api.batch import Job, TaskSpec
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import read
from stromboli.controllers.job.plugins.containers import append, every
from stromboli.controllers.job.plugins.hosts import address, replicas_with_hosts
from stromboli.kube.json import JsonObject


class Svc:
    """A ConfigMap of hosts, a headless Service, and a NetworkPolicy that keeps strangers out."""

    name: ClassVar[str] = "svc"
    order: ClassVar[int] = 40
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, {"publish-not-ready-addresses": False, "disable-network-policy": False})
        self._publish = bool(values["publish-not-ready-addresses"])
        self._isolate = not values["disable-network-policy"]

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Give the pod its host name, the hosts of every task in its environment and under ``/etc/volcano``."""
        spec, config_map = pod["spec"], _config_map_name(replica.job)
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or replica.job.name
        append(spec, "volumes", {"name": config_map, "configMap": {"name": config_map}})
        variables = [name for task in replica.job.spec.tasks for name in _variables(task)]
        for container in every(pod):
            append(container, "env", *(_from_config_map(name, config_map) for name in variables))
            append(container, "volumeMounts", {"name": config_map, "mountPath": names.SVC_MOUNT_PATH})

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """ConfigMap (kept up to date while the job is scaled), Service, NetworkPolicy."""
        data = host_data(job)
        config_map = Attachment(
            kind=kinds.CONFIG_MAPS,
            name=_config_map_name(job),
            build=lambda: {"data": data},
            stale=lambda existing: existing.get("data") != data,
            always=True,
        )
        service = Attachment(kind=kinds.SERVICES, name=job.name, build=lambda: self._service(job))
        policy = Attachment(kind=kinds.NETWORK_POLICIES, name=job.name, build=lambda: _network_policy(job))
        return (config_map, service, policy) if self._isolate else (config_map, service)

    def _service(self, job: Job) -> JsonObject:
        spec: JsonObject = {"clusterIP": "None", "selector": _selector(job)}
        if self._publish:
            spec["publishNotReadyAddresses"] = True
        return {"spec": spec}


def host_data(job: Job) -> dict[str, str]:
    """Data of the ConfigMap: for each task its hosts by line, its hosts by comma, and their number."""
    data: dict[str, str] = {}
    for task in job.spec.tasks:
        hosts = [address(job, task, index) for index in range(replicas_with_hosts(task))]
        by_comma, number = _variables(task)
        data[f"{pods.task_name(task).replace('-', '_')}.host"] = "\n".join(hosts)
        data[by_comma] = ",".join(hosts)
        data[number] = str(len(hosts))
    return data


def _variables(task: TaskSpec) -> tuple[str, str]:
    stem = pods.task_name(task).replace("-", "_").upper()
    return f"VC_{stem}_HOSTS", f"VC_{stem}_NUM"


def _from_config_map(name: str, config_map: str) -> JsonObject:
    return {"name": name, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": name}}}


def _config_map_name(job: Job) -> str:
    return f"{job.name}-svc"


def _selector(job: Job) -> dict[str, str]:
    return {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace}


def _network_policy(job: Job) -> JsonObject:
    selector = {"matchLabels": _selector(job)}
    return {
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": selector}]}],
        }
    }
