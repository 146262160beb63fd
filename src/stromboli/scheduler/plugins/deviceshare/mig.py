"""Cards that are cut into instances (spec 06 section 31.5).

An instance is named ``UUID[GROUP-POSITION]``; positions count through the kinds of a group as they are listed. Which
group a card is cut by is decided by the first instance in use, and open again when none is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from stromboli.scheduler.plugins.deviceshare.configuration import Geometry, Instance

_ID = re.compile(r"(?P<uuid>.*)\[(?P<group>.+)-(?P<position>[0-9]+)\]")


class BadInstance(ValueError):
    """An id that names no instance of the card."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instance of a group."""

    group: str
    position: int

    @classmethod
    def of(cls, device: str) -> Place | None:
        """The place in an id; None when it names a whole card."""
        found = _ID.fullmatch(device)
        return cls(found["group"], int(found["position"])) if found else None

    def on(self, uuid: str) -> str:
        """The id of this instance of a card."""
        return f"{uuid}[{self.group}-{self.position}]"


@dataclass(slots=True)
class Cuts:
    """The instances of one card that are in use: of one group at a time."""

    geometries: Sequence[Geometry]
    group: str | None = None
    used: dict[str, set[int]] = field(default_factory=dict)
    """By kind, the indices inside the kind."""

    def find(self, memory: int) -> tuple[Place, int] | None:
        """A free instance with at least so much memory, and what it has: the smallest kind, the lowest index."""
        for geometry in self.geometries:
            if self.group in (None, geometry.group):
                found = self._find_in(geometry, memory)
                if found is not None:
                    return found
        return None

    def _find_in(self, geometry: Geometry, memory: int) -> tuple[Place, int] | None:
        if not set(self.used) <= {kind.name for kind in geometry.instances}:
            return None  # something is in use that this group does not know: nothing is known about the rest
        for first, kind in sorted(_with_positions(geometry), key=lambda pair: pair[1].memory):
            free = [index for index in range(kind.count) if index not in self.used.get(kind.name, ())]
            if kind.memory >= memory and free:
                return Place(geometry.group, first + free[0]), kind.memory
        return None

    def take(self, place: Place) -> int:
        """Puts an instance to use; answers its memory. Raises BadInstance when the card is not cut like that."""
        kind, index = self._kind_at(place)
        self.group = place.group
        self.used.setdefault(kind.name, set()).add(index)
        return kind.memory

    def give_back(self, place: Place) -> None:
        """The reverse of ``take``."""
        kind, index = self._kind_at(place)
        indices = self.used.get(kind.name, set())
        indices.discard(index)
        if not indices:
            self.used.pop(kind.name, None)
        if not self.used:
            self.group = None

    def _kind_at(self, place: Place) -> tuple[Instance, int]:
        geometry = next((geometry for geometry in self.geometries if geometry.group == place.group), None)
        for first, kind in _with_positions(geometry) if geometry is not None else ():
            if first <= place.position < first + kind.count:
                return kind, place.position - first
        raise BadInstance(f"there is no instance {place.group}-{place.position}")


def _with_positions(geometry: Geometry) -> list[tuple[int, Instance]]:
    """The kinds of a group, each with the position of its first instance."""
    kinds, first = [], 0
    for kind in geometry.instances:
        kinds.append((first, kind))
        first += kind.count
    return kinds
