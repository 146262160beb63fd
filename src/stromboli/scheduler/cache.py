"""Keeps the mirror like the cluster: which kinds are watched, what each event means to it (spec 04 section 16).

Kinds that scheduling cannot do without are waited for as long as it takes. Optional kinds that the API server does not
serve (a CRD that is not installed, an older Kubernetes) are left out, and named in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from stromboli.api import core, kinds, names
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.errors import NotFound, NotSynced
from stromboli.kube.informers import Informer, Observer, wait_all_synced
from stromboli.kube.stores import Identity, Key, Store
from stromboli.scheduler.accepting import Acceptance
from stromboli.scheduler.core import elsewhere
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.feeding import Feed
from stromboli.scheduler.options import Options

log = logging.getLogger(__name__)

T = TypeVar("T", bound=core.Object)

SYNC_ROUND_SECONDS = 30.0


class SlimStore(Store[T]):
    """Keeps only a part of each object, for kinds of which there are very many."""

    def __init__(self, slim: Callable[[T], T]) -> None:
        super().__init__()
        self._slim = slim

    def keep(self, obj: T) -> T:
        """The part that is kept."""
        return self._slim(obj)


class Witness(Protocol):
    """Who is told what came into the mirror and what left it."""

    def added(self, obj: core.Object) -> None:
        """The mirror has a new object."""
        ...

    def deleted(self, obj: core.Object) -> None:
        """The mirror has lost an object."""
        ...


class Nobody:
    """Is not interested."""

    def added(self, obj: core.Object) -> None:
        """Nothing happens."""

    def deleted(self, obj: core.Object) -> None:
        """Nothing happens."""


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """One watched kind: how it is decoded and filtered, and where its objects go."""

    kind: Kind
    struct: type[T]
    apply: Callable[[T], object]
    """Answers False for an object that is another scheduler's business, of which the witness is not to be told."""
    delete: Callable[[T], object]
    """The same."""
    accept: Callable[[T], bool] | None = None
    required: bool = False
    keep: Callable[[T], T] | None = None
    """What of an object stays in the informer's store; None keeps all of it."""

    def informer(self, client: Client, feed: Feed, witness: Witness, observer: Observer | None) -> Informer[T]:
        """An informer that feeds the mirror, and tells the witness once the mirror knows."""
        decode: Callable[[bytes], T] = partial(core.decode, self.struct)
        store = SlimStore(self.keep) if self.keep is not None else None
        informer = Informer(client, self.kind, decode, filter=self.accept, observer=observer, store=store)

        def add(obj: T) -> None:
            if self.apply(obj) is not False:
                witness.added(obj)

        def delete(obj: T) -> None:
            if self.delete(obj) is not False:
                witness.deleted(obj)

        informer.add_handler(
            on_add=lambda obj: feed.submit(add, obj),
            on_update=lambda _old, new: feed.submit(self.apply, new),
            on_delete=lambda obj: feed.submit(delete, obj),
        )
        return informer


