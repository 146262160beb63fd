"""The parts of objects that admission reads, as typed structs.

Reviews carry whatever a client sent: the structs are deliberately small, hold Go's zero values for what is missing and
know nothing of ranges and enumerations, which are the CRD schema's work (spec 07 section 5). :func:`read` turns wrong
types into field errors. Unknown members are ignored; ``null`` is the same as absent.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Final, TypeVar

import msgspec

from stromboli.webhooks.errors import MAX_CAUSES, FieldError, listed, sentence, wrong_type
from stromboli.webhooks.misfits import misfits

JsonObject = dict[str, Any]
ResourceList = dict[str, str | int | float]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

MAX_DEPTH: Final = 256
"""Objects nested deeper than this are refused; no Kubernetes object comes near."""

MAX_VALUES: Final = 100_000
"""Objects of more members and elements are refused: what can be stored has fewer, and each of them costs time here."""

T = TypeVar("T", bound=msgspec.Struct)


class Shape(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of all structs here: camelCase on the wire, unknown members ignored."""


class Metadata(Shape, frozen=True):
    """What is read of ``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class Namespace(Shape, frozen=True):
    """``v1`` Namespace."""

    metadata: Metadata = Metadata()


class NetworkTopology(Shape, frozen=True):
    """A network topology constraint."""

    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class PartitionPolicy(Shape, frozen=True):
    """Partitions of a task."""

    total_partitions: Int32 = 0
    partition_size: Int32 = 0
    min_partitions: Int32 = 0
    network_topology: NetworkTopology | None = None


class LifecyclePolicy(Shape, frozen=True):
    """One policy of a job or task."""

    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: Int32 | None = None


class DependsOn(Shape, frozen=True):
    """Tasks that must come first."""

    name: list[str] = []


class Task(Shape, frozen=True):
    """One entry of ``spec.tasks``."""

    name: str = ""
    replicas: Int32 = 0
    min_available: Int32 | None = None
    max_retry: Int32 = 0
    template: JsonObject = {}
    policies: list[LifecyclePolicy] = []
    topology_policy: str = ""
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class Volume(Shape, frozen=True):
    """One entry of a job's ``spec.volumes``."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: JsonObject | None = None


class JobSpec(Shape, frozen=True):
    """What is read of a Job's spec."""

    queue: str = ""
    scheduler_name: str = ""
    min_available: Int32 = 0
    max_retry: Int32 = 0
    tasks: list[Task] = []
    volumes: list[Volume] = []
    policies: list[LifecyclePolicy] = []
    plugins: dict[str, list[str]] | None = None
    network_topology: NetworkTopology | None = None


class Job(Shape, frozen=True):
    """``batch.volcano.sh/v1alpha1`` Job."""

    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()


class Guarantee(Shape, frozen=True):
    """A queue's guarantee."""

    resource: ResourceList = {}


class QueueSpec(Shape, frozen=True):
    """What is read of a Queue's spec."""

    weight: Int32 = 0
    parent: str = ""
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None


class QueueStatus(Shape, frozen=True):
    """What is read of a Queue's status."""

    state: str = ""
    allocated: ResourceList = {}


class Queue(Shape, frozen=True):
    """``scheduling.volcano.sh/v1beta1`` Queue."""

    metadata: Metadata = Metadata()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name


class SubGroupPolicy(Shape, frozen=True):
    """One entry of a PodGroup's ``spec.subGroupPolicy``."""

    name: str = ""
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Shape, frozen=True):
    """What is read of a PodGroup's spec."""

    queue: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = []


class PodGroup(Shape, frozen=True):
    """``scheduling.volcano.sh/v1beta1`` PodGroup."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()


class SchedulingGate(Shape, frozen=True):
    """One entry of a pod's ``spec.schedulingGates``."""

    name: str = ""


