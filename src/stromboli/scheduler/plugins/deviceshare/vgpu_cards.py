"""NVIDIA cards of a node, shared by HAMi-core or cut by MIG, and what pods hold of them (spec 06 section 31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import booleans, names
from stromboli.scheduler.plugins.deviceshare.configuration import Geometry, Nvidia
from stromboli.scheduler.plugins.deviceshare.families import BINPACK, FULL, SPREAD
from stromboli.scheduler.plugins.deviceshare.mig import BadInstance, Cuts, Place
from stromboli.scheduler.plugins.deviceshare.requests import ContainerRequest

HAMI_CORE, MIG = "hami-core", "mig"
_FIELDS = 6
ALL_CORES = 100


@dataclass(frozen=True, slots=True)
class Held:
    """What a container holds of a card, as it is counted."""

    memory: int
    cores: int
    place: Place | None = None


@dataclass(slots=True)
class Holder:
    """A pod on a card."""

    group: str = ""
    """Key of its PodGroup."""
    rules: frozenset[int] = frozenset()
    """Exclusive rules that it matches."""
    pod: str = ""
    """``namespace/name``"""
    shares: list[Held] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A card as the node lists it."""

    index: int
    uuid: str
    limit: int
    """How many containers may share it."""
    memory: int
    """MiB."""
    type: str
    healthy: bool = True
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """All cards of a node, and how the node shares them."""

    mode: str
    cards: tuple[CardFacts, ...]


class Card:
    """A card and its users."""

    __slots__ = ("_factor", "cuts", "facts", "holders", "is_cut", "used_cores", "used_memory", "users")

    def __init__(self, facts: CardFacts, *, factor: int = 1, is_cut: bool = False) -> None:
        self.facts = facts
        self.is_cut = is_cut
        self.users = self.used_memory = self.used_cores = 0
        self.cuts = Cuts(facts.geometries)
        self.holders: dict[str, Holder] = {}
        self._factor = max(factor, 1)

    def take(self, uid: str, device: str, memory: int, cores: int, *, holder: Holder | None = None) -> Held | None:
        """A pod gets a share; None when the id names an instance that the card does not have: nothing is counted."""
        place = Place.of(device) if self.facts.geometries else None
        if place is not None:
            try:
                memory = self.cuts.take(place) // self._factor
            except BadInstance:
                return None
        held = Held(memory, cores, place)
        self.holders.setdefault(uid, holder or Holder()).shares.append(held)
        self.users += 1
        self.used_memory += memory
        self.used_cores += cores
        return held

    def drop(self, uid: str) -> None:
        """A pod gives back all that it holds."""
        holder = self.holders.pop(uid, None)
        for held in holder.shares if holder is not None else ():
            self.users -= 1
            self.used_memory -= held.memory
            self.used_cores -= held.cores
            if held.place is not None:
                self.cuts.give_back(held.place)

    def offer(self, memory: int) -> str | None:
        """The id under which so much memory can be had, or None."""
        if not self.is_cut:
            return self.facts.uuid
        found = self.cuts.find(memory * self._factor)
        return found[0].on(self.facts.uuid) if found is not None else None

    def limit(self, reserved: frozenset[int]) -> int:
        """How many may share it; a reserved card is full."""
        return self.users if self.facts.index in reserved else self.facts.limit

    def has_room(self, request: ContainerRequest, reserved: frozenset[int]) -> bool:
        """Whether number, memory and cores leave room for one more share."""
        whole = request.cores == ALL_CORES and self.users > 0
        no_cores = self.used_cores == ALL_CORES and request.cores == 0
        return (
            self.facts.healthy
            and self.users < self.limit(reserved)
            and self.facts.memory - self.used_memory >= request.memory_of(self.facts.memory)
            and self.used_cores + request.cores <= ALL_CORES
            and not whole
            and not no_cores
        )

    def hosts_group(self, group: str, but: str = "") -> bool:
        """Whether a pod of the group, other than that of the UID ``but``, holds anything of the card."""
        return bool(group) and any(
            holder.group == group and any(held.memory or held.cores for held in holder.shares)
            for uid, holder in self.holders.items()
            if uid != but
        )

    def reserved_against(self, rules: frozenset[int], uid: str) -> bool:
        """Whether another pod that matches one of the rules is on the card."""
        return any(holder.rules & rules for other, holder in self.holders.items() if other != uid)

    def score(self, policy: str, users_before: int) -> float:
        """How good it was to choose this card; asked after its share has been counted."""
        if policy == BINPACK:
            return FULL * self.used_memory / self.facts.memory if self.facts.memory else 0.0
        return FULL if policy == SPREAD and users_before == 0 else 0.0


def in_order(cards: Iterable[Card], policy: str) -> list[Card]:
    """Cards in the order in which they are tried."""
    if policy == BINPACK:
        return sorted(cards, key=lambda card: (-card.used_memory, card.facts.index))
    if policy == SPREAD:
        return sorted(cards, key=lambda card: (card.users, card.facts.index))
    return sorted(cards, key=lambda card: -card.facts.index)


def type_accepted(annotations: Mapping[str, str], card_type: str) -> bool:
    """Whether the pod's annotations allow a card of this type."""
    for key, wanted in ((names.USE_GPU_TYPE, True), (names.NO_USE_GPU_TYPE, False)):
        if key in annotations:
            named = any(word.upper() in card_type.upper() for word in annotations[key].split(","))
            return named is wanted
    return True


def group_key(namespace: str, annotations: Mapping[str, str]) -> str:
    """``namespace/PodGroup`` of a pod, or empty."""
    for key in (names.GROUP_NAME, names.GROUP_NAME_UNLINKED):
        if annotations.get(key):
            return f"{namespace}/{annotations[key]}"
    return ""


def parse(text: str, configuration: Nvidia) -> Inventory | None:
    """The cards that a node has registered; None when there is nothing usable in the text."""
    if ":" not in text:
        return None
    cards: list[CardFacts] = []
    mode = HAMI_CORE
    for entry in text.split(":"):
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < _FIELDS:
            return None
        card_type = fields[3]
        geometries = _geometries(card_type, configuration) if fields[5] == MIG else ()
        mode = MIG if geometries else HAMI_CORE
        healthy = booleans.parse(fields[4]) is True
        cards.append(
            CardFacts(len(cards), fields[0], _number(fields[1]), _number(fields[2]), card_type, healthy, geometries)
        )
    return Inventory(mode, tuple(cards)) if cards else None


def _geometries(card_type: str, configuration: Nvidia) -> tuple[Geometry, ...]:
    for known in configuration.known_mig_geometries:
        if any(model in card_type for model in known.models):
            return known.geometries
    return ()


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


def made(inventory: Inventory, factor: int) -> Sequence[Card]:
    """The cards of an inventory, held by nobody."""
    return [Card(facts, factor=factor, is_cut=inventory.mode == MIG) for facts in inventory.cards]
