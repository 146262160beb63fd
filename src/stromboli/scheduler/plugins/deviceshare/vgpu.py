"""The family of shared NVIDIA cards, HAMi-core and MIG (spec 06 section 31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.api import core, names
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.plugins.deviceshare import encoding, exclusive, vgpu_cards
from stromboli.scheduler.plugins.deviceshare.configuration import Nvidia
from stromboli.scheduler.plugins.deviceshare.families import SPREAD, Choice, DoesNotFit, Holding, Share
from stromboli.scheduler.plugins.deviceshare.requests import (
    ContainerRequest,
    ResourceNames,
    container_requests,
    quantity,
)
from stromboli.scheduler.plugins.deviceshare.settings import Settings
from stromboli.scheduler.plugins.deviceshare.vgpu_cards import MIG, Card, Holder, Inventory, group_key, in_order

NO_FIT = Reason("hami-vgpuDeviceSharing error", Code.UNSCHEDULABLE)
VENDOR = "NVIDIA"
ALLOCATING = "allocating"
ANNOTATIONS = frozenset({names.VGPU_MODE, names.USE_GPU_TYPE, names.NO_USE_GPU_TYPE, names.VGPU_PODGROUP_POLICY})
"""Annotations that decide about nodes."""


class VgpuFamily:
    """Parts of NVIDIA cards."""

    name = "hamivgpu"
    generic = NO_FIT

    def __init__(self, settings: Settings, configuration: Nvidia) -> None:
        self._settings = settings
        self._configuration = configuration
        self.resources = ResourceNames(
            configuration.resource_count_name,
            configuration.resource_memory_name,
            configuration.resource_memory_percentage_name,
            configuration.resource_core_name,
        )

    @property
    def version(self) -> object:
        """MIG geometries come from the configuration."""
        return self._configuration

    def asks(self, task: Task) -> bool:
        """Whether some container asks for a card."""
        return bool(container_requests(task.shape.pod.spec, self.resources))

    def depends_on_group(self, task: Task) -> bool:
        """Only pods that must not share cards with others of their PodGroup."""
        return spreads(task.annotations)

    def inventory(self, node: core.Node) -> Inventory | None:
        """The node's registered cards; none when it does not offer them."""
        allocatable = node.status.allocatable
        if not all(quantity(allocatable, name) for name in (names.VGPU_NUMBER, names.VGPU_CORES, names.VGPU_MEMORY)):
            return None
        return vgpu_cards.parse(node.metadata.annotations.get(names.NODE_VGPU_REGISTER, ""), self._configuration)

    def devices(self, inventory: object, node: str) -> VgpuDevices:
        """The cards, held by nobody."""
        assert isinstance(inventory, Inventory)
        cards = vgpu_cards.made(inventory, self._configuration.gpu_memory_factor)
        return VgpuDevices(node, inventory.mode, cards, self.resources, self._settings)

    def annotations(self, choice: Choice, node: str, now: float) -> Mapping[str, str]:
        """Read by the node's device plugin, which sets the phase to ``success``."""
        written = encoding.BETWEEN_CONTAINERS.join(encoding.encode(shares) for shares in choice.holding)
        seconds = str(int(now))
        return {
            names.VGPU_NODE: node,
            names.VGPU_TIME: seconds,
            names.VGPU_IDS: written,
            names.DEVICES_TO_ALLOCATE: written,
            names.BIND_PHASE: ALLOCATING,
            names.BIND_TIME: seconds,
        }

    def lock(self, task: Task, node: str) -> NodeLock | None:
        """The device plugin gives it back."""
        failure = f"node {node} locked for {task.name} hamivgpu lockname"
        return NodeLock(names.VGPU_NODE_LOCK, failure) if self._settings.lock else None

    def recorded(self, task: Task) -> Holding:
        """What the pod's annotation says that it holds of its node's cards."""
        return encoding.decode_containers(task.annotations.get(names.VGPU_IDS, ""))

    def counted(self, holding: Holding) -> Mapping[str, float]:
        """What the holding amounts to by resource, in thousandths: it takes the place of what was asked for."""
        shares = [share for container in holding for share in container]
        amounts = {
            self.resources.memory: 1000.0 * sum(share.memory for share in shares),
            self.resources.cores: 1000.0 * sum(share.cores for share in shares),
        }
        return {resource: amount for resource, amount in amounts.items() if resource}


