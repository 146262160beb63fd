"""Cards cut into instances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.plugins.deviceshare.configuration import FILE, Geometry, Instance
from stromboli.scheduler.plugins.deviceshare.mig import BadInstance, Cuts, Place
from tests.scheduler.core.worlds import run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    MIG,
    Amounts,
    asking,
    card,
    cluster,
    devices_policy,
    gpu_node,
    member,
    opened,
    slice_of,
    written,
)

SMALL, LARGE = Instance(name="1g", memory=10, count=2), Instance(name="2g", memory=20, count=1)
ONE = Geometry(group="one", instances=(SMALL, LARGE))
TWO = Geometry(group="two", instances=(Instance(name="4g", memory=40, count=1),))

FOUND: dict[str, tuple[str | None, dict[str, set[int]], int, tuple[str, int] | None]] = {
    "the smallest kind that does": (None, {}, 5, ("one-0", 10)),
    "a larger kind": (None, {}, 15, ("one-2", 20)),
    "another group": (None, {}, 30, ("two-0", 40)),
    "nothing so large": (None, {}, 50, None),
    "the lowest free index": ("one", {"1g": {0}}, 10, ("one-1", 10)),
    "a kind that nobody uses yet": ("one", {"1g": {0, 1}}, 10, ("one-2", 20)),
    "only the group in use": ("one", {"1g": {0}}, 30, None),
    "everything in use": ("one", {"1g": {0, 1}, "2g": {0}}, 10, None),
    "a kind that the group does not know is in use": ("one", {"7g": {0}}, 10, None),
}


@pytest.mark.parametrize("name", FOUND)
def test_which_instance_is_found(name: str) -> None:
    group, used, memory, want = FOUND[name]
    found = Cuts((ONE, TWO), group, used).find(memory)
    assert (None if found is None else (f"{found[0].group}-{found[0].position}", found[1])) == want


def test_an_empty_card_may_be_cut_anew() -> None:
    cuts = Cuts((ONE, TWO))
    cuts.take(Place("one", 1))
    assert cuts.find(40) is None
    cuts.give_back(Place("one", 1))
    assert cuts.find(40) == (Place("two", 0), 40)


@pytest.mark.parametrize("place", [Place("one", 3), Place("three", 0)])
def test_an_instance_that_the_card_does_not_have_is_named(place: Place) -> None:
    with pytest.raises(BadInstance, match=f"{place.group}-{place.position}"):
        Cuts((ONE, TWO)).take(place)


@given(memories=st.lists(st.integers(1, 45), max_size=8), data=st.data())
def test_no_instance_is_given_out_twice(memories: list[int], data: st.DataObject) -> None:
    cuts, places = Cuts((ONE, TWO)), []
    for memory in memories:
        found = cuts.find(memory)
        if found is not None:
            place, has = found
            assert has >= memory
            assert place not in places
            assert cuts.take(place) == has
            places.append(place)
    assert len({place.group for place in places}) <= 1
    for place in data.draw(st.permutations(places)):
        cuts.give_back(place)
    assert (cuts.group, cuts.used) == (None, {})


CONFIGURATION = """
nvidia:
  gpuMemoryFactor: {factor}
  knownMigGeometries:
  - models: [A100]
    allowedGeometries:
    - group: one
      geometries: [{{name: 1g, memory: 5120, count: 2}}, {{name: 2g, memory: 10240, count: 1}}]
"""


def configured(factor: int = 0) -> core.ConfigMap:
    meta = core.ObjectMeta(name="volcano-vgpu-device-config", namespace="kube-system")
    return core.ConfigMap(metadata=meta, data={FILE: CONFIGURATION.format(factor=factor)})


def mig_card(uuid: str) -> str:
    return card(uuid, type="NVIDIA-A100", mode=MIG, memory=20480)


def test_pods_of_one_cycle_get_different_instances() -> None:
    pods = [asking(member(f"p{n}"), slice_of(1, 5000)) for n in range(4)]
    result = run_cycle(cluster(configured(), gpu_node("n1", mig_card("G")), *pods), devices_policy(VGPUEnable=True))
    assert {bind.task.name: written(bind, names.VGPU_IDS) for bind in result.binds} == {
        "p0": "G[one-0],NVIDIA,5120,0:",
        "p1": "G[one-1],NVIDIA,5120,0:",
        "p2": "G[one-2],NVIDIA,10240,0:",
    }


USED = {
    "both small instances": (["G[one-0]", "G[one-1]"], [slice_of(1, 6000)], True),
    "the large instance": (["G[one-2]"], [slice_of(1, 6000)], False),
    "the large instance, for a small pod": (["G[one-2]"], [slice_of(1, 5000)], True),
    "an instance of a group that is not known": (["G[two-0]"], [slice_of(1, 6000)], True),
    "a position that the card does not have": (["G[one-7]"], [slice_of(1, 6000)], True),
    "nothing, for two containers": ([], [slice_of(1, 6000), slice_of(1, 6000)], False),
    "nothing, for a pod that is too large": ([], [slice_of(1, 10241)], False),
}


@pytest.mark.parametrize("name", USED)
def test_what_is_left_of_a_card(name: str) -> None:
    used, limits, fits = USED[name]
    records = {names.VGPU_IDS: "".join(f"{device},NVIDIA,5000,0:" for device in used)}
    holder = asking(member("holder", **records).on("n1"), slice_of(1))
    requests: list[Amounts] = list(limits)
    mirror = cluster(configured(), gpu_node("n1", mig_card("G")), holder, asking(member("p"), *requests))
    assert (opened(mirror, VGPUEnable=True).refusals("p") == {}) is fits


def test_memory_may_be_counted_in_larger_units() -> None:
    pod = asking(member("p"), slice_of(1, 3000))
    mirror = cluster(configured(factor=2), gpu_node("n1", mig_card("G")), pod)
    (bind,) = run_cycle(mirror, devices_policy(VGPUEnable=True)).binds
    assert written(bind, names.VGPU_IDS) == "G[one-2],NVIDIA,5120,0:"


def test_a_card_of_an_unknown_model_is_shared_by_hami_core() -> None:
    unknown = card("G", type="NVIDIA-B200", mode=MIG)
    mirror = cluster(configured(), gpu_node("n1", unknown), asking(member("p"), slice_of(1, 5)))
    (bind,) = run_cycle(mirror, devices_policy(VGPUEnable=True)).binds
    assert written(bind, names.VGPU_IDS) == "G,NVIDIA,5,0:"
