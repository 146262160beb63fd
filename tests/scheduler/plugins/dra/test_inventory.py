"""Which devices a node can use, and pools that nothing can be picked from."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import core
from stromboli.scheduler.plugins.dra.features import Features
from stromboli.scheduler.plugins.dra.inventory import Inventory
from stromboli.scheduler.plugins.dra.taking import DeviceId
from tests.scheduler.plugins.dra.building import DRIVER, device, devices, pools, resource_slice

GPU, NIC = device("gpu-0"), device("nic-0")


@dataclass
class Case:
    """Slices, and what node n0 in zone a can use of them: devices by pool, or the state of the pool."""

    slices: list[core.ResourceSlice]
    want: dict[str, list[str] | str]


CASES = {
    "slice of the node": Case([resource_slice("s", GPU, node="n0")], {"n0": ["gpu-0"]}),
    "slice of another node": Case([resource_slice("s", GPU, node="n1")], {}),
    "slice of all nodes": Case([resource_slice("s", NIC)], {"s": ["nic-0"]}),
    "slice of this zone": Case([resource_slice("s", NIC, zone="a")], {"s": ["nic-0"]}),
    "slice of another zone": Case([resource_slice("s", NIC, zone="b")], {}),
    "slices of a pool in order of their names": Case(
        [
            resource_slice("s2", device("late"), node="n0", count=2),
            resource_slice("s1", device("early"), node="n0", count=2),
        ],
        {"n0": ["early", "late"]},
    ),
    "pools in order of their names": Case(
        [resource_slice("s2", GPU, pool="b"), resource_slice("s1", GPU, pool="a")], {"a": ["gpu-0"], "b": ["gpu-0"]}
    ),
    "only the newest generation counts": Case(
        [resource_slice("old", device("gone"), node="n0"), resource_slice("new", GPU, node="n0", generation=2)],
        {"n0": ["gpu-0"]},
    ),
    "newer generation that is for other nodes": Case(
        [
            resource_slice("old", GPU, node="n0", pool="p"),
            resource_slice("new", GPU, node="n1", pool="p", generation=2),
        ],
        {},
    ),
    "pool that is being published": Case([resource_slice("s", GPU, node="n0", count=2)], {"n0": "incomplete"}),
    "slices for other nodes complete a pool": Case(
        [
            resource_slice("s0", GPU, node="n0", pool="p", count=2),
            resource_slice("s1", NIC, node="n1", pool="p", count=2),
        ],
        {"p": ["gpu-0"]},
    ),
    "two devices of one name": Case(
        [resource_slice("s", GPU, GPU, node="n0")],
        {"n0": f"pool {DRIVER}/n0 is invalid: duplicate device name gpu-0"},
    ),
    "device that shares counters with others": Case(
        [
            resource_slice(
                "s", core.Device(name="part", consumes_counters=(core.DeviceCounterConsumption(),)), GPU, node="n0"
            )
        ],
        {"n0": ["gpu-0"]},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_node_can_use(case: Case) -> None:
    found: dict[str, list[str] | str] = {}
    for pool in pools(*case.slices, zone="a"):
        state = pool.invalid or ("incomplete" if pool.incomplete else "")
        assert pool.usable == (not state)
        found[pool.name] = state or [offer.id.name for offer in pool.offers]
    assert found == case.want
    assert list(found) == list(case.want)


def test_it_is_known_of_which_node_a_device_is() -> None:
    inventory = Inventory([resource_slice("a", *devices(2), node="n0"), resource_slice("b", NIC)])
    assert inventory.homes == {DeviceId(DRIVER, "n0", f"gpu-{index}"): "n0" for index in range(2)}


def test_a_device_that_shares_counters_with_another_node_is_of_no_node_alone() -> None:
    one = {"x": core.Counter(value=1)}
    split = core.ResourceSliceSpec(
        driver=DRIVER,
        pool=core.ResourcePool(name="rack", resource_slice_count=1),
        per_device_node_selection=True,
        devices=(
            core.Device(
                name="part",
                node_name="n0",
                consumes_counters=(core.DeviceCounterConsumption(counter_set="c", counters=one),),
            ),
            core.Device(name="alone", node_name="n1"),
        ),
        shared_counters=(core.CounterSet(name="c", counters=one),),
    )
    slices = [core.ResourceSlice(metadata=core.ObjectMeta(name="s"), spec=split)]
    assert Inventory(slices, Features(partitions=True)).homes == {DeviceId(DRIVER, "rack", "alone"): "n1"}
    assert Inventory(slices).homes == {}
