"""Pods: what scheduling, job control and volume counting read."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from stromboli.api.core.affinities import Affinity, Toleration, TopologySpreadConstraint
from stromboli.api.core.meta import Object, ObjectMeta, ResourceList, Struct


class ContainerPort(Struct, frozen=True, kw_only=True):
    """A port of a container; a ``host_port`` of 0 takes none of the node's."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ResourceRequirements(Struct, frozen=True, kw_only=True):
    """Requests and limits of a container or pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class Container(Struct, frozen=True, kw_only=True):
    """A container or init container; ``restart_policy`` of ``Always`` makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class PvcVolume(Struct, frozen=True, kw_only=True):
    """A volume that is a claim by name."""

    claim_name: str = ""
    read_only: bool = False


class VolumeClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    """The part of an ephemeral claim's template that matters for scheduling."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    resources: ResourceRequirements = ResourceRequirements()


class VolumeClaimTemplate(Struct, frozen=True, kw_only=True):
    """Template of an ephemeral claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeClaimTemplateSpec = VolumeClaimTemplateSpec()


class EphemeralVolume(Struct, frozen=True, kw_only=True):
    """A volume with a claim of its own, named ``<pod>-<volume>``."""

    volume_claim_template: VolumeClaimTemplate | None = None


class GcePersistentDisk(Struct, frozen=True, kw_only=True):
    """In-tree disk; two writers cannot share a node."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Struct, frozen=True, kw_only=True):
    """In-tree disk; two pods cannot share a node."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class Iscsi(Struct, frozen=True, kw_only=True):
    """In-tree iSCSI volume, identified by its qualified name."""

    iqn: str = ""
    read_only: bool = False


class Rbd(Struct, frozen=True, kw_only=True):
    """In-tree Ceph volume, identified by monitors, pool and image."""

    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class Volume(Struct, frozen=True, kw_only=True):
    """A pod volume, with the sources that scheduling looks at."""

    name: str = ""
    persistent_volume_claim: PvcVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None

    @property
    def has_source(self) -> bool:
        """Whether the source is one that scheduling looks at."""
        return (
            self.persistent_volume_claim is not None
            or self.ephemeral is not None
            or self.gce_persistent_disk is not None
            or self.aws_elastic_block_store is not None
            or self.iscsi is not None
            or self.rbd is not None
        )


class PodResourceClaim(Struct, frozen=True, kw_only=True):
    """A device claim, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Struct, frozen=True, kw_only=True):
    """A reason not to schedule yet."""

    name: str = ""


@lru_cache(maxsize=4096)
def _shared_tolerations(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    return tolerations


class SchedulingGroup(Struct, frozen=True, kw_only=True):
    """The PodGroup of ``scheduling.k8s.io`` that a pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a pod. ``resources`` are the pod-level ones, ``volumes`` those with a source named here."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    hostname: str = ""
    subdomain: str = ""
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""
    restart_policy: str = ""
    scheduling_group: SchedulingGroup | None = None

    def __post_init__(self) -> None:
        """Share what most pods have in common, and drop volumes that nothing here looks at.

        Every pod has the same two tolerations and a token volume of its own; at 50,000 pods that is 50 MB.
        """
        if self.tolerations:
            msgspec.structs.force_setattr(self, "tolerations", _shared_tolerations(self.tolerations))
        if self.volumes:
            kept = tuple(volume for volume in self.volumes if volume.has_source)
            msgspec.structs.force_setattr(self, "volumes", kept)


class ContainerStateWaiting(Struct, frozen=True, kw_only=True):
    """Why a container has not started."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Struct, frozen=True, kw_only=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerStateTerminated(Struct, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct, frozen=True, kw_only=True):
    """At most one of the three is set; none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    """Observed state of a container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodCondition(Struct, frozen=True, kw_only=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int = 0


@lru_cache(maxsize=8192)
def _shared_condition(condition: PodCondition) -> PodCondition:
    return condition


class PodResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Name of the claim made from a template; None while there is none to be made."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")
    host_ip: str = msgspec.field(default="", name="hostIP")
    nominated_node_name: str = ""
    start_time: str | None = None
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()

    def __post_init__(self) -> None:
        """Share conditions: pods that start together say the same in the same second."""
        if self.conditions:
            msgspec.structs.force_setattr(self, "conditions", tuple(map(_shared_condition, self.conditions)))


class Pod(Object, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Struct, frozen=True, kw_only=True):
    """The pod template of a workload, as far as selectors and annotations are read from it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