class VgpuDevices:
    """The cards of one node."""

    def __init__(
        self, node: str, mode: str, cards: Sequence[Card], resources: ResourceNames, settings: Settings
    ) -> None:
        self.cards = cards
        self._by_uuid = {card.facts.uuid: card for card in reversed(cards)}
        self._node = node
        self._mode = mode
        self._resources = resources
        self._policy = settings.policy
        self._rules = settings.rules if mode != MIG else ()

    def recorded(self, task: Task) -> Holding:
        """What the annotation says about cards of this node."""
        found = encoding.decode_containers(task.annotations.get(names.VGPU_IDS, ""))
        here = (tuple(share for share in shares if self._card(share.device)) for shares in found)
        return tuple(shares for shares in here if shares)

    def hold(self, task: Task, holding: Holding) -> None:
        """Counts the shares; once, however often it is said."""
        if any(task.uid in card.holders for card in self.cards):
            return
        group, rules = _group_of(task), self._matching(task)
        for share in (share for shares in holding for share in shares):
            card = self._card(share.device)
            if card is not None:
                card.take(task.uid, share.device, share.memory, share.cores, holder=Holder(group, rules, task.key))

    def drop(self, uid: str) -> None:
        """Gives all shares back."""
        for card in self.cards:
            card.drop(uid)

    def choose(self, task: Task) -> Choice:
        """Cards for each container in turn, with what the earlier ones get already counted."""
        required = task.annotations.get(names.VGPU_MODE)
        if required is not None and required != self._mode:
            mismatch = f"pod required sharing mode {required} is not the same as the node mode {self._mode}"
            raise DoesNotFit(NO_FIT, mismatch)
        placing = _Placing(self, task, self._policy)
        try:
            return placing.place(container_requests(task.shape.pod.spec, self._resources))
        finally:
            self.drop(placing.uid)

    def reserved(self, task: Task) -> frozenset[int]:
        """Cards that exclusive rules keep this pod off."""
        rules = self._matching(task)
        if not rules:
            return frozenset()
        return frozenset(card.facts.index for card in self.cards if card.reserved_against(rules, task.uid))

    def too_many(self, request: ContainerRequest) -> DoesNotFit | None:
        """The refusal of a container that asks for more cards than there are."""
        if request.number <= len(self.cards):
            return None
        return DoesNotFit(NO_FIT, f"no enough gpu cards on node {self._node}")

    def _matching(self, task: Task) -> frozenset[int]:
        return exclusive.matching(task.labels, self._rules) if self._rules else frozenset()

    def _card(self, device: str) -> Card | None:
        return self._by_uuid.get(device.partition("[")[0])


class _Placing:
    """One pod being placed: tentative shares are counted under a UID that no pod has."""

    def __init__(self, devices: VgpuDevices, task: Task, policy: str) -> None:
        self.uid = f"{task.uid} (tentative)"
        self._task = task
        self._devices = devices
        self._policy = policy
        self._reserved = devices.reserved(task)
        self._group = _group_of(task) if spreads(task.annotations) else ""
        self._score = 0.0

    def place(self, requests: Sequence[ContainerRequest]) -> Choice:
        holding = tuple(self._shares(request) for request in requests)
        return Choice(holding, self._score)

    def _shares(self, request: ContainerRequest) -> tuple[Share, ...]:
        refusal = self._devices.too_many(request)
        if refusal is not None:
            raise refusal
        shares: list[Share] = []
        for card in in_order(self._devices.cards, self._policy):
            if len(shares) == request.number:
                break
            share = self._share(card, request)
            if share is not None:
                shares.append(share)
        if len(shares) < request.number:
            raise DoesNotFit(NO_FIT, "not enough gpu fitted on this node")
        return tuple(shares)

    def _share(self, card: Card, request: ContainerRequest) -> Share | None:
        if not self._admits(card, request):
            return None
        needed = request.memory_of(card.facts.memory)
        device = card.offer(needed)
        if device is None:
            return None
        before = card.users
        held = card.take(self.uid, device, needed, request.cores)
        if held is None:
            return None
        self._score += card.score(self._policy, before)
        return Share(device, VENDOR, held.memory, held.cores)

    def _admits(self, card: Card, request: ContainerRequest) -> bool:
        return (
            card.has_room(request, self._reserved)
            and not card.hosts_group(self._group, but=self._task.uid)
            and VENDOR in card.facts.type
            and vgpu_cards.type_accepted(self._task.annotations, card.facts.type)
        )


def spreads(annotations: Mapping[str, str]) -> bool:
    """Whether the pod must not share a card with another of its PodGroup."""
    return annotations.get(names.VGPU_PODGROUP_POLICY) == SPREAD


def _group_of(task: Task) -> str:
    return group_key(task.namespace, task.annotations)
