"""CSI volumes as scalars of pods, nodes and queues, whatever comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.api.resourcenames import csi_attach_limit
from stromboli.scheduler.core.attaching import UNLIMITED
from stromboli.scheduler.core.mirror import Mirror
from stromboli.testing.builders import pod_group, queue
from tests.scheduler.core.worlds import audit, binds, feed, policy, run_cycle, world
from tests.scheduler.plugins.volumes.building import (
    DRIVER,
    claim,
    cluster,
    csi_node,
    nodes,
    pod,
    storage_class,
    volume,
)

SCALAR = csi_attach_limit(DRIVER)
DYNAMIC = storage_class("fast", DRIVER)
PLACING = policy("gang", "predicates", "proportion")


def asked(mirror: Mirror, task: str) -> dict[str, float]:
    """The volume scalars of a task, as the next cycle will see them."""
    mirror.prepare()
    audit(mirror)
    request = mirror.columns.amounts(mirror.tasks[f"ns/{task}"].request)
    return {name: amount for name, amount in request.items() if name.startswith("attachable-volumes-")}


def offered(mirror: Mirror, node: str, scalar: str = SCALAR) -> float | None:
    """How many volumes a node can attach; None when the scalar is unknown."""
    mirror.prepare()
    column = mirror.columns.get(scalar)
    return None if column is None else float(mirror.nodes.allocatable[mirror.nodes_by_name[node].row, column])


@dataclass(frozen=True)
class Case:
    claims: tuple[str, ...]
    objects: tuple[core.Object, ...]
    want: dict[str, float]
    ephemeral: str = ""


CASES: dict[str, Case] = {
    "the driver of a bound volume": Case(
        ("data",), (claim(volume="pv"), volume(handle="h", driver="other.csi")), {csi_attach_limit("other.csi"): 1.0}
    ),
    "a bound volume that is not a CSI volume": Case(
        ("data",), (claim(class_="fast", volume="pv"), volume(), DYNAMIC), {}
    ),
    "the provisioner of a claim that waits": Case(("data",), (claim(class_="fast"), DYNAMIC), {SCALAR: 1.0}),
    "the provisioner while the volume is not known": Case(
        ("data",), (claim(class_="fast", volume="pv"), DYNAMIC), {SCALAR: 1.0}
    ),
    "a class that names its driver": Case(
        ("data",),
        (
            claim(class_="named"),
            core.StorageClass(
                metadata=core.ObjectMeta(name="named"),
                provisioner="operator.example.com",
                parameters={"csi.storage.k8s.io/csi-driver-name": DRIVER},
            ),
        ),
        {SCALAR: 1.0},
    ),
    "one for each claim": Case(
        ("data", "more"), (claim(class_="fast"), claim("more", class_="fast"), DYNAMIC), {SCALAR: 2.0}
    ),
    "an ephemeral claim of the pod": Case(
        (), (claim("p-scratch", class_="fast", owner="p"), DYNAMIC), {SCALAR: 1.0}, ephemeral="scratch"
    ),
    "an ephemeral claim of another pod": Case(
        (), (claim("p-scratch", class_="fast", owner="q"), DYNAMIC), {}, ephemeral="scratch"
    ),
    "a claim without class": Case(("data",), (claim(class_=None),), {}),
    "a claim with an unknown class": Case(("data",), (claim(class_="ghost"),), {}),
    "a claim that does not exist": Case(("data",), (DYNAMIC,), {}),
    "local volumes": Case(("data",), (claim(), storage_class()), {}),
    "a provisioner that attaches nothing": Case(
        ("data",), (claim(class_="path"), storage_class("path", "rancher.io/local-path")), {}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pod_asks_for_what_it_attaches(case: Case) -> None:
    mirror = cluster([pod("p", *case.claims, ephemeral=case.ephemeral)], *case.objects)
    assert asked(mirror, "p") == case.want


@given(st.permutations([*(each.build() for each in nodes(2)), claim(class_="fast"), DYNAMIC, csi_node("n0", 1)]))
@settings(max_examples=60, deadline=None)
def test_any_order_of_events_gives_the_same_amounts(objects: Iterable[core.Object]) -> None:
    for early in (True, False):
        mirror = Mirror()
        waiting = pod("p", "data").build()
        for obj in (waiting, *objects) if early else (*objects, waiting):
            feed(mirror, obj)
        assert (asked(mirror, "p"), offered(mirror, "n0"), offered(mirror, "n1")) == ({SCALAR: 1.0}, 1.0, 0.0)


def test_ignored_provisioners_count_nothing() -> None:
    mirror = Mirror(ignored_provisioners=[DRIVER])
    for obj in (claim(class_="fast"), DYNAMIC, pod("p", "data").build()):
        feed(mirror, obj)
    assert asked(mirror, "p") == {}


def test_a_pod_follows_its_claim_to_the_volume_it_gets() -> None:
    mirror = cluster([pod("p", "data").on("n0")], claim(class_="fast"), DYNAMIC)
    assert asked(mirror, "p") == {SCALAR: 1.0}
    feed(mirror, claim(class_="fast", volume="pv"))
    feed(mirror, volume(handle="h", driver="other.csi", taken_by="data"))
    assert asked(mirror, "p") == {csi_attach_limit("other.csi"): 1.0}
    mirror.delete_object(core.PersistentVolumeClaim, ("ns", "data"))
    assert asked(mirror, "p") == {}


def test_a_claim_of_a_pod_that_is_gone_changes_nothing() -> None:
    mirror = cluster([pod("p", "data").on("n0")], claim(class_="fast"), DYNAMIC)
    mirror.delete_pod("ns/p")
    feed(mirror, claim(class_="other"))
    mirror.prepare()
    audit(mirror)
    assert not mirror.tasks


def test_a_node_follows_its_csi_node() -> None:
    mirror = cluster([pod("p", "data").on("n0")], claim(class_="fast"), DYNAMIC)
    assert offered(mirror, "n0") == UNLIMITED
    feed(mirror, csi_node("n0", 3))
    assert (offered(mirror, "n0"), offered(mirror, "n1")) == (3.0, 0.0)
    feed(mirror, csi_node("n0", None))
    assert (offered(mirror, "n0"), offered(mirror, "n1")) == (UNLIMITED, 0.0)
    mirror.delete_object(core.CSINode, ("", "n0"))
    assert (offered(mirror, "n0"), offered(mirror, "n1")) == (UNLIMITED, UNLIMITED)
    audit(mirror)


def test_limits_cost_nothing_while_no_pod_attaches_anything() -> None:
    mirror = cluster([pod("p")], csi_node("n0", 3))
    assert offered(mirror, "n0") is None


def test_a_node_whose_volumes_are_used_up_takes_no_more() -> None:
    mirror = cluster(
        [pod("old", "data").on("n0"), pod("new", "more")],
        *(claim(class_="fast"), claim("more", class_="fast"), DYNAMIC, csi_node("n0", 1)),
        on=nodes(1),
    )
    result = run_cycle(mirror, policy("gang", "predicates"))
    assert binds(result) == {}
    assert any(f"Insufficient {SCALAR}" in update.message for update in result.pods)


def test_volumes_go_where_their_driver_is() -> None:
    mirror = cluster([pod("p", "data")], claim(class_="fast"), DYNAMIC, csi_node("n1", None))
    assert binds(run_cycle(mirror, PLACING)) == {"p": "n1"}


def test_a_driver_that_no_node_names_limits_nothing() -> None:
    mirror = cluster([pod("p", "data")], claim(class_="shared"), storage_class("shared", "nfs.example.com/export"))
    assert binds(run_cycle(mirror, PLACING)) == {"p": "n0"}


def test_a_pod_that_asks_for_volumes_alone_is_not_best_effort() -> None:
    bare = replace(pod("p", "data"), requests={})
    with_volume = cluster([bare], claim(class_="fast"), DYNAMIC)
    without = cluster([bare], claim())
    for mirror, best_effort in ((with_volume, False), (without, True)):
        mirror.prepare()
        assert mirror.tasks["ns/p"].shape.best_effort is best_effort


def test_a_queue_can_limit_volumes_and_tells_how_many_it_has() -> None:
    mirror = world(
        [each.build() for each in nodes(1)],
        queue("default").cap(**{SCALAR: "1m"}).build(),
        pod_group("job").members(1).build(),
        [each.build() for each in (pod("old", "data").on("n0"), pod("new", "more"))],
        [claim(class_="fast"), claim("more", class_="fast"), DYNAMIC, csi_node("n0", 8)],
    )
    result = run_cycle(mirror, policy("gang", "predicates", "capacity"))
    assert binds(result) == {}
    [update] = [update for update in result.queues if update.name == "default"]
    assert update.allocated[SCALAR] == "1m"
