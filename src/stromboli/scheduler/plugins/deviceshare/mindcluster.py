"""The family of Ascend 310P chips under MindCluster's dynamic virtualisation (spec 06 section 33)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stromboli.api import core
from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.plugins.deviceshare.families import Choice, DoesNotFit, Holding, Share
from stromboli.scheduler.plugins.deviceshare.mindcluster_chips import (
    DOWNGRADES,
    HIGH,
    LOW,
    NO,
    NULL,
    TEMPLATES,
    YES,
    Chip,
    Holder,
    Template,
    choose_slice,
    choose_whole,
    template_for,
)
from stromboli.scheduler.plugins.deviceshare.mindcluster_reports import Parameters, Reports
from stromboli.scheduler.plugins.deviceshare.requests import quantity

NPU_CORE = "huawei.com/npu-core"
"""The resource, and the annotation that names the chips."""
PREFIX = "huawei.com/"
REAL = "huawei.com/AscendReal"
PREDICATE_TIME = "predicate-time"
BASE_DEVICES = "baseDeviceInfos"
CONTROLLER, CONTROLLED = "ring-controller.atlas", "ascend-310P"
LEVEL, DVPP = "vnpu-level", "vnpu-dvpp"
LABELS = frozenset({CONTROLLER, LEVEL, DVPP})
"""Labels that decide about nodes."""
ACCELERATOR, SERVER, CHIP_NAME = "accelerator", "servertype", "node.kubernetes.io/npu.chip.name"
PRE_SEPARATE = "PreSeparate"
NANOSECONDS = 10**9
DOWNGRADED_SCORE, KEPT_SCORE = 8.0, 16.0

SEPARATED = Reason("preCheckNodePredicate failure", Code.ERROR)
NOT_ENOUGH = Reason("not enough npu resource", Code.UNSCHEDULABLE)
BEING_MADE = Reason("another vNPU template is being created", Code.UNSCHEDULABLE)

CPUS_PER_CHIP = {
    ("Ascend310P", 8): 7,
    ("Ascend310P", 10): 7,
    ("910B1", 25): 6,
    ("910B2C", 24): 6,
    ("910B2", 24): 6,
    ("910B3", 20): 6,
    ("910B4", 20): 6,
}
"""AI CPUs by kind or name of the chip, and its AI cores."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The chips of a node that can be cut."""

    kind: str
    state: str
    ids: tuple[int, ...]
    unhealthy: frozenset[int]
    cores: int
    """Of each chip."""
    cpus: int
    """Of each chip."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a pod asks for: so many whole chips, or a slice."""

    chips: int = 0
    template: Template | None = None


