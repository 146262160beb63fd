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
from tests.scheduler.plugins.references.promising import holdings
from tests.scheduler.plugins.references.telling import Told, amount


@dataclass(frozen=True)
class Share:
    """What a container holds of a card."""

    card: str
    memory: float = 0.0
    cores: float = 0.0
    place: str = ""
    """Group and position of an instance, on cards that are cut."""


Held = Mapping[str, Sequence[Share]]
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

    def chosen(pod: core.Pod, before: Held) -> Sequence[Share]:
        return family.choose(told, pod, node, before).shares if family.concerns(pod, node) else ()

    return holdings(told, node, family.recorded, chosen)


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
    percentage: float = 100.0
    """Of a card's memory, if no memory is asked for."""

    def of(self, card: float) -> float:
        """The memory that is asked for of a card with so much."""
        return floor(card * self.percentage / 100) if self.memory is None else self.memory


@dataclass(frozen=True)
class VGpu:
    """Slices of cards; exclusive rules are maps of labels.

    Cards of type ``CUT`` in mode ``mig`` are cut as ``groups`` say: by group, kinds of (memory, count) as listed. Their
    memory is counted in units of ``factor`` elsewhere.
    """

    policy: str = ""
    rules: Sequence[Mapping[str, str]] = field(default_factory=list)
    groups: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    factor: int = 0
    """What is asked for is multiplied by it, what an instance has is divided by it; 0 and 1 are the same."""
    resources: tuple[str, str, str] = (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)
    """By which pods ask; nodes offer shares under the usual names all the same."""
    percentage: str = ""
    """The resource by which parts of cards are asked for; none unless it is configured."""

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """Some container has the number or the memory in its limits."""
        return bool(self.cards(node)) and bool(self._wishes(pod))

    def _wishes(self, pod: core.Pod) -> list[Wish]:
        return wishes(pod, *self.resources, self.percentage)

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
                    instance = self._instances(place.partition("-")[0])[place] if place else 0
                    memory = instance // max(self.factor, 1) if place else float(parts[2])
                    found.append(Share(uuid, memory, float(parts[3]), place))
        return found

    def _instances(self, group: str) -> dict[str, int]:
        """Memory of all instances of a group, by place."""
        each = [memory for memory, count in self.groups[group] for _ in range(count)]
        return {f"{group}-{position}": memory for position, memory in enumerate(each)}

    def _instance(self, there: Sequence[Share], need: float) -> tuple[str, float] | None:
        """The smallest free instance that will do, of the group in use, else of the first that has one."""
        taken = [share.place for share in there]
        for group in self.groups:
            if taken and taken[0].partition("-")[0] != group:
                continue
            free = {place: memory for place, memory in self._instances(group).items() if place not in taken}
            fitting = [memory for memory in free.values() if memory >= need * max(self.factor, 1)]
            if fitting:
                place = next(place for place, memory in free.items() if memory == min(fitting))
                return place, min(fitting) // max(self.factor, 1)
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
        for wish in self._wishes(pod):
            if wish.cards > len(cards):
                return refused
            chosen = 0
            for at in self._ordered(cards, {**held, "": [*mine]}):
                card = cards[at]
                there = of_card({**held, "": mine}, card.uuid)
                need = wish.of(card.memory)
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


def wishes(pod: core.Pod, number: str, memory: str, cores: str = "", percentage: str = "") -> list[Wish]:
    """One for each container that has the number or the memory in its limits; a number of 0 asks for nothing.

    Who asks for a part of the memory asks for no amount of it.
    """
    found = []
    for one in pod.spec.containers:
        limits, requests = one.resources.limits, one.resources.requests
        if number in limits or memory in limits:
            cards = int(amount(limits, number)) // 1000 if number in limits else 1
            part, wanted = ({**requests, **limits}.get(name) if name else None for name in (percentage, memory))
            needed = None if wanted is None or part is not None else amount({"m": wanted}, "m") / 1000
            of_card = 100.0 if part is None else amount({"p": part}, "p") / 1000
            found.append(Wish(cards, needed, amount(limits, cores) / 1000, of_card))
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


@dataclass(frozen=True)
class Registered:
    """A card as its node lists it."""

    id: str
    index: int
    count: int
    memory: float
    cores: float
    network: int | None


