"""A heap whose elements' keys may change while they wait (spec 04 section 28.2).

The original's heap keeps elements where their old key put them. Here a pop always gives the element that is least now:
keys of elements whose own accounting has changed since are read again, and with ``Depends.OTHERS`` all keys are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Generic, TypeVar

from stromboli.scheduler.core.plugin import Depends
from stromboli.scheduler.core.records import Job

T = TypeVar("T")
SortKey = tuple[Any, ...]
"""Keys of several plugins side by side: positions hold values of one comparable type each."""


class Heap(Generic[T]):
    """Pops the least element by its present key."""

    def __init__(
        self,
        key: Callable[[T], SortKey],
        depends: Depends = Depends.NOTHING,
        changes: list[Job] | None = None,
        affected: Callable[[Job], T | None] | None = None,
    ) -> None:
        self._key = key
        self._depends = depends
        self._changes = changes if changes is not None else []
        self._affected = affected
        self._read = len(self._changes)
        self._entries: list[tuple[SortKey, int, T]] = []
        self._current: dict[int, tuple[int, T]] = {}
        self._ticket = count()

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[T]:
        """The elements, in no particular order."""
        return (item for _, item in self._current.values())

    def push(self, item: T) -> None:
        """Adds an element; one that is in already gets its present key."""
        ticket = next(self._ticket)
        self._current[id(item)] = (ticket, item)
        heapq.heappush(self._entries, (self._key(item), ticket, item))

    def push_all(self, items: Iterable[T]) -> None:
        """Adds several."""
        for item in items:
            self.push(item)

    def pop(self) -> T:
        """Removes and returns the least element. Raises IndexError when there is none."""
        if self._depends is Depends.OTHERS:
            return self._pop_fresh()
        if self._depends is Depends.ITSELF:
            self._reread_changed()
        while True:
            _, ticket, item = heapq.heappop(self._entries)
            known = self._current.get(id(item))
            if known is not None and known[0] == ticket:
                del self._current[id(item)]
                return item

    def _pop_fresh(self) -> T:
        if not self._current:
            raise IndexError("pop from an empty heap")
        _, item = min(self._current.values(), key=lambda entry: (self._key(entry[1]), entry[0]))
        del self._current[id(item)]
        return item

    def _reread_changed(self) -> None:
        changes, affected = self._changes, self._affected
        if affected is None or self._read == len(changes):
            return
        moved: dict[int, T] = {}
        for job in changes[self._read :]:
            item = affected(job)
            if item is not None and id(item) in self._current:
                moved[id(item)] = item
        self._read = len(changes)
        self.push_all(moved.values())
