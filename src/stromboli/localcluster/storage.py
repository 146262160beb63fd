"""The object store: everything in memory, one revision counter, a bounded log of changes per kind.

Invariants:

* Objects are keyed ``(group, plural, namespace, name)``; the version of a kind is no part of identity.
* A stored object is never changed in place. Writers hand over a new ``dict``; readers must not touch what they get.
* Each :class:`Stored` encodes its JSON once, on first use; lists and watches join those bytes.
* A write is synchronous and therefore atomic for everything on the event loop.
* The log of a kind forgets its oldest changes; a watch from before that raises :class:`Gone` (HTTP 410) and the client
  lists again.

The store knows nothing of schemas, users or HTTP; :class:`stromboli.localcluster.registry.Registry` does.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import orjson

from stromboli.api.kinds import Kind

Object = dict[str, Any]
"""An API object in wire form."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

LOG_CAPACITY = 8_192
"""Changes remembered for each kind, at least; up to twice as many between two clean-ups."""


OBJECT_LIMIT = 1_572_864
"""Bytes of an object, at most: what etcd takes as one request by default."""


class StorageError(Exception):
    """Base of what the store raises."""


class Exists(StorageError):
    """Create of a name that is taken."""


class Missing(StorageError):
    """Replace or remove of a name that is not there."""


class Stale(StorageError):
    """Replace or remove with another revision than the stored one."""


class TooLarge(StorageError):
    """An object of more than :data:`OBJECT_LIMIT` bytes."""


class NotRecorded(StorageError):
    """A change that could not be recorded, and has not been made."""


class Gone(StorageError):
    """The log no longer reaches back to the asked revision."""


class Key(NamedTuple):
    """Identity of an object; ``namespace`` is empty for cluster-scoped kinds."""

    group: str
    plural: str
    namespace: str
    name: str

    @classmethod
    def of(cls, kind: Kind, namespace: str | None, name: str) -> Key:
        """The key of ``name`` of ``kind``."""
        return cls(kind.group, kind.plural, (namespace or "") if kind.namespaced else "", name)


class Stored:
    """One revision of one object."""

    __slots__ = ("_bytes", "_object", "key", "revision")

    def __init__(self, key: Key, obj: Object, revision: int) -> None:
        self.key = key
        self.revision = revision
        self._object: Object | None = obj
        self._bytes: bytes | None = None

    @property
    def object(self) -> Object:
        """The object; read-only by contract."""
        if self._object is None:
            return orjson.loads(self.encoded)  # type: ignore[no-any-return]
        return self._object

    @property
    def encoded(self) -> bytes:
        """The object as JSON, encoded once."""
        if self._bytes is None:
            self._bytes = orjson.dumps(self._object)
        return self._bytes

    def compact(self) -> None:
        """Keep the bytes only (a fifth of the memory): called once the revision is superseded."""
        _ = self.encoded
        self._object = None


@dataclass(frozen=True, slots=True)
class Event:
    """One change. ``old`` is the revision before, so that selectors can tell who enters and who leaves."""

    type: EventType
    stored: Stored
    old: Stored | None

    @property
    def revision(self) -> int:
        """Revision of the change (of a deletion: its own, not the object's last)."""
        return self.stored.revision


class _Log:
    """Changes of one kind, oldest first, with the futures of those who wait for more."""

    def __init__(self, compacted: int) -> None:
        self.events: list[Event] = []
        self.dropped = 0
        self.compacted = compacted
        self.waiting: set[asyncio.Future[None]] = set()

    def append(self, event: Event, capacity: int) -> None:
        self.events.append(event)
        if len(self.events) > 2 * capacity:
            surplus = len(self.events) - capacity
            self.compacted = self.events[surplus - 1].revision
            del self.events[:surplus]
            self.dropped += surplus
        self.wake()

    def wake(self) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting.clear()

    def position(self, since: int) -> int:
        """Absolute position of the first change after ``since``."""
        if since < self.compacted:
            raise Gone(f"too old resource version: {since} ({self.compacted})")
        low, high = 0, len(self.events)
        while low < high:
            middle = (low + high) // 2
            if self.events[middle].revision <= since:
                low = middle + 1
            else:
                high = middle
        return self.dropped + low


