"""Garbage collection by owner references: what happens to dependents when their owner goes.

* Background: the owner is gone; dependents that have no other living owner are deleted.
* Foreground: the owner waits (finalizer ``foregroundDeletion``) until dependents that block it are gone.
  Owners in a circle do not wait for each other: the reference that closes it no longer blocks.
* Orphan: the owner waits (finalizer ``orphan``) until its references are taken out of its dependents.

Owners are known by UID. A reference to an owner that never existed, or exists under another UID, counts as a dead one;
a reference to a kind that is not served is left alone. The index of dependents follows the watches of all served kinds,
the decisions read the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.queues import Queue
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions, Propagation
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Event, Gone, Key, Object, Stored

log = logging.getLogger(__name__)

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
IGNORED = (kinds.EVENTS, kinds.LEASES)
"""Kinds that are many and own nothing; Leases of nodes are dropped with their node."""


class Item(NamedTuple):
    """One object: its kind and place, and the UID that must still be there."""

    kind: Kind
    namespace: str
    name: str
    uid: str


class GarbageCollector:
    """Deletes what has lost its owners, and lets owners go that wait for their dependents."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._dependents: dict[str, set[Item]] = {}
        self._owners: dict[Item, tuple[str, ...]] = {}
        self._waiting: dict[str, Item] = {}
        self._queue: Queue[Item] = Queue()

    async def run(self) -> None:
        """Watch every kind that is served, also those that come later; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work())
            watched: dict[Kind, asyncio.Task[None]] = {}
            while True:
                changed = self._registry.watch(kinds.CUSTOM_RESOURCE_DEFINITIONS)
                served = {one.kind for one in self._registry.kinds if one.handler is None} - set(IGNORED)
                for kind in served - watched.keys():
                    watched[kind] = group.create_task(self._watch(kind))
                for kind in watched.keys() - served:
                    watched.pop(kind).cancel()
                await changed.batch()

    async def _watch(self, kind: Kind) -> None:
        while True:
            try:
                watch = self._registry.watch(kind)
            except StatusError:
                return
            self._resync(kind)
            try:
                while True:
                    for event in await watch.batch():
                        self._note(kind, event)
            except Gone:
                log.info("garbage collection fell behind on %s; listing again", kind.plural)
                for item in self._owners:  # any of them may have lost an owner without a trace
                    self._queue.add(item)

    def _note(self, kind: Kind, event: Event) -> None:
        if event.type == "DELETED":
            self._gone(item_of(kind, event.stored))
        else:
            self._present(kind, event.stored)

    def _resync(self, kind: Kind) -> None:
        present = self._registry.store.list(kind)
        alive = {item_of(kind, stored) for stored in present}
        for item in [one for one in self._owners if one.kind == kind and one not in alive]:
            self._gone(item)
        for stored in present:
            self._present(kind, stored)

    def _present(self, kind: Kind, stored: Stored) -> None:
        metadata = stored.object["metadata"]
        references = metadata.get("ownerReferences") or ()
        finalizers = metadata.get("finalizers") or ()
        waits = metadata.get("deletionTimestamp") and (FOREGROUND in finalizers or ORPHAN in finalizers)
        item = item_of(kind, stored)
        if references or item in self._owners:
            owners = tuple(str(reference.get("uid")) for reference in references)
            if self._owners.get(item) != owners:
                self._index(item, owners)
                self._queue.add(item)
        if waits:
            self._waiting[item.uid] = item
            self._queue.add(item)

    def _index(self, item: Item, owners: tuple[str, ...]) -> None:
        for uid in self._owners.pop(item, ()):
            self._dependents.get(uid, set()).discard(item)
            if not self._dependents.get(uid):
                self._dependents.pop(uid, None)
        if owners:
            self._owners[item] = owners
            for uid in owners:
                self._dependents.setdefault(uid, set()).add(item)

    def _gone(self, item: Item) -> None:
        for dependent in self._dependents.get(item.uid, ()):
            self._queue.add(dependent)
        self._waiting.pop(item.uid, None)
        owners = self._owners.get(item, ())
        self._index(item, ())
        for uid in owners:
            if uid in self._waiting:  # an owner that is deleted in the foreground may have waited for this one
                self._queue.add(self._waiting[uid])

    async def _work(self) -> None:
        while True:
            item = await self._queue.take()
            try:
                await self._process(item)
            except StatusError as error:
                if error.reason != "NotFound":
                    if error.reason != "Conflict":
                        log.warning(
                            "garbage collection of %s %s/%s: %s", item.kind.plural, item.namespace, item.name, error
                        )
                    self._queue.failed(item)
                continue
            except Exception:
                log.exception("garbage collection of %s %s/%s", item.kind.plural, item.namespace, item.name)
                self._queue.failed(item)
                continue
            self._queue.succeeded(item)
            await asyncio.sleep(0)  # the registry rarely waits for anything: let requests in between

    async def _process(self, item: Item) -> None:
        stored = self._registry.store.get(Key.of(item.kind, item.namespace, item.name))
        if stored is None or stored.object["metadata"]["uid"] != item.uid:
            return
        obj = stored.object
        finalizers = obj["metadata"].get("finalizers") or ()
        if obj["metadata"].get("deletionTimestamp"):
            if ORPHAN in finalizers:
                await self._orphan_dependents(item)
                await self._release(item, ORPHAN)
            elif FOREGROUND in finalizers:
                await self._delete_dependents(item)
            return
        await self._collect(item, obj)

    async def _collect(self, item: Item, obj: Object) -> None:
        """Delete an object whose owners are all dead or waiting for it; drop dead references beside living ones."""
        solid, dead, waiting = self._sort(item, obj["metadata"].get("ownerReferences") or ())
        if solid:
            if dead or waiting:
                gone = {reference["uid"] for reference in [*dead, *waiting]}
                await self._drop_references(item, obj, gone)
        elif waiting and self._dependents.get(item.uid):
            if any(self._deletes_dependents(one) for one in self._dependents[item.uid]):
                await self._unblock(item, obj)  # a circle: each would wait for the other
            await self._delete(item, "Foreground")
        elif dead or waiting:
            await self._delete(item, _own_policy(obj))

    def _sort(self, item: Item, references: Sequence[Object]) -> tuple[list[Object], list[Object], list[Object]]:
        """References to owners that live, that are dead, and that wait for their dependents to go."""
        solid: list[Object] = []
        dead: list[Object] = []
        waiting: list[Object] = []
        for reference in references:
            served = self._registry.kinds.by_kind(reference["apiVersion"], reference["kind"])
            if served is None:
                solid.append(reference)
                continue
            owner = self._registry.store.get(Key.of(served.kind, item.namespace, reference["name"]))
            if owner is None or owner.object["metadata"]["uid"] != reference["uid"]:
                dead.append(reference)
            elif _deletes_in_foreground(owner.object):
                waiting.append(reference)
            else:
                solid.append(reference)
        return solid, dead, waiting

    async def _delete_dependents(self, item: Item) -> None:
        """Send the dependents away; let the owner go once none of those is left that block it."""
        blocked = False
        for dependent in self._dependents.get(item.uid, set()) - {item}:  # who owns itself need not wait for itself
            stored = self._registry.store.get(Key.of(dependent.kind, dependent.namespace, dependent.name))
            if stored is None or stored.object["metadata"]["uid"] != dependent.uid:
                continue
            references = stored.object["metadata"].get("ownerReferences") or ()
            if any(one["uid"] == item.uid and one.get("blockOwnerDeletion") for one in references):
                blocked = True
            self._queue.add(dependent)
        if not blocked:
            await self._release(item, FOREGROUND)

    async def _orphan_dependents(self, item: Item) -> None:
        for dependent in list(self._dependents.get(item.uid, ())):
            stored = self._registry.store.get(Key.of(dependent.kind, dependent.namespace, dependent.name))
            if stored is not None and stored.object["metadata"]["uid"] == dependent.uid:
                await self._drop_references(dependent, stored.object, {item.uid})

    async def _drop_references(self, item: Item, obj: Object, gone: set[str]) -> None:
        left = [one for one in obj["metadata"]["ownerReferences"] if one["uid"] not in gone]
        metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
        if left:
            metadata["ownerReferences"] = left
        await self._registry.update(item.kind, {**obj, "metadata": metadata})

    def _deletes_dependents(self, item: Item) -> bool:
        stored = self._registry.store.get(Key.of(item.kind, item.namespace, item.name))
        return stored is not None and _deletes_in_foreground(stored.object)

    async def _unblock(self, item: Item, obj: Object) -> None:
        """Have owners no longer wait for this dependent, and look at them again."""
        references = obj["metadata"]["ownerReferences"]
        freed = [{**one, "blockOwnerDeletion": False} if one.get("blockOwnerDeletion") else one for one in references]
        await self._registry.update(item.kind, {**obj, "metadata": {**obj["metadata"], "ownerReferences": freed}})
        for reference in references:
            owner = self._waiting.get(reference["uid"])
            if owner is not None:
                self._queue.add(owner)

    async def _release(self, item: Item, finalizer: str) -> None:
        stored = self._registry.store.get(Key.of(item.kind, item.namespace, item.name))
        if stored is None or stored.object["metadata"]["uid"] != item.uid:
            return
        metadata = dict(stored.object["metadata"])
        metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one != finalizer]
        await self._registry.update(item.kind, {**stored.object, "metadata": metadata})

    async def _delete(self, item: Item, propagation: Propagation) -> None:
        options = DeleteOptions(propagation=propagation, uid=item.uid)
        await self._registry.delete(item.kind, item.namespace, item.name, options)


def item_of(kind: Kind, stored: Stored) -> Item:
    """The item of a stored object."""
    return Item(kind, stored.key.namespace, stored.key.name, stored.object["metadata"]["uid"])


def _deletes_in_foreground(owner: Object) -> bool:
    metadata = owner["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


def _own_policy(obj: Object) -> Propagation:
    """An object keeps the way of deletion that its finalizers ask for."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
