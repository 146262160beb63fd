"""Which controllers run: the ``--controllers`` list (spec 03 section 1.2).

The first item that names a controller decides about it, with ``-`` against it; a controller that no item names runs if
``*`` is in the list. An empty list runs everything. Items are taken as they are written, blanks included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EVERYTHING = "*"


class SelectionError(ValueError):
    """A list that contradicts itself; the text names the item."""


def enabled(items: Sequence[str], controller: str) -> bool:
    """Whether ``controller`` runs."""
    for item in items:
        if item in (controller, f"+{controller}"):
            return True
        if item == f"-{controller}":
            return False
    return EVERYTHING in items or not items


def validate(items: Iterable[str]) -> None:
    """Refuse a list that names a controller twice.

    Raises:
        SelectionError: naming the second item as it was written.
    """
    seen: set[str] = set()
    for item in items:
        name = item[1:] if item[:1] in ("+", "-") else item
        if name != EVERYTHING and name in seen:
            raise SelectionError(f"controllers option {item} cannot have both '-' and '+' prefixes")
        seen.add(name)


def unknown(items: Iterable[str], known: Iterable[str]) -> list[str]:
    """Items that name no known controller; they have no effect, which deserves a warning."""
    names = {EVERYTHING, *known}
    return [item for item in items if item.removeprefix("+").removeprefix("-") not in names]
