"""Conditions of pods, written as patches of the pod's status (spec 04 sections 19, 20 and 30).

A strategic merge patch changes only the conditions that it names; the UID in it keeps it off another pod of the same
name.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from stromboli.api.kinds import PODS
from stromboli.kube.client import Client, PatchType
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.results import TaskRef

log = logging.getLogger(__name__)

MESSAGE_LIMIT = 4096
"""Longest message of a condition, in characters: a cluster of many kinds of node must not make an object too large."""


@dataclass(frozen=True, slots=True)
class PodCondition:
    """One condition to set."""

    type: str
    status: str
    reason: str
    message: str


class PodConditions:
    """Writes pod conditions. A failure is logged and answered with False: a message never stops the work."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock

    async def unscheduled(self, task: TaskRef, reason: str, message: str, nominated_node: str = "") -> bool:
        """Set PodScheduled to False, and the nominated node if there is one."""
        return await self.set(task, [PodCondition("PodScheduled", "False", reason, message)], nominated_node)

    async def set(self, task: TaskRef, conditions: list[PodCondition], nominated_node: str = "") -> bool:
        """Set these conditions; answers whether the server took them."""
        status: JsonObject = {"conditions": [self._wire(condition) for condition in conditions]}
        if nominated_node:
            status["nominatedNodeName"] = nominated_node
        patch = {"metadata": {"uid": task.uid}, "status": status}
        try:
            await self._client.patch(
                PODS, task.name, patch, task.namespace, type=PatchType.STRATEGIC, subresource="status"
            )
        except NotFound:
            return False  # the watch will tell
        except KubeError as error:
            log.warning("%s: conditions could not be written: %s", task.key, error)
            return False
        return True

    def _wire(self, condition: PodCondition) -> JsonObject:
        moment = datetime.fromtimestamp(self._clock.time(), UTC)
        return {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": bounded(condition.message, MESSAGE_LIMIT),
            "lastTransitionTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        }


def bounded(text: str, limit: int) -> str:
    """The text, cut with an ellipsis when it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
