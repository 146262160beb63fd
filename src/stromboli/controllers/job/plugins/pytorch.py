"""``pytorch``: the rendezvous of distributed PyTorch: master address, world size, ranks (spec 02 section 22.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import names
from stromboli.api.batch import Job, TaskSpec
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import Value, read
from stromboli.controllers.job.plugins.containers import add_env, append, expose, regular
from stromboli.controllers.job.plugins.hosts import address
from stromboli.kube.json import JsonObject

_PORT_NAME = "pytorchjob-port"
_WAITER = "wait-for-master"
_DEFAULTS: dict[str, Value] = {
    "master": "master",
    "worker": "worker",
    "port": 23456,
    "wait-master-enabled": False,
    "wait-master-timeout": 300,
    "wait-master-image": "busybox:1.36.1",
}
# Debian's busybox has no -z; images of Debian have bash, but not as sh, and often no nc at all.
_WAIT_SCRIPT = """\
answers() {{
  nc -z {host} {port} || nc -w 2 {host} {port} -e true || bash -c 'exec 3<>/dev/tcp/{host}/{port}'
}}
waited=0
until answers 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then echo "{host}:{port} does not answer after {timeout} s" >&2; exit 1; fi
  sleep 2
  waited=$((waited + 2))
done
"""


class PyTorch:
    """Arguments name the tasks of master and workers, the port, and whether workers wait for the master."""

    name: ClassVar[str] = "pytorch"
    order: ClassVar[int] = 10
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, _DEFAULTS)
        self._master, self._worker = str(values["master"]), str(values["worker"])
        self._port, self._timeout = int(values["port"]), int(values["wait-master-timeout"])
        self._waits, self._image = bool(values["wait-master-enabled"]), str(values["wait-master-image"])

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Add port and environment to every container; a job without a master is left as it is."""
        master = _task(replica.job, self._master)
        if master is None:
            return
        host = address(replica.job, master, 0)
        worker = _task(replica.job, self._worker)
        size = master.replicas + (worker.replicas if worker is not None else 0)
        variables = [
            (names.ENV_MASTER_ADDR, host),
            (names.ENV_MASTER_PORT, str(self._port)),
            (names.ENV_WORLD_SIZE, str(size)),
            *self._rank(replica),
        ]
        containers = regular(pod)
        expose(containers, _PORT_NAME, self._port)
        add_env(containers, *variables)
        if self._waits and pods.task_name(replica.task) == self._worker:
            self._wait(pod, host)

    def _rank(self, replica: Replica) -> list[tuple[str, str]]:
        own = pods.task_name(replica.task)
        if own == self._master:
            return [(names.ENV_RANK, "0")]
        return [(names.ENV_RANK, str(replica.index + 1))] if own == self._worker else []

    def _wait(self, pod: JsonObject, host: str) -> None:
        if any(one.get("name") == _WAITER for one in pod["spec"].get("initContainers") or ()):
            return
        script = _WAIT_SCRIPT.format(host=host, port=self._port, timeout=self._timeout)
        waiter = {"name": _WAITER, "image": self._image, "command": ["sh", "-c", script]}
        append(pod["spec"], "initContainers", waiter)

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """None."""
        return ()


def _task(job: Job, name: str) -> TaskSpec | None:
    return next((one for one in job.spec.tasks if pods.task_name(one) == name), None)
