"""deviceshare (spec 06 sections 29 to 32): GPU-share, vGPU whole or cut, and HAMi's vNPUs.

A family answers one question, ``choose``: which shares of which cards a pod would get on a node, given what the others
hold there. Everything else follows from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Protocol

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Act, Told, amount


@dataclass(frozen=True)
class Share:
    """What a container holds of a card."""

    card: str
    memory: float = 0.0
    cores: float = 0.0
    place: str = ""
    """Group and position of an instance, on cards that are cut."""


Held = dict[str, list[Share]]
"""By pod."""


@dataclass(frozen=True)
class Choice:
    """Shares, and what the node scores with them; without shares the reason."""

    shares: tuple[Share, ...] = ()
    score: float = 0.0
    refusal: str = ""


class Family(Protocol):
    """One kind of device."""

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """Whether the pod asks for what the node has."""

    def recorded(self, pod: core.Pod) -> list[Share]:
        """What a running pod holds, as its annotations say."""

    def choose(self, told: Told, pod: core.Pod, node: core.Node, held: Held) -> Choice:
        """What the pod would get."""


@dataclass(frozen=True)
class DeviceShare:
    """The plugin, with the families that are switched on, in their order."""

    families: Sequence[Family]
    weight: int = 0

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """The first family that refuses."""
        for family in self.families:
            if family.concerns(pod, node):
                refusal = family.choose(told, pod, node, held(family, told, node)).refusal
                if refusal:
                    return [refusal]
        return []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """One node after the other."""
        if self.weight <= 0:
            return {}
        found = {}
        for node in nodes:
            asked = [family for family in self.families if family.concerns(pod, node)]
            total = sum(family.choose(told, pod, node, held(family, told, node)).score for family in asked)
            found[node.name] = floor(0.5 + total) * float(self.weight)
        return found


def held(family: Family, told: Told, node: core.Node) -> Held:
    """Who holds what of a family on a node now."""
    found: Held = {}
    for name, pod in [*told.pods.items(), *told.gone.items()]:
        if pod.spec.node_name == node.name and not pod.deleting:
            found[name] = family.recorded(pod)
    promised = set()
    for step in told.steps:
        match step.act:
            case Act.PLACE | Act.PROMISE:
                pod = told.pod(step.pod)
                if step.node == node.name and family.concerns(pod, node):
                    found[step.pod] = list(family.choose(told, pod, node, found).shares)
                    if step.act is Act.PROMISE:
                        promised.add(step.pod)
            case Act.EVICT | Act.GO:
                found.pop(step.pod, None)
            case Act.CLOSE:
                for name in promised:
                    found.pop(name, None)
                promised = set()
    return found


def of_card(held_: Held, card: str) -> list[Share]:
    """All shares of one card."""
    return [share for shares in held_.values() for share in shares if share.card == card]


def limit_of(pod: core.Pod, name: str) -> float:
    """Limits of a pod: all containers together, or the largest init container."""
    init = [amount(one.resources.limits, name) for one in pod.spec.init_containers]
    return max([sum(amount(one.resources.limits, name) for one in pod.spec.containers), *init]) / 1000


# -- section 30 ----------------------------------------------------------------------------------------------------

GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


@dataclass(frozen=True)
class GpuShare:
    """Cards by memory, or whole."""

    by_memory: bool

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """By the mode. A node all of whose cards are sick has the device, and takes nothing."""
        there = all(amount(node.status.capacity, name) > 0 for name in (GPU_NUMBER, GPU_MEMORY))
        return there and limit_of(pod, GPU_MEMORY if self.by_memory else GPU_NUMBER) > 0

    @staticmethod
    def _cards(node: core.Node) -> dict[str, int]:
        number = int(amount(node.status.capacity, GPU_NUMBER)) // 1000
        memory = int(amount(node.status.capacity, GPU_MEMORY)) // 1000
        if not number or not memory:
            return {}
        sick = node.metadata.annotations.get("volcano.sh/gpu-unhealthy-ids", "").split(",")
        sick = [one.strip() for one in sick]
        return {str(card): memory // number for card in range(number) if str(card) not in sick}

    @staticmethod
    def recorded(pod: core.Pod) -> list[Share]:
        """An index that cannot be read makes all of them void."""
        if limit_of(pod, GPU_MEMORY) <= 0 and limit_of(pod, GPU_NUMBER) <= 0:
            return []
        listed = pod.metadata.annotations.get("volcano.sh/gpu-index", "").split(",")
        if not all(one.isdigit() for one in listed):
            return []
        return [Share(one, limit_of(pod, GPU_MEMORY)) for one in listed]

    def choose(self, told: Told, pod: core.Pod, node: core.Node, held: Held) -> Choice:
        """The lowest ids that will do."""
        cards = self._cards(node)
        if self.by_memory:
            wanted = limit_of(pod, GPU_MEMORY)
            for card, memory in cards.items():
                if max(0.0, memory - sum(share.memory for share in of_card(held, card))) >= wanted:
                    return Choice((Share(card, wanted),))
            return Choice(refusal=f"GpuShare no enough gpu memory on node {node.name}")
        free = [card for card in cards if not of_card(held, card)]
        number = int(limit_of(pod, GPU_NUMBER))
        if len(free) < number:
            return Choice(refusal=f"GpuNumber no enough gpu number on node {node.name}")
        return Choice(tuple(Share(card, limit_of(pod, GPU_MEMORY)) for card in free[:number]))


# -- section 31 ----------------------------------------------------------------------------------------------------

CUT = "A100"
VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"


@dataclass(frozen=True)
class Card:
    """An entry of a node's register."""

    uuid: str
    limit: int
    memory: int
    type: str
    healthy: bool
    is_cut: bool


