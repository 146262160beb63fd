"""The families of Ascend cards that HAMi cuts by templates, one for each configured word (spec 06 section 32)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from stromboli.api import core
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.plugins.deviceshare import encoding
from stromboli.scheduler.plugins.deviceshare.configuration import Vnpu
from stromboli.scheduler.plugins.deviceshare.families import (
    BINPACK,
    FULL,
    SPREAD,
    Choice,
    DoesNotFit,
    Holding,
    Share,
)
from stromboli.scheduler.plugins.deviceshare.requests import (
    ContainerRequest,
    ResourceNames,
    container_requests,
    quantity,
)
from stromboli.scheduler.plugins.deviceshare.settings import Settings

NO_DEVICE = Reason("no ascend device available", Code.UNSCHEDULABLE)
"""Unschedulable and not an error: preemption may help."""
NOT_ENOUGH = "no enough ascend device available"
PARTIAL = "vNPU does not support partial memory allocation when requesting multiple devices"
NETWORKED = "Ascend910"
"""Cards whose word begins so are taken from one network as far as can be."""
SAME_NETWORK = 10.0
PREDICATE_TIME = "predicate-time"
NODE, TIME = "hami.io/vgpu-node", "hami.io/vgpu-time"
BIND_PHASE, BIND_TIME = "hami.io/bind-phase", "hami.io/bind-time"
ALLOCATING = "allocating"


class Registered(msgspec.Struct, frozen=True, rename="lower"):
    """A card as the node registers it."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    custominfo: dict[str, object] | None = None

    @property
    def network(self) -> int | None:
        """The network it is on."""
        found = (self.custominfo or {}).get("NetworkID")
        return int(found) if isinstance(found, int | float) else None


_DECODER = msgspec.json.Decoder(tuple[Registered, ...])


@dataclass(frozen=True, slots=True)
class Inventory:
    """The cards of one node."""

    cards: tuple[Registered, ...]


class Card:
    """A card and its users."""

    def __init__(self, facts: Registered) -> None:
        self.facts = facts
        self.users = self.used_memory = self.used_cores = 0
        self._held: dict[str, list[Share]] = {}

    @property
    def holders(self) -> Iterable[str]:
        """UIDs of the pods that hold something of it."""
        return self._held.keys()

    def take(self, uid: str, share: Share) -> None:
        """A container of the pod gets a share."""
        self._held.setdefault(uid, []).append(share)
        self._count(share, 1)

    def drop(self, uid: str) -> None:
        """The pod gives back all that it holds."""
        for share in self._held.pop(uid, ()):
            self._count(share, -1)

    def fits(self, memory: int, cores: int) -> bool:
        """Whether there is room for one more user with so much memory and so many cores."""
        facts = self.facts
        return (
            self.users < facts.count
            and facts.devmem - self.used_memory >= memory
            and facts.devcore - self.used_cores >= cores
            and not (facts.devcore == FULL and cores == FULL and self.users > 0)
            and not (facts.devcore != 0 and self.used_cores == facts.devcore and cores == 0)
        )

    def score(self, policy: str) -> float:
        """How good it is to choose this card, as it is before."""
        if policy == BINPACK:
            return FULL * self.used_memory / self.facts.devmem if self.facts.devmem else 0.0
        return FULL if policy == SPREAD and self.users == 0 else 0.0

    def _count(self, share: Share, sign: int) -> None:
        self.users += sign
        self.used_memory += sign * share.memory
        self.used_cores += sign * share.cores


def trim(kind: Vnpu, memory: int) -> tuple[int, str]:
    """The memory of the smallest slice that holds so much, and the slice's name: none for a whole card.

    (0, "") when no card holds so much.
    """
    for template in kind.templates:
        if template.memory >= memory:
            return template.memory, template.name
    return (kind.memory_allocatable if memory <= kind.memory_capacity else 0), ""


def is_partial(kind: Vnpu, request: ContainerRequest, card_memory: int) -> bool:
    """Whether parts of several cards are asked for, of cards with so much memory: several can only be had whole."""
    return request.number > 1 and trim(kind, request.memory_of(card_memory))[0] != kind.memory_allocatable


class HamiFamily:
    """Ascend cards of one word."""

    generic = NO_DEVICE

    def __init__(self, settings: Settings, kind: Vnpu) -> None:
        self.name = kind.common_word
        self._settings = settings
        self._kind = kind
        self.resources = ResourceNames(kind.resource_name, kind.resource_memory_name)

    @property
    def version(self) -> object:
        """The word says which annotation is read."""
        return self._kind.common_word, self._kind.resource_name

    @property
    def pod_annotations(self) -> frozenset[str]:
        """Annotations by which pods name cards."""
        return frozenset({_wanted(self.name), _unwanted(self.name)})

    def asks(self, task: Task) -> bool:
        """Whether some container asks for a card."""
        return bool(container_requests(task.shape.pod.spec, self.resources))

    def depends_on_group(self, task: Task) -> bool:
        """Never."""
        return False

    def inventory(self, node: core.Node) -> Inventory | None:
        """Registered cards of a node that offers them."""
        if not quantity(node.status.allocatable, self._kind.resource_name):
            return None
        try:
            cards = _DECODER.decode(node.metadata.annotations.get(f"hami.io/node-register-{self.name}", "[]"))
        except msgspec.DecodeError:
            return None
        return Inventory(cards) if cards else None

    def devices(self, inventory: object, node: str) -> HamiDevices:
        """The cards, held by nobody."""
        assert isinstance(inventory, Inventory)
        return HamiDevices(self._kind, [Card(facts) for facts in inventory.cards], self._settings.policy)

    def annotations(self, choice: Choice, node: str, now: float) -> Mapping[str, str]:
        """Read by HAMi's device plugin."""
        written = "".join(encoding.encode(shares) + encoding.BETWEEN_CONTAINERS for shares in choice.holding)
        seconds = str(int(now))
        return {
            _to_allocate(self.name): written,
            _allocated(self.name): written,
            f"huawei.com/{self.name}": self._slices(choice),
            PREDICATE_TIME: seconds,
            NODE: node,
            TIME: seconds,
            BIND_PHASE: ALLOCATING,
            BIND_TIME: seconds,
        }

    def lock(self, task: Task, node: str) -> NodeLock | None:
        """The scheduler gives it back itself."""
        failure = f"node {node} locked for {task.name} hami vnpu. lockname"
        return NodeLock(self.name, failure, handed_over=False) if self._settings.lock else None

    def _slices(self, choice: Choice) -> str:
        slices = []
        for share in (share for shares in choice.holding for share in shares):
            name = next((one.name for one in self._kind.templates if one.memory == share.memory), "")
            slices.append({"UUID": share.device, "temp": name} if name else {"UUID": share.device})
        return json.dumps(slices, separators=(",", ":"))


