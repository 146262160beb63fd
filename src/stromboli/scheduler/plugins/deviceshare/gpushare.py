"""The family of whole cards and of cards shared by memory alone, the older scheme (spec 06 section 30)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from stromboli.api import core, names
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.plugins.deviceshare.families import Choice, DoesNotFit, Holding, Share
from stromboli.scheduler.plugins.deviceshare.requests import most_at_once, quantity
from stromboli.scheduler.plugins.deviceshare.settings import Settings

NO_MEMORY, NO_NUMBER = "GpuShare no enough gpu memory", "GpuNumber no enough gpu number"
NANOSECONDS = 10**9


def memory_of(spec: core.PodSpec) -> int:
    """Memory that a pod asks for on one card."""
    return most_at_once(spec, names.GPU_MEMORY)


def number_of(spec: core.PodSpec) -> int:
    """Whole cards that a pod asks for."""
    return most_at_once(spec, names.GPU_NUMBER)


@dataclass(frozen=True, slots=True)
class Inventory:
    """Memory by card id."""

    cards: Mapping[int, int]


class GpuShareFamily:
    """Cards by memory or by number."""

    name = "GpuShare"
    generic = Reason(NO_MEMORY, Code.UNSCHEDULABLE)
    version: object = None

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def asks(self, task: Task) -> bool:
        """Whether the pod asks for what the mode in force gives out."""
        return self._memory(task) > 0 or self._number(task) > 0

    def depends_on_group(self, task: Task) -> bool:
        """Never."""
        return False

    def inventory(self, node: core.Node) -> Inventory | None:
        """Healthy cards of equal size."""
        capacity = node.status.capacity
        number, total = quantity(capacity, names.GPU_NUMBER), quantity(capacity, names.GPU_MEMORY)
        if number <= 0 or names.GPU_MEMORY not in capacity:
            return None
        unhealthy = set(ids_in(node.metadata.annotations.get(names.GPU_UNHEALTHY_IDS, "")))
        return Inventory({index: total // number for index in range(number) if index not in unhealthy})

    def devices(self, inventory: object, node: str) -> GpuShareDevices:
        """The cards, held by nobody."""
        assert isinstance(inventory, Inventory)
        return GpuShareDevices(node, dict(inventory.cards), self._memory, self._number)

    def annotations(self, choice: Choice, node: str, now: float) -> Mapping[str, str]:
        """Ids of the cards."""
        ids = (share.device for shares in choice.holding for share in shares)
        return {names.PREDICATE_TIME: str(int(now * NANOSECONDS)), names.GPU_INDEX: ",".join(ids)}

    def lock(self, task: Task, node: str) -> NodeLock | None:
        """Only for memory; the device plugin gives it back."""
        if not self._settings.lock or not self._memory(task):
            return None
        return NodeLock(names.GPU_SHARE_NODE_LOCK, f"node {node} locked for lockname gpushare")

    def _memory(self, task: Task) -> int:
        return memory_of(task.shape.pod.spec) if self._settings.sharing else 0

    def _number(self, task: Task) -> int:
        return number_of(task.shape.pod.spec) if self._settings.number else 0


class GpuShareDevices:
    """The cards of one node: memory by id, and who is on them."""

    def __init__(
        self, node: str, cards: Mapping[int, int], memory: Callable[[Task], int], number: Callable[[Task], int]
    ) -> None:
        self._node = node
        self._cards = cards
        self._memory = memory
        self._number = number
        self._holders: dict[str, Holding] = {}

    def recorded(self, task: Task) -> Holding:
        """Cards named by the annotation, for pods that ask for some."""
        spec = task.shape.pod.spec
        memory = memory_of(spec)
        if memory <= 0 and number_of(spec) <= 0:
            return ()
        ids = strict_ids_in(task.annotations.get(names.GPU_INDEX, ""))
        shares = tuple(_share(index, memory) for index in ids if index in self._cards)
        return (shares,) if shares else ()

    def hold(self, task: Task, holding: Holding) -> None:
        """The pod is on these cards."""
        if holding:
            self._holders.setdefault(task.uid, holding)

    def drop(self, uid: str) -> None:
        """The pod is on no card."""
        self._holders.pop(uid, None)

    def choose(self, task: Task) -> Choice:
        """The lowest card with enough memory, or the lowest cards that nobody uses."""
        memory, number = self._memory(task), self._number(task)
        chosen: tuple[Share, ...] = ()
        if memory > 0:
            chosen = (_share(self._with_memory(memory), memory),)
        if number > 0:
            chosen = tuple(_share(index, 0) for index in self._unused(number))
        return Choice((chosen,))

    def idle(self) -> dict[int, int]:
        """Memory left by card; a card that is promised more often than it can bear has none."""
        left = dict(self._cards)
        for share in self._shares():
            left[int(share.device)] -= share.memory
        return {index: max(memory, 0) for index, memory in left.items()}

    def _with_memory(self, memory: int) -> int:
        fitting = [index for index, idle in self.idle().items() if idle >= memory]
        if not fitting:
            raise DoesNotFit(Reason(f"{NO_MEMORY} on node {self._node}", Code.UNSCHEDULABLE))
        return min(fitting)

    def _unused(self, number: int) -> list[int]:
        used = {int(share.device) for share in self._shares()}
        unused = sorted(index for index in self._cards if index not in used)
        if len(unused) < number:
            raise DoesNotFit(Reason(f"{NO_NUMBER} on node {self._node}", Code.UNSCHEDULABLE))
        return unused[:number]

    def _shares(self) -> Iterator[Share]:
        for holding in self._holders.values():
            for shares in holding:
                yield from shares


def _share(index: int, memory: int) -> Share:
    return Share(str(index), "", memory, 0)


def ids_in(text: str) -> list[int]:
    """Card ids of a comma list; what is no number is left out."""
    return [int(part) for part in (part.strip() for part in text.split(",")) if part.isascii() and part.isdigit()]


def strict_ids_in(text: str) -> list[int]:
    """Card ids of a comma list; none at all when one of them is no number."""
    ids = ids_in(text)
    return ids if len(ids) == len(text.split(",")) else []
