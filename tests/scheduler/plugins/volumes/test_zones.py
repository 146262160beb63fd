"""Zones of volumes and nodes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import core
from stromboli.scheduler.plugins.volumes.zones import WRONG_ZONE
from stromboli.testing.builders import node
from tests.scheduler.plugins.sessions import Session, option
from tests.scheduler.plugins.volumes.building import claim, cluster, pod, storage_class, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REFUSED = [WRONG_ZONE.text]
ONLY_ZONES = option("predicates", {"predicate.NodeVolumeLimitsEnable": False, "predicate.VolumeBindingEnable": False})


@dataclass
class Case:
    """Labels of the volume and of the node, and whether the node is refused."""

    volume: dict[str, str]
    node: dict[str, str]
    refused: bool


CASES = {
    "same zone": Case({ZONE: "a"}, {ZONE: "a"}, refused=False),
    "another zone": Case({ZONE: "a"}, {ZONE: "b"}, refused=True),
    "one of several zones": Case({ZONE: "a__b"}, {ZONE: "b"}, refused=False),
    "none of several zones": Case({ZONE: "a__b"}, {ZONE: "c"}, refused=True),
    "same zone in another region": Case({ZONE: "a", REGION: "x"}, {ZONE: "a", REGION: "y"}, refused=True),
    "node without zone but in a region": Case({ZONE: "a"}, {REGION: "x"}, refused=True),
    "node that is in no zone at all": Case({ZONE: "a"}, {}, refused=False),
    "volume that is in no zone": Case({}, {ZONE: "a"}, refused=False),
    "old label of the volume, new label of the node": Case({OLD_ZONE: "a"}, {ZONE: "a"}, refused=False),
    "old label of the volume, another zone by the new label": Case({OLD_ZONE: "a"}, {ZONE: "b"}, refused=True),
    "old labels of both": Case({OLD_ZONE: "a"}, {OLD_ZONE: "a", ZONE: "b"}, refused=False),
    "new label of the volume, old label of the node": Case({ZONE: "a"}, {OLD_ZONE: "a"}, refused=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_zones(case: Case) -> None:
    mirror = cluster(
        [pod("p", "data")],
        claim(volume="pv"),
        volume(labels=case.volume),
        on=[node("n0").offer(cpu=4, memory="8Gi").label(**case.node)],
    )
    session = Session(plugins=[ONLY_ZONES], mirror=mirror)
    assert session.refusals("p") == ({"n0": REFUSED} if case.refused else {})


OTHERS: dict[str, tuple[list[core.Object], str | None]] = {
    "no claim": ([], 'persistentvolumeclaim "data" not found'),
    "no volume": ([claim(volume="gone")], 'persistentvolume "gone" not found'),
    "no class": ([claim(class_=None)], "PersistentVolumeClaim had no pv name and storageClass name"),
    "class that does not exist": ([claim()], 'storageclass.storage.k8s.io "local" not found'),
    "class without a mode": (
        [claim(), core.StorageClass(metadata=core.ObjectMeta(name="local"), volume_binding_mode="")],
        'VolumeBindingMode not set for StorageClass "local"',
    ),
    "claim that does not wait": ([claim(), storage_class(waits=False)], "PersistentVolume had no name"),
    "claim that waits": ([claim(), storage_class()], None),
}


@pytest.mark.parametrize(("objects", "want"), OTHERS.values(), ids=OTHERS.keys())
def test_claims_without_a_volume(objects: list[core.Object], want: str | None) -> None:
    session = Session(plugins=[ONLY_ZONES], mirror=cluster([pod("p", "data")], *objects))
    assert session.refusals("p") == (dict.fromkeys(("n0", "n1"), [want]) if want else {})


def test_ephemeral_claims_have_no_zone() -> None:
    zoned = volume(labels={ZONE: "a"})
    mirror = cluster(
        [pod("p", ephemeral="x")],
        claim("p-x", volume="pv", owner="p"),
        zoned,
        on=[node("n0").offer(cpu=4, memory="8Gi").label(**{ZONE: "b"})],
    )
    assert Session(plugins=[ONLY_ZONES], mirror=mirror).refusals("p") == {}
