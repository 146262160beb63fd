"""The structured allocator: which devices claims get on a node, and what it says when there are none."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.plugins.dra.allocator import OutOfSteps, Selectors, Steps, allocate
from stromboli.scheduler.plugins.dra.expressions import matches
from stromboli.scheduler.plugins.dra.requests import BadClaim
from stromboli.scheduler.plugins.dra.taking import Taken
from tests.scheduler.plugins.dra.building import (
    DRIVER,
    claim,
    device,
    device_class,
    devices,
    either,
    names,
    needs,
    pools,
    request,
    resource_slice,
    same,
    taken,
)

OWN = f'device.attributes["{DRIVER}"]'
BIG = device_class("big", f"{OWN}.size >= 40")
BROKEN = device_class("broken", f"{OWN}.missing == 1")


@dataclass
class Case:
    """Claims on node n0 with slices, and the devices of each claim, the text of an error, or nothing."""

    claims: list[core.ResourceClaim]
    slices: list[core.ResourceSlice]
    want: list[list[str]] | str | None
    taken: Taken = field(default_factory=taken)


def on_node(*offered: core.Device) -> list[core.ResourceSlice]:
    return [resource_slice("s", *offered, node="n0")]


MIXED = on_node(device("small", size=10), device("large", size=80), device("medium", size=40))
NUMA = on_node(*(device(f"gpu-{index}", numa=index % 3) for index in range(7)))

CASES = {
    "first free device": Case([claim()], on_node(*devices(2)), [["r:gpu-0"]]),
    "device that another claim has": Case([claim()], on_node(*devices(2)), [["r:gpu-1"]], taken("gpu-0")),
    "nothing left": Case([claim()], on_node(*devices(2)), None, taken("gpu-0", "gpu-1")),
    "no devices at all": Case([claim()], [], None),
    "several devices": Case([claim("c", request("r", 3))], on_node(*devices(4)), [["r:gpu-0", "r:gpu-1", "r:gpu-2"]]),
    "more than there are": Case([claim("c", request("r", 3))], on_node(*devices(2)), None),
    "claims share out what there is": Case([claim("a"), claim("b")], on_node(*devices(2)), [["r:gpu-0"], ["r:gpu-1"]]),
    "class selects": Case([claim("c", request(class_="big"))], MIXED, [["r:large"]]),
    "request selects further": Case(
        [claim("c", request("r", 1, f"{OWN}.size < 80", class_="big"))], MIXED, [["r:medium"]]
    ),
    "an early choice is taken back for a later request": Case(
        [claim("c", request("any"), request("small", 1, f"{OWN}.size == 10"))], MIXED, [["any:large", "small:small"]]
    ),
    "an early choice is taken back for a later claim": Case(
        [claim("a"), claim("b", request("r", 1, f"{OWN}.size == 10"))], MIXED, [["r:large"], ["r:small"]]
    ),
    "all devices of a class": Case([claim("c", request(class_="big", mode="All"))], MIXED, [["r:large", "r:medium"]]),
    "all devices, but one is taken": Case(
        [claim("c", request(class_="big", mode="All"))], MIXED, None, taken("medium")
    ),
    "all of none": Case([claim("c", request("r", 1, "false", mode="All"))], MIXED, None),
    "all devices while the pool is being published": Case(
        [claim("c", request(mode="All"))],
        [resource_slice("s", *devices(1), node="n0", count=2)],
        f"claim ns/c, request r: asks for all devices, but resource pool {DRIVER}/n0 is currently being updated",
    ),
    "some device while the pool is being published": Case(
        [claim()], [resource_slice("s", *devices(1), node="n0", count=2)], None
    ),
    "devices of one NUMA node": Case(
        [claim("c", request("r", 2), constraints=(same("numa"),))], NUMA, [["r:gpu-0", "r:gpu-3"]]
    ),
    "devices of one NUMA node where the first has too few": Case(
        [claim("c", request("r", 2), constraints=(same(f"{DRIVER}/numa"),))],
        NUMA,
        [["r:gpu-1", "r:gpu-4"]],
        taken("gpu-3", "gpu-6"),
    ),
    "no NUMA node has enough": Case([claim("c", request("r", 4), constraints=(same("numa"),))], NUMA, None),
    "constraint on some requests only": Case(
        [claim("c", request("a"), request("b"), request("free"), constraints=(same("numa", "a", "b"),))],
        NUMA,
        [["a:gpu-0", "b:gpu-3", "free:gpu-1"]],
    ),
    "attribute that a device lacks": Case([claim("c", request(), constraints=(same("numa"),))], MIXED, None),
    "values of different types are not equal": Case(
        [claim("c", request("r", 2), constraints=(same("rank"),))],
        on_node(device("number", rank=1), device("text", rank="1")),
        None,
    ),
    "distinct attribute": Case(
        [claim("c", request("r", 3), constraints=(core.DeviceConstraint(distinct_attribute="numa"),))],
        NUMA,
        [["r:gpu-0", "r:gpu-1", "r:gpu-2"]],
    ),
    "best alternative": Case(
        [claim("c", either("r", ("one-big", 1, "big"), ("two-small", 2, "gpu")))], MIXED, [["r/one-big:large"]]
    ),
    "second alternative": Case(
        [claim("c", either("r", ("three-big", 3, "big"), ("two", 2, "gpu")))], MIXED, [["r/two:small", "r/two:large"]]
    ),
    "alternative that leaves nothing for the next request": Case(
        [claim("c", either("r", ("all", 3, "gpu"), ("one", 1, "gpu")), request("x", 2))],
        MIXED,
        [["r/one:small", "x:large", "x:medium"]],
    ),
    "constraint named after the request holds for its alternatives": Case(
        [claim("c", either("r", ("two", 2, "gpu")), constraints=(same("numa", "r"),))],
        NUMA,
        [["r/two:gpu-0", "r/two:gpu-3"]],
    ),
    "administrators look at devices that are in use": Case(
        [claim("c", request(admin=True))], on_node(*devices(1)), [["r:gpu-0"]], taken("gpu-0")
    ),
    "administrators do not keep a device from others": Case(
        [claim("a", request(admin=True)), claim("b")], on_node(*devices(1)), [["r:gpu-0"], ["r:gpu-0"]]
    ),
    "a claim does not get a device twice, not even to look at": Case(
        [claim("c", request("a", admin=True), request("b", admin=True))], on_node(*devices(1)), None
    ),
    "capacity": Case(
        [claim("c", request(capacity={"memory": "40Gi"}))],
        on_node(
            device("small", capacity={"memory": "8Gi"}), device("none"), device("fit", capacity={"memory": "40Gi"})
        ),
        [["r:fit"]],
    ),
    "expression that fails for every device": Case(
        [claim("c", request(class_="broken"))],
        on_node(*devices(1)),
        "class broken: selector #0: CEL runtime error: no such key: missing",
    ),
    "device for which an expression fails is passed over": Case(
        [claim("c", request("r", 1, f"{OWN}.size > 1"))],
        on_node(device("plain"), device("sized", size=2)),
        [["r:sized"]],
    ),
    "selector of an unknown kind": Case(
        [
            claim(
                "c",
                core.DeviceRequest(
                    name="r",
                    exactly=core.ExactDeviceRequest(device_class_name="gpu", selectors=(core.DeviceSelector(),)),
                ),
            )
        ],
        on_node(*devices(1)),
        "request r: selector #0: CEL expression empty (unsupported selector type?)",
    ),
    "more than a claim can hold, in steps": Case(
        [claim("c", request("a", 20), either("r", ("many", 20, "gpu"), ("few", 1, "gpu")))],
        on_node(*devices(40)),
        [[*(f"a:gpu-{index}" for index in range(20)), "r/few:gpu-20"]],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_allocations(case: Case) -> None:
    wanted = needs(*case.claims, classes=(BIG, BROKEN))
    try:
        found = allocate(wanted, "n0", pools(*case.slices), case.taken, Selectors())
    except BadClaim as error:
        assert str(error) == case.want
        return
    assert (None if found is None else [names(each) for each in found]) == case.want


BAD = {
    "count mode": (claim("c", request(mode="Some")), "claim ns/c, request r: unsupported count mode Some"),
    "empty request": (claim("c", core.DeviceRequest(name="r")), "claim ns/c, request r: unsupported request type"),
    "empty constraint": (
        claim("c", constraints=(core.DeviceConstraint(),)),
        "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)",
    ),
    "too many devices": (
        claim("c", request("a", 30), request("b", 3)),
        "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
    ),
    "unknown class": (
        claim("c", request(class_="ghost")),
        "claim ns/c, request r: could not retrieve device class ghost",
    ),
}


@pytest.mark.parametrize(("bad", "want"), BAD.values(), ids=BAD.keys())
def test_claims_that_cannot_be_served_by_any_node(bad: core.ResourceClaim, want: str) -> None:
    with pytest.raises(BadClaim) as caught:
        needs(bad)
    assert str(caught.value) == want


# -- what an allocation says -----------------------------------------------------------------------------------------


def allocated(wanted: core.ResourceClaim, *slices: core.ResourceSlice, zone: str = "") -> core.DeviceAllocation:
    classes = (device_class("tuned", parameters={"mode": "fast"}),)
    found = allocate(needs(wanted, classes=classes), "n0", pools(*slices, zone=zone), taken(), Selectors())
    assert found is not None
    return found[0]


def test_local_devices_tie_the_claim_to_their_node() -> None:
    mixed = [
        resource_slice("a", *devices(1), pool="a", zone="z"),
        resource_slice("b", *devices(1), node="n0", pool="b"),
    ]
    allocation = allocated(claim("c", request("r", 2)), *mixed, zone="z")
    assert allocation.node_selector is not None
    (term,) = allocation.node_selector.node_selector_terms
    assert [(each.key, each.operator, each.values) for each in term.match_fields] == [("metadata.name", "In", ("n0",))]


def test_devices_of_a_zone_tie_the_claim_to_the_zone() -> None:
    zoned = [resource_slice(name, *devices(1), pool=name, zone="z") for name in "ab"]
    allocation = allocated(claim("c", request("r", 2)), *zoned, zone="z")
    assert allocation.node_selector is not None
    (term,) = allocation.node_selector.node_selector_terms
    assert [(each.key, each.values) for each in term.match_expressions] == [("zone", ("z",))]


def test_devices_for_everyone_tie_the_claim_to_nothing() -> None:
    assert allocated(claim(), resource_slice("s", *devices(1))).node_selector is None


def test_configuration_of_classes_comes_before_that_of_the_claim() -> None:
    def tuned(name: str) -> core.OpaqueDeviceConfiguration:
        return core.OpaqueDeviceConfiguration(driver=DRIVER, parameters={"name": name})

    wanted = claim(
        "c",
        request("a", class_="tuned"),
        either("b", ("x", 9, "gpu"), ("y", 1, "gpu")),
        config=(
            core.DeviceConfiguration(opaque=tuned("for all")),
            core.DeviceConfiguration(requests=("b/x",), opaque=tuned("for what was not chosen")),
            core.DeviceConfiguration(requests=("b",), opaque=tuned("for b")),
        ),
    )
    config = allocated(wanted, *on_node(*devices(2))).devices.config
    assert [(each.source, each.requests, each.opaque and each.opaque.parameters) for each in config] == [
        ("FromClass", ("a",), {"mode": "fast"}),
        ("FromClaim", (), {"name": "for all"}),
        ("FromClaim", ("b",), {"name": "for b"}),
    ]


def test_administrative_access_is_written_down() -> None:
    found = allocated(claim("c", request(admin=True)), *on_node(*devices(1)))
    (result,) = found.devices.results
    assert core.to_builtins(result) == {
        "request": "r",
        "driver": DRIVER,
        "pool": "n0",
        "device": "gpu-0",
        "adminAccess": True,
    }


# -- what a search costs ----------------------------------------------------------------------------------------------


def test_a_search_that_takes_too_long_is_given_up() -> None:
    hopeless = claim("c", request("a", 8), request("b", 1, f"{OWN}.numa == 1"), constraints=(same("numa"),))
    offered = on_node(*(device(f"gpu-{index}", numa=0) for index in range(16)), device("far", numa=1))
    with pytest.raises(OutOfSteps):
        allocate(needs(hopeless), "n0", pools(*offered), taken(), Selectors(), Steps(2_000))


def test_devices_that_are_alike_are_not_tried_in_every_order() -> None:
    steps = Steps(2_000)
    wanted = claim("c", request("r", 20), constraints=(same("rank"),))
    offered = on_node(*(device(f"gpu-{index}", rank=index % 2) for index in range(30)))
    assert allocate(needs(wanted), "n0", pools(*offered), taken(), Selectors(), steps) is None


def test_an_expression_is_evaluated_once_for_a_device() -> None:
    asked: list[str] = []

    def counting(expression: str, driver: str, offered: core.Device) -> bool:
        asked.append(offered.name)
        return matches(expression, driver, offered)

    selectors, present = Selectors(counting), pools(*MIXED)
    for _ in range(3):
        allocate(needs(claim("c", request(class_="big")), classes=(BIG,)), "n0", present, taken(), selectors)
    assert asked == ["small", "large", "medium"]


# -- the search finds the first of all solutions ----------------------------------------------------------------------

Request = tuple[int, tuple[int, ...]]
"""Devices wanted, and the sizes that will do."""


def every_solution(requests: Sequence[Request], sizes: Sequence[int], equal: bool) -> Iterator[list[int]]:
    """All ways to give devices to requests, in the order in which a plain depth-first search meets them."""
    places = [set(wanted) for count, wanted in requests for _ in range(count)]
    for chosen in itertools.permutations(range(len(sizes)), len(places)):
        fits = all(sizes[index] in wanted for index, wanted in zip(chosen, places, strict=True))
        if fits and (not equal or len({sizes[index] for index in chosen}) == 1):
            yield list(chosen)


@settings(deadline=None, max_examples=150)
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 2), st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(tuple)),
        min_size=1,
        max_size=3,
    ),
    sizes=st.lists(st.integers(0, 2), max_size=5),
    equal=st.booleans(),
)
def test_the_first_of_all_solutions_is_found(requests: list[Request], sizes: list[int], equal: bool) -> None:
    wanted = claim(
        "c",
        *(
            request(f"r{index}", count, f"{OWN}.size in {list(suiting)}")
            for index, (count, suiting) in enumerate(requests)
        ),
        constraints=(same("size"),) if equal else (),
    )
    offered = on_node(*(device(f"gpu-{index}", size=size) for index, size in enumerate(sizes)))
    found = allocate(needs(wanted), "n0", pools(*offered), taken(), Selectors())
    first = next(every_solution(requests, sizes, equal), None)
    got = None if found is None else [int(each.device[4:]) for each in found[0].devices.results]
    assert got == first
