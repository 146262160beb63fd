"""Volume sources of storage systems that Kubernetes knows, or knew, itself. Manifests may still carry them.

Fields are those of ``core/v1``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stromboli.api.corev1.references import LocalObjectReference
from stromboli.api.modelling import ATOMIC, REQUIRED, Int32, Model, Schema


class AWSElasticBlockStoreVolumeSource(Model):
    """An AWS EBS disk."""

    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool | None = None
    volume_id: Annotated[str, REQUIRED] = Field(default="", alias="volumeID")


class AzureDiskVolumeSource(Model):
    """An Azure data disk."""

    caching_mode: str | None = None
    disk_name: Annotated[str, REQUIRED] = ""
    disk_uri: Annotated[str, REQUIRED] = Field(default="", alias="diskURI")
    fs_type: Annotated[str | None, Schema(default="ext4")] = None
    kind: str | None = None
    read_only: Annotated[bool | None, Schema(default=False)] = None


class AzureFileVolumeSource(Model):
    """An Azure file share."""

    read_only: bool | None = None
    secret_name: Annotated[str, REQUIRED] = ""
    share_name: Annotated[str, REQUIRED] = ""


class CephFSVolumeSource(Model):
    """A Ceph file system."""

    monitors: Annotated[list[str], ATOMIC, REQUIRED] = []
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class CinderVolumeSource(Model):
    """An OpenStack Cinder volume."""

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_id: Annotated[str, REQUIRED] = Field(default="", alias="volumeID")


class FCVolumeSource(Model):
    """A Fibre Channel volume."""

    fs_type: str | None = None
    lun: Int32 | None = None
    read_only: bool | None = None
    target_wwns: Annotated[list[str], ATOMIC] = Field(default_factory=list, alias="targetWWNs")
    wwids: Annotated[list[str], ATOMIC] = []


class FlexVolumeSource(Model):
    """A FlexVolume."""

    driver: Annotated[str, REQUIRED] = ""
    fs_type: str | None = None
    options: dict[str, str] = {}
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Model):
    """A Flocker volume."""

    dataset_name: str | None = None
    dataset_uuid: str | None = Field(default=None, alias="datasetUUID")


class GCEPersistentDiskVolumeSource(Model):
    """A Google persistent disk."""

    fs_type: str | None = None
    partition: Int32 | None = None
    pd_name: Annotated[str, REQUIRED] = ""
    read_only: bool | None = None


class GitRepoVolumeSource(Model):
    """A Git repository."""

    directory: str | None = None
    repository: Annotated[str, REQUIRED] = ""
    revision: str | None = None


class GlusterfsVolumeSource(Model):
    """A GlusterFS volume."""

    endpoints: Annotated[str, REQUIRED] = ""
    path: Annotated[str, REQUIRED] = ""
    read_only: bool | None = None


class ISCSIVolumeSource(Model):
    """An iSCSI disk."""

    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: Annotated[str, REQUIRED] = ""
    iscsi_interface: Annotated[str | None, Schema(default="default")] = None
    lun: Annotated[Int32, REQUIRED] = 0
    portals: Annotated[list[str], ATOMIC] = []
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    target_portal: Annotated[str, REQUIRED] = ""


class PhotonPersistentDiskVolumeSource(Model):
    """A Photon controller disk."""

    fs_type: str | None = None
    pd_id: Annotated[str, REQUIRED] = Field(default="", alias="pdID")


class PortworxVolumeSource(Model):
    """A Portworx volume."""

    fs_type: str | None = None
    read_only: bool | None = None
    volume_id: Annotated[str, REQUIRED] = Field(default="", alias="volumeID")


class QuobyteVolumeSource(Model):
    """A Quobyte mount."""

    group: str | None = None
    read_only: bool | None = None
    registry: Annotated[str, REQUIRED] = ""
    tenant: str | None = None
    user: str | None = None
    volume: Annotated[str, REQUIRED] = ""


class RBDVolumeSource(Model):
    """A Ceph block device."""

    fs_type: str | None = None
    image: Annotated[str, REQUIRED] = ""
    keyring: Annotated[str | None, Schema(default="/etc/ceph/keyring")] = None
    monitors: Annotated[list[str], ATOMIC, REQUIRED] = []
    pool: Annotated[str | None, Schema(default="rbd")] = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    user: Annotated[str | None, Schema(default="admin")] = None


class ScaleIOVolumeSource(Model):
    """A ScaleIO volume."""

    fs_type: Annotated[str | None, Schema(default="xfs")] = None
    gateway: Annotated[str, REQUIRED] = ""
    protection_domain: str | None = None
    read_only: bool | None = None
    secret_ref: Annotated[LocalObjectReference, REQUIRED] = Field(default_factory=LocalObjectReference)
    ssl_enabled: bool | None = None
    storage_mode: Annotated[str | None, Schema(default="ThinProvisioned")] = None
    storage_pool: str | None = None
    system: Annotated[str, REQUIRED] = ""
    volume_name: str | None = None


class StorageOSVolumeSource(Model):
    """A StorageOS volume."""

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VsphereVirtualDiskVolumeSource(Model):
    """A vSphere disk."""

    fs_type: str | None = None
    storage_policy_id: str | None = Field(default=None, alias="storagePolicyID")
    storage_policy_name: str | None = None
    volume_path: Annotated[str, REQUIRED] = ""
