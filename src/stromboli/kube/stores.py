"""What is known of the objects of one kind, by key and by index.

A store is plain memory: only the event loop's thread touches it, and readers get objects that they must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

Key: TypeAlias = tuple[str, str]
"""``(namespace, name)``; the namespace is empty for cluster-scoped kinds."""

IndexFunction: TypeAlias = Callable[[T], Iterable[str]]
"""The values under which an object is found in an index. Must depend on the object alone."""


class Identity(NamedTuple):
    """Who an object is (namespace, name, UID) and how old this view of it is."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> Key:
        """``(namespace, name)``."""
        return self.namespace, self.name


class Entry(NamedTuple, Generic[T]):
    """One stored object with its identity."""

    identity: Identity
    obj: T


class _Index(Generic[T]):
    """Keys by value. Remembers under which values a key is filed, whatever becomes of the object."""

    def __init__(self, function: IndexFunction[T]) -> None:
        self._function = function
        self._keys: dict[str, dict[Key, None]] = {}
        self._values: dict[Key, tuple[str, ...]] = {}

    def values_of(self, obj: T) -> tuple[str, ...]:
        """Each value once: a function may well name one twice."""
        return tuple(dict.fromkeys(self._function(obj)))

    def find(self, value: str) -> Iterable[Key]:
        return self._keys.get(value, ())

    def file(self, key: Key, values: tuple[str, ...]) -> None:
        if self._values.get(key) == values:
            return
        self.unfile(key)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def unfile(self, key: Key) -> None:
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            keys.pop(key, None)
            if not keys:
                del self._keys[value]


class Store(Generic[T]):
    """Objects by key, with named indexes."""

    def __init__(self, indexes: Mapping[str, IndexFunction[T]] | None = None) -> None:
        self._entries: dict[Key, Entry[T]] = {}
        self._indexes = {name: _Index(function) for name, function in (indexes or {}).items()}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        return (entry.obj for entry in self._entries.values())

    def get(self, key: Key) -> T | None:
        """The object of that ``(namespace, name)``, or ``None``."""
        entry = self._entries.get(key)
        return entry.obj if entry else None

    def entry(self, key: Key) -> Entry[T] | None:
        """The object with its identity, or ``None``."""
        return self._entries.get(key)

    def list(self, namespace: str | None = None) -> list[T]:
        """All objects, or those of one namespace. A new list each time."""
        if namespace is None:
            return [entry.obj for entry in self._entries.values()]
        return [entry.obj for key, entry in self._entries.items() if key[0] == namespace]

    def keys(self) -> tuple[Key, ...]:
        """All keys at this moment."""
        return tuple(self._entries)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Objects filed under ``value``, in the order in which they came. ``KeyError`` for an unknown index."""
        return tuple(self._entries[key].obj for key in self._indexes[index].find(value))

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Add an index, also over what is already stored."""
        index = self._indexes[name] = _Index(function)
        for key, entry in self._entries.items():
            index.file(key, index.values_of(entry.obj))

    def put(self, identity: Identity, obj: T) -> Entry[T] | None:
        """Store ``obj`` and return what it replaces. If an index function fails, nothing is changed."""
        filed = [(index, index.values_of(obj)) for index in self._indexes.values()]
        key = identity.key
        previous = self._entries.get(key)
        self._entries[key] = Entry(identity, obj)
        for index, values in filed:
            index.file(key, values)
        return previous

    def remove(self, key: Key) -> Entry[T] | None:
        """Forget the object of that key and return it."""
        entry = self._entries.pop(key, None)
        for index in self._indexes.values():
            index.unfile(key)
        return entry
