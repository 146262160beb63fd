"""CSI volume limits: what counts, what counts once, and how counts follow a cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from stromboli.api import core
from stromboli.api.core import ObjectMeta
from stromboli.api.core.pods import AwsElasticBlockStore, GcePersistentDisk
from stromboli.scheduler.plugins.volumes.limits import TOO_MANY
from stromboli.testing.builders import PodBuilder
from tests.scheduler.plugins.sessions import Session, option
from tests.scheduler.plugins.volumes.building import (
    DRIVER,
    claim,
    cluster,
    csi_node,
    pod,
    storage_class,
    volume,
)

FULL = {"n0": [TOO_MANY.text]}
BOUND_NEW = [claim("new", volume="pv-new"), volume("pv-new", handle="new")]
DYNAMIC = storage_class("fast", DRIVER)


def used(name: str, count: int = 1) -> list[core.Object]:
    """Claims bound to CSI volumes: name-0 and so on."""
    made: list[core.Object] = []
    for index in range(count):
        made += [
            claim(f"{name}-{index}", volume=f"pv-{name}-{index}"),
            volume(f"pv-{name}-{index}", handle=f"{name}-{index}"),
        ]
    return made


def old(name: str, *claims: str) -> PodBuilder:
    """A pod that runs on n0."""
    return pod(name, *claims).on("n0")


def attachment(name: str, volume_name: str, node: str = "n0") -> core.VolumeAttachment:
    return core.VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=core.VolumeAttachmentSpec(
            attacher=DRIVER,
            node_name=node,
            source=core.VolumeAttachmentSource(persistent_volume_name=volume_name),
        ),
    )


def in_tree(name: str, disk: str) -> core.PersistentVolume:
    """A volume of the time before CSI."""
    made = volume(name)
    fields = {key: getattr(made.spec, key) for key in made.spec.__struct_fields__}
    fields["aws_elastic_block_store"] = core.InTreeDisk(volume_id=disk)
    return core.PersistentVolume(metadata=made.metadata, spec=core.PersistentVolumeSpec(**fields), status=made.status)


@dataclass
class Case:
    """Pods on n0 and the pod ``p``, objects, and which nodes refuse it."""

    pods: list[PodBuilder]
    objects: list[core.Object]
    want: dict[str, list[str]]


EBS = "ebs.csi.aws.com"
LIMIT_OF_TWO = csi_node("n0", 2)
CASES = {
    "room for one more": Case([pod("p", "new"), old("o", "a-0")], [LIMIT_OF_TWO, *BOUND_NEW, *used("a")], {}),
    "full": Case([pod("p", "new"), old("o", "a-0", "a-1")], [LIMIT_OF_TWO, *BOUND_NEW, *used("a", 2)], FULL),
    "two of its own are too many": Case([pod("p", "a-0", "a-1", "a-2")], [LIMIT_OF_TWO, *used("a", 3)], FULL),
    "volume that is there already": Case([pod("p", "a-0"), old("o", "a-0", "a-1")], [LIMIT_OF_TWO, *used("a", 2)], {}),
    "volume that two pods share counts once": Case(
        [pod("p", "new"), old("o", "a-0"), old("q", "a-0")], [LIMIT_OF_TWO, *BOUND_NEW, *used("a")], {}
    ),
    "nothing new, although there are too many": Case(
        [pod("p", "a-0"), old("o", "a-0", "a-1", "a-2")], [LIMIT_OF_TWO, *used("a", 3)], {}
    ),
    "node without a limit": Case(
        [pod("p", "new")], [csi_node("n0", None), csi_node("n1", 0), *BOUND_NEW], {"n1": FULL["n0"]}
    ),
    "volumes of another driver": Case(
        [pod("p", "new"), old("o", "a-0", "a-1")],
        [csi_node("n0", 0, "other.csi"), *BOUND_NEW, *used("a", 2)],
        {},
    ),
    "claim that waits counts for the driver of its class": Case(
        [pod("p", "new"), old("o", "a-0", "a-1")], [LIMIT_OF_TWO, DYNAMIC, claim("new", "fast"), *used("a", 2)], FULL
    ),
    "claim without a class does not count": Case(
        [pod("p", "x", "new")], [csi_node("n0", 1), claim("x", None, volume="gone"), volume("gone"), *BOUND_NEW], {}
    ),
    "volume that is attached although no pod uses it": Case(
        [pod("p", "new"), old("o", "a-0")],
        [LIMIT_OF_TWO, *BOUND_NEW, *used("a"), volume("left", handle="left"), attachment("x", "left")],
        FULL,
    ),
    "attachment of a volume that a pod uses counts once": Case(
        [pod("p", "new"), old("o", "a-0")], [LIMIT_OF_TWO, *BOUND_NEW, *used("a"), attachment("x", "pv-a-0")], {}
    ),
    "pod on the node whose claim is gone": Case(
        [pod("p", "new"), old("o", "gone", "a-0")], [LIMIT_OF_TWO, *BOUND_NEW, *used("a")], {}
    ),
    "disk from before CSI, where its driver has taken over": Case(
        [pod("p", "new"), old("o", "a")],
        [
            csi_node("n0", 1, EBS, "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"),
            claim("new", volume="v1"),
            in_tree("v1", "vol-1"),
            claim("a", volume="v2"),
            in_tree("v2", "vol-2"),
        ],
        FULL,
    ),
    "disk from before CSI, where it has not": Case(
        [pod("p", "new"), old("o", "a")],
        [
            csi_node("n0", 1, EBS),
            claim("new", volume="v1"),
            in_tree("v1", "vol-1"),
            claim("a", volume="v2"),
            in_tree("v2", "vol-2"),
        ],
        {},
    ),
    "class from before CSI": Case(
        [pod("p", "new")],
        [
            csi_node("n0", 0, EBS, "kubernetes.io/aws-ebs"),
            storage_class("gp2", "kubernetes.io/aws-ebs"),
            claim("new", "gp2"),
        ],
        FULL,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_limits(case: Case) -> None:
    session = Session(plugins=["predicates"], mirror=cluster(case.pods, *case.objects))
    assert session.refusals("p") == case.want


def test_disks_named_in_the_pod_count_too() -> None:
    disks = (
        core.Volume(name="a", aws_elastic_block_store=AwsElasticBlockStore(volume_id="vol-1")),
        core.Volume(name="b", gce_persistent_disk=GcePersistentDisk(pd_name="disk")),
    )
    user = replace(pod("p"), spec=core.PodSpec(scheduler_name="volcano", volumes=disks))
    mirror = cluster(
        [user],
        csi_node("n0", 0, EBS, "kubernetes.io/aws-ebs"),
        csi_node("n1", 0, "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"),
    )
    assert Session(plugins=["predicates"], mirror=mirror).refusals("p") == {**FULL, "n1": FULL["n0"]}


PROBLEMS = {
    "claim that does not exist": (
        pod("p", "ghost"),
        [],
        'looking up PVC ns/ghost: persistentvolumeclaim "ghost" not found',
    ),
    "ephemeral claim of somebody else": (
        pod("p", ephemeral="scratch"),
        [claim("p-scratch")],
        "PVC ns/p-scratch was not created for pod ns/p (pod is not owner)",
    ),
}


@pytest.mark.parametrize(("given", "objects", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_claims_that_cannot_be_counted(given: PodBuilder, objects: list[core.Object], want: str) -> None:
    only_limits = option("predicates", {"predicate.VolumeZoneEnable": False, "predicate.VolumeBindingEnable": False})
    session = Session(plugins=[only_limits], mirror=cluster([given], *objects))
    assert session.refusals("p") == dict.fromkeys(("n0", "n1"), [want])


def test_counts_follow_placements_evictions_and_their_undoing() -> None:
    mirror = cluster([pod("p", "new"), pod("q", "a-1"), old("o", "a-0")], csi_node("n0", 1), *BOUND_NEW, *used("a", 2))
    session = Session(plugins=["predicates"], mirror=mirror)
    assert session.refusals("p") == FULL
    statement = session.cycle.statement()
    statement.evict(session.task("o"), "test")
    assert session.refusals("p") == {}
    statement.pipeline(session.task("q"), session.node("n0"), eviction_occurred=True)
    assert session.refusals("p") == FULL
    statement.discard()
    assert session.refusals("p") == FULL
    assert session.refusals("q") == FULL


def test_an_eviction_before_anything_was_counted_counts() -> None:
    session = Session(
        plugins=["predicates"],
        mirror=cluster([pod("p", "new"), old("o", "a-0")], csi_node("n0", 1), *BOUND_NEW, *used("a")),
    )
    session.evict("o")
    assert session.refusals("p") == {}


def test_switched_off() -> None:
    off = option("predicates", {"predicate.NodeVolumeLimitsEnable": "false"})
    session = Session(plugins=[off], mirror=cluster([pod("p", "new")], csi_node("n0", 0), *BOUND_NEW))
    assert session.refusals("p") == {}


def test_volumes_of_ignored_provisioners_are_not_counted() -> None:
    mirror = cluster([pod("p", "new")], csi_node("n0", 0), *BOUND_NEW)
    session = Session(plugins=["predicates"], mirror=mirror, options={"ignored-provisioners": (DRIVER,)})
    assert session.refusals("p") == {}