class PodSpec(Shape, frozen=True):
    """What is read of a Pod's spec; the rest passes through."""

    scheduler_name: str = ""
    node_selector: dict[str, str] = {}
    tolerations: list[JsonObject] = []
    affinity: JsonObject | None = None
    scheduling_gates: list[SchedulingGate] | None = None


class Pod(Shape, frozen=True):
    """``v1`` Pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class FlowDependsOn(Shape, frozen=True):
    """Flows that must come first."""

    targets: list[str] = []


class Flow(Shape, frozen=True):
    """One entry of a JobFlow's ``spec.flows``."""

    name: str = ""
    depends_on: FlowDependsOn | None = None


class JobFlowSpec(Shape, frozen=True):
    """What is read of a JobFlow's spec."""

    flows: list[Flow] = []


class JobFlow(Shape, frozen=True):
    """``flow.volcano.sh/v1alpha1`` JobFlow."""

    metadata: Metadata = Metadata()
    spec: JobFlowSpec = JobFlowSpec()


class CronJobSpec(Shape, frozen=True):
    """What is read of a CronJob's spec."""

    schedule: str = ""
    time_zone: str | None = None


class CronJob(Shape, frozen=True):
    """``batch.volcano.sh/v1alpha1`` CronJob."""

    metadata: Metadata = Metadata()
    spec: CronJobSpec = CronJobSpec()


class RegexMatch(Shape, frozen=True):
    """A regular expression over node names."""

    pattern: str = ""


class MemberSelector(Shape, frozen=True):
    """How a HyperNode member is found."""

    regex_match: RegexMatch | None = None


class Member(Shape, frozen=True):
    """One entry of a HyperNode's ``spec.members``."""

    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Shape, frozen=True):
    """What is read of a HyperNode's spec."""

    members: list[Member] | None = None


class HyperNode(Shape, frozen=True):
    """``topology.volcano.sh/v1alpha1`` HyperNode."""

    metadata: Metadata = Metadata()
    spec: HyperNodeSpec = HyperNodeSpec()


class Malformed(Exception):
    """An object that cannot be read as its kind; ``errors`` name the fields, one at least."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__(listed(errors))
        self.errors = errors


def read(shape: type[T], obj: JsonObject | None, field: str = "") -> T:
    """Read ``obj`` (``None`` counts as empty) as ``shape``; raises :class:`Malformed` with all wrong types.

    ``field`` is the path of ``obj`` itself, put before the paths of what is wrong inside. No more than
    :data:`~stromboli.webhooks.errors.MAX_CAUSES` wrong types are looked for.
    """
    try:
        return msgspec.convert(obj or {}, shape)
    except msgspec.ValidationError as error:
        raise Malformed(*islice(misfits(shape, obj, field), MAX_CAUSES)) from error


def without_nulls(value: Any) -> Any:
    """A copy of a JSON value without ``null`` members.

    Objects of the API server hold no nulls except where clients put them, and to Go they are the same as absent.
    Raises :class:`Malformed` beyond :data:`MAX_DEPTH` or :data:`MAX_VALUES`.
    """
    return _Cleaning().cleaned(value, MAX_DEPTH)


class _Cleaning:
    """One pass over a value. Every review takes it, so scalars are kept without a call."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def cleaned(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            self._enter(len(value), depth)
            return {
                key: self.cleaned(item, depth - 1) if type(item) in _CONTAINERS else item
                for key, item in value.items()
                if item is not None
            }
        if isinstance(value, list):
            self._enter(len(value), depth)
            return [self.cleaned(item, depth - 1) if type(item) in _CONTAINERS else item for item in value]
        return value

    def _enter(self, size: int, depth: int) -> None:
        self._left -= size
        if depth < 0:
            raise Malformed(wrong_type("object", f"nested deeper than {MAX_DEPTH} levels"))
        if self._left < 0:
            raise Malformed(sentence("object", f"the object has more than {MAX_VALUES} values"))


_CONTAINERS: Final = frozenset((dict, list))
