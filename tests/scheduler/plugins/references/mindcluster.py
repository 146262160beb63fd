"""deviceshare's Ascend 310P chips under MindCluster (spec 06 section 33): filter and batch score.

The sum of idle AI cores is left to the ordinary check of resources, so that pods may wait for what is being released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import core
from tests.scheduler.plugins.references.claims import Some
from tests.scheduler.plugins.references.promising import holdings
from tests.scheduler.plugins.references.telling import Told, amount

NPU = "huawei.com/npu-core"
REAL = "huawei.com/AscendReal"
CORES, CPUS = 8, 7
TEMPLATES = {
    "vir01": (1, 1, "null"),
    "vir02": (2, 2, "null"),
    "vir02_1c": (2, 1, "null"),
    "vir04": (4, 4, "null"),
    "vir04_3c": (4, 3, "null"),
    "vir04_3c_ndvpp": (4, 3, "no"),
    "vir04_4c_dvpp": (4, 4, "yes"),
}
DOWNGRADES = {"vir02": "vir02_1c", "vir04": "vir04_3c"}


@dataclass(frozen=True)
class Part:
    """A chip that a pod has whole (no template), or a slice of it; ``group`` is its vGroup once it is made."""

    chip: int
    template: str = ""
    group: str | None = None


Held = Mapping[str, Sequence[Part]]
"""By pod."""


@dataclass
class MindCluster:
    """Chips by node, those of them that are sick, and nodes that are to be separated."""

    weight: int
    chips: dict[str, list[int]] = field(default_factory=dict)
    sick: dict[str, list[int]] = field(default_factory=dict)
    separated: set[str] = field(default_factory=set)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Whatever keeps the pod from getting chips; nodes without chips are somebody else's business."""
        if not _asks(pod) or node.name not in self.chips:
            return []
        return Some(["refused"]) if self._choose(pod, node.name, self._held(told, node.name)) is None else []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """33.5: a walk over the candidates, fullest first."""
        having = [node.name for node in nodes if node.name in self.chips]
        if not _asks(pod) or not having or self.weight <= 0:
            return {}
        chosen = {name: self._choose(pod, name, self._held(told, name)) for name in having}
        lower = {name for name, parts in chosen.items() if parts and parts[0].template not in ("", _template(pod))}
        having.sort(key=lambda name: max(told.idle(name, NPU), 0.0))
        found: dict[str, float] = {}
        for name in having:
            if name not in lower:
                found[name] = 16.0 if lower else 8.0
                break
            found[name] = 8.0
        return {name: score * self.weight for name, score in found.items()}

    def _choose(self, pod: core.Pod, node: str, before: Held) -> list[Part] | None:
        if node in self.separated or pod.metadata.labels.get("vnpu-dvpp", "null") not in ("yes", "no", "null"):
            return None
        parts = [part for one in before.values() for part in one]
        chips = [chip for chip in self.chips[node] if chip not in self.sick[node]]
        cores = _cores(pod)
        if cores and cores % CORES == 0:
            free = [chip for chip in chips if all(part.chip != chip for part in parts)]
            return [Part(chip) for chip in sorted(free)[: cores // CORES]] if len(free) >= cores // CORES else None
        template = _template(pod)
        if not template:
            return None
        for name in (template, *([DOWNGRADES[template]] if template in DOWNGRADES else [])):
            fitting = [chip for chip in chips if _takes(name, [part for part in parts if part.chip == chip])]
            if fitting:
                making = {part.template for part in parts if part.template and part.group is None}
                best = min(fitting, key=lambda chip: (*_free([part for part in parts if part.chip == chip]), chip))
                return [Part(best, name)] if making <= {name} else None
        return None

    def _held(self, told: Told, node: str) -> Held:
        def recorded(pod: core.Pod) -> list[Part]:
            return [part for part in _recorded(pod) if part.chip not in self.sick[node]]

        def chosen(pod: core.Pod, before: Held) -> Sequence[Part]:
            parts = self._choose(pod, node, before) if _asks(pod) else []
            assert parts is not None
            return parts

        return holdings(told, told.nodes[node], recorded, chosen)


def _asks(pod: core.Pod) -> bool:
    limited = any(NPU in one.resources.limits for one in pod.spec.containers)
    return limited and pod.metadata.labels.get("ring-controller.atlas") == "ascend-310P"


def _cores(pod: core.Pod) -> int:
    each = [int(amount(one.resources.requests, NPU)) // 1000 for one in pod.spec.containers]
    return next((cores for cores in each if cores), 0)


def _template(pod: core.Pod) -> str:
    labels = pod.metadata.labels
    high, dvpp = labels.get("vnpu-level") == "high", labels.get("vnpu-dvpp", "null")
    match _cores(pod):
        case 1:
            return "vir01"
        case 2:
            return "vir02" if high else "vir02_1c"
        case 4 if dvpp == "null":
            return "vir04" if high else "vir04_3c"
        case 4:
            return "vir04_3c_ndvpp" if dvpp == "no" else "vir04_4c_dvpp"
    return ""


def _recorded(pod: core.Pod) -> list[Part]:
    real = pod.metadata.annotations.get(REAL)
    group = real.rpartition("_")[2] if real is not None else None
    text = pod.metadata.annotations.get(NPU, "")
    pieces = [piece.partition("-") for piece in text.split(",") if piece]
    return [Part(int(chip), template, group) for chip, _, template in pieces]


def _free(parts: Sequence[Part]) -> tuple[int, int]:
    """AI cores and AI CPUs of a chip that are left."""
    amounts = [TEMPLATES[part.template][:2] if part.template else (CORES, CPUS) for part in parts]
    return CORES - sum(cores for cores, _ in amounts), CPUS - sum(cpus for _, cpus in amounts)


def _takes(name: str, parts: Sequence[Part]) -> bool:
    """Whether a chip with these parts can be cut once more."""
    cores, cpus, dvpp = TEMPLATES[name]
    free_cores, free_cpus = _free(parts)
    if cores > free_cores or cpus > free_cpus or any(part.template and part.group is None for part in parts):
        return False
    groups = {part.group for part in parts if part.group is not None}
    if any(part.template for part in parts) and cores >= {3: 4, 4: 2}.get(len(groups), CORES + 1):
        return False
    wishes = {TEMPLATES[part.template][2] for part in parts if part.template}
    free = "no" if "yes" in wishes else "null" if "null" in wishes else "yes"
    return dvpp == "no" or (free == "yes" if dvpp == "yes" else free != "no")