class HamiDevices:
    """The cards of one node."""

    def __init__(self, kind: Vnpu, cards: Sequence[Card], policy: str) -> None:
        self.cards = cards
        self._kind = kind
        self._policy = policy

    def recorded(self, task: Task) -> Holding:
        """What the annotation says about cards of this node."""
        return self.known(task.annotations.get(_allocated(self._kind.common_word), ""))

    def known(self, text: str) -> Holding:
        """The shares in a text that are of cards of this node."""
        ids = {card.facts.id for card in self.cards}
        found = encoding.decode_containers(text)
        here = (tuple(share for share in shares if share.device in ids) for shares in found)
        return tuple(shares for shares in here if shares)

    def hold(self, task: Task, holding: Holding) -> None:
        """Counts the shares; once, however often it is said."""
        if any(task.uid in card.holders for card in self.cards):
            return
        for share in (share for shares in holding for share in shares):
            for card in self.cards:
                if card.facts.id == share.device:
                    card.take(task.uid, share)

    def drop(self, uid: str) -> None:
        """Gives all shares back."""
        for card in self.cards:
            card.drop(uid)

    def choose(self, task: Task) -> Choice:
        """Cards for each container; none is offered to two containers of the pod."""
        free = sorted(self._named(task), key=lambda card: (-card.score(self._policy), card.facts.index))
        holding: list[tuple[Share, ...]] = []
        networks: list[int | None] = []
        score = 0.0
        for request in container_requests(task.shape.pod.spec, self._names):
            chosen = self._cards_for(request, free)
            free = [card for card in free if all(card is not one for one, _ in chosen)]
            holding.append(tuple(share for _, share in chosen))
            score += chosen[0][0].score(self._policy)
            networks.extend(card.facts.network for card, _ in chosen)
        return Choice(tuple(holding), score + self._closeness(networks))

    @property
    def _names(self) -> ResourceNames:
        return ResourceNames(self._kind.resource_name, self._kind.resource_memory_name)

    def _named(self, task: Task) -> list[Card]:
        """Cards that the pod's annotations leave to choose from."""
        wanted = _ids(task.annotations.get(_wanted(self._kind.common_word), ""))
        unwanted = _ids(task.annotations.get(_unwanted(self._kind.common_word), ""))
        return [
            card for card in self.cards if card.facts.id not in unwanted and (not wanted or card.facts.id in wanted)
        ]

    def _cards_for(self, request: ContainerRequest, free: Sequence[Card]) -> list[tuple[Card, Share]]:
        whole = [card for card in free if not is_partial(self._kind, request, card.facts.devmem)]
        if free and not whole:
            raise DoesNotFit(NO_DEVICE, PARTIAL)
        fitting = [(card, share) for card in whole if (share := self._share(card, request)) is not None]
        if self._is_networked():
            fitting = _same_network_first(fitting)
        if len(fitting) < request.number:
            raise DoesNotFit(NO_DEVICE, NOT_ENOUGH)
        return fitting[: request.number]

    def _share(self, card: Card, request: ContainerRequest) -> Share | None:
        asked = request.memory_of(card.facts.devmem)
        memory, _ = trim(self._kind, asked)
        if memory < min(asked, self._kind.memory_allocatable) or not card.fits(memory, request.cores):
            return None
        return Share(card.facts.id, self._kind.common_word, memory, request.cores)

    def _is_networked(self) -> bool:
        networked = self._kind.common_word.startswith(NETWORKED)
        return networked and all(card.facts.network is not None for card in self.cards)

    def _closeness(self, networks: Sequence[int | None]) -> float:
        """More for cards of one network."""
        if not networks or None in networks or not self._kind.common_word.startswith(NETWORKED):
            return 0.0
        return SAME_NETWORK * max(networks.count(network) for network in networks) / len(networks)


def _same_network_first(fitting: list[tuple[Card, Share]]) -> list[tuple[Card, Share]]:
    """The network with most fitting cards first; in a network the order stays."""
    by_network: dict[int, list[tuple[Card, Share]]] = {}
    for card, share in fitting:
        by_network.setdefault(card.facts.network or 0, []).append((card, share))
    ranked = sorted(by_network.items(), key=lambda item: (-len(item[1]), item[0]))
    return [pair for _, pairs in ranked for pair in pairs]


def _ids(text: str) -> frozenset[str]:
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


def _to_allocate(word: str) -> str:
    return f"hami.io/{word}-devices-to-allocate"


def _allocated(word: str) -> str:
    return f"hami.io/{word}-devices-allocated"


def _wanted(word: str) -> str:
    return f"hami.io/use-{word}-uuid"


def _unwanted(word: str) -> str:
    return f"hami.io/no-use-{word}-uuid"
