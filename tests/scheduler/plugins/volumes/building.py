"""Volumes, claims and pods that use them, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stromboli.api import core
from stromboli.api.core import ObjectMeta
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.testing import builders
from stromboli.testing.builders import NodeBuilder, PodBuilder, node, pod_group, queue
from tests.scheduler.core.worlds import world

DRIVER = "csi.example.com"
HOST = "kubernetes.io/hostname"


def storage_class(
    name: str = "local", provisioner: str = volumes.NO_PROVISIONER, *, waits: bool = True, zones: tuple[str, ...] = ()
) -> core.StorageClass:
    """A class; by default of local volumes, which nobody provisions and which wait for their pod."""
    item = core.TopologySelectorRequirement(key="zone", values=zones)
    return core.StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=volumes.WAIT_FOR_FIRST_CONSUMER if waits else "Immediate",
        allowed_topologies=(core.TopologySelectorTerm(match_label_expressions=(item,)),) if zones else (),
    )


def claim(
    name: str = "data",
    class_: str | None = "local",
    size: str = "1Gi",
    volume: str = "",
    owner: str = "",
    selected: str = "",
    phase: str = "",
) -> core.PersistentVolumeClaim:
    """A claim; with a volume it is bound to it."""
    annotations = ({volumes.BIND_COMPLETED: "yes"} if volume else {}) | (
        {volumes.SELECTED_NODE: selected} if selected else {}
    )
    owners = (core.OwnerReference(kind="Pod", name=owner, uid=f"ns-{owner}", controller=True),) if owner else ()
    return core.PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name, namespace="ns", uid=f"uid-{name}", annotations=annotations, owner_references=owners
        ),
        spec=core.PersistentVolumeClaimSpec(
            resources=core.ResourceRequirements(requests={"storage": size}),
            storage_class_name=class_,
            volume_name=volume,
        ),
        status=core.PersistentVolumeClaimStatus(phase=phase),
    )


def volume(
    name: str = "pv",
    size: str = "1Gi",
    class_: str = "local",
    on: str | Iterable[str] = (),
    taken_by: str = "",
    handle: str = "",
    driver: str = DRIVER,
    labels: Mapping[str, str] | None = None,
) -> core.PersistentVolume:
    """A volume, reached from some nodes only or from all; taken by a claim, or not."""
    hosts = (on,) if isinstance(on, str) else tuple(on)
    term = core.NodeSelectorTerm(match_expressions=(core.Requirement(key=HOST, operator="In", values=hosts),))
    affinity = core.VolumeNodeAffinity(required=core.NodeSelector(node_selector_terms=(term,))) if hosts else None
    reference = core.ObjectReference(namespace="ns", name=taken_by, uid=f"uid-{taken_by}") if taken_by else None
    return core.PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels=dict(labels or {})),
        spec=core.PersistentVolumeSpec(
            capacity={"storage": size},
            storage_class_name=class_,
            node_affinity=affinity,
            claim_ref=reference,
            csi=core.CSISource(driver=driver, volume_handle=handle) if handle else None,
        ),
        status=core.PersistentVolumeStatus(phase="Available"),
    )


def csi_node(name: str, limit: int | None, driver: str = DRIVER, migrated: str = "") -> core.CSINode:
    """How many volumes of a driver a node can attach."""
    allocatable = core.CSINodeAllocatable(count=limit) if limit is not None else None
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return core.CSINode(
        metadata=ObjectMeta(name=name, annotations=annotations),
        spec=core.CSINodeSpec(drivers=(core.CSINodeDriver(name=driver, allocatable=allocatable),)),
    )


def pod(name: str, *claims: str, ephemeral: str = "") -> PodBuilder:
    """A pod of the gang ``job`` with claims by name, and one of its own."""
    used = [core.Volume(name=each, persistent_volume_claim=core.PvcVolume(claim_name=each)) for each in claims]
    if ephemeral:
        used.append(core.Volume(name=ephemeral, ephemeral=core.EphemeralVolume()))
    return replace(
        builders.pod(name).group("job").request(cpu=1), spec=core.PodSpec(scheduler_name="volcano", volumes=tuple(used))
    )


def nodes(count: int, **labels: str) -> list[NodeBuilder]:
    """n0, n1, ..., each labelled with its name as a host."""
    return [
        node(f"n{index}").offer(cpu=8, memory="8Gi").label(**{HOST: f"n{index}", **labels}) for index in range(count)
    ]


def cluster(
    pods: Iterable[PodBuilder],
    *objects: core.Object,
    on: Iterable[NodeBuilder] | None = None,
    minimum: int = 1,
) -> Mirror:
    """Two nodes unless given otherwise, one job and some pods."""
    return world(
        [each.build() for each in (nodes(2) if on is None else on)],
        queue("default").build(),
        pod_group("job").members(minimum).build(),
        [each.build() for each in pods],
        objects,
    )