@dataclass(frozen=True)
class Wish:
    """What one container asks for."""

    cards: int
    memory: float | None
    cores: float


@dataclass(frozen=True)
class VGpu:
    """Slices of cards; exclusive rules are maps of labels.

    Cards of type ``CUT`` in mode ``mig`` are cut as ``groups`` say: by group, kinds of (memory, count) as listed.
    """

    policy: str = ""
    rules: Sequence[Mapping[str, str]] = field(default_factory=list)
    groups: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """Some container has the number or the memory in its limits."""
        return bool(self.cards(node)) and bool(wishes(pod, VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES))

    @staticmethod
    def cards(node: core.Node) -> list[Card]:
        """In the order of the register; none when the node does not offer all three resources."""
        text = node.metadata.annotations.get("volcano.sh/node-vgpu-register", "")
        if any(amount(node.status.allocatable, name) == 0 for name in (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)):
            return []
        entries = [entry.split(",") for entry in text.split(":") if "," in entry]
        if ":" not in text or any(len(entry) < 6 for entry in entries):
            return []
        return [
            Card(uuid, int(count), int(memory), kind, healthy == "true", mode == "mig" and CUT in kind)
            for uuid, count, memory, kind, healthy, mode, *_ in entries
        ]

    def recorded(self, pod: core.Pod) -> list[Share]:
        """``vgpu-ids-new``: items that cannot be read are left out one by one. Instances count with their memory."""
        found = []
        for container in pod.metadata.annotations.get("volcano.sh/vgpu-ids-new", "").split(";"):
            for item in container.split(":"):
                parts = item.split(",")
                if len(parts) >= 4 and parts[2].isdigit() and parts[3].isdigit():
                    uuid, _, place = parts[0].rstrip("]").partition("[")
                    memory = self._instances(place.partition("-")[0])[place] if place else float(parts[2])
                    found.append(Share(uuid, memory, float(parts[3]), place))
        return found

    def _instances(self, group: str) -> dict[str, float]:
        """Memory of all instances of a group, by place."""
        each = [memory for memory, count in self.groups[group] for _ in range(count)]
        return {f"{group}-{position}": float(memory) for position, memory in enumerate(each)}

    def _instance(self, there: Sequence[Share], need: float) -> tuple[str, float] | None:
        """The smallest free instance that will do, of the group in use, else of the first that has one."""
        taken = [share.place for share in there]
        for group in self.groups:
            if taken and taken[0].partition("-")[0] != group:
                continue
            fitting = [(memory, place) for place, memory in self._instances(group).items() if memory >= need]
            free = [(memory, place) for memory, place in fitting if place not in taken]
            if free:
                least = min(memory for memory, _ in free)
                return next(place for memory, place in free if memory == least), least
        return None

    def choose(self, told: Told, pod: core.Pod, node: core.Node, held: Held) -> Choice:
        """Container by container, each on top of those before."""
        refused = Choice(refusal="hami-vgpuDeviceSharing error")
        cards = self.cards(node)
        mode = "mig" if cards[-1].is_cut else "hami-core"
        if pod.metadata.annotations.get("volcano.sh/vgpu-mode", mode) != mode:
            return refused
        mine: list[Share] = []
        score = 0.0
        for wish in wishes(pod, VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES):
            if wish.cards > len(cards):
                return refused
            chosen = 0
            for at in self._ordered(cards, {**held, "": [*mine]}):
                card = cards[at]
                there = of_card({**held, "": mine}, card.uuid)
                need = float(card.memory) if wish.memory is None else wish.memory
                if chosen == wish.cards:
                    break
                if self._passes(told, pod, card, held, there, need, wish.cores):
                    place = self._instance(there, need) if card.is_cut else ("", need)
                    if place is None:
                        continue
                    share = Share(card.uuid, place[1], wish.cores, place[0])
                    score += self._score(card, there, share)
                    mine.append(share)
                    chosen += 1
            if chosen < wish.cards:
                return refused
        return Choice(tuple(mine), score)

    def _ordered(self, cards: Sequence[Card], held: Held) -> list[int]:
        def rank(at: int) -> tuple[float, int]:
            there = of_card(held, cards[at].uuid)
            if self.policy == "binpack":
                return -sum(share.memory for share in there), at
            return (len(there), at) if self.policy == "spread" else (0, -at)

        return sorted(range(len(cards)), key=rank)

    def _passes(
        self, told: Told, pod: core.Pod, card: Card, held: Held, there: Sequence[Share], need: float, cores: float
    ) -> bool:
        used, users = sum(share.cores for share in there), len(there)
        if not card.healthy or users >= card.limit or card.memory - sum(share.memory for share in there) < need:
            return False
        if used + cores > 100 or (cores == 100 and users) or (used == 100 and cores == 0):
            return False
        if not _type_fits(pod, card.type):
            return False
        others = [told.pod(name) for name, shares in held.items() if any(share.card == card.uuid for share in shares)]
        rules = () if card.is_cut else self.rules
        if any(_matches(rule, pod) and _matches(rule, other) for rule in rules for other in others):
            return False
        spreads = pod.metadata.annotations.get("volcano.sh/vgpu-podgroup-policy") == "spread"
        return not (spreads and any(self._together(pod, other, held, card) for other in others))

    @staticmethod
    def _together(pod: core.Pod, other: core.Pod, held: Held, card: Card) -> bool:
        key = "scheduling.k8s.io/group-name"
        same = pod.metadata.annotations.get(key) == other.metadata.annotations.get(key)
        shares = [share for share in held[other.name] if share.card == card.uuid]
        return same and any(share.memory or share.cores for share in shares)

    def _score(self, card: Card, there: Sequence[Share], share: Share) -> float:
        if self.policy == "binpack":
            return 100 * (sum(one.memory for one in there) + share.memory) / card.memory
        return 100.0 if self.policy == "spread" and not there else 0.0