class MindClusterFamily:
    """Chips of Ascend 310P and slices of them."""

    name = "ascend310p-vNPU"
    generic = NOT_ENOUGH

    def __init__(self, parameters: Parameters, reports: Reports) -> None:
        self._parameters = parameters
        self._reports = reports

    @property
    def version(self) -> object:
        """Chips come from the reports."""
        return self._reports.version

    def asks(self, task: Task) -> bool:
        """Pods of the controller that have a limit of AI cores."""
        limited = any(NPU_CORE in container.resources.limits for container in task.shape.pod.spec.containers)
        return limited and task.labels.get(CONTROLLER) == CONTROLLED

    def depends_on_group(self, task: Task) -> bool:
        """Never."""
        return False

    def inventory(self, node: core.Node) -> Inventory | None:
        """The node's chips; None when it is no node for virtual devices."""
        labels, total = node.metadata.labels, quantity(node.status.capacity, NPU_CORE)
        kind, cores = _second_part(labels.get(ACCELERATOR, "")), _second_part(labels.get(SERVER, ""))
        if total <= 0 or not kind or not cores.isdigit() or not int(cores) or CHIP_NAME not in labels:
            return None
        per_chip, lists = int(cores), self._lists(node, kind)
        cpus = CPUS_PER_CHIP.get((kind, per_chip)) or CPUS_PER_CHIP.get((labels[CHIP_NAME], per_chip))
        ids = _ids(lists.get(PREFIX + kind, ""))
        if total % per_chip or cpus is None or PREFIX + kind not in lists:
            return None
        unhealthy = frozenset(_ids(lists.get(f"{PREFIX}{kind}-Unhealthy", "")))
        return Inventory(kind, self._reports.state(node.name), tuple(ids), unhealthy, per_chip, cpus)

    def devices(self, inventory: object, node: str) -> MindClusterDevices:
        """The chips, held by nobody."""
        assert isinstance(inventory, Inventory)
        return MindClusterDevices(inventory, node, others=self._parameters.self_maintained)

    def annotations(self, choice: Choice, node: str, now: float) -> Mapping[str, str]:
        """Ids of whole chips, or the chip with the name of the slice."""
        shares = [share for shares in choice.holding for share in shares]
        written = ",".join(f"{share.device}-{share.type}" if share.type else share.device for share in shares)
        return {NPU_CORE: written, PREDICATE_TIME: str(int(now * NANOSECONDS))}

    def lock(self, task: Task, node: str) -> NodeLock | None:
        """None is taken."""
        return None

    def _lists(self, node: core.Node, kind: str) -> Mapping[str, str]:
        """Device names by list. The list of free ones may be kept here: pods on the node are looked at later."""
        lists = self._reports.devices.get(node.name, {})
        if not self._parameters.self_maintained:
            return lists
        base = _names(node.metadata.annotations.get(BASE_DEVICES))
        if base is None:
            return {key: names for key, names in lists.items() if key != PREFIX + kind}
        gone = {
            name
            for suffix in ("Unhealthy", "Recovering")
            for name in lists.get(f"{PREFIX}{kind}-{suffix}", "").split(",")
        }
        return {**lists, PREFIX + kind: ",".join(sorted(name for name in base if name not in gone))}


