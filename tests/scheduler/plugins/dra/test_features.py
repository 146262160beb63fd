"""Optional parts of dynamic resource allocation: shared counters, shares of devices, taints, and what is off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.dra.allocator import Selectors, allocate
from stromboli.scheduler.plugins.dra.features import Features
from stromboli.scheduler.plugins.dra.inventory import Inventory
from stromboli.scheduler.plugins.dra.requests import BadClaim, needs_of
from stromboli.scheduler.plugins.dra.sharing import consumption
from stromboli.scheduler.plugins.dra.tainting import TaintRules
from stromboli.scheduler.plugins.dra.taking import DeviceId, Taken, uses
from tests.scheduler.core.worlds import binds, feed
from tests.scheduler.plugins.dra.building import (
    DRIVER,
    claim,
    device,
    device_class,
    devices,
    either,
    names,
    request,
    resource_slice,
)
from tests.scheduler.plugins.dra.test_claiming import cluster, pod, scheduled

PARTITIONS, SHARES, TAINTS = Features(partitions=True), Features(shares=True), Features(taints=True)
OWN = f'device.attributes["{DRIVER}"]'
CLASSES = {"gpu": device_class()}


def part(name: str, takes: Mapping[str, int], counters: str = "card", node: str = "") -> core.Device:
    """A device that takes of counters."""
    taken = core.DeviceCounterConsumption(
        counter_set=counters, counters={key: core.Counter(value=amount) for key, amount in takes.items()}
    )
    return core.Device(name=name, consumes_counters=(taken,), node_name=node)


def card(name: str = "card", **has: int) -> core.CounterSet:
    """A set of counters."""
    return core.CounterSet(name=name, counters={key: core.Counter(value=amount) for key, amount in has.items()})


def sliced(
    *offered: core.Device,
    counters: tuple[core.CounterSet, ...] = (),
    name: str = "s",
    pool: str = "n0",
    count: int = 1,
    split: bool = False,
) -> core.ResourceSlice:
    """A slice of node n0, or (split) one that leaves places to its devices."""
    made = resource_slice(name, *offered, node="" if split else "n0", pool=pool, count=count)
    spec = msgspec.structs.replace(
        made.spec, shared_counters=counters, per_device_node_selection=split, all_nodes=False
    )
    return msgspec.structs.replace(made, spec=spec)


def shared(name: str, capacity: Mapping[str, core.DeviceCapacity | str], **attributes: int) -> core.Device:
    """A device that several claims can have."""
    made = device(name, capacity=None, **attributes)

    has = {
        key: each if isinstance(each, core.DeviceCapacity) else core.DeviceCapacity(value=each)
        for key, each in capacity.items()
    }
    return msgspec.structs.replace(made, capacity=has, allow_multiple_allocations=True)


def tainted(name: str, effect: str = "NoSchedule", key: str = "broken") -> core.Device:
    return core.Device(name=name, taints=(core.Taint(key=key, effect=effect),))


def tolerant(count: int = 1, mode: str = "", key: str = "broken") -> core.DeviceRequest:
    made = request("r", count, mode=mode)
    assert made.exactly is not None
    toleration = core.Toleration(key=key, operator="Exists")
    return core.DeviceRequest(name="r", exactly=msgspec.structs.replace(made.exactly, tolerations=(toleration,)))


@dataclass
class Case:
    """Claims on node n0 with slices, and the devices of each claim, or nothing."""

    features: Features
    claims: list[core.ResourceClaim]
    slices: list[core.ResourceSlice]
    want: list[list[str]] | None
    holding: tuple[core.DeviceAllocation, ...] = ()


def held(*names_: str, pool: str = "n0", **consumed: str) -> core.DeviceAllocation:
    """Devices that somebody has; with amounts: shares of them."""
    results = tuple(
        core.AllocatedDevice(
            request="r",
            driver=DRIVER,
            pool=pool,
            device=name,
            share_id=f"share-{name}" if consumed else None,
            consumed_capacity=dict(consumed),
        )
        for name in names_
    )
    return core.DeviceAllocation(devices=core.DeviceResults(results=results))


HALVES = (part("half-0", {"mem": 20}), part("half-1", {"mem": 20}), part("whole", {"mem": 40}))
CARD = sliced(*HALVES, counters=(card(mem=40),))
RACK = sliced(
    part("there", {"links": 1}, node="n1"), part("here", {"links": 1}, node="n0"), counters=(card(links=1),), split=True
)
MEMORY = shared("gpu-0", {"memory": "10Gi"})
RANGE = core.DeviceCapacity(
    value="10Gi",
    request_policy=core.CapacityRequestPolicy(
        default="1Gi", valid_range=core.CapacityRange(min="1Gi", max="8Gi", step="1Gi")
    ),
)

CASES = {
    "partitions of one card": Case(PARTITIONS, [claim("c", request("r", 2))], [CARD], [["r:half-0", "r:half-1"]]),
    "no more partitions than the counters hold": Case(PARTITIONS, [claim("c", request("r", 3))], [CARD], None),
    "what another claim has counts": Case(PARTITIONS, [claim()], [CARD], [["r:half-1"]], (held("half-0"),)),
    "a whole card is gone with one of its parts": Case(PARTITIONS, [claim()], [CARD], None, (held("whole"),)),
    "an early choice is taken back for the sake of counters": Case(
        PARTITIONS,
        [claim("a"), claim("b", request("r", 1, f"{OWN}.big"))],
        [
            sliced(
                part("half", {"mem": 20}),
                core.Device(name="free"),
                msgspec.structs.replace(
                    part("big", {"mem": 40}), attributes={"big": core.DeviceAttribute(bool_value=True)}
                ),
                counters=(card(mem=40),),
            )
        ],
        [["r:free"], ["r:big"]],
    ),
    "counters of another slice of the pool": Case(
        PARTITIONS,
        [claim("c", request("r", 2))],
        [
            sliced(*HALVES, name="a", count=2),
            sliced(counters=(card(mem=40),), name="b", count=2),
        ],
        [["r:half-0", "r:half-1"]],
    ),
    "sets of one name in two slices are two sets": Case(
        PARTITIONS,
        [claim("c", request("r", 2))],
        [
            sliced(part("a-whole", {"mem": 40}), counters=(card(mem=40),), name="a", count=2),
            sliced(part("b-whole", {"mem": 40}), counters=(card(mem=40),), name="b", count=2),
        ],
        [["r:a-whole", "r:b-whole"]],
    ),
    "a counter set that does not exist holds nothing": Case(
        PARTITIONS, [claim()], [sliced(part("p", {"mem": 1}, counters="ghost"))], None
    ),
    "several counters must all hold": Case(
        PARTITIONS,
        [claim("c", request("r", 2))],
        [sliced(*(part(each, {"mem": 1, "slots": 1}) for each in "ab"), counters=(card(mem=9, slots=1),))],
        None,
    ),
    "devices say themselves where they can be used": Case(
        PARTITIONS,
        [claim("c", request("r", 1))],
        [sliced(core.Device(name="there", node_name="n1"), core.Device(name="here", node_name="n0"), split=True)],
        [["r:here"]],
    ),
    "counters are shared across nodes": Case(
        PARTITIONS,
        [claim()],
        [RACK],
        None,
        (held("there"),),
    ),
    "parts are left out while the feature is off": Case(Features(), [claim()], [CARD], None),
    "slices that leave places to devices are left out while the feature is off": Case(
        Features(), [claim()], [sliced(core.Device(name="here", node_name="n0"), split=True)], None
    ),
    "claims have shares of a device": Case(
        SHARES,
        [claim(each, request(capacity={"memory": "4Gi"})) for each in "ab"],
        [sliced(MEMORY)],
        [["r:gpu-0"], ["r:gpu-0"]],
    ),
    "no more shares than there is capacity": Case(
        SHARES, [claim(each, request(capacity={"memory": "4Gi"})) for each in "abc"], [sliced(MEMORY)], None
    ),
    "shares of others count": Case(
        SHARES,
        [claim("c", request(capacity={"memory": "4Gi"}))],
        [sliced(MEMORY)],
        None,
        (held("gpu-0", memory="7Gi"),),
    ),
    "the next device when one has too little left": Case(
        SHARES,
        [claim("c", request(capacity={"memory": "4Gi"}))],
        [sliced(MEMORY, shared("gpu-1", {"memory": "10Gi"}))],
        [["r:gpu-1"]],
        (held("gpu-0", memory="7Gi"),),
    ),
    "a request for several has several shares of one device": Case(
        SHARES, [claim("c", request("r", 2, capacity={"memory": "5Gi"}))], [sliced(MEMORY)], [["r:gpu-0", "r:gpu-0"]]
    ),
    "unless they must differ": Case(
        SHARES,
        [
            claim(
                "c",
                request("r", 2, capacity={"memory": "1Gi"}),
                constraints=(core.DeviceConstraint(distinct_attribute="rank"),),
            )
        ],
        [sliced(shared("gpu-0", {"memory": "9Gi"}, rank=0), shared("gpu-1", {"memory": "9Gi"}, rank=1))],
        [["r:gpu-0", "r:gpu-1"]],
    ),
    "all devices are one share of each": Case(
        SHARES,
        [claim("c", request(mode="All", capacity={"memory": "1Gi"}))],
        [sliced(MEMORY, shared("gpu-1", {"memory": "10Gi"}))],
        [["r:gpu-0", "r:gpu-1"]],
    ),
    "without a policy who says nothing takes everything": Case(
        SHARES, [claim("a"), claim("b")], [sliced(MEMORY)], None
    ),
    "with a policy who says nothing takes the default": Case(
        SHARES, [claim(each) for each in "abc"], [sliced(shared("gpu-0", {"memory": RANGE}))], [["r:gpu-0"]] * 3
    ),
    "a device that somebody has alone has no shares": Case(
        SHARES, [claim("c", request(capacity={"memory": "1Gi"}))], [sliced(MEMORY)], None, (held("gpu-0"),)
    ),
    "a device that is not shared goes whole": Case(
        SHARES,
        [claim(each, request(capacity={"memory": "1Gi"})) for each in "ab"],
        [sliced(device("gpu-0", capacity={"memory": "10Gi"}))],
        None,
    ),
    "an administrator takes no share": Case(
        SHARES,
        [claim("a", request(admin=True)), claim("b", request(capacity={"memory": "10Gi"}))],
        [sliced(MEMORY)],
        [["r:gpu-0"], ["r:gpu-0"]],
    ),
    "a shared device goes whole while the feature is off": Case(
        Features(), [claim("a", request(capacity={"memory": "1Gi"}))], [sliced(MEMORY)], [["r:gpu-0"]]
    ),
    "a tainted device is passed over": Case(
        TAINTS, [claim()], [sliced(tainted("bad"), core.Device(name="good"))], [["r:good"]]
    ),
    "a device is tainted for its users as well": Case(TAINTS, [claim()], [sliced(tainted("bad", "NoExecute"))], None),
    "a taint without effect on scheduling": Case(TAINTS, [claim()], [sliced(tainted("odd", "None"))], [["r:odd"]]),
    "a request tolerates a taint": Case(TAINTS, [claim("c", tolerant())], [sliced(tainted("bad"))], [["r:bad"]]),
    "a request tolerates another taint": Case(
        TAINTS, [claim("c", tolerant(key="worn"))], [sliced(tainted("bad"))], None
    ),
    "all devices, one of them tainted": Case(
        TAINTS, [claim("c", request(mode="All"))], [sliced(tainted("bad"), core.Device(name="good"))], None
    ),
    "all devices, taints tolerated": Case(
        TAINTS,
        [claim("c", tolerant(mode="All"))],
        [sliced(tainted("bad"), core.Device(name="good"))],
        [["r:bad", "r:good"]],
    ),
    "taints mean nothing while the feature is off": Case(Features(), [claim()], [sliced(tainted("bad"))], [["r:bad"]]),
}


def on_n0(case: Case) -> list[core.DeviceAllocation] | None:
    inventory = Inventory(case.slices, case.features)
    books = Taken(inventory.draws)
    for allocation in case.holding:
        books.add(allocation)
    wanted = [needs_of(each, CLASSES.get, case.features) for each in case.claims]
    node = core.Node(metadata=core.ObjectMeta(name="n0"))
    return allocate(wanted, "n0", inventory.pools(node), books, Selectors())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_allocations(case: Case) -> None:
    found = on_n0(case)
    assert (None if found is None else [names(each) for each in found]) == case.want


AMOUNTS: dict[str, tuple[core.DeviceCapacity, str | None, str | None]] = {
    "what is asked for": (core.DeviceCapacity(value="10"), "3", "3"),
    "everything when nothing is asked for": (core.DeviceCapacity(value="10"), None, "10"),
    "more than there is": (core.DeviceCapacity(value="10"), "11", None),
    "the default": (RANGE, None, "1Gi"),
    "at least the minimum": (RANGE, "100Mi", "1Gi"),
    "rounded up to a step": (RANGE, "2500Mi", "3Gi"),
    "at most the maximum": (RANGE, "9Gi", None),
    "the next valid value": (
        core.DeviceCapacity(value="10", request_policy=core.CapacityRequestPolicy(valid_values=("2", "4", "8"))),
        "3",
        "4",
    ),
    "above every valid value": (
        core.DeviceCapacity(value="10", request_policy=core.CapacityRequestPolicy(valid_values=("2", "4", "8"))),
        "9",
        None,
    ),
    "a range without steps": (
        core.DeviceCapacity(
            value="10", request_policy=core.CapacityRequestPolicy(valid_range=core.CapacityRange(min="2"))
        ),
        "2500m",
        "2500m",
    ),
}


@pytest.mark.parametrize(("capacity", "asked", "want"), AMOUNTS.values(), ids=AMOUNTS)
def test_what_a_share_takes(capacity: core.DeviceCapacity, asked: str | None, want: str | None) -> None:
    found = consumption(shared("d", {"x": capacity}), {"x": asked} if asked is not None else {})
    wanted = consumption(shared("d", {"x": "100Gi"}), {"x": want}) if want is not None else None
    assert found == wanted


def test_a_capacity_that_a_device_does_not_have_cannot_be_taken() -> None:
    assert consumption(MEMORY, {"cores": "1"}) is None


def test_shares_are_written_with_an_identity_and_what_they_take() -> None:
    case = Case(SHARES, [claim("c", request("r", 2, capacity={"memory": "4Gi"}))], [sliced(MEMORY)], None)
    [first], [again] = on_n0(case) or [], on_n0(case) or []
    written = [core.to_builtins(result) for result in first.devices.results]
    assert [each["consumedCapacity"] for each in written] == [{"memory": "4Gi"}] * 2
    assert len({each["shareID"] for each in written}) == 2
    assert first == again


RULES = {
    "all devices": (core.DeviceTaintSelector(), True),
    "no selector": (None, False),
    "this driver": (core.DeviceTaintSelector(driver=DRIVER), True),
    "another driver": (core.DeviceTaintSelector(driver="other.example.com"), False),
    "this device": (core.DeviceTaintSelector(driver=DRIVER, pool="n0", device="gpu-0"), True),
    "another device": (core.DeviceTaintSelector(driver=DRIVER, pool="n0", device="gpu-1"), False),
    "another pool": (core.DeviceTaintSelector(pool="n1"), False),
    "its class": (core.DeviceTaintSelector(device_class_name="old"), True),
    "another class": (core.DeviceTaintSelector(device_class_name="new"), False),
    "an unknown class": (core.DeviceTaintSelector(device_class_name="ghost"), False),
}


@pytest.mark.parametrize(("selector", "concerned"), RULES.values(), ids=RULES)
def test_rules_taint_devices(selector: core.DeviceTaintSelector | None, concerned: bool) -> None:
    classes = {"old": device_class("old", f"{OWN}.age > 5"), "new": device_class("new", f"{OWN}.age < 5")}
    taint = core.Taint(key="worn", effect="NoExecute")
    rule = core.DeviceTaintRule(
        metadata=core.ObjectMeta(name="rule"), spec=core.DeviceTaintRuleSpec(device_selector=selector, taint=taint)
    )
    found = TaintRules([rule], classes.get).taints(DeviceId(DRIVER, "n0", "gpu-0"), device("gpu-0", age=9))
    assert found == ((taint,) if concerned else ())


def test_an_expression_of_a_rule_that_fails_taints_nothing() -> None:
    broken = core.DeviceTaintSelector(
        selectors=(core.DeviceSelector(cel=core.CELDeviceSelector(expression=f"{OWN}.ghost == 1")),)
    )
    rule = core.DeviceTaintRule(
        metadata=core.ObjectMeta(name="rule"),
        spec=core.DeviceTaintRuleSpec(device_selector=broken, taint=core.Taint(key="worn", effect="NoExecute")),
    )
    assert TaintRules([rule], CLASSES.get).taints(DeviceId(DRIVER, "n0", "gpu-0"), device("gpu-0")) == ()


OFF = {
    "alternatives": (
        claim("c", either("r", ("a", 1, "gpu"))),
        Features(alternatives=False),
        "claim ns/c, request r: has alternatives, and DRAPrioritizedList is off",
    ),
    "administrative access": (
        claim("c", request(admin=True)),
        Features(admin_access=False),
        "claim ns/c, request r: wants admin access, and DRAAdminAccess is off",
    ),
}


@pytest.mark.parametrize(("wanted", "features", "text"), OFF.values(), ids=OFF)
def test_claims_that_need_what_is_off_say_so(wanted: core.ResourceClaim, features: Features, text: str) -> None:
    with pytest.raises(BadClaim) as caught:
        needs_of(wanted, CLASSES.get, features)
    assert str(caught.value) == text


def test_an_expression_can_ask_whether_a_device_is_shared() -> None:
    wanted = claim("c", request("r", 1, "device.allowMultipleAllocations", capacity={"memory": "1Gi"}))
    case = Case(SHARES, [wanted], [sliced(device("alone", capacity={"memory": "1Gi"}), MEMORY)], None)
    assert [names(each) for each in on_n0(case) or []] == [["r:gpu-0"]]


# -- in whole sessions ------------------------------------------------------------------------------------------------

ALL_ON = {"feature-gates": {"DRAPartitionableDevices": True, "DRAConsumableCapacity": True, "DRADeviceTaints": True}}


def gang(count: int, **capacity: str) -> Mirror:
    """Pods p0, p1, ... each with a claim of its own for some capacity."""
    claims = [claim(f"c{index}", request(capacity=dict(capacity) or None)) for index in range(count)]
    return cluster([pod(f"p{index}", f"c{index}") for index in range(count)], *claims)


def test_pods_of_a_gang_share_a_device_until_its_capacity_is_used_up() -> None:
    mirror = gang(4, memory="4Gi")
    feed(mirror, sliced(MEMORY))
    result = scheduled(mirror, options=ALL_ON)
    assert binds(result) == {"p0": "n0", "p1": "n0"}
    grants = [grant for bind in result.binds if bind.extension for grant in bind.extension.devices]
    shares = [each.share_id for grant in grants if grant.allocation for each in grant.allocation.devices.results]
    assert len(set(shares)) == 2
    assert binds(scheduled(mirror, options=ALL_ON)) == {}


def test_what_is_promised_and_then_written_counts_once() -> None:
    mirror = gang(2, memory="4Gi")
    feed(mirror, sliced(MEMORY))
    result = scheduled(mirror, options=ALL_ON)
    for bind in result.binds:
        assert bind.extension is not None
        for grant in bind.extension.devices:
            made = mirror.objects.get(core.ResourceClaim, grant.claim, "ns")
            assert made is not None
            feed(
                mirror,
                msgspec.structs.replace(made, status=core.ResourceClaimStatus(allocation=grant.allocation)),
            )
    feed(mirror, claim("more", request(capacity={"memory": "2Gi"})))
    feed(mirror, pod("late", "more").build())
    assert binds(scheduled(mirror, options=ALL_ON)) == {"late": "n0"}


def test_a_part_taken_on_one_node_is_gone_on_the_other() -> None:
    mirror = gang(2)
    feed(mirror, RACK)
    assert len(binds(scheduled(mirror, options=ALL_ON))) == 1


def test_a_rule_that_comes_and_goes_closes_a_device_and_opens_it() -> None:
    mirror = gang(1)
    feed(mirror, resource_slice("s", *devices(1), node="n0"))
    rule = core.DeviceTaintRule(
        metadata=core.ObjectMeta(name="maintenance"),
        spec=core.DeviceTaintRuleSpec(
            device_selector=core.DeviceTaintSelector(driver=DRIVER), taint=core.Taint(key="k", effect="NoSchedule")
        ),
    )
    feed(mirror, rule)
    assert binds(scheduled(mirror, options=ALL_ON)) == {}
    mirror.delete_object(core.DeviceTaintRule, rule.key)
    assert binds(scheduled(mirror, options=ALL_ON)) == {"p0": "n0"}


# -- whatever is published and asked for ------------------------------------------------------------------------------


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[core.ResourceClaim], core.ResourceSlice]:
    """Claims, and a slice of node n0 with parts of a card and shared devices."""
    parts = [
        part(f"part-{index}", {"mem": draw(st.integers(0, 4)), "slots": draw(st.integers(0, 2))})
        for index in range(draw(st.integers(0, 4)))
    ]
    sizes = draw(st.lists(st.integers(1, 6), max_size=3))
    common = [shared(f"shared-{index}", {"mem": str(size)}) for index, size in enumerate(sizes)]
    offered = sliced(*parts, *common, counters=(card(mem=draw(st.integers(0, 8)), slots=draw(st.integers(0, 4))),))
    amounts = draw(st.lists(st.none() | st.integers(1, 4), min_size=1, max_size=4))
    claims = [
        claim(f"c{index}", request("r", draw(st.integers(1, 3)), capacity={"mem": str(amount)} if amount else None))
        for index, amount in enumerate(amounts)
    ]
    return claims, offered


@drawn(situations())
@settings(max_examples=200, deadline=None)
def test_nothing_is_given_out_that_is_not_there(situation: tuple[list[core.ResourceClaim], core.ResourceSlice]) -> None:
    claims, offered = situation
    found = on_n0(Case(Features(partitions=True, shares=True), claims, [offered], None))
    if found is None:
        return
    by_name = {each.name: each for each in offered.spec.devices}
    results = [result for allocation in found for result in allocation.devices.results]
    whole = Counter(result.device for result in results if result.share_id is None)
    assert all(count == 1 for count in whole.values())
    for result in results:
        assert (result.share_id is not None) == by_name[result.device].allow_multiple_allocations
    _check_capacity(by_name, results)
    _check_counters(offered.spec, {by_name[result.device].name for result in results})


def _check_capacity(by_name: Mapping[str, core.Device], results: list[core.AllocatedDevice]) -> None:
    used: Counter[str] = Counter()
    for result in results:
        if result.share_id is not None:
            used[result.device] += int(result.consumed_capacity["mem"])
    assert all(amount <= int(by_name[name].capacity["mem"].value) for name, amount in used.items())


def _check_counters(spec: core.ResourceSliceSpec, in_use: set[str]) -> None:
    drawn_: Counter[str] = Counter()
    for each in spec.devices:
        if each.name in in_use:
            for consumed in each.consumes_counters:
                drawn_.update({key: int(counter.value) for key, counter in consumed.counters.items()})
    limits = {key: int(counter.value) for key, counter in spec.shared_counters[0].counters.items()}
    assert all(amount <= limits[key] for key, amount in drawn_.items())


@drawn(situations())
@settings(max_examples=100, deadline=None)
def test_what_is_given_back_is_there_again(situation: tuple[list[core.ResourceClaim], core.ResourceSlice]) -> None:
    claims, offered = situation
    features = Features(partitions=True, shares=True)
    inventory = Inventory([offered], features)
    books, node = Taken(inventory.draws), core.Node(metadata=core.ObjectMeta(name="n0"))
    wanted = [needs_of(each, CLASSES.get, features) for each in claims]

    def found() -> list[core.DeviceAllocation] | None:
        return allocate(wanted, "n0", inventory.pools(node), books, Selectors())

    first = found()
    for allocation in first or ():
        books.add(allocation)
    copied = books.copy()
    for allocation in first or ():
        books.remove(allocation)
    for allocation in first or ():
        assert not any(books.is_used(device) for device, _ in uses(allocation))
        assert all(copied.is_used(device) for device, _ in uses(allocation))
    assert found() == first
