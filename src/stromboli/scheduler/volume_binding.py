"""Gives a pod's delayed claims their volumes before the pod is bound (spec 04 sections 19 and 21).

An existing volume gets a reference to the claim, a claim that needs provisioning gets the name of the node; then the
claims are waited for. Volumes that a pod is about to take are kept from others until its claims are bound or it has
failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from stromboli.api import core
from stromboli.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.results import Bind
from stromboli.scheduler.core.volumes import PodClaims, VolumePlan, VolumeProblem

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 1.0


class VolumeBinder:
    """The pre-binder of volumes."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        *,
        timeout: Callable[[], float] = lambda: DEFAULT_TIMEOUT_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._mirror = mirror
        self._timeout = timeout
        self._clock = clock
        self._taken: set[str] = set()

    def needs(self, bind: Bind) -> bool:
        """Whether the pod has claims at all."""
        task = self._mirror.task_by_uid(bind.task.uid)
        return task is not None and volumes.has_claims(task.shape.pod.spec.volumes)

    async def pre_bind(self, bind: Bind) -> None:
        """Return once all claims of the pod are bound to volumes that its node reaches.

        Raises:
            PreBindError: they cannot be, or are not within the time allowed.
        """
        task = self._mirror.task_by_uid(bind.task.uid)
        if task is None:
            raise PreBindError("binding volumes: pod does not exist any more")
        try:
            claims = self._claims(task)
            plan = self._plan(claims, bind.node)
            await self._carry_out(bind, task, plan)
        except (VolumeProblem, KubeError) as error:
            raise PreBindError(f"binding volumes: {error}") from error

    async def roll_back(self, bind: Bind) -> None:
        """Nothing: volumes once bound stay with their claims, and are there when the pod is tried again."""

    def _claims(self, task: Task) -> PodClaims:
        claims = volumes.claims_of(
            task.namespace, task.name, task.uid, task.shape.pod.spec.volumes, self._mirror.objects
        )
        if claims.immediate:
            raise VolumeProblem(volumes.UNBOUND_IMMEDIATE)
        return claims

    def _plan(self, claims: PodClaims, node_name: str) -> VolumePlan:
        node = self._mirror.nodes_by_name.get(node_name)
        if node is None or node.resource is None:
            raise VolumeProblem(f"node {node_name} does not exist any more")
        volumes.check_bound(claims.bound, node.resource, self._mirror.objects)
        return volumes.plan(claims.delayed, node.resource, self._mirror.objects, self._taken)

    async def _carry_out(self, bind: Bind, task: Task, plan: VolumePlan) -> None:
        names = {volume.name for volume, _ in plan.static}
        self._taken |= names
        try:
            for volume, claim in plan.static:
                await self._reserve(volume, claim)
            for claim in plan.provision:
                await self._select_node(claim, bind.node)
            await self._wait(task, bind.node, [claim for _, claim in plan.static] + list(plan.provision))
        finally:
            self._taken -= names

    async def _reserve(self, volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> None:
        reference = {
            "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
            "kind": PERSISTENT_VOLUME_CLAIMS.kind,
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        patch = {
            "metadata": {
                "uid": volume.uid,
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {volumes.BOUND_BY_CONTROLLER: "yes"},
            },
            "spec": {"claimRef": reference},
        }
        await self._client.patch(PERSISTENT_VOLUMES, volume.name, patch)

    async def _select_node(self, claim: core.PersistentVolumeClaim, node: str) -> None:
        if claim.metadata.annotations.get(volumes.SELECTED_NODE) == node:
            return
        patch = {"metadata": {"uid": claim.uid, "annotations": {volumes.SELECTED_NODE: node}}}
        await self._client.patch(PERSISTENT_VOLUME_CLAIMS, claim.name, patch, claim.namespace)

    async def _wait(self, task: Task, node: str, claims: list[core.PersistentVolumeClaim]) -> None:
        end = self._clock.monotonic() + self._timeout()
        selected = {claim.uid: claim.metadata.annotations.get(volumes.SELECTED_NODE) for claim in claims}
        while waiting := [claim for claim in claims if not self._is_bound(claim, node, selected)]:
            if self._mirror.task_by_uid(task.uid) is None:
                raise VolumeProblem("pod does not exist any more")
            if self._clock.monotonic() >= end:
                names = ", ".join(claim.name for claim in waiting)
                raise VolumeProblem(f"timed out after {self._timeout():g} s waiting for claims {names}")
            await self._clock.sleep(POLL_SECONDS)

    def _is_bound(self, claim: core.PersistentVolumeClaim, node: str, selected: dict[str, str | None]) -> bool:
        present = self._mirror.objects.get(core.PersistentVolumeClaim, claim.name, claim.namespace)
        if present is None or present.uid != claim.uid:
            raise VolumeProblem(f'persistentvolumeclaim "{claim.name}" does not exist any more')
        now = present.metadata.annotations.get(volumes.SELECTED_NODE)
        if now is None and selected[claim.uid] == node:
            raise VolumeProblem(f'provisioning failed for PVC "{claim.name}"')
        selected[claim.uid] = now
        return volumes.is_bound(present)
