"""Volumes, claims and classes, as volume binding and CSI counting read them (spec 04 sections 9.3 and 21)."""

from __future__ import annotations

import msgspec

from stromboli.api.core.affinities import LabelSelector, NodeSelector
from stromboli.api.core.cluster import ObjectReference
from stromboli.api.core.meta import Object, ResourceList, Struct
from stromboli.api.core.pods import ResourceRequirements


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim. ``storage_class_name`` of ``""`` means no class, ``None`` the cluster's default."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a claim; phases are ``Pending``, ``Bound`` and ``Lost``."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    """A claim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class CSISource(Struct, frozen=True, kw_only=True):
    """The CSI driver and handle behind a volume."""

    driver: str = ""
    volume_handle: str = ""


class InTreeDisk(Struct, frozen=True, kw_only=True):
    """A volume of a storage system that Kubernetes once knew itself; each has one of these fields."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    pd_name: str = ""
    disk_name: str = ""
    share_name: str = ""
    volume_path: str = ""

    @property
    def id(self) -> str:
        """Whatever tells it from others of its system."""
        return self.volume_id or self.pd_name or self.disk_name or self.share_name or self.volume_path


class VolumeNodeAffinity(Struct, frozen=True, kw_only=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a volume."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: InTreeDisk | None = None
    azure_disk: InTreeDisk | None = None
    azure_file: InTreeDisk | None = None
    cinder: InTreeDisk | None = None
    gce_persistent_disk: InTreeDisk | None = None
    portworx_volume: InTreeDisk | None = None
    vsphere_volume: InTreeDisk | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a volume; phases are ``Pending``, ``Available``, ``Bound``, ``Released`` and ``Failed``."""

    phase: str = ""


class PersistentVolume(Object, frozen=True, kw_only=True):
    """A volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorRequirement(Struct, frozen=True, kw_only=True):
    """A node label and the values in which volumes can be provisioned."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True, kw_only=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(Object, frozen=True, kw_only=True):
    """A storage class; its fields are at the top level."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    reclaim_policy: str = ""


class CSINodeAllocatable(Struct, frozen=True, kw_only=True):
    """How many volumes of a driver a node can attach; ``None`` is no limit."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True, kw_only=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True, kw_only=True):
    """The CSI drivers of a node; it has the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a driver."""

    storage_capacity: bool = False


class CSIDriver(Object, frozen=True, kw_only=True):
    """A CSI driver, and whether it tells how much it can still provision."""

    spec: CSIDriverSpec = CSIDriverSpec()


class VolumeAttachmentSource(Struct, frozen=True, kw_only=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object, frozen=True, kw_only=True):
    """A volume attached to a node, or about to be."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class CSIStorageCapacity(Object, frozen=True, kw_only=True):
    """How much a storage class can still provision in a topology segment; its fields are at the top level."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
