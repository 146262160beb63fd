"""Objects that only plugins look at, kept by kind and key as they were last seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeVar

from stromboli.api import core

T = TypeVar("T", bound=core.Object)
Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped kinds."""


class ClusterObjects:
    """A store of the latest version of each object, by struct type.

    ``version`` of a type moves with every change of an object of that type, so that what is derived from the objects
    can be kept until then.
    """

    def __init__(self) -> None:
        self._by_type: defaultdict[type[core.Object], dict[Key, core.Object]] = defaultdict(dict)
        self._versions: defaultdict[type[core.Object], int] = defaultdict(int)

    def apply(self, obj: core.Object) -> None:
        """Stores an object, replacing what had its key."""
        self._by_type[type(obj)][obj.key] = obj
        self._versions[type(obj)] += 1

    def delete(self, type_: type[core.Object], key: Key, uid: str | None = None) -> core.Object | None:
        """Removes an object and answers it; with ``uid`` only if that is still the one stored."""
        stored = self._by_type[type_].get(key)
        if stored is None or uid not in (None, stored.uid):
            return None
        del self._by_type[type_][key]
        self._versions[type_] += 1
        return stored

    def all(self, type_: type[T]) -> Mapping[Key, T]:
        """All objects of a type by key."""
        return self._by_type[type_]  # type: ignore[return-value]  # apply() files each object under its own type

    def get(self, type_: type[T], name: str, namespace: str = "") -> T | None:
        """One object, or None."""
        return self.all(type_).get((namespace, name))

    def version(self, type_: type[core.Object]) -> int:
        """Moves with every change of an object of this type."""
        return self._versions[type_]
