"""The controller that gives PodGroups to ordinary pods.

Its key is a group, not a pod: whatever happens to a pod or its owner, the group is looked at as a whole, from the
present state of both. So the order in which events of a rolling update arrive does not matter (spec 03 section 3.4).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from stromboli.api import core, kinds, names
from stromboli.api.core import OwnerReference, Pod, PodGroup
from stromboli.api.kinds import Kind
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.podgroup import building
from stromboli.controllers.podgroup.building import Owners
from stromboli.controllers.podgroup.resolving import Gang, NotYet, Resolver
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result
from stromboli.kube.errors import AlreadyExists, NotFound
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "pg-controller"
SYNC_TIMEOUT = 600.0
RETRY = 5.0
"""Seconds until a pod is looked at again whose group of Kubernetes' own does not exist yet."""
GRACE = 60.0
"""Seconds during which a group is not taken for left behind after its name was given to a pod."""
BY_GROUP = "bare-group"
_READ_OWNERS: dict[str, Kind] = {
    kind.kind: kind for kind in (kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.DAEMON_SETS, kinds.BATCH_JOBS)
}
"""Owners whose annotations are inherited, by kind."""


class PodGroupController:
    """Makes and maintains PodGroups of ordinary pods. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        *,
        schedulers: frozenset[str] = frozenset({names.DEFAULT_SCHEDULER}),
        inherit_annotations: bool = True,
        workloads: bool = True,
        workers: int = 5,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._schedulers, self._inherit = client, schedulers, inherit_annotations
        self._pods, self._groups = informers.pods, informers.pod_groups
        self._workloads: dict[str, Informer[Any]] = {}
        if workloads:
            self._workloads = {"ReplicaSet": informers.replica_sets, "StatefulSet": informers.stateful_sets}
        self._resolver, self._clock = Resolver(client), clock
        self._told: dict[Key, float] = {}  # when pods were last told the name of a group, steady time
        self._pods.store.add_index(
            BY_GROUP, lambda pod: tuple(f"{pod.namespace}/{name}" for name in building.keys(pod))
        )
        self._controller: Controller[Key] = Controller(
            NAME, self.reconcile, workers=workers, observer=observer, clock=clock
        )
        self._listen()

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._pods, self._groups, *self._workloads.values(), timeout=SYNC_TIMEOUT)
        await self._controller.run()

    # -- from changes to keys ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._pods.add_handler(on_add=self._pod_seen, on_update=self._pod_changed, on_delete=self._pod_seen)
        self._groups.add_handler(on_add=self._group_added, on_delete=self._group_gone)
        for informer in self._workloads.values():
            informer.add_handler(on_add=self._owner_seen, on_update=lambda _old, new: self._owner_seen(new))

    def _pod_seen(self, pod: Pod) -> None:
        if building.is_ours(pod, self._schedulers):
            for name in building.keys(pod):
                self._controller.enqueue((pod.namespace, name))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if (old.status.phase, old.deleting, old.metadata.annotations) != (
            new.status.phase,
            new.deleting,
            new.metadata.annotations,
        ):
            self._pod_seen(new)

    def _group_added(self, group: PodGroup) -> None:
        if not self._members(*group.key):  # else its pods have asked already
            self._controller.enqueue(group.key)

    def _group_gone(self, group: PodGroup) -> None:
        self._told.pop(group.key, None)
        self._controller.enqueue(group.key)

    def _owner_seen(self, owner: core.Object) -> None:
        self._controller.enqueue((owner.namespace, names.bare_pod_group_name(owner.uid)))

    # -- from a key to writes ----------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result | None:
        """Bring the group of that key, and of its pods, to what the pods and their owners ask for."""
        namespace, name = key
        group = self._groups.store.get(key)
        members = self._members(namespace, name)
        if self._scaled_to_zero(name, members, group):
            await self._delete(group)
            return None
        if not members and self._left_behind(group):
            return await self._collect(key, group)
        if any(pod.metadata.annotations.get(names.GROUP_NAME) == name for pod in members):
            self._told.pop(key, None)
        try:
            for gathered in _gathered(members):
                await self._settle(gathered)
        except NotYet as error:
            log.info("%s/%s: %s", namespace, name, error)
            return Result(requeue_after=RETRY)
        return None

    async def _collect(self, key: Key, group: PodGroup | None) -> Result | None:
        """Delete a group without pods, unless pods have just been told its name: the cache may not show that yet."""
        age = self._clock.monotonic() - self._told.get(key, float("-inf"))
        if age < GRACE:
            return Result(requeue_after=GRACE - age)
        self._told.pop(key, None)
        await self._delete(group)
        return None

    async def _settle(self, members: list[Pod]) -> None:
        """See to the group of pods that belong together."""
        waiting = [pod for pod in members if not pod.metadata.annotations.get(names.GROUP_NAME) and not pod.deleting]
        model = building.representative(waiting or members)
        named = model.metadata.annotations.get(names.GROUP_NAME)
        group = self._groups.store.get((model.namespace, named)) if named else None
        if group is not None and not self._may_change(model):
            if building.finished(model) and building.is_of_a_kind(group):
                await self._change(group, building.reservation(model, group))
            return
        gang = await self._resolver.gang(model)
        owners = await self._owners(model, gang)
        name = building.group_name(model) if gang is None else gang.name
        if named and named != name:
            return  # somebody else's group, whatever its name looks like
        group = self._groups.store.get((model.namespace, name))
        if group is None:
            await self._create(model, owners, gang)
        elif model.controller is not None or building.finished(model):
            await self._change(group, building.changes(model, owners, group, gang))
        for pod in waiting:
            await self._bind(pod, name)

    def _may_change(self, model: Pod) -> bool:
        """Whether what the pod's group should be may be another than it was when the pod got it: its owner is watched.

        Owners that are not watched are not asked for again as long as nothing needs them: at a start with thousands
        of groups that would be thousands of requests.
        """
        return model.controller is not None and model.controller.kind in self._workloads

    def _members(self, namespace: str, name: str) -> list[Pod]:
        found = self._pods.store.by_index(BY_GROUP, f"{namespace}/{name}")
        return [pod for pod in found if building.is_ours(pod, self._schedulers)]

    def _scaled_to_zero(self, name: str, members: list[Pod], group: PodGroup | None) -> bool:
        """Whether the workload that a group is named after is to have no pods."""
        owner = next((pod.controller for pod in members if pod.controller), None)
        if owner is None and group is not None:
            owner = group.controller
        if owner is None or names.bare_pod_group_name(owner.uid) != name:
            return False
        namespace = members[0].namespace if members else group.namespace if group else ""
        return self._replicas(namespace, owner) == 0

    def _left_behind(self, group: PodGroup | None) -> bool:
        """Whether a group without pods is waiting for none: its owner is no workload that will make more soon.

        The next pod gets a new one. Kept, it would go on reserving for pods that are gone.
        """
        if group is None or group.controller is None or not building.is_of_a_kind(group):
            return False
        return self._replicas(group.namespace, group.controller) is None

    def _replicas(self, namespace: str, owner: OwnerReference) -> int | None:
        """Replicas of a ReplicaSet or StatefulSet as it is now; None for other owners and for one not seen yet."""
        informer = self._workloads.get(owner.kind)
        found = informer.store.get((namespace, owner.name)) if informer is not None else None
        if found is None or found.uid != owner.uid:
            return None
        return 1 if found.spec.replicas is None else int(found.spec.replicas)

    async def _owners(self, pod: Pod, gang: Gang | None) -> Owners:
        controller = pod.controller
        replicas = self._replicas(pod.namespace, controller) if controller else None
        if not self._inherit:
            return Owners(replicas=replicas)
        annotations = [await self._annotations(pod.namespace, one) for one in pod.metadata.owner_references]
        if gang is not None:
            annotations.append(dict(gang.annotations))
        return Owners(building.merged(annotations), replicas)

    async def _annotations(self, namespace: str, owner: OwnerReference) -> dict[str, str]:
        """Annotations of an owner, from the cache if it is watched, else from the server; none if it is gone."""
        kind, informer = _READ_OWNERS.get(owner.kind), self._workloads.get(owner.kind)
        cached = informer.store.get((namespace, owner.name)) if informer is not None else None
        if cached is not None:
            return dict(cached.metadata.annotations)
        if kind is None or not owner.name:
            return {}
        try:
            found = await self._client.get(kind, owner.name, namespace)
        except NotFound:
            return {}
        return dict(json.metadata(found).get("annotations") or {})

    async def _change(self, group: PodGroup, patch: JsonObject) -> None:
        if not patch:
            return
        meta = {**patch.get("metadata", {}), "uid": group.uid}
        try:
            await self._client.patch(kinds.POD_GROUPS, group.name, {**patch, "metadata": meta}, group.namespace)
        except NotFound:
            pass  # deleted meanwhile; its event brings another look

    async def _create(self, pod: Pod, owners: Owners, gang: Gang | None) -> None:
        try:
            await self._client.create(kinds.POD_GROUPS, building.build(pod, owners, gang))
        except AlreadyExists:
            pass  # the cache is behind

    async def _delete(self, group: PodGroup | None) -> None:
        if group is None or group.deleting:
            return
        try:
            await self._client.delete(kinds.POD_GROUPS, group.name, group.namespace, uid=group.uid)
        except NotFound:
            pass

    async def _bind(self, pod: Pod, group: str) -> None:
        """Tell the pod its group."""
        self._told[pod.namespace, group] = self._clock.monotonic()
        patch = {"metadata": {"uid": pod.uid, "annotations": {names.GROUP_NAME: group}}}
        try:
            await self._client.patch(kinds.PODS, pod.name, patch, pod.namespace)
        except NotFound:
            pass


def _gathered(members: Iterable[Pod]) -> Iterable[list[Pod]]:
    """Pods of one direct owner by the group of Kubernetes' own that they name, if they do."""
    found: dict[str, list[Pod]] = {}
    for pod in members:
        native = pod.spec.scheduling_group
        found.setdefault("" if native is None else native.pod_group_name, []).append(pod)
    return found.values()
