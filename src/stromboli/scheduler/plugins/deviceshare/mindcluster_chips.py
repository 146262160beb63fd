"""Ascend chips of a node, whole or cut into slices, and what pods hold of them (spec 06 section 33)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stromboli.scheduler.plugins.deviceshare.families import Share

YES, NO, NULL = "yes", "no", "null"
LOW, HIGH = "low", "high"
SEGMENTABLE = "Ascend310P"
_MOST_CORES = {3: 4, 4: 2}
"""By number of vGroups on a segmented chip: a slice must have fewer cores than this."""


@dataclass(frozen=True, slots=True)
class Template:
    """A slice: AI cores, AI CPUs, and whether it has the image processor (DVPP)."""

    name: str
    cores: int
    cpus: int
    dvpp: str = NULL


TEMPLATES = {
    template.name: template
    for template in (
        Template("vir01", 1, 1),
        Template("vir02", 2, 2),
        Template("vir02_1c", 2, 1),
        Template("vir04", 4, 4),
        Template("vir04_3c", 4, 3),
        Template("vir04_3c_ndvpp", 4, 3, NO),
        Template("vir04_4c_dvpp", 4, 4, YES),
    )
}
DOWNGRADES = {"vir02": "vir02_1c", "vir04": "vir04_3c"}
"""What is taken when there is no room for a slice with as many CPUs as cores."""


def template_for(cores: int, level: str, dvpp: str) -> Template | None:
    """The slice with so many cores; None when there is none."""
    match cores, dvpp:
        case 1, _:
            name = "vir01"
        case 2, _:
            name = "vir02" if level == HIGH else "vir02_1c"
        case 4, "yes":
            name = "vir04_4c_dvpp"
        case 4, "no":
            name = "vir04_3c_ndvpp"
        case 4, _:
            name = "vir04" if level == HIGH else "vir04_3c"
        case _:
            return None
    return TEMPLATES[name]


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod on a chip. Without a real id its device is still being made."""

    share: Share
    is_made: bool = True
    group: str = ""
    """The vGroup of its slice."""


class Chip:
    """A chip and its users; everything else about it follows from them."""

    def __init__(self, index: int, cores: int, cpus: int, *, kind: str = SEGMENTABLE) -> None:
        self.index = index
        self.cores = cores
        self.cpus = cpus
        self._kind = kind
        self.holders: dict[str, Holder] = {}

    @property
    def free_cores(self) -> int:
        """AI cores that nobody has."""
        return self.cores - sum(holder.share.cores for holder in self.holders.values())

    @property
    def free_cpus(self) -> int:
        """AI CPUs that nobody has."""
        return self.cpus - sum(holder.share.memory for holder in self.holders.values())

    @property
    def is_segmented(self) -> bool:
        """Whether it is cut into slices."""
        return any(holder.share.type for holder in self.holders.values())

    @property
    def is_stable(self) -> bool:
        """Whether no device of it is being made."""
        return all(holder.is_made for holder in self.holders.values())

    @property
    def free_dvpp(self) -> str:
        """Whether the image processor can be had: yes, no, or null when slices share it."""
        used, free = NO, YES
        for holder in self.holders.values():
            template = TEMPLATES.get(holder.share.type)
            wanted = template.dvpp if template is not None else NULL
            if wanted == YES:
                used, free = YES, NO
            elif wanted == NULL and used != YES:
                used = free = NULL
            elif wanted == NO and used == NO:
                free = YES
        return free

    @property
    def rank(self) -> tuple[int, int, int]:
        """Least is tried first: what is nearly full."""
        return self.free_cores, self.free_cpus, self.index

    def takes_slice(self, template: Template) -> bool:
        """Whether a slice can be cut from it now."""
        if template.cores > self.free_cores or template.cpus > self.free_cpus or not self.is_stable:
            return False
        if not self._groups_allow(template.cores):
            return False
        if template.dvpp == YES:
            return self.free_dvpp == YES
        return template.dvpp == NO or self.free_dvpp != NO

    def takes_whole(self) -> bool:
        """Whether it can be had whole."""
        return not self.is_segmented and self.free_cores == self.cores and self.free_cpus == self.cpus

    def _groups_allow(self, cores: int) -> bool:
        if not self.is_segmented or not self._kind.startswith(SEGMENTABLE):
            return True
        groups = {holder.group for holder in self.holders.values() if holder.group}
        most = _MOST_CORES.get(len(groups))
        return most is None or cores < most


def choose_slice(chips: Iterable[Chip], template: Template) -> Chip | None:
    """The fullest chip that can take it."""
    return min((chip for chip in chips if chip.takes_slice(template)), key=lambda chip: chip.rank, default=None)


def choose_whole(chips: Iterable[Chip], number: int) -> Sequence[Chip]:
    """So many whole chips, or as many as there are."""
    return sorted((chip for chip in chips if chip.takes_whole()), key=lambda chip: chip.rank)[:number]
