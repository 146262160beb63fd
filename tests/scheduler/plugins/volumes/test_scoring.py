"""The score of storage that would be left, with gate StorageCapacityScoring."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stromboli.api import core
from stromboli.scheduler.plugins.volumes.scoring import DEFAULT_SHAPE, Point, shape_of
from tests.scheduler.plugins.sessions import Session, option
from tests.scheduler.plugins.volumes.building import DRIVER, claim, cluster, nodes, pod, storage_class, volume

GATE = {"feature-gates": {"StorageCapacityScoring": True}}
LOCAL, FAST = storage_class(), storage_class("fast", DRIVER)


def room(name: str, amount: str, zone: str) -> core.CSIStorageCapacity:
    topology = core.LabelSelector(match_labels={"zone": zone})
    return core.CSIStorageCapacity(
        metadata=core.ObjectMeta(name=name, namespace="ns"),
        storage_class_name="fast",
        node_topology=topology,
        capacity=amount,
    )


@dataclass
class Case:
    """Claims of a pod and objects, and the scores of n0 (zone a) and n1 (zone b)."""

    objects: list[core.Object]
    want: tuple[float, float]
    claims: tuple[str, ...] = ("data",)
    arguments: dict[str, object] = field(default_factory=dict)


CASES = {
    "the fuller the volume the less": Case(
        [LOCAL, claim(size="1Gi"), volume("v0", "1Gi", on="n0"), volume("v1", "4Gi", on="n1")], (0, 75)
    ),
    "the mean over classes": Case(
        [
            LOCAL,
            storage_class("slow"),
            claim("a", size="1Gi"),
            claim("b", "slow", size="1Gi"),
            volume("v0", "4Gi", on="n0"),
            volume("v1", "4Gi", on="n1"),
            volume("w0", "4Gi", "slow", on="n0"),
            volume("w1", "2Gi", "slow", on="n1"),
        ],
        (75, 63),
        claims=("a", "b"),
    ),
    "what can be provisioned": Case(
        [FAST, claim(class_="fast", size="1Gi"), room("r0", "10Gi", "a"), room("r1", "2Gi", "b")], (90, 50)
    ),
    "provisioning counts for nothing beside existing volumes": Case(
        [LOCAL, FAST, claim("a"), claim("b", "fast"), volume("v"), room("r0", "10Gi", "a")], (0, 0), claims=("a", "b")
    ),
    "more asked than there is": Case([FAST, claim(class_="fast", size="2Gi"), room("r0", "1Gi", "a")], (0, 0)),
    "weight": Case([LOCAL, claim(size="1Gi"), volume("v0", "2Gi")], (150, 150), arguments={"volumebinding.weight": 3}),
    "full volumes first": Case(
        [LOCAL, claim(size="1Gi"), volume("v0", "1Gi", on="n0"), volume("v1", "4Gi", on="n1")],
        (100, 25),
        arguments={"volumebinding.shape": [{"utilization": 0, "score": 0}, {"Utilization": 100, "score": 10}]},
    ),
    "flat beyond the ends of the shape": Case(
        [LOCAL, claim(size="1Gi"), volume("v0", "1Gi", on="n0"), volume("v1", "100Gi", on="n1")],
        (20, 80),
        arguments={"volumebinding.shape": [{"utilization": 40, "score": 8}, {"utilization": 80, "score": 2}]},
    ),
    "nothing waits": Case([claim(volume="pv"), volume()], (0, 0)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_scores(case: Case) -> None:
    on = [each.label(zone=zone) for each, zone in zip(nodes(2), "ab", strict=True)]
    mirror = cluster([pod("p", *case.claims)], *case.objects, on=on)
    session = Session(plugins=[option("predicates", case.arguments)], mirror=mirror, options=GATE)
    scores = session.scores("p")
    assert (scores["n0"], scores["n1"]) == case.want


def test_without_the_gate_there_is_no_score() -> None:
    session = Session(plugins=["predicates"], mirror=cluster([pod("p", "data")], LOCAL, claim(), volume("v", "9Gi")))
    assert session.combination.scores == []


@pytest.mark.parametrize("given", [None, "steep", [], [{"utilization": "half", "score": 1}], [7]])
def test_a_shape_that_cannot_be_read_is_the_default(given: object) -> None:
    assert shape_of({"volumebinding.shape": given}) == DEFAULT_SHAPE


def test_a_shape_is_read_whatever_the_case_of_its_keys() -> None:
    assert shape_of({"volumebinding.shape": [{"Utilization": 40, "SCORE": 8}]}) == (Point(utilization=40, score=8),)