class Watch:
    """A place in a kind's log. Iterate for single events, or take :meth:`batch` in a loop with a deadline.

    After each batch ``revision`` is safe for a bookmark: every change up to it has been handed out.
    """

    def __init__(self, store: Store, log: _Log, namespace: str, since: int) -> None:
        self._store = store
        self._log = log
        self._namespace = namespace
        self._next = log.position(since)
        self.revision = since

    async def batch(self, timeout: float | None = None) -> list[Event]:
        """Changes since the last call, oldest first; empty after ``timeout`` seconds without any.

        Raises :class:`Gone` when the reader has fallen behind the log.
        """
        if self._next == self._log.dropped + len(self._log.events):
            await self._wait(timeout)
        return self.take()

    def take(self) -> list[Event]:
        """Like :meth:`batch`, but without waiting for anything."""
        if self._next < self._log.dropped:
            raise Gone(f"too old resource version: {self.revision} ({self._log.compacted})")
        fresh = self._log.events[self._next - self._log.dropped :]
        self._next += len(fresh)
        self.revision = self._store.revision
        if self._namespace:
            return [event for event in fresh if event.stored.key.namespace == self._namespace]
        return fresh

    async def _wait(self, timeout: float | None) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log.waiting.add(future)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            pass
        finally:
            self._log.waiting.discard(future)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            for event in await self.batch():
                yield event


