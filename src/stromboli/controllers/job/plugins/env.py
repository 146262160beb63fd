"""``env``: tells every container which replica it is (spec 02 section 22.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stromboli.api import names
from stromboli.api.batch import Job
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.containers import add_env, every
from stromboli.kube.json import JsonObject


class Env:
    """Takes no arguments and keeps no objects."""

    name: ClassVar[str] = "env"
    order: ClassVar[int] = 20
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        pass

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Add ``VK_TASK_INDEX`` and ``VC_TASK_INDEX``."""
        index = str(replica.index)
        add_env(every(pod), (names.ENV_TASK_INDEX_LEGACY, index), (names.ENV_TASK_INDEX, index))

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """None."""
        return ()
