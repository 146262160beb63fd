"""Gives a pod's delayed claims their volumes before the pod is bound (spec 04 sections 19 and 21).

An existing volume gets a reference to the claim, a claim that needs provisioning gets the name of the node; then the
claims are waited for. Volumes that a pod is about to take are kept from others until its claims are bound or it has
failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stromboli.api import core
from stromboli.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.objects import ClusterObjects, Key
from stromboli.scheduler.core.policy import Arguments, number
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.results import Bind
from stromboli.scheduler.core.volumes import Choice, Choices, PodClaims, VolumePlan, VolumeProblem

log = logging.getLogger(__name__)

TIMEOUT = "volumebinding.bindTimeoutSeconds"
DEFAULT_TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 1.0


def timeout_of(arguments: Arguments) -> float:
    """How long claims are waited for, by the arguments of the predicates plugin; what is no time gives the default."""
    seconds = number(arguments, TIMEOUT, DEFAULT_TIMEOUT_SECONDS)
    return seconds if seconds > 0 else DEFAULT_TIMEOUT_SECONDS


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
        self._choices = Choices()
        """What pods being bound are about to write."""

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
            plan = self._plan(claims, bind)
            await self._carry_out(bind, task, plan)
        except (VolumeProblem, KubeError) as error:
            raise PreBindError(f"binding volumes: {error}") from error

    async def roll_back(self, bind: Bind) -> None:
        """Nothing: volumes once bound stay with their claims, and are there when the pod is tried again."""

    async def settle(self, bind: Bind) -> None:
        """Nothing is held for the time of the bind alone."""

    def _claims(self, task: Task) -> PodClaims:
        claims = volumes.claims_of(
            task.namespace, task.name, task.uid, task.shape.pod.spec.volumes, self._mirror.objects
        )
        if claims.immediate:
            raise VolumeProblem(volumes.UNBOUND_IMMEDIATE)
        return claims

    def _plan(self, claims: PodClaims, bind: Bind) -> VolumePlan:
        node = self._mirror.nodes_by_name.get(bind.node)
        if node is None or node.resource is None:
            raise VolumeProblem(f"node {bind.node} does not exist any more")
        volumes.check_bound(claims.bound, node.resource, self._mirror.objects)
        choices = Choices(dict(self._choices.by_claim), dict(self._choices.taken))
        for grant in bind.extension.volumes if bind.extension is not None else ():
            choices.add((bind.task.namespace, grant.claim), Choice(grant.volume, bind.node))
        return volumes.plan(claims.delayed, node.resource, self._mirror.objects, choices)

    async def _carry_out(self, bind: Bind, task: Task, plan: VolumePlan) -> None:
        mine = self._unclaimed(bind, plan)
        for key, choice in mine.items():
            self._choices.add(key, choice)
        try:
            for volume, claim in plan.static:
                if claim.key in mine:
                    await self._reserve(volume, claim)
            for claim in plan.provision:
                if claim.key in mine:
                    await self._select_node(claim, bind.node)
            await self._wait(task, bind.node, plan)
        finally:
            for key in mine:
                self._choices.remove(key)

    def _unclaimed(self, bind: Bind, plan: VolumePlan) -> dict[Key, Choice]:
        """What this pod is the first to write; of a claim that pods share, the others only wait for it."""
        chosen = {claim.key: Choice(volume.name, bind.node) for volume, claim in plan.static}
        chosen |= {claim.key: Choice(None, bind.node) for claim in plan.provision}
        return {key: choice for key, choice in chosen.items() if key not in self._choices.by_claim}

    async def _reserve(self, volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> None:
        reference = {
            "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
            "kind": PERSISTENT_VOLUME_CLAIMS.kind,
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.uid:
            return
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

    async def _wait(self, task: Task, node: str, plan: VolumePlan) -> None:
        end = self._clock.monotonic() + self._timeout()
        claims = [claim for _, claim in plan.static] + list(plan.provision)
        progress = _Progress(
            {claim.uid: claim.metadata.annotations.get(volumes.SELECTED_NODE) for claim in plan.provision},
            {volume.name: claim.uid for volume, claim in plan.static},
        )
        while waiting := [claim for claim in claims if not self._is_bound(claim, node, progress)]:
            if self._mirror.task_by_uid(task.uid) is None:
                raise VolumeProblem("pod does not exist any more")
            for claim in waiting:
                if claim.key not in self._choices.by_claim:
                    raise VolumeProblem(
                        f'persistentvolumeclaim "{claim.name}" was given up by another pod that uses it'
                    )
            if self._clock.monotonic() >= end:
                names = ", ".join(claim.name for claim in waiting)
                raise VolumeProblem(f"timed out after {self._timeout():g} s waiting for claims {names}")
            await self._clock.sleep(POLL_SECONDS)
        self._check_reach(claims, node)

    def _is_bound(self, claim: core.PersistentVolumeClaim, node: str, progress: _Progress) -> bool:
        present = self._mirror.objects.get(core.PersistentVolumeClaim, claim.name, claim.namespace)
        if present is None or present.uid != claim.uid:
            raise VolumeProblem(f'persistentvolumeclaim "{claim.name}" does not exist any more')
        if volumes.is_bound(present):
            return True
        if progress.lost_node(present, node):
            raise VolumeProblem(f'provisioning failed for PVC "{claim.name}"')
        for name in progress.lost_volumes(self._mirror.objects):
            raise VolumeProblem(f'ClaimRef got reset for pv "{name}"')
        return False

    def _check_reach(self, claims: list[core.PersistentVolumeClaim], node_name: str) -> None:
        """Raises VolumeProblem when a claim has got a volume that the node cannot use after all."""
        objects, node = self._mirror.objects, self._mirror.nodes_by_name.get(node_name)
        for claim in claims:
            present = objects.get(core.PersistentVolumeClaim, claim.name, claim.namespace)
            volume = objects.get(core.PersistentVolume, present.spec.volume_name) if present is not None else None
            if volume is None or node is None or node.resource is None:
                continue
            if not volumes.reaches(volume, node.resource):
                raise VolumeProblem(f'pv "{volume.name}" node affinity doesn\'t match node "{node_name}"')


@dataclass(slots=True)
class _Progress:
    """What has been seen of the claims that a pod waits for, to notice when it is taken back."""

    selected: dict[str, str | None]
    """The node selected for each claim that is to be provisioned, by UID."""
    reserved: dict[str, str]
    """The claim by UID that is to have each volume."""
    seen: set[str] = field(default_factory=set)
    """Volumes that have been seen with their claim."""

    def lost_node(self, claim: core.PersistentVolumeClaim, node: str) -> bool:
        """Whether the node selected for a claim was seen, and is another now or none."""
        if claim.uid not in self.selected:
            return False
        before, now = self.selected[claim.uid], claim.metadata.annotations.get(volumes.SELECTED_NODE)
        self.selected[claim.uid] = now
        return before == node and now != node

    def lost_volumes(self, objects: ClusterObjects) -> Iterator[str]:
        """Volumes that were seen with their claim, and are without it now."""
        for name, uid in self.reserved.items():
            volume = objects.get(core.PersistentVolume, name)
            reference = volume.spec.claim_ref if volume is not None else None
            if reference is not None and reference.uid == uid:
                self.seen.add(name)
            elif name in self.seen:
                yield name