class Cache:
    """The informers of one scheduler."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        feed: Feed,
        options: Options,
        acceptance: Acceptance,
        *,
        witness: Witness | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._client = client
        self._feed = feed
        self._witness = witness or Nobody()
        self._observer = observer
        self._sources = [*required_sources(mirror, acceptance), *optional_sources(mirror, options)]
        self._informers: dict[Kind, Informer[core.Object]] = {}
        self._synced = asyncio.Event()

    @property
    def missing(self) -> str | None:
        """What keeps the cache from being complete, in one line; None when it is complete (a readiness check)."""
        if self._synced.is_set():
            return None
        waiting = [kind.resource for kind, informer in self._informers.items() if not informer.synced]
        return f"not listed yet: {', '.join(waiting) or 'not started'}"

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        served = [source for source in self._sources if await self._is_served(source)]
        async with asyncio.TaskGroup() as tasks:
            for source in served:
                informer = source.informer(self._client, self._feed, self._witness, self._observer)
                self._informers[source.kind] = informer
                tasks.create_task(informer.run(), name=f"watch-{source.kind.plural}")
            await self._wait(served)
            self._synced.set()

    def apply_known(self, kind: Kind, namespace: str, name: str) -> None:
        """Give the mirror an object once more as the API server is known to hold it, after a write was refused.

        Not for pods, of which the store keeps too little.
        """
        known = self.known(kind, namespace, name)
        source = next((source for source in self._sources if source.kind == kind), None)
        if known is not None and source is not None:
            source.apply(known)

    def known(self, kind: Kind, namespace: str, name: str) -> core.Object | None:
        """An object as the API server is known to hold it, or the part of it that is kept."""
        informer = self._informers.get(kind)
        return informer.store.get((namespace, name)) if informer else None

    def uid_of(self, kind: Kind, namespace: str, name: str) -> str:
        """UID of an object that the API server is known to have; empty for others."""
        known = self._identity(kind, (namespace, name))
        return known.uid if known is not None else ""

    def _identity(self, kind: Kind, key: Key) -> Identity | None:
        informer = self._informers.get(kind)
        return informer.store.identity(key) if informer else None

    def apply_fetched(self, kind: Kind, obj: core.Object) -> None:
        """Give the mirror an object that came as an answer, unless the watch has shown a later version of it.

        The mirror learns of objects by watching alone, so what the watch does not know (any more) is gone: an answer
        that arrives after its object's end must not bring it back, nor take the place of a successor of the same name.
        """
        known = self._identity(kind, obj.key)
        if known is None or known.uid != obj.uid:
            return
        shown, fetched = known.resource_version, obj.metadata.resource_version
        if shown.isdecimal() and fetched.isdecimal() and int(shown) > int(fetched):
            return
        source = next((source for source in self._sources if source.kind == kind), None)
        if source is not None:
            source.apply(obj)

    async def wait_synced(self) -> None:
        """Return when everything that must be known before the first decision is known."""
        await self._synced.wait()

    async def _is_served(self, source: Source[core.Object]) -> bool:
        if source.required:
            return True
        try:
            await self._client.request("GET", source.kind.path(), query={"limit": 1})
        except NotFound:
            log.info("%s is not served by this cluster and is not watched", source.kind.resource)
            return False
        except Exception as error:  # whatever else is wrong, the informer tells about it and keeps trying
            log.debug("%s: %s", source.kind.resource, error)
        return True

    async def _wait(self, sources: Iterable[Source[core.Object]]) -> None:
        required = [self._informers[source.kind] for source in sources if source.required]
        optional = [self._informers[source.kind] for source in sources if not source.required]
        while True:
            try:
                await wait_all_synced(*required, timeout=SYNC_ROUND_SECONDS)
                break
            except* NotSynced as late:
                log.warning("still waiting: %s", "; ".join(str(error) for error in late.exceptions))
        try:
            await wait_all_synced(*optional, timeout=SYNC_ROUND_SECONDS)
        except* NotSynced as late:
            log.error("going on without: %s", "; ".join(str(error) for error in late.exceptions))


def required_sources(mirror: Mirror, acceptance: Acceptance) -> Iterator[Source[core.Object]]:
    """Nodes, queues, PodGroups and pods."""
    yield _source(
        kinds.NODES,
        core.Node,
        mirror.apply_node,
        lambda node: mirror.delete_node(node.name, node.uid),
        accept=acceptance.node,
        required=True,
    )
    yield _source(
        kinds.QUEUES,
        core.Queue,
        mirror.apply_queue,
        lambda queue: mirror.delete_queue(queue.name, queue.uid),
        required=True,
    )
    yield from _work_of_all(mirror, acceptance) if acceptance.is_partial else _own_work(mirror, acceptance)


def _own_work(mirror: Mirror, acceptance: Acceptance) -> Iterator[Source[core.Object]]:
    yield _source(
        kinds.POD_GROUPS,
        core.PodGroup,
        mirror.apply_pod_group,
        lambda group: mirror.delete_pod_group(_joined(group), group.uid),
        accept=acceptance.pod_group,
        required=True,
    )
    yield _source(
        kinds.PODS,
        core.Pod,
        mirror.apply_pod,
        lambda pod: mirror.delete_pod(_joined(pod), pod.uid),
        accept=acceptance.pod,
        required=True,
        keep=bare_pod,
    )


def _work_of_all(mirror: Mirror, acceptance: Acceptance) -> Iterator[Source[core.Object]]:
    """PodGroups and pods of all schedulers among whom the cluster is shared out: others' are only added up.

    Whose a deleted object was is known here: of the object itself there may be no more than who it was.
    """

    def keep_group(group: core.PodGroup) -> core.PodGroup:
        return group if acceptance.pod_group(group) else core.PodGroup(metadata=_who(group))

    def keep_pod(pod: core.Pod) -> core.Pod:
        return bare_pod(pod) if acceptance.pod(pod) else core.Pod(metadata=_who(pod))

    sums = mirror.elsewhere
    apply_group = _shared_out(
        acceptance.pod_group, mirror.apply_pod_group, mirror.delete_pod_group, sums.apply_pod_group
    )
    delete_group = _taken_out(mirror.delete_pod_group, sums.delete_pod_group)
    yield _source(kinds.POD_GROUPS, core.PodGroup, apply_group, delete_group, required=True, keep=keep_group)
    yield _source(
        kinds.PODS,
        core.Pod,
        _shared_out(acceptance.pod, mirror.apply_pod, mirror.delete_pod, sums.apply_pod),
        _taken_out(mirror.delete_pod, sums.delete_pod),
        accept=lambda pod: acceptance.pod(pod) or elsewhere.holds(pod),
        required=True,
        keep=keep_pod,
    )


def _shared_out(
    is_ours: Callable[[T], bool],
    apply: Callable[[T], object],
    delete: Callable[[str, str], object],
    add_up: Callable[..., object],
) -> Callable[[T], bool]:
    """Gives the mirror what is ours, and takes out what has become another's; answers whether it is ours."""

    def apply_one(obj: T) -> bool:
        ours = is_ours(obj)
        if ours:
            apply(obj)
        else:
            delete(_joined(obj), obj.uid)
        add_up(obj, ours=ours)
        return ours

    return apply_one


