"""Which CSI volumes a pod attaches: driver and handle of every claim (spec 06 section 17.7).

Volumes of storage systems that Kubernetes once knew itself count for the CSI driver that has taken over, on nodes whose
CSINode says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import core
from stromboli.scheduler.core.volumes import VolumeProblem, claim_names

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import ClusterObjects
    from stromboli.scheduler.core.records import Task

MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of CSINodes: plugins whose volumes are attached by CSI drivers, separated by commas."""


class Handle(NamedTuple):
    """A volume as its CSI driver knows it; ``plugin`` names what it was migrated from, if it was."""

    driver: str
    id: str
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class InTree:
    """A storage system that has moved to a CSI driver."""

    field: str
    plugin: str
    driver: str


IN_TREE = (
    InTree("aws_elastic_block_store", "kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    InTree("azure_disk", "kubernetes.io/azure-disk", "disk.csi.azure.com"),
    InTree("azure_file", "kubernetes.io/azure-file", "file.csi.azure.com"),
    InTree("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org"),
    InTree("gce_persistent_disk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    InTree("portworx_volume", "kubernetes.io/portworx-volume", "pxd.portworx.com"),
    InTree("vsphere_volume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
)
_BY_PLUGIN: Mapping[str, InTree] = {each.plugin: each for each in IN_TREE}


def handles_of(task: Task, objects: ClusterObjects, *, strict: bool) -> Iterator[Handle]:
    """The CSI volumes of a task.

    Raises:
        VolumeProblem: with ``strict``, a claim does not exist or was made for another pod; otherwise it is left out.
    """
    for name, ephemeral in claim_names(task.name, task.shape.pod.spec.volumes):
        claim = objects.get(core.PersistentVolumeClaim, name, task.namespace)
        if claim is None:
            if strict:
                text = f'persistentvolumeclaim "{name}" not found'
                raise VolumeProblem(f"looking up PVC {task.namespace}/{name}: {text}")
            continue
        if ephemeral and all(owner.uid != task.uid for owner in claim.metadata.owner_references):
            if strict:
                raise VolumeProblem(
                    f"PVC {task.namespace}/{name} was not created for pod {task.key} (pod is not owner)"
                )
            continue
        handle = handle_of(claim, objects)
        if handle is not None:
            yield handle
    for volume in task.shape.pod.spec.volumes:
        yield from _inline(volume)


def handle_of(claim: core.PersistentVolumeClaim, objects: ClusterObjects) -> Handle | None:
    """The CSI volume of a claim; of one without a volume, whatever will be provisioned for it."""
    volume = objects.get(core.PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        return volume_handle(volume)
    class_ = objects.get(core.StorageClass, claim.spec.storage_class_name or "")
    if class_ is None or not class_.provisioner:
        return None
    to_come = f"{claim.namespace}/{claim.name}/{claim.uid}"
    moved = _BY_PLUGIN.get(class_.provisioner)
    return Handle(class_.provisioner, to_come) if moved is None else Handle(moved.driver, to_come, moved.plugin)


def volume_handle(volume: core.PersistentVolume) -> Handle | None:
    """The CSI volume that a persistent volume is, if it is one."""
    spec = volume.spec
    if spec.csi is not None:
        return Handle(spec.csi.driver, spec.csi.volume_handle)
    for moved in IN_TREE:
        disk = getattr(spec, moved.field)
        if disk is not None:
            return Handle(moved.driver, disk.id or volume.name, moved.plugin)
    return None


def _inline(volume: core.Volume) -> Iterator[Handle]:
    if volume.aws_elastic_block_store is not None:
        moved = _BY_PLUGIN["kubernetes.io/aws-ebs"]
        yield Handle(moved.driver, volume.aws_elastic_block_store.volume_id, moved.plugin)
    if volume.gce_persistent_disk is not None:
        moved = _BY_PLUGIN["kubernetes.io/gce-pd"]
        yield Handle(moved.driver, volume.gce_persistent_disk.pd_name, moved.plugin)


def migrated_plugins(node: core.CSINode) -> frozenset[str]:
    """Plugins whose volumes are attached by CSI drivers on a node."""
    return frozenset(node.metadata.annotations.get(MIGRATED, "").split(",")) - {""}
