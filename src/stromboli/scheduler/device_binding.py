"""Writes what was decided about a pod's device claims before the pod is bound (spec 06 section 17.10).

A claim gets the finalizer that protects it, its allocation unless it has that already, and the pod among those that it
is reserved for. When the pod is not bound after all it is taken out again, and if the claim is then reserved for nobody
an allocation made for this bind goes too: kept, it would tie the pod to a node that has just refused it, and devices
to a gang that is held back. All writes carry the resourceVersion that was read, and are made again after a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from stromboli.api import core
from stromboli.api.kinds import RESOURCE_CLAIMS
from stromboli.kube.client import Client
from stromboli.kube.errors import Conflict, KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core.extensions import DeviceGrant
from stromboli.scheduler.core.results import Bind, TaskRef

log = logging.getLogger(__name__)

FINALIZER = "resource.kubernetes.io/delete-protection"
ATTEMPTS = 8
"""Writes of one claim before conflicts are taken for a failure: pods that share a claim get in each other's way."""

Change = Callable[[JsonObject], JsonObject | None]
"""What a claim should be; None when it is that already."""


class ClaimLost(Exception):
    """The claim is not what was decided about any more; the text says how."""


class DeviceBinder:
    """The pre-binder of device claims."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def needs(self, bind: Bind) -> bool:
        """Whether there is anything to write."""
        return bind.extension is not None and bool(bind.extension.devices)

    async def pre_bind(self, bind: Bind) -> None:
        """Return when every claim is allocated and reserved for the pod.

        Raises:
            PreBindError: a claim is gone, being deleted or allocated otherwise, or cannot be written.
        """
        done: list[DeviceGrant] = []
        for grant in bind.extension.devices if bind.extension is not None else ():
            try:
                await self._write(bind.task, grant)
            except (ClaimLost, KubeError) as error:
                for earlier in reversed(done):
                    await self._release(bind.task, earlier)
                raise PreBindError(f"claim {bind.task.namespace}/{grant.claim}: {error}") from error
            done.append(grant)

    async def roll_back(self, bind: Bind) -> None:
        """Undo what was written for the pod, as far as no other relies on it. What cannot be is named in the log."""
        for grant in reversed(bind.extension.devices if bind.extension is not None else ()):
            await self._release(bind.task, grant)

    async def settle(self, bind: Bind) -> None:
        """Nothing is held for the time of the bind alone."""

    async def _write(self, task: TaskRef, grant: DeviceGrant) -> None:
        if grant.allocation is not None:
            await self._change(task.namespace, grant, protected)
        await self._change(task.namespace, grant, lambda claim: granted(claim, task, grant), subresource="status")

    async def _release(self, task: TaskRef, grant: DeviceGrant) -> None:
        try:
            await self._change(task.namespace, grant, lambda claim: released(claim, task, grant), subresource="status")
        except (ClaimLost, NotFound):
            pass  # a claim that is gone is reserved for nobody
        except KubeError as error:
            log.warning("claim %s/%s stays reserved for %s: %s", task.namespace, grant.claim, task.key, error)

    async def _change(
        self, namespace: str, grant: DeviceGrant, change: Change, *, subresource: str | None = None
    ) -> None:
        for attempt in range(ATTEMPTS):
            claim = await self._client.get(RESOURCE_CLAIMS, grant.claim, namespace)
            if claim["metadata"].get("uid") != grant.uid:
                raise ClaimLost("it was deleted and made again")
            wanted = change(claim)
            if wanted is None:
                return
            try:
                await self._client.update(RESOURCE_CLAIMS, wanted, subresource=subresource)
                return
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise


def protected(claim: JsonObject) -> JsonObject | None:
    """The claim with the finalizer. Raises ClaimLost when it is being deleted."""
    metadata: Mapping[str, Any] = claim["metadata"]
    if metadata.get("deletionTimestamp"):
        raise ClaimLost("it is being deleted")
    finalizers = metadata.get("finalizers") or []
    if FINALIZER in finalizers or (claim.get("status") or {}).get("allocation"):
        return None
    return {**claim, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}


def granted(claim: JsonObject, task: TaskRef, grant: DeviceGrant) -> JsonObject | None:
    """The claim with its allocation, reserved for the pod.

    Raises:
        ClaimLost: it is being deleted, has another allocation, or none although it should have one.
    """
    if claim["metadata"].get("deletionTimestamp"):
        raise ClaimLost("it is being deleted")
    status: Mapping[str, Any] = claim.get("status") or {}
    present = status.get("allocation")
    if present is None and grant.allocation is None:
        raise ClaimLost("it is not allocated any more")
    if present is not None and grant.allocation is not None and not _same(present, grant.allocation):
        raise ClaimLost("it was allocated elsewhere in the meantime")
    reserved = status.get("reservedFor") or []
    known = any(consumer.get("uid") == task.uid for consumer in reserved)
    if present is not None and known:
        return None
    consumer = {"resource": "pods", "name": task.name, "uid": task.uid}
    return {
        **claim,
        "status": {
            **status,
            "allocation": present or _wire(grant.allocation),
            "reservedFor": reserved if known else [*reserved, consumer],
        },
    }


def released(claim: JsonObject, task: TaskRef, grant: DeviceGrant) -> JsonObject | None:
    """The claim reserved for the pod no longer, and without the allocation if that was made for it alone."""
    status = dict(claim.get("status") or {})
    reserved = status.get("reservedFor") or []
    left = [consumer for consumer in reserved if consumer.get("uid") != task.uid]
    if len(left) == len(reserved):
        return None
    present = status.get("allocation")
    if not left and grant.allocation is not None and present is not None and _same(present, grant.allocation):
        del status["allocation"]
    return {**claim, "status": {**status, "reservedFor": left}}


def _wire(allocation: core.DeviceAllocation | None) -> dict[str, object] | None:
    return core.to_builtins(allocation) if allocation is not None else None


def _same(present: Mapping[str, Any], wanted: core.DeviceAllocation) -> bool:
    found = core.from_builtins(core.DeviceAllocation, present)
    return found.devices.results == wanted.devices.results and found.node_selector == wanted.node_selector