def _taken_out(delete: Callable[[str, str], object], forget: Callable[[str, str], bool]) -> Callable[[T], bool]:
    """Takes what is gone out of the mirror, or out of the sums; answers whether it was ours."""

    def delete_one(obj: T) -> bool:
        delete(_joined(obj), obj.uid)
        return not forget(_joined(obj), obj.uid)

    return delete_one


def optional_sources(mirror: Mirror, options: Options) -> Iterator[Source[core.Object]]:
    """Everything that some plugin may look at, as far as flags and gates ask for it."""
    yield _source(
        kinds.HYPER_NODES,
        core.HyperNode,
        mirror.apply_hyper_node,
        lambda hyper_node: mirror.delete_hyper_node(hyper_node.name, hyper_node.uid),
    )
    if options.watches_priority_classes:
        yield _source(
            kinds.PRIORITY_CLASSES,
            core.PriorityClass,
            mirror.apply_priority_class,
            lambda priority: mirror.delete_priority_class(priority.name, priority.uid),
        )
    for kind, struct in plain_kinds(options):
        yield Source(kind, struct, mirror.apply_object, partial(_delete_object, mirror))


def plain_kinds(options: Options) -> Iterator[tuple[Kind, type[core.Object]]]:
    """Kinds that the mirror only keeps, by the condition under which they are watched."""
    yield kinds.NAMESPACES, core.Namespace
    yield kinds.SERVICES, core.Service
    yield kinds.RESOURCE_QUOTAS, core.ResourceQuota
    yield kinds.PERSISTENT_VOLUMES, core.PersistentVolume
    yield kinds.PERSISTENT_VOLUME_CLAIMS, core.PersistentVolumeClaim
    yield kinds.STORAGE_CLASSES, core.StorageClass
    yield kinds.CSI_NODES, core.CSINode
    yield kinds.VOLUME_ATTACHMENTS, core.VolumeAttachment
    if (options.csi_storage and options.gate("CSIStorage")) or options.gate("StorageCapacityScoring"):
        yield kinds.CSI_STORAGE_CAPACITIES, core.CSIStorageCapacity
        yield kinds.CSI_DRIVERS, core.CSIDriver
    if options.gate("WorkLoadSupport"):
        yield kinds.REPLICATION_CONTROLLERS, core.ReplicationController
        yield kinds.REPLICA_SETS, core.ReplicaSet
        yield kinds.STATEFUL_SETS, core.StatefulSet
    if options.gate("PodDisruptionBudgetsSupport"):
        yield kinds.POD_DISRUPTION_BUDGETS, core.PodDisruptionBudget
    if options.gate("ResourceTopology"):
        yield kinds.NUMATOPOLOGIES, core.Numatopology
    if options.gate("DynamicResourceAllocation"):
        yield kinds.RESOURCE_CLAIMS, core.ResourceClaim
        yield kinds.DEVICE_CLASSES, core.DeviceClass
        yield kinds.RESOURCE_SLICES, core.ResourceSlice
        if options.gate("DRADeviceTaints"):
            yield kinds.DEVICE_TAINT_RULES, core.DeviceTaintRule
    if options.shards:
        yield kinds.NODE_SHARDS, core.NodeShard


def _source(
    kind: Kind,
    struct: type[T],
    apply: Callable[[T], object],
    delete: Callable[[T], object],
    *,
    accept: Callable[[T], bool] | None = None,
    required: bool = False,
    keep: Callable[[T], T] | None = None,
) -> Source[core.Object]:
    # A source of one struct is handed out as a source of objects: only its own informer ever calls it.
    return Source(kind, struct, apply, delete, accept, required, keep)  # type: ignore[arg-type]


def bare_pod(pod: core.Pod) -> core.Pod:
    """Who a pod is and to which group it belongs: the mirror holds the rest, in a quarter of the memory."""
    group = pod.metadata.annotations.get(names.GROUP_NAME)
    metadata = core.ObjectMeta(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        annotations={names.GROUP_NAME: group} if group else {},
    )
    return core.Pod(metadata=metadata)


def _who(obj: core.Object) -> core.ObjectMeta:
    return core.ObjectMeta(name=obj.name, namespace=obj.namespace, uid=obj.uid)


def _delete_object(mirror: Mirror, obj: core.Object) -> None:
    mirror.delete_object(type(obj), obj.key, obj.uid)


def _joined(obj: core.Object) -> str:
    return f"{obj.namespace}/{obj.name}"