class MindClusterDevices:
    """The chips of one node."""

    def __init__(self, inventory: Inventory, node: str, *, others: bool) -> None:
        self._facts = inventory
        self._node = node
        self._others = others
        self.chips = {index: self._chip(index) for index in inventory.ids}

    def recorded(self, task: Task) -> Holding:
        """Chips that annotations name; a pod with chips of another scheme has them whole."""
        shares = [*self._own(task.annotations.get(NPU_CORE, "")), *self._of_others(task)]
        return (tuple(shares),) if shares else ()

    def hold(self, task: Task, holding: Holding) -> None:
        """The pod is on these chips. A chip that is not listed is one all the same."""
        real = task.annotations.get(REAL, "")
        for share in (share for shares in holding for share in shares):
            chip = self.chips.setdefault(int(share.device), self._chip(int(share.device)))
            made = bool(real) or not share.type
            chip.holders.setdefault(task.uid, Holder(share, made, real.rpartition("_")[2] if real else ""))

    def drop(self, uid: str) -> None:
        """The pod is on no chip."""
        for chip in self.chips.values():
            chip.holders.pop(uid, None)

    def choose(self, task: Task) -> Choice:
        """Whole chips, or a slice of the fullest chip; a smaller slice where there is no room for the one asked for."""
        if self._facts.state == PRE_SEPARATE:
            raise DoesNotFit(SEPARATED, f"node is {PRE_SEPARATE}, due to nodeD reported node status")
        wanted = self._wanted(task)
        if wanted.template is None:
            return self._whole(wanted.chips)
        for template in _with_downgrade(wanted.template):
            chip = choose_slice(self._free_chips(), template)
            if chip is not None:
                self._check_creation(template)
                share = Share(str(chip.index), template.name, template.cpus, template.cores)
                return Choice(((share,),), DOWNGRADED_SCORE if template is not wanted.template else KEPT_SCORE)
        raise DoesNotFit(NOT_ENOUGH, f"available chip not found for req {wanted.template.cores}")

    def _whole(self, number: int) -> Choice:
        chips = choose_whole(self._free_chips(), number)
        if len(chips) < number:
            raise DoesNotFit(NOT_ENOUGH, f"free whole chip {len(chips)} not enough for req {number}")
        shares = tuple(Share(str(chip.index), "", chip.cpus, chip.cores) for chip in chips)
        return Choice((shares,), KEPT_SCORE)

    def _wanted(self, task: Task) -> Wanted:
        level = HIGH if task.labels.get(LEVEL) == HIGH else LOW
        dvpp = task.labels.get(DVPP, NULL)
        if dvpp not in (YES, NO, NULL):
            raise DoesNotFit(Reason(f"err dvpp value:{dvpp}", Code.UNRESOLVABLE))
        cores = cores_of(task.shape.pod.spec)
        if cores > 0 and cores % self._facts.cores == 0:
            return Wanted(chips=cores // self._facts.cores)
        template = template_for(cores, level, dvpp)
        if template is None:
            text = f"{cores} AI cores are neither whole chips of {self._facts.cores} nor a vNPU template"
            raise DoesNotFit(Reason(text, Code.UNRESOLVABLE))
        return Wanted(template=template)

    def _check_creation(self, template: Template) -> None:
        """While slices are being made on a node all must be of one template."""
        making = {
            holder.share.type for chip in self.chips.values() for holder in chip.holders.values() if not holder.is_made
        }
        if making and making != {template.name}:
            raise DoesNotFit(BEING_MADE, f"{template.name} is using {self._node}, and not rewrite")

    def _free_chips(self) -> Iterator[Chip]:
        for index, chip in self.chips.items():
            if index not in self._facts.unhealthy:
                yield chip

    def _own(self, text: str) -> Iterator[Share]:
        for part in text.split(","):
            index, dash, name = part.strip().partition("-")
            if not index.isdigit() or int(index) in self._facts.unhealthy:
                continue
            template = TEMPLATES.get(name)
            if template is not None:
                yield Share(index, template.name, template.cpus, template.cores)
            elif not dash:
                yield Share(index, "", self._facts.cpus, self._facts.cores)

    def _of_others(self, task: Task) -> Iterator[Share]:
        named = task.annotations.get(PREFIX + self._facts.kind, "") if self._others else ""
        for index in _ids(named):
            yield Share(str(index), "", self._facts.cpus, self._facts.cores)

    def _chip(self, index: int) -> Chip:
        return Chip(index, self._facts.cores, self._facts.cpus, kind=self._facts.kind)


def scores(found: Floats) -> Floats:
    """Scores of candidates by their idle AI cores: -1 less those where the pod is downgraded, NaN without chips.

    Nobody downgrades: the fullest node gets something. Otherwise, fullest first, every node that downgrades gets as
    much, and the first that does not gets the most and ends the walk (spec 06 section 33.5).
    """
    result = np.zeros(len(found))
    idle = np.where(found < 0, -1.0 - found, found)
    order = [int(position) for position in np.argsort(idle, kind="stable") if not np.isnan(found[position])]
    if not any(found[position] < 0 for position in order):
        result[order[:1]] = DOWNGRADED_SCORE
        return result
    for position in order:
        if found[position] >= 0:
            result[position] = KEPT_SCORE
            break
        result[position] = DOWNGRADED_SCORE
    return result


def cores_of(spec: core.PodSpec) -> int:
    """AI cores that the first container with any requests."""
    requests = (
        quantity({**container.resources.limits, **container.resources.requests}, NPU_CORE)
        for container in spec.containers
    )
    return next((cores for cores in requests if cores), 0)


def _with_downgrade(template: Template) -> Iterable[Template]:
    yield template
    if template.name in DOWNGRADES:
        yield TEMPLATES[DOWNGRADES[template.name]]


def _second_part(text: str) -> str:
    parts = text.split("-")
    return parts[1] if len(parts) > 1 else ""


def _ids(text: str) -> list[int]:
    """Ids in a comma list of device names, ``<kind>-<id>``."""
    parts = (name.strip().split("-") for name in text.split(","))
    return [int(part[1]) for part in parts if len(part) == 2 and part[1].isdigit()]


def _names(text: str | None) -> list[str] | None:
    """Names of whole devices in a JSON map; None when there is none."""
    try:
        document = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    return [name for name in document if len(name.split("-")) <= 2]
