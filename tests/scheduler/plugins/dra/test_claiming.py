"""Pods with device claims in whole sessions: where they may go, who gets which devices, what is given back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins import node_facts
from stromboli.scheduler.plugins.dra import claiming
from stromboli.scheduler.plugins.dra.claiming import DeviceClaims
from stromboli.testing import builders
from stromboli.testing.builders import PodBuilder, node, pod_group, queue
from tests.scheduler.core.worlds import binds, feed, picture, policy, run_cycle, world
from tests.scheduler.plugins.dra.building import (
    DRIVER,
    claim,
    device,
    device_class,
    devices,
    given,
    names,
    request,
    resource_slice,
)
from tests.scheduler.plugins.sessions import Session, option


def pod(name: str, *claims: str, template: str = "") -> PodBuilder:
    """A pod with claims by name, or one made for it from a template."""
    made = builders.pod(name).group("job").request(cpu=1)
    references = [core.PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    status = made.status
    if template:
        references.append(core.PodResourceClaim(name="own", resource_claim_template_name="t"))
        generated = core.PodResourceClaimStatus(name="own", resource_claim_name=template)
        status = core.PodStatus(phase="Pending", resource_claim_statuses=(generated,))
    spec = core.PodSpec(scheduler_name="volcano", resource_claims=tuple(references))
    return replace(made, spec=spec, status=status)


def cluster(pods: Iterable[PodBuilder], *objects: core.Object, nodes: int = 2, minimum: int = 1) -> Mirror:
    """Nodes n0, n1, ... with four CPUs, a class ``gpu`` of everything, and one job."""
    return world(
        [node(f"n{index}").offer(cpu=4, memory="8Gi").build() for index in range(nodes)],
        queue("default").build(),
        pod_group("job").members(minimum).build(),
        [each.build() for each in pods],
        device_class(),
        objects,
    )


PLUGINS: tuple[PluginOption | str, ...] = ("gang", "predicates")


def scheduled(mirror: Mirror, **how: object) -> CycleResult:
    return run_cycle(mirror, policy(*PLUGINS, actions="allocate"), **how)


def granted(result: CycleResult) -> dict[str, list[str]]:
    """Pod to ``claim=device,...`` as the shell is to write it; nothing after the sign when it is written already."""
    found = {}
    for bind in result.binds:
        grants = bind.extension.devices if bind.extension is not None else ()
        found[bind.task.name] = [
            f"{grant.claim}={','.join(result.device for result in grant.allocation.devices.results)}"
            if grant.allocation is not None
            else f"{grant.claim}="
            for grant in grants
        ]
    return found


# -- one pod, one answer ----------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A pod ``p`` with claim ``c`` among objects, and by node the reasons that refuse it."""

    objects: list[core.Object]
    want: dict[str, list[str]]
    arguments: dict[str, object] = field(default_factory=dict)


NO_WAY = [claiming.CANNOT_ALLOCATE.text]
ON_N0 = resource_slice("s", *devices(1), node="n0")
BROKEN = device_class("broken", 'device.attributes["some-driver"].healthy')

