"""``hcclrank``: the rank of a pod for Ascend collective communication (spec 02 section 22.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import names
from stromboli.api.batch import Job
from stromboli.controllers.job import pods
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import read
from stromboli.controllers.job.plugins.containers import regular
from stromboli.kube.json import JsonObject


class HcclRank:
    """Runs last, because it takes over the ``RANK`` that another plugin may have set."""

    name: ClassVar[str] = "hcclrank"
    order: ClassVar[int] = 90
    marked: ClassVar[bool] = False

    def __init__(self, arguments: Sequence[str]) -> None:
        values = read(self.name, arguments, {"master": "master", "worker": "worker"})
        self._master, self._worker = str(values["master"]), str(values["worker"])

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Annotate the pod, unless it says its rank already."""
        notes = pod["metadata"]["annotations"]
        rank = notes.get(names.HCCL_RANK_INDEX) or _rank_in_env(pod) or self._rank(replica)
        if rank:
            notes[names.HCCL_RANK_INDEX] = rank

    def _rank(self, replica: Replica) -> str:
        own = pods.task_name(replica.task)
        if own == self._master:
            return str(replica.index)
        if own == self._worker:
            master = next((one for one in replica.job.spec.tasks if pods.task_name(one) == self._master), None)
            return str((master.replicas if master is not None else 0) + replica.index)
        return ""

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """None."""
        return ()


def _rank_in_env(pod: JsonObject) -> str:
    """Literal value of the first variable ``RANK``, containers in order."""
    for container in regular(pod):
        for variable in container.get("env") or ():
            if variable.get("name") == names.ENV_RANK:
                return str(variable.get("value") or "")
    return ""
