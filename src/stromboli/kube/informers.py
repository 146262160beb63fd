"""A live copy of one kind's objects, and word of what changes in it.

:class:`Informer` takes in the steps of :mod:`stromboli.kube.watching` and keeps a
:class:`~stromboli.kube.stores.Store`. Its handlers are told of additions, updates and deletions, each exactly once and
in an order that makes sense for one object, whatever the connection did:

* A listing after a gap is compared with the store: what is new, different or gone is delivered as if it had been
  watched.
* An object that was deleted and created again under its name is a deletion and an addition, never an update.
* An event older than what is known, or the same again, is not delivered.
* An object that cannot be decoded, and a handler that raises, are logged and counted, and stop nothing.

Handlers are called on the event loop between two events; they enqueue keys and return.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from stromboli.api.kinds import Kind
from stromboli.kube import wire
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError, NotSynced
from stromboli.kube.stores import Entry, Identity, IndexFunction, Key, Store
from stromboli.kube.watching import (
    Changed,
    Interrupted,
    Listed,
    ListingEnded,
    ListingStarted,
    Pace,
    Position,
    Scope,
    Step,
    infinite_watch,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

REMEMBERED_DELETIONS = 1024
"""Deleted UIDs kept to recognise late events of theirs. Bounded; in an orderly stream none is ever needed."""


class Observer(Protocol):
    """Where an informer's metrics go."""

    def informed(self, resource: str, what: str) -> None:
        """Count one ``listed``, ``interrupted``, ``undecodable``, ``unreadable``, ``failed`` or ``handler-failed``."""
        ...


