"""Pods with volume claims in whole sessions: where they may go, which volumes they get, that none is given twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.api.core import ObjectMeta
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.core.volumes import VolumeProblem
from stromboli.scheduler.plugins import node_facts
from stromboli.scheduler.plugins.volumes.claiming import VolumeClaims
from stromboli.testing.builders import PodBuilder
from tests.scheduler.core.worlds import binds, feed, picture, policy, run_cycle
from tests.scheduler.plugins.sessions import Session, option
from tests.scheduler.plugins.volumes.building import (
    DRIVER,
    claim,
    cluster,
    nodes,
    pod,
    storage_class,
    volume,
)

LOCAL = storage_class()
FAST = storage_class("fast", DRIVER)
NOW = storage_class("now", DRIVER, waits=False)
NOTHING = [volumes.NO_VOLUME]
EVERYWHERE = dict.fromkeys(("n0", "n1"), NOTHING)
OTHERS_OFF = {"predicate.NodeVolumeLimitsEnable": False, "predicate.VolumeZoneEnable": False}
ONLY_BINDING = option("predicates", OTHERS_OFF)
STORAGE = {"csi-storage": True, "feature-gates": {"CSIStorage": True}}


def room(name: str, amount: str, zone: str | None, *, largest: str | None = None) -> core.CSIStorageCapacity:
    """What a driver can still provision of class ``fast`` in a zone, or (None) everywhere."""
    topology = core.LabelSelector(match_labels={"zone": zone} if zone is not None else {})
    return core.CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="ns"),
        storage_class_name="fast",
        node_topology=topology,
        capacity=amount,
        maximum_volume_size=largest,
    )


TELLS = core.CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=core.CSIDriverSpec(storage_capacity=True))


@dataclass
class Case:
    """A pod with claim ``data`` among objects, nodes n0 (zone a) and n1 (zone b), and the reasons that refuse it."""

    objects: list[core.Object]
    want: dict[str, list[str]]
    options: dict[str, object] = field(default_factory=dict)
    claims: tuple[str, ...] = ("data",)


NO_ROOM = [volumes.NO_STORAGE]
CASES = {
    "bound to a volume of one node": Case([claim(volume="pv"), volume(on="n1")], {"n0": [volumes.WRONG_NODE]}),
    "bound to a volume that is gone": Case([claim(volume="pv")], dict.fromkeys(("n0", "n1"), [volumes.VOLUME_MISSING])),
    "bound to a volume for everyone": Case([claim(volume="pv"), volume()], {}),
    "local volume of one node": Case([LOCAL, claim(), volume(on="n1")], {"n0": NOTHING}),
    "no volume": Case([LOCAL, claim()], EVERYWHERE),
    "volume that is too small": Case([LOCAL, claim(size="2Gi"), volume()], EVERYWHERE),
    "volume of another claim": Case([LOCAL, claim(), volume(taken_by="other")], EVERYWHERE),
    "volume that waits for this claim": Case([LOCAL, claim(), volume(on="n0", taken_by="data")], {"n1": NOTHING}),
    "two claims need two volumes": Case(
        [LOCAL, claim("a"), claim("b"), volume("v0", on="n0"), volume("v1", on="n1"), volume("v2", on="n1")],
        {"n0": NOTHING},
        claims=("a", "b"),
    ),
    "two claims, one volume for everyone and one for a node": Case(
        [LOCAL, claim("a"), claim("b"), volume("v0"), volume("v1", on="n1")], {"n0": NOTHING}, claims=("a", "b")
    ),
    "a small claim does not take the only large volume": Case(
        [LOCAL, claim("large", size="5Gi"), claim("small"), volume("v5", "5Gi", on="n0"), volume("v1", on="n0")],
        {"n1": NOTHING},
        claims=("large", "small"),
    ),
    "it can be provisioned": Case([FAST, claim(class_="fast")], {}),
    "it can be provisioned in a zone": Case(
        [storage_class("fast", DRIVER, zones=("b",)), claim(class_="fast")], {"n0": NOTHING}
    ),
    "it is being provisioned on a node": Case([FAST, claim(class_="fast", selected="n1")], {"n0": NOTHING}),
    "it was to be provisioned on a node that is gone": Case([FAST, claim(class_="fast", selected="n9")], EVERYWHERE),
    "storage in one zone": Case([FAST, TELLS, claim(class_="fast"), room("r", "5Gi", "a")], {"n1": NO_ROOM}, STORAGE),
    "storage everywhere": Case([FAST, TELLS, claim(class_="fast"), room("r", "5Gi", None)], {}, STORAGE),
    "storage, but not in one piece": Case(
        [FAST, TELLS, claim(class_="fast", size="2Gi"), room("r", "5Gi", "a", largest="1Gi")],
        dict.fromkeys(("n0", "n1"), NO_ROOM),
        STORAGE,
    ),
    "driver that does not tell about storage": Case([FAST, claim(class_="fast"), room("r", "0", "a")], {}, STORAGE),
    "storage is not looked at": Case([FAST, TELLS, claim(class_="fast"), room("r", "0", "a")], {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_where_a_pod_may_go(case: Case) -> None:
    on = [each.label(zone=zone) for each, zone in zip(nodes(2), "ab", strict=True)]
    mirror = cluster([pod("p", *case.claims)], *case.objects, on=on)
    session = Session(plugins=[ONLY_BINDING], mirror=mirror, options=case.options)
    assert session.combination.prepare(session.task("p")) is None
    assert session.refusals("p") == case.want


PROBLEMS = {
    "claim that does not exist": (pod("p", "data"), [], 'persistentvolumeclaim "data" not found'),
    "ephemeral claim that is not made yet": (
        pod("p", ephemeral="x"),
        [],
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-x"',
    ),
    "ephemeral claim of another pod": (
        pod("p", ephemeral="x"),
        [claim("p-x", owner="another")],
        'persistentvolumeclaim "p-x" was not created for this pod',
    ),
    "lost claim": (
        pod("p", "data"),
        [claim(volume="pv", phase="Lost")],
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
    ),
    "claim that somebody else is to bind": (pod("p", "data"), [NOW, claim(class_="now")], volumes.UNBOUND_IMMEDIATE),
}


@pytest.mark.parametrize(("given_pod", "objects", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_pods_whose_claims_cannot_be_tried(given_pod: PodBuilder, objects: list[core.Object], want: str) -> None:
    session = Session(plugins=[ONLY_BINDING], mirror=cluster([given_pod], *objects))
    assert session.combination.prepare(session.task("p")) == f"plugin VolumeBinding pre-predicates failed {want}"
    assert session.refusals("p") == dict.fromkeys(("n0", "n1"), [want])


def test_switched_off() -> None:
    off = option("predicates", {**OTHERS_OFF, "predicate.VolumeBindingEnable": False})
    session = Session(plugins=[off], mirror=cluster([pod("p", "data")]))
    assert session.combination.prepare(session.task("p")) is None
    assert session.refusals("p") == {}


# -- what is given to whom --------------------------------------------------------------------------------------------


def scheduled(mirror: Mirror) -> CycleResult:
    return run_cycle(mirror, policy("gang", "predicates", actions="allocate"))


def granted(result: CycleResult) -> dict[str, list[str]]:
    """Pod to ``claim=volume``, or ``claim=new``."""
    return {
        bind.task.name: [
            f"{grant.claim}={grant.volume or 'new'}"
            for grant in (bind.extension.volumes if bind.extension is not None else ())
        ]
        for bind in result.binds
    }


def gang(size: int, class_: str = "local") -> tuple[list[PodBuilder], list[core.PersistentVolumeClaim]]:
    """Pods p0, p1, ..., each with a claim of its own."""
    return [pod(f"p{index}", f"c{index}") for index in range(size)], [
        claim(f"c{index}", class_) for index in range(size)
    ]


def test_a_gang_gets_a_volume_each() -> None:
    pods, claims = gang(3)
    local = [volume("v0", on="n0"), volume("v1", on="n1"), volume("v2", on="n1")]
    result = scheduled(cluster(pods, LOCAL, *claims, *local, minimum=3))
    assert result.problems == []
    assert sorted(binds(result).values()) == ["n0", "n1", "n1"]
    assert sorted(grant.partition("=")[2] for (grant,) in granted(result).values()) == ["v0", "v1", "v2"]


def test_a_gang_that_finds_too_few_volumes_leaves_no_trace() -> None:
    pods, claims = gang(3)
    mirror = cluster(pods, LOCAL, *claims, volume("v0", on="n0"), volume("v1", on="n1"), minimum=3)
    before = picture(mirror)
    assert scheduled(mirror).binds == []
    assert picture(mirror) == before
    feed(mirror, volume("v2"))
    assert len(scheduled(mirror).binds) == 3


def test_pods_that_share_a_claim_follow_its_volume() -> None:
    pods = [pod(f"p{index}", "shared") for index in range(3)]
    result = scheduled(cluster(pods, LOCAL, claim("shared"), volume("v", on="n1"), volume("w", on="n1"), minimum=3))
    assert set(binds(result).values()) == {"n1"}
    assert granted(result) == dict.fromkeys(["p0", "p1", "p2"], ["shared=v"])


def test_pods_that_share_a_claim_meet_where_it_is_provisioned() -> None:
    pods = [pod(f"p{index}", "shared") for index in range(6)]
    result = scheduled(cluster(pods, FAST, claim("shared", "fast"), minimum=6))
    assert len(set(binds(result).values())) == 1
    assert granted(result) == dict.fromkeys([f"p{index}" for index in range(6)], ["shared=new"])


def test_a_pod_whose_claims_are_bound_carries_nothing() -> None:
    assert granted(scheduled(cluster([pod("p", "data")], claim(volume="pv"), volume()))) == {"p": []}


# -- from cycle to cycle ----------------------------------------------------------------------------------------------


def test_what_is_promised_is_kept_until_it_is_bound() -> None:
    pods, claims = gang(2)
    mirror = cluster(pods[:1], LOCAL, *claims, volume("v"))
    assert granted(scheduled(mirror)) == {"p0": ["c0=v"]}
    feed(mirror, pods[1].build())
    assert scheduled(mirror).binds == []
    feed(mirror, claim("c0", volume="v"))
    feed(mirror, volume("v", taken_by="c0"))
    assert scheduled(mirror).binds == []
    feed(mirror, volume("w"))
    assert granted(scheduled(mirror)) == {"p1": ["c1=w"]}


def test_what_is_promised_to_a_pod_whose_bind_fails_is_free_again() -> None:
    pods, claims = gang(2)
    mirror = cluster(pods[:1], LOCAL, *claims, volume("v"))
    scheduled(mirror)
    mirror.bind_failed("ns-p0")
    mirror.delete_pod("ns/p0")
    feed(mirror, pods[1].build())
    assert granted(scheduled(mirror)) == {"p1": ["c1=v"]}


# -- placements by hand -----------------------------------------------------------------------------------------------


def test_a_placement_without_a_volume_is_refused_and_an_undone_one_gives_it_back() -> None:
    pods, claims = gang(2)
    session = Session(plugins=["predicates"], mirror=cluster(pods, LOCAL, *claims, volume("v", on="n0")))
    statement = session.cycle.statement()
    statement.pipeline(session.task("p0"), session.node("n0"), eviction_occurred=False)
    assert session.refusals("p1") == EVERYWHERE
    with pytest.raises(PlacementRefused, match="didn't find available persistent volumes"):
        session.cycle.statement().allocate(session.task("p1"), session.node("n0"))
    statement.discard()
    assert session.refusals("p1") == {"n1": NOTHING}


def test_a_placement_that_devices_refuse_gives_its_volume_back() -> None:
    both = pod("p0", "c0")
    spec = core.PodSpec(
        scheduler_name="volcano",
        volumes=both.spec.volumes,
        resource_claims=(core.PodResourceClaim(name="gpu", resource_claim_name="gpu"),),
    )
    both = PodBuilder("p0", spec=spec).group("job")
    device = core.ResourceClaim(
        metadata=ObjectMeta(name="gpu", namespace="ns", uid="gpu"),
        spec=core.ResourceClaimSpec(
            devices=core.DeviceClaim(
                requests=(core.DeviceRequest(name="r", exactly=core.ExactDeviceRequest(device_class_name="gpu")),)
            )
        ),
    )
    class_ = core.DeviceClass(metadata=ObjectMeta(name="gpu"))
    mirror = cluster([both, pod("p1", "c1")], LOCAL, device, class_, claim("c0"), claim("c1"), volume("v"))
    session = Session(plugins=["predicates"], mirror=mirror)
    with pytest.raises(PlacementRefused, match="cannot allocate all claims"):
        session.cycle.statement().allocate(session.task("p0"), session.node("n0"))
    assert session.refusals("p1") == {}


# -- all nodes at once and one after the other agree ------------------------------------------------------------------

HOSTS = [f"n{index}" for index in range(4)]
VOLUMES = st.builds(
    lambda size, on, taken_by: (size, tuple(sorted(on)), taken_by),
    st.integers(1, 3),
    st.sets(st.sampled_from(HOSTS), max_size=2),
    st.sampled_from(["", "", "", "c0", "other"]),
)
CLAIMS = st.tuples(st.integers(1, 3), st.sampled_from(["local", "local", "zoned"]), st.sampled_from(["", "", "n1"]))


def made(described: Iterable[tuple[int, tuple[str, ...], str]]) -> list[core.PersistentVolume]:
    return [
        volume(f"v{index}", f"{size}Gi", on=on, taken_by=taken_by)
        for index, (size, on, taken_by) in enumerate(described)
    ]


@settings(deadline=None, max_examples=120)
@given(
    described=st.lists(VOLUMES, max_size=7),
    wanted=st.lists(CLAIMS, min_size=1, max_size=3),
    placements=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
    few=st.booleans(),
)
def test_all_nodes_at_once_agree_with_one_after_the_other(
    described: list[tuple[int, tuple[str, ...], str]],
    wanted: list[tuple[int, str, str]],
    placements: list[tuple[int, int]],
    few: bool,
) -> None:
    claims = [
        claim(f"c{index}", class_, f"{size}Gi", selected=selected)
        for index, (size, class_, selected) in enumerate(wanted)
    ]
    others = [claim(f"o{index}") for index in range(3)]
    pods = [pod("p", *(each.name for each in claims)), *(pod(f"q{index}", f"o{index}") for index in range(3))]
    pods.append(pod("r", "c0"))
    zoned = storage_class("zoned", DRIVER, zones=("n2", "n1"))
    on = [each.label(zone=each.name) for each in nodes(4 if few else 20)]
    mirror = cluster(pods, LOCAL, zoned, *claims, *others, *made(described), on=on)
    session = Session(plugins=["predicates"], mirror=mirror)
    found = VolumeClaims(session.view, node_facts.of(session.view).labels)
    rows = np.arange(session.view.nodes.count)
    choices = volumes.Choices()
    names = ["q0", "q1", "q2", "r"]
    for number, place in [(-1, 0), *placements]:
        if number >= 0:
            task, node = session.task(names[number]), session.node(HOSTS[place])
            assert node.resource is not None
            chosen = plan_of(mirror, names[number], node.resource, choices)
            try:
                found.placed(task, node)
            except PlacementRefused:
                assert chosen is None
            else:
                assert chosen is not None
                for each, choice in chosen:
                    choices.add(each.key, choices.by_claim.get(each.key, choice))
        for name in ("p", *names):
            answer = found.refuse_delayed(session.task(name), rows)
            want = [plan_of(mirror, name, node.resource, choices) is None for node in session.view.row_nodes(rows)]
            assert answer is not None
            assert (answer > 0).tolist() == want


def plan_of(
    mirror: Mirror, name: str, node: core.Node | None, choices: volumes.Choices
) -> list[tuple[core.PersistentVolumeClaim, volumes.Choice]] | None:
    """What the claims of a pod would get on a node, or None."""
    assert node is not None
    task = mirror.tasks[f"ns/{name}"]
    claims = volumes.claims_of("ns", name, task.uid, task.shape.pod.spec.volumes, mirror.objects)
    try:
        plan = volumes.plan(claims.delayed, node, mirror.objects, choices)
    except VolumeProblem:
        return None
    chosen = [(each, volumes.Choice(found.name, node.name)) for found, each in plan.static]
    return chosen + [(each, volumes.Choice(None, node.name)) for each in plan.provision]