REFUSALS = {
    "only where the devices are": Case([claim("c"), ON_N0], {"n1": NO_WAY}),
    "nowhere when another claim has the device": Case(
        [claim("c"), claim("other", allocation=given("gpu-0")), ON_N0], {"n0": NO_WAY, "n1": NO_WAY}
    ),
    "an administrator does not take the device away": Case(
        [claim("c"), claim("other", allocation=given("gpu-0", admin=True)), ON_N0], {"n1": NO_WAY}
    ),
    "an allocated claim is used where it can be": Case(
        [claim("c", allocation=given("gpu-0", node="n1"))], {"n0": [claiming.NOT_HERE.text]}
    ),
    "an allocated claim without a place is used everywhere": Case([claim("c", allocation=given("net"))], {}),
    "a pool that is broken": Case(
        [claim("c"), resource_slice("s", device("x"), device("x"), node="n0")],
        {"n0": [f"pool {DRIVER}/n0 is invalid: duplicate device name x"], "n1": NO_WAY},
    ),
    "an expression that fails": Case(
        [claim("c", request(class_="broken")), BROKEN, resource_slice("s", *devices(1))],
        dict.fromkeys(("n0", "n1"), ["class broken: selector #0: CEL runtime error: no such key: healthy"]),
    ),
    "a claim that makes no sense": Case(
        [claim("c", request(mode="Some")), ON_N0],
        dict.fromkeys(("n0", "n1"), ["claim ns/c, request r: unsupported count mode Some"]),
    ),
    "switched off": Case([claim("c"), ON_N0], {}, {"predicate.DynamicResourceAllocationEnable": False}),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_where_a_pod_may_go(case: Case) -> None:
    session = Session(plugins=[option("predicates", case.arguments)], mirror=cluster([pod("p", "c")], *case.objects))
    assert session.refusals("p") == case.want


def test_the_feature_gate_switches_device_claims_off() -> None:
    options = {"feature-gates": {"DynamicResourceAllocation": False}}
    session = Session(plugins=["predicates"], mirror=cluster([pod("p", "c")]), options=options)
    assert session.refusals("p") == {}
    assert session.combination.prepare(session.task("p")) is None


FULL = tuple(f"uid-{index}" for index in range(256))
PROBLEMS = {
    "claim that does not exist": (pod("p", "c"), [], 'resourceclaim.resource.k8s.io "c" not found'),
    "claim that has not been made": (
        replace(pod("p", template="x"), status=core.PodStatus(phase="Pending")),
        [],
        'pod "ns/p": ResourceClaim not created yet',
    ),
    "claim that was made for another pod of this name": (
        pod("p", template="c"),
        [claim("c", owner="another")],
        "ResourceClaim ns/c was not created for pod ns/p (pod is not owner)",
    ),
    "claim that is being deleted": (
        pod("p", "c"),
        [core.ResourceClaim(metadata=core.ObjectMeta(name="c", namespace="ns", deletion_timestamp=builders.BIRTH))],
        'resourceclaim "c" is being deleted',
    ),
    "claim that has as many users as it can have": (
        pod("p", "c"),
        [claim("c", allocation=given("gpu-0"), reserved=FULL)],
        "resourceclaim in use",
    ),
    "class that does not exist": (
        pod("p", "c"),
        [claim("c", request(class_="ghost"))],
        "request r: device class ghost does not exist",
    ),
    "request that asks for nothing": (
        pod("p", "c"),
        [claim("c", core.DeviceRequest(name="r"))],
        "request r: unsupported request type",
    ),
}


@pytest.mark.parametrize(("given_pod", "objects", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_pods_whose_claims_cannot_be_tried(given_pod: PodBuilder, objects: list[core.Object], want: str) -> None:
    session = Session(plugins=["predicates"], mirror=cluster([given_pod], *objects))
    error = session.combination.prepare(session.task("p"))
    assert error == f"plugin DynamicResources pre-predicates failed {want}"


def test_a_pod_for_which_a_full_claim_is_reserved_may_use_it() -> None:
    mirror = cluster([pod("p", "c")], claim("c", allocation=given("gpu-0"), reserved=(*FULL[1:], "ns-p")))
    session = Session(plugins=["predicates"], mirror=mirror)
    assert session.combination.prepare(session.task("p")) is None


def test_a_template_that_asks_for_nothing_needs_nothing() -> None:
    nothing = core.PodStatus(phase="Pending", resource_claim_statuses=(core.PodResourceClaimStatus(name="own"),))
    session = Session(plugins=["predicates"], mirror=cluster([replace(pod("p", template="x"), status=nothing)]))
    assert session.combination.prepare(session.task("p")) is None
    assert session.refusals("p") == {}


def test_a_search_that_costs_too_much_is_given_up_and_said_so() -> None:
    own = f'device.attributes["{DRIVER}"]'
    hopeless = claim(
        "c",
        request("a", 8),
        request("b", 1, f"{own}.numa == 1"),
        constraints=(core.DeviceConstraint(match_attribute="numa"),),
    )
    offered = [*(device(f"gpu-{index}", numa=0) for index in range(24)), device("far", numa=1)]
    mirror = cluster([pod("p", "c")], hopeless, resource_slice("s", *offered, node="n0"))
    session = Session(plugins=[option("predicates", {"dynamicresources.filterTimeoutSeconds": 1})], mirror=mirror)
    assert session.refusals("p")["n0"] == [claiming.TIMED_OUT.text]


@pytest.mark.parametrize(
    ("seconds", "want"), [(3, 150_000), (-5, 500_000), (None, 500_000), ("soon", 500_000), (True, 500_000), (0, None)]
)
def test_the_time_limit_is_a_number_of_steps(seconds: object, want: int | None) -> None:
    assert claiming.steps_of(seconds) == want


# -- what is given to whom --------------------------------------------------------------------------------------------


def gang(size: int) -> tuple[list[PodBuilder], list[core.ResourceClaim]]:
    """Pods p0, p1, ..., each with a claim of its own from one template."""
    pods = [pod(f"p{index}", template=f"c{index}") for index in range(size)]
    return pods, [claim(f"c{index}", owner=f"p{index}") for index in range(size)]


def slices(*counts: int) -> list[core.ResourceSlice]:
    """So many devices on n0, n1, ..."""
    return [resource_slice(f"s{index}", *devices(count), node=f"n{index}") for index, count in enumerate(counts)]


def test_a_gang_gets_devices_of_its_own() -> None:
    pods, claims = gang(4)
    result = scheduled(cluster(pods, *claims, *slices(2, 2), minimum=4))
    assert result.problems == []
    found = granted(result)
    assert sorted(found) == ["p0", "p1", "p2", "p3"]
    by_node = {(binds(result)[name], device_name.partition("=")[2]) for name, (device_name,) in found.items()}
    assert by_node == {("n0", "gpu-0"), ("n0", "gpu-1"), ("n1", "gpu-0"), ("n1", "gpu-1")}


def test_a_gang_that_finds_too_few_devices_leaves_no_trace() -> None:
    pods, claims = gang(4)
    mirror = cluster(pods, *claims, *slices(2, 1), minimum=4)
    before = picture(mirror)
    result = scheduled(mirror)
    assert result.binds == []
    assert picture(mirror) == before
    feed(mirror, resource_slice("s1", *devices(2), node="n1"))
    assert len(scheduled(mirror).binds) == 4


def test_a_gang_may_share_a_claim() -> None:
    pods = [pod(f"p{index}", "shared") for index in range(3)]
    result = scheduled(cluster(pods, claim("shared"), *slices(1, 1), minimum=3))
    assert set(binds(result).values()) == {"n0"}
    assert granted(result) == dict.fromkeys(["p0", "p1", "p2"], ["shared=gpu-0"])


def test_devices_on_the_network_are_given_once() -> None:
    pods, claims = gang(3)
    result = scheduled(cluster(pods, *claims, resource_slice("net", *devices(2))))
    assert sorted(device for grants in granted(result).values() for device in grants) == ["c0=gpu-0", "c1=gpu-1"]


def test_a_claim_that_has_its_devices_is_only_reserved() -> None:
    result = scheduled(cluster([pod("p", "c")], claim("c", allocation=given("gpu-0", node="n1"))))
    assert binds(result) == {"p": "n1"}
    assert granted(result) == {"p": ["c="]}


def test_a_pod_without_claims_carries_nothing() -> None:
    result = scheduled(cluster([pod("p")], claim("unused")))
    assert granted(result) == {"p": []}


# -- from cycle to cycle ----------------------------------------------------------------------------------------------


def test_what_is_promised_is_kept_until_it_is_written() -> None:
    pods, claims = gang(2)
    mirror = cluster(pods[:1], *claims, *slices(1), nodes=1)
    assert granted(scheduled(mirror)) == {"p0": ["c0=gpu-0"]}
    feed(mirror, pods[1].build())
    assert scheduled(mirror).binds == []
    feed(mirror, claim("c0", owner="p0", allocation=given("gpu-0", node="n0"), reserved=("ns-p0",)))
    assert scheduled(mirror).binds == []
    feed(mirror, claim("c0", owner="p0"))
    mirror.delete_pod("ns/p0")
    assert granted(scheduled(mirror)) == {"p1": ["c1=gpu-0"]}


def test_what_is_promised_to_a_pod_whose_bind_fails_is_free_again() -> None:
    pods, claims = gang(2)
    mirror = cluster(pods[:1], *claims, *slices(1), nodes=1)
    scheduled(mirror)
    mirror.bind_failed("ns-p0")
    mirror.delete_pod("ns/p0")
    feed(mirror, pods[1].build())
    assert granted(scheduled(mirror)) == {"p1": ["c1=gpu-0"]}


def test_a_claim_made_again_has_no_part_in_old_promises() -> None:
    mirror = cluster([pod("p0", "c")], claim("c"), *slices(1, 1))
    scheduled(mirror)
    again = claim("c")
    again = core.ResourceClaim(
        metadata=core.ObjectMeta(name="c", namespace="ns", uid="another"), spec=again.spec, status=again.status
    )
    feed(mirror, again)
    feed(mirror, pod("p1", "c").build())
    (bind,) = scheduled(mirror).binds
    assert bind.extension is not None
    (grant,) = bind.extension.devices
    assert grant.uid == "another"
    assert grant.allocation is not None
    assert names(grant.allocation) == ["r:gpu-0"]


# -- placements by hand -----------------------------------------------------------------------------------------------


def test_a_placement_without_devices_is_refused() -> None:
    pods, claims = gang(2)
    session = Session(plugins=["predicates"], mirror=cluster(pods, *claims, *slices(1)))
    session.place("p0", "n0")
    assert session.refusals("p1") == dict.fromkeys(("n0", "n1"), NO_WAY)
    before = picture(session.mirror)
    with pytest.raises(PlacementRefused, match="cannot allocate all claims"):
        session.cycle.statement().allocate(session.task("p1"), session.node("n0"))
    assert picture(session.mirror) == before


def test_devices_of_an_evicted_pod_are_not_free_yet() -> None:
    mirror = cluster(
        [pod("old", "c").on("n0"), pod("new", "d")],
        claim("c", allocation=given("gpu-0", node="n0"), reserved=("ns-old",)),
        claim("d"),
        *slices(1),
    )
    session = Session(plugins=["predicates"], mirror=mirror)
    session.evict("old")
    assert session.refusals("new")["n0"] == NO_WAY


def test_an_undone_placement_gives_its_devices_back() -> None:
    pods, claims = gang(2)
    session = Session(plugins=["predicates"], mirror=cluster(pods, *claims, *slices(1)))
    statement = session.cycle.statement()
    statement.pipeline(session.task("p0"), session.node("n0"), eviction_occurred=False)
    assert session.refusals("p1")["n0"] == NO_WAY
    statement.discard()
    assert session.refusals("p1") == {"n1": NO_WAY}


def test_the_pods_of_a_gang_share_what_was_found_out_about_nodes() -> None:
    pods, claims = gang(8)
    mirror = cluster(pods, *claims, *slices(*[8] * 20), nodes=20)
    session = Session(plugins=["predicates"], mirror=mirror)
    claims_of_all = DeviceClaims(session.view, node_facts.of(session.view).labels, None)
    rows = np.arange(20)
    for each in pods:
        assert not np.any(claims_of_all.refuse(session.task(each.name), rows))
    assert claims_of_all.searches == 20
    claims_of_all.placed(session.task("p0"), session.node("n3"))
    claims_of_all.refuse(session.task("p1"), rows)
    assert claims_of_all.searches == 20 + 1 + 1  # the placement itself, and the node that it was on


def test_all_nodes_together_cost_no_more_than_ten_times_what_one_may() -> None:
    own = f'device.attributes["{DRIVER}"]'
    hopeless = claim(
        "c",
        request("a", 8),
        request("b", 1, f"{own}.numa == 1"),
        constraints=(core.DeviceConstraint(match_attribute="numa"),),
    )
    offered = [*(device(f"gpu-{index}", numa=0) for index in range(16)), device("far", numa=1)]
    slices_of_all = [resource_slice(f"s{index}", *offered, node=f"n{index}") for index in range(30)]
    mirror = cluster([pod("p", "c")], hopeless, *slices_of_all, nodes=30)
    session = Session(plugins=["predicates"], mirror=mirror)
    found = DeviceClaims(session.view, node_facts.of(session.view).labels, 500)
    refusals = found.refuse(session.task("p"), np.arange(30))
    assert refusals is not None
    assert {found.reasons[code - 1] for code in refusals.tolist()} == {claiming.TIMED_OUT}
    assert found.searches == 10
    with pytest.raises(PlacementRefused, match="timed out"):
        found.placed(session.task("p"), session.node("n0"))


def test_a_claim_takes_no_more_users_than_the_api_allows() -> None:
    pods = [pod(f"p{index}", "c") for index in range(3)]
    mirror = cluster(pods, claim("c", reserved=FULL[2:]), *slices(1))
    session = Session(plugins=["predicates"], mirror=mirror)
    session.place("p0", "n0")
    session.place("p1", "n0")
    with pytest.raises(PlacementRefused, match="resourceclaim in use"):
        session.cycle.statement().allocate(session.task("p2"), session.node("n0"))