def wishes(pod: core.Pod, number: str, memory: str, cores: str) -> list[Wish]:
    """One for each container that has the number or the memory in its limits; a number of 0 asks for nothing."""
    found = []
    for one in pod.spec.containers:
        limits, requests = one.resources.limits, one.resources.requests
        if number in limits or memory in limits:
            cards = int(amount(limits, number)) // 1000 if number in limits else 1
            wanted = limits.get(memory, requests.get(memory))
            needed = None if wanted is None else amount({"m": wanted}, "m") / 1000
            found.append(Wish(cards, needed, amount(limits, cores) / 1000))
    return [wish for wish in found if wish.cards]


def _type_fits(pod: core.Pod, kind: str) -> bool:
    annotations = pod.metadata.annotations
    if "NVIDIA" not in kind:
        return False
    if "nvidia.com/use-gputype" in annotations:
        return any(one.upper() in kind.upper() for one in annotations["nvidia.com/use-gputype"].split(","))
    if "nvidia.com/nouse-gputype" in annotations:
        return not any(one.upper() in kind.upper() for one in annotations["nvidia.com/nouse-gputype"].split(","))
    return True


def _matches(rule: Mapping[str, str], pod: core.Pod) -> bool:
    return all(pod.metadata.labels.get(key) == value for key, value in rule.items())


