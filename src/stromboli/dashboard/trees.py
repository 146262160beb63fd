"""Objects that name their parents, in the order in which a tree is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from stromboli.api.core.meta import Object

T = TypeVar("T", bound=Object)


def preorder(objects: Iterable[T], parent_of: Callable[[T], str]) -> Iterator[tuple[int, T]]:
    """Objects below their parents, siblings by name, each with its depth.

    Those whose parent is not there stand at the top, and so does everything in a circle.
    """
    ordered = sorted(objects, key=lambda item: item.name)
    known = {item.name for item in ordered}
    children: dict[str, list[T]] = {}
    for item in ordered:
        parent = parent_of(item)
        children.setdefault(parent if parent in known else "", []).append(item)
    shown: set[str] = set()
    todo = [(0, item) for item in reversed(children.get("", []))]
    while todo:
        depth, item = todo.pop()
        shown.add(item.name)
        yield depth, item
        todo += [(depth + 1, child) for child in reversed(children.get(item.name, []))]
    yield from ((0, item) for item in ordered if item.name not in shown)