class _Table:
    """All objects of one kind, readable in key order."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Stored] = {}
        self._namespaces: dict[str, dict[str, None]] = {}
        self._sorted: list[tuple[str, str]] | None = None

    def put(self, stored: Stored) -> None:
        place = (stored.key.namespace, stored.key.name)
        if place not in self.rows:
            self._sorted = None
            self._namespaces.setdefault(place[0], {})[place[1]] = None
        self.rows[place] = stored

    def drop(self, key: Key) -> None:
        del self.rows[key.namespace, key.name]
        names = self._namespaces[key.namespace]
        del names[key.name]
        if not names:
            del self._namespaces[key.namespace]
        self._sorted = None

    def ordered(self, namespace: str = "", after: tuple[str, str] = ("", "")) -> list[Stored]:
        if namespace:
            names = self._namespaces.get(namespace, {})
            places = sorted((namespace, name) for name in names)
        else:
            if self._sorted is None:
                self._sorted = sorted(self.rows)
            places = self._sorted
        start = bisect_right(places, after) if after[1] else 0
        rows = self.rows
        return [rows[place] for place in (places[start:] if start else places)]


class Store:
    """Objects by key, with revisions and change logs. See the module's invariants."""

    def __init__(self, log_capacity: int = LOG_CAPACITY) -> None:
        self.revision = 1
        self._capacity = log_capacity
        self._floor = 0
        self._tables: dict[tuple[str, str], _Table] = {}
        self._logs: dict[tuple[str, str], _Log] = {}
        self._listeners: list[asyncio.Event] = []
        self._record: Callable[[Stored, bool], None] = lambda _stored, _gone: None

    def get(self, key: Key) -> Stored | None:
        """The present revision, or None."""
        table = self._tables.get(key[:2])
        return table.rows.get(key[2:]) if table else None

    def list(self, kind: Kind, namespace: str | None = None, after: tuple[str, str] = ("", "")) -> list[Stored]:
        """Present objects of a kind in order of namespace and name; of one namespace when given.

        ``after`` is the (namespace, name) behind which to begin, for lists in pages.
        """
        table = self._tables.get((kind.group, kind.plural))
        return table.ordered(namespace or "", after) if table else []

    def count(self, kind: Kind) -> int:
        """How many objects of a kind there are."""
        table = self._tables.get((kind.group, kind.plural))
        return len(table.rows) if table else 0

    def create(self, key: Key, obj: Object) -> Stored:
        """Add an object; raises :class:`Exists` or :class:`TooLarge`."""
        if self.get(key) is not None:
            raise Exists(key)
        return self._write("ADDED", key, obj, None)

    def replace(self, key: Key, obj: Object, expected: int | None = None) -> Stored:
        """Put a new revision; raises :class:`Missing`, or :class:`Stale` when ``expected`` is not the present one."""
        old = self._present(key, expected)
        return self._write("MODIFIED", key, obj, old)

    def remove(self, key: Key, expected: int | None = None) -> Stored:
        """Delete; the answer is the last state under the deletion's revision. Raises like :meth:`replace`."""
        old = self._present(key, expected)
        gone = self._revise(key, old.object, gone=True)
        self._tables[key[:2]].drop(key)
        self._publish(Event("DELETED", gone, old))
        old.compact()
        return gone

    def watch(self, kind: Kind, namespace: str | None = None, since: int | None = None) -> Watch:
        """Changes after revision ``since`` (default: from now on); raises :class:`Gone`."""
        return Watch(
            self, self._log((kind.group, kind.plural)), namespace or "", self.revision if since is None else since
        )

    def add_listener(self, changed: asyncio.Event) -> None:
        """Have ``changed`` set on every write (the state file saves when things have settled)."""
        self._listeners.append(changed)

    def compact(self) -> None:
        """Forget every logged change, as etcd's compaction does; older watches end with :class:`Gone`."""
        for log in self._logs.values():
            log.dropped += len(log.events)
            log.events.clear()
            log.compacted = self.revision
            log.wake()
        self._floor = self.revision

    def record_with(self, record: Callable[[Stored, bool], None] | None) -> None:
        """Have ``record`` called before each change is made: with the new revision, and whether it is a deletion.

        When it raises, the change is not made.
        """
        self._record = record or (lambda _stored, _gone: None)

    def rows(self) -> Iterator[Stored]:
        """Everything that is stored, kind by kind."""
        for table in self._tables.values():
            yield from table.ordered()

    def load(self, revision: int, rows: Iterable[Stored]) -> None:
        """Replace everything by ``rows``, as of ``revision``; older watches end with :class:`Gone`."""
        self._tables = {}
        for stored in rows:
            self._tables.setdefault(stored.key[:2], _Table()).put(stored)
        self.revision = revision
        self.compact()

    def _present(self, key: Key, expected: int | None) -> Stored:
        old = self.get(key)
        if old is None:
            raise Missing(key)
        if expected is not None and expected != old.revision:
            raise Stale(key)
        return old

    def _revise(self, key: Key, obj: Object, *, gone: bool = False) -> Stored:
        """The next revision, recorded. Nothing has changed when it cannot be."""
        revision = self.revision + 1
        metadata = {**obj.get("metadata", {}), "resourceVersion": str(revision)}
        stored = Stored(key, {**obj, "metadata": metadata}, revision)
        if not gone and len(stored.encoded) > OBJECT_LIMIT:
            raise TooLarge(key)
        self._record(stored, gone)
        self.revision = revision
        return stored

    def _write(self, event: EventType, key: Key, obj: Object, old: Stored | None) -> Stored:
        stored = self._revise(key, obj)
        self._tables.setdefault(key[:2], _Table()).put(stored)
        self._publish(Event(event, stored, old))
        if old is not None:
            old.compact()
        return stored

    def _publish(self, event: Event) -> None:
        self._log(event.stored.key[:2]).append(event, self._capacity)
        for listener in self._listeners:
            listener.set()

    def _log(self, place: tuple[str, str]) -> _Log:
        log = self._logs.get(place)
        if log is None:
            log = self._logs[place] = _Log(self._floor)
        return log
