"""Volumes of pod templates. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api.corev1.claims import PersistentVolumeClaimTemplate
from stromboli.api.corev1.intree import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from stromboli.api.corev1.projections import DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource
from stromboli.api.corev1.references import LocalObjectReference
from stromboli.api.modelling import ATOMIC, REQUIRED, Int32, Model, Quantity, Schema


class CSIVolumeSource(Model):
    """An inline CSI volume."""

    driver: Annotated[str, REQUIRED] = ""
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] = {}


class ConfigMapVolumeSource(Model):
    """Keys of a ConfigMap as files."""

    map_type: ClassVar[str | None] = "atomic"

    default_mode: Int32 | None = None
    items: Annotated[list[KeyToPath], ATOMIC] = []
    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class DownwardAPIVolumeSource(Model):
    """Fields of the pod as files."""

    default_mode: Int32 | None = None
    items: Annotated[list[DownwardAPIVolumeFile], ATOMIC] = []


class EmptyDirVolumeSource(Model):
    """A directory that lives as long as the pod."""

    medium: str | None = None
    size_limit: Quantity | None = None


class EphemeralVolumeSource(Model):
    """A claim that lives as long as the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class HostPathVolumeSource(Model):
    """A file or directory of the node."""

    path: Annotated[str, REQUIRED] = ""
    type: str | None = None


class ImageVolumeSource(Model):
    """The contents of an OCI image or artifact."""

    pull_policy: str | None = None
    reference: str | None = None


class NFSVolumeSource(Model):
    """An NFS mount."""

    path: Annotated[str, REQUIRED] = ""
    read_only: bool | None = None
    server: Annotated[str, REQUIRED] = ""


class PersistentVolumeClaimVolumeSource(Model):
    """A claim by name."""

    claim_name: Annotated[str, REQUIRED] = ""
    read_only: bool | None = None


class SecretVolumeSource(Model):
    """Keys of a Secret as files."""

    default_mode: Int32 | None = None
    items: Annotated[list[KeyToPath], ATOMIC] = []
    optional: bool | None = None
    secret_name: str | None = None


class Volume(Model):
    """A volume of a pod; exactly one source is set."""

    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = Field(default=None, alias="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: Annotated[str, REQUIRED] = ""
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = Field(default=None, alias="scaleIO")
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