class _Unobserved:
    def informed(self, resource: str, what: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """Who is told. ``on_delete`` gets the last known state."""

    on_add: Callable[[T], object] | None = None
    on_update: Callable[[T, T], object] | None = None
    on_delete: Callable[[T], object] | None = None


class Informer(Generic[T]):
    """Keeps ``store`` like the cluster. Run :meth:`run` in a task group, and :meth:`wait_synced` before relying on it.

    ``decode`` makes a ``T`` from an object's bytes (``json.decode_object`` for plain data). ``filter`` leaves objects
    out, as if they were not there. ``identify`` tells who an object is; the default reads ``metadata`` from attributes
    or dictionaries. ``store`` is where objects are kept, if not as they are.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        decode: Callable[[bytes], T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        filter: Callable[[T], bool] | None = None,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        identify: Callable[[T], Identity] | None = None,
        pace: Pace | None = None,
        observer: Observer | None = None,
        store: Store[T] | None = None,
    ) -> None:
        self.kind = kind
        self.store: Store[T] = Store() if store is None else store
        for name, function in (indexes or {}).items():
            self.store.add_index(name, function)
        self.last_error: KubeError | None = None
        self._client = client
        self._scope = Scope(kind, namespace, label_selector, field_selector)
        self._decode = decode
        self._filter = filter
        self._identify: Callable[[T], Identity] = identify or identity_of
        self._pace = pace or Pace()
        self._observer = observer or _Unobserved()
        self._handlers: list[Handler[T]] = []
        self._position = Position()
        self._listing: set[Key] = set()
        self._deleted: OrderedDict[str, str] = OrderedDict()  # UID -> resource version of its deletion
        self._synced = asyncio.Event()

    # -- for users -------------------------------------------------------------------------------------------------

    def add_handler(
        self,
        *,
        on_add: Callable[[T], object] | None = None,
        on_update: Callable[[T, T], object] | None = None,
        on_delete: Callable[[T], object] | None = None,
    ) -> None:
        """Be told of changes. A handler that comes late is told of all objects that are there, as additions."""
        handler = Handler(on_add, on_update, on_delete)
        self._handlers.append(handler)
        if handler.on_add is not None:
            for obj in self.store.list():
                self._tell(handler.on_add, obj)

    @property
    def synced(self) -> bool:
        """Whether the store has been complete at least once."""
        return self._synced.is_set()

    async def wait_synced(self, timeout: float) -> None:
        """Return once the first listing is complete. Raises :class:`NotSynced` after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError as error:
            why = f"; last error: {self.last_error}" if self.last_error else ""
            raise NotSynced(f"{self.kind.resource}: not listed within {timeout:g} s{why}") from (
                self.last_error or error
            )

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with aclosing(infinite_watch(self._client, self._scope, self._position, self._pace)) as steps:
            async for step in steps:
                self.take(step)

    def take(self, step: Step) -> None:
        """Take in one step. Only for :meth:`run` and for tests."""
        match step:
            case ListingStarted():
                self._listing = set()
            case Listed(raw):
                self._take_listed(raw)
            case ListingEnded():
                self._end_listing()
            case Changed(event):
                self._take_event(event)
            case Interrupted(error, delay):
                self.last_error = error
                self._observer.informed(self.kind.resource, "interrupted")
                log.warning("%s: %s; again in %.1f s", self.kind.resource, error, delay)

    # -- steps -----------------------------------------------------------------------------------------------------

    def _take_listed(self, raw: bytes) -> None:
        entry = self._read(raw)
        identity = entry.identity if entry else _identity_in(raw)
        self._listing.add(identity.key)  # also when it cannot be read: it is there, so what was known of it stays
        if entry and not self._is_known(identity):
            self._guarded(self._put_or_drop, entry)

    def _end_listing(self) -> None:
        for key in self.store.keys():  # noqa: SIM118 - a copy, the store changes meanwhile
            if key not in self._listing:
                self._drop(key)
        self._listing = set()
        self._deleted.clear()  # the listing is the truth; what is not in it is gone
        self._observer.informed(self.kind.resource, "listed")
        self._synced.set()

    def _take_event(self, event: wire.WatchEvent) -> None:
        match event.type:
            case wire.ADDED | wire.MODIFIED:
                version = self._take_change(event.object)
            case wire.DELETED:
                version = self._take_deletion(event.object)
            case wire.BOOKMARK:
                version = event.metadata.resource_version
            case _:
                self._observer.informed(self.kind.resource, "unreadable")
                log.error("%s: skipped a watch line that is no event: %.200r", self.kind.resource, event.object)
                return
        self._advance(version)

    def _take_change(self, raw: bytes) -> str:
        entry = self._read(raw)
        if entry is None:
            return _identity_in(raw).resource_version
        if not self._is_stale(entry.identity):
            self._guarded(self._put_or_drop, entry)
        return entry.identity.resource_version

    def _take_deletion(self, raw: bytes) -> str:
        entry = self._read(raw)
        identity = entry.identity if entry else _identity_in(raw)
        self._remember_deletion(identity)
        known = self.store.identity(identity.key)
        # Otherwise it is gone already, or somebody else by now, or it left the selection and has come back since.
        if known and known.uid == identity.uid and not (self._scope.selective and self._is_overtaken(identity)):
            self._drop(identity.key, entry)
        return identity.resource_version

    # -- one object ------------------------------------------------------------------------------------------------

    def _read(self, raw: bytes) -> Entry[T] | None:
        try:
            obj = self._decode(raw)
            return Entry(self._identify(obj), obj)
        except Exception as error:
            who = _identity_in(raw)
            self._observer.informed(self.kind.resource, "undecodable")
            log.error("%s %s/%s: skipped, it cannot be decoded: %s", self.kind.resource, who.namespace, who.name, error)
            return None

    def _guarded(self, take: Callable[[Entry[T]], None], entry: Entry[T]) -> None:
        try:
            take(entry)
        except Exception:  # a filter or an index function
            self._observer.informed(self.kind.resource, "failed")
            log.exception("%s %s/%s: could not be stored", self.kind.resource, *entry.identity.key)

    def _put_or_drop(self, entry: Entry[T]) -> None:
        identity, obj = entry
        if self._filter is not None and not self._filter(obj):
            self._drop(identity.key)
            return
        known = self.store.identity(identity.key)
        if known is not None and known.uid != identity.uid:
            self._drop(identity.key)
        previous = self.store.put(identity, obj)
        for handler in self._handlers:
            if previous is None and handler.on_add is not None:
                self._tell(handler.on_add, obj)
            elif previous is not None and handler.on_update is not None:
                self._tell(handler.on_update, previous.obj, obj)

    def _drop(self, key: Key, last: Entry[T] | None = None) -> None:
        known = self.store.remove(key)
        if known is None:
            return
        for handler in self._handlers:
            if handler.on_delete is not None:
                self._tell(handler.on_delete, (last or known).obj)

    def _tell(self, callback: Callable[..., object], *objects: T) -> None:
        try:
            callback(*objects)
        except Exception:
            self._observer.informed(self.kind.resource, "handler-failed")
            log.exception("%s: a handler failed", self.kind.resource)

    # -- age -------------------------------------------------------------------------------------------------------

    def _is_known(self, identity: Identity) -> bool:
        return self.store.identity(identity.key) == identity and identity.resource_version != ""

    def _is_stale(self, identity: Identity) -> bool:
        deleted_at = self._deleted.get(identity.uid)
        if deleted_at is not None and not _older(deleted_at, identity.resource_version):
            return True
        known = self.store.identity(identity.key)
        return known is not None and not _older(known.resource_version, identity.resource_version)

    def _is_overtaken(self, identity: Identity) -> bool:
        known = self.store.identity(identity.key)
        return known is not None and _older(identity.resource_version, known.resource_version)

    def _advance(self, version: str) -> None:
        here = self._position.resource_version
        if version and not (here.isdecimal() and _older(version, here)):
            self._position.resource_version = version

    def _remember_deletion(self, identity: Identity) -> None:
        before = self._deleted.get(identity.uid)
        if before is None or _older(before, identity.resource_version):
            self._deleted[identity.uid] = identity.resource_version
        self._deleted.move_to_end(identity.uid)
        while len(self._deleted) > REMEMBERED_DELETIONS:
            self._deleted.popitem(last=False)


async def wait_all_synced(*informers: Informer[Any], timeout: float) -> None:
    """Return once all are synced. Raises :class:`NotSynced` naming the first that is not after ``timeout`` seconds."""
    async with asyncio.TaskGroup() as tasks:
        for informer in informers:
            tasks.create_task(informer.wait_synced(timeout))


def identity_of(obj: object) -> Identity:
    """Who an object with ``metadata`` is, be it a dictionary or attributes in snake case.

    Raises ``ValueError`` when it has no name.
    """
    meta = obj.get("metadata") if isinstance(obj, dict) else getattr(obj, "metadata", None)
    if isinstance(meta, dict):
        identity = Identity(*(meta.get(field) or "" for field in ("namespace", "name", "uid", "resourceVersion")))
    else:
        identity = Identity(*(getattr(meta, field, None) or "" for field in Identity._fields))
    if not identity.name:
        raise ValueError("the object has no metadata.name")
    return identity


def _identity_in(raw: bytes) -> Identity:
    meta = wire.metadata(raw)
    return Identity(meta.namespace, meta.name, meta.uid, meta.resource_version)


def _older(one: str, other: str) -> bool:
    """Whether resource version ``one`` is before ``other``. What is no number counts as older, not to be missed."""
    if one.isdecimal() and other.isdecimal():
        return int(one) < int(other)
    return one != other