@dataclass(frozen=True)
class Kind:
    """A word, slices that a card is cut into, and what of its memory can be had."""

    word: str
    templates: tuple[int, ...]
    whole: int
    capacity: int

    @property
    def number(self) -> str:
        """The resource by which cards are asked for."""
        return f"huawei.com/{self.word}"

    @property
    def memory(self) -> str:
        """The resource by which parts of them are asked for."""
        return f"huawei.com/{self.word}-memory"

    def trimmed(self, memory: float) -> float | None:
        """The smallest template that will do, else a whole card; None when no card is as large."""
        fitting = [one for one in self.templates if one >= memory]
        if fitting:
            return float(min(fitting))
        return float(self.whole) if memory <= self.capacity else None


ASCEND_310P = Kind("Ascend310P", (3072, 6144, 12288), 21527, 24576)
"""As it is when nothing is configured."""


@dataclass(frozen=True)
class Hami:
    """Ascend cards of one kind."""

    policy: str = ""
    kind: Kind = ASCEND_310P

    def concerns(self, pod: core.Pod, node: core.Node) -> bool:
        """The node has cards, and some container asks for one."""
        return bool(self._cards(node)) and bool(wishes(pod, self.kind.number, self.kind.memory))

    def _cards(self, node: core.Node) -> list[Registered]:
        text = node.metadata.annotations.get(f"hami.io/node-register-{self.kind.word}", "[]")
        listed = [
            Registered(
                str(one["id"]),
                int(one["index"]),
                int(one["count"]),
                float(one["devmem"]),
                float(one["devcore"]),
                one.get("custominfo", {}).get("NetworkID"),
            )
            for one in json.loads(text)
        ]
        return listed if amount(node.status.allocatable, self.kind.number) else []

    def recorded(self, pod: core.Pod) -> list[Share]:
        """Per device ``uuid,W,mem,cores:``, after each container ``;``."""
        text = pod.metadata.annotations.get(f"hami.io/{self.kind.word}-devices-allocated", "")
        parts = [item.split(",") for item in text.replace(";", ":").split(":") if item.count(",") == 3]
        return [Share(uuid, float(memory), float(cores)) for uuid, _, memory, cores in parts]

    def choose(self, told: Told, pod: core.Pod, node: core.Node, held: Held) -> Choice:
        """Cards by score before anything is booked; no card for two containers; several only if they are whole."""
        cards = self._cards(node)
        near = self.kind.word.startswith("Ascend910") and all(card.network is not None for card in cards)
        ordered = sorted(cards, key=lambda card: (-self._score(card, held), card.index))
        mine: list[tuple[Registered, float]] = []
        score = 0.0
        for wish in wishes(pod, self.kind.number, self.kind.memory):
            fitting = []
            for card in ordered:
                memory = self.kind.trimmed(wish.of(card.memory))
                if memory is None or (wish.cards > 1 and memory != self.kind.whole) or not self._named(pod, card):
                    continue
                if all(card is not one for one, _ in mine) and self._fits(card, held, memory):
                    fitting.append((card, memory))
            if len(fitting) < wish.cards:
                return Choice(refusal="no ascend device available")
            if near:
                crowds = [card.network for card, _ in fitting]
                fitting.sort(key=lambda one: (-crowds.count(one[0].network), one[0].network))
            score += self._score(fitting[0][0], held)
            mine += fitting[: wish.cards]
        shares = tuple(Share(card.id, memory) for card, memory in mine)
        return Choice(shares, score + self._closeness([card.network for card, _ in mine]))

    def _closeness(self, networks: Sequence[int | None]) -> float:
        """For cards whose networks are all known."""
        if not self.kind.word.startswith("Ascend910") or None in networks:
            return 0.0
        return 10 * max(networks.count(one) for one in networks) / len(networks)

    def _named(self, pod: core.Pod, card: Registered) -> bool:
        """Pods may name the cards that they want, and those that they do not want."""
        word, annotations = self.kind.word, pod.metadata.annotations
        wanted, unwanted = (annotations.get(f"hami.io/{use}-{word}-uuid", "") for use in ("use", "no-use"))
        return (not wanted or card.id in wanted.split(",")) and card.id not in unwanted.split(",")

    def _score(self, card: Registered, held: Held) -> float:
        there = of_card(held, card.id)
        if self.policy == "binpack":
            return 100 * sum(share.memory for share in there) / card.memory
        return 100.0 if self.policy == "spread" and not there else 0.0

    @staticmethod
    def _fits(card: Registered, held: Held, memory: float) -> bool:
        there = of_card(held, card.id)
        used = sum(share.cores for share in there)
        room = card.memory - sum(share.memory for share in there) >= memory
        return len(there) < card.count and room and used <= card.cores and not (card.cores and used == card.cores)