# -- section 32 ----------------------------------------------------------------------------------------------------

WORD = "Ascend310P"
NPU, NPU_MEMORY = f"huawei.com/{WORD}", f"huawei.com/{WORD}-memory"
TEMPLATES, WHOLE, CAPACITY = (3072, 6144, 12288), 21527, 24576


@dataclass(frozen=True)
class Hami:
    """Ascend 310P as it is configured when nothing is."""

    policy: str = ""

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """The node has cards, and some container asks for one."""
        return bool(self._cards(node)) and bool(wishes(pod, NPU, NPU_MEMORY, ""))

    @staticmethod
    def _cards(node: core.Node) -> list[dict[str, float | str]]:
        text = node.metadata.annotations.get(f"hami.io/node-register-{WORD}", "[]")
        listed: list[dict[str, float | str]] = json.loads(text)
        return listed if amount(node.status.allocatable, NPU) else []

    @staticmethod
    def recorded(pod: core.Pod) -> list[Share]:
        """Per device ``uuid,W,mem,cores:``, after each container ``;``."""
        text = pod.metadata.annotations.get(f"hami.io/{WORD}-devices-allocated", "")
        parts = [item.split(",") for item in text.replace(";", ":").split(":") if item.count(",") == 3]
        return [Share(uuid, float(memory), float(cores)) for uuid, _, memory, cores in parts]

    def choose(self, told: Told, pod: core.Pod, node: core.Node, held: Held) -> Choice:
        """Cards by score before anything is booked; no card for two containers."""
        refused, cards = Choice(refusal="no ascend device available"), self._cards(node)
        ordered = sorted(range(len(cards)), key=lambda at: (-self._score(cards[at], held), at))
        mine: list[Share] = []
        score = 0.0
        for wish in wishes(pod, NPU, NPU_MEMORY, ""):
            chosen: list[Share] = []
            for at in ordered:
                card = cards[at]
                memory = trimmed(float(card["devmem"]) if wish.memory is None else wish.memory)
                if memory is None or (wish.cards > 1 and memory != WHOLE):
                    return refused
                taken = any(share.card == card["id"] for share in mine)
                if len(chosen) < wish.cards and not taken and self._fits(card, held, memory):
                    score += 0.0 if chosen else self._score(card, held)
                    chosen.append(Share(str(card["id"]), memory))
            if len(chosen) < wish.cards:
                return refused
            mine += chosen
        return Choice(tuple(mine), score)

    def _score(self, card: Mapping[str, float | str], held: Held) -> float:
        there = of_card(held, str(card["id"]))
        if self.policy == "binpack":
            return 100 * sum(share.memory for share in there) / float(card["devmem"])
        return 100.0 if self.policy == "spread" and not there else 0.0

    @staticmethod
    def _fits(card: Mapping[str, float | str], held: Held, memory: float) -> bool:
        there, cores = of_card(held, str(card["id"])), float(card["devcore"])
        used = sum(share.cores for share in there)
        room = float(card["devmem"]) - sum(share.memory for share in there) >= memory
        return len(there) < float(card["count"]) and room and used <= cores and not (cores and used == cores)


def trimmed(memory: float) -> float | None:
    """The smallest template that will do, else a whole card; None when no card is as large."""
    fitting = [one for one in TEMPLATES if one >= memory]
    if fitting:
        return float(min(fitting))
    return float(WHOLE) if memory <= CAPACITY else None
