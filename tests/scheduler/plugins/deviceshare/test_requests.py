"""What containers ask for, and how it is written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.plugins.deviceshare.encoding import decode, decode_containers, encode
from stromboli.scheduler.plugins.deviceshare.families import Share
from stromboli.scheduler.plugins.deviceshare.requests import (
    ContainerRequest,
    ResourceNames,
    container_requests,
    most_at_once,
)

NAMES = ResourceNames(names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE, names.VGPU_CORES)
CASES: dict[str, tuple[core.ResourceList, core.ResourceList, list[ContainerRequest]]] = {
    "cards and memory": (
        {names.VGPU_NUMBER: "2", names.VGPU_MEMORY: "3k", names.VGPU_CORES: "20"},
        {},
        [ContainerRequest(2, 3000, None, 20)],
    ),
    "only memory is one card": ({names.VGPU_MEMORY: 500}, {}, [ContainerRequest(1, 500)]),
    "only a number is whole cards": ({names.VGPU_NUMBER: 3}, {}, [ContainerRequest(3, 0, 100)]),
    "a percentage wins": (
        {names.VGPU_NUMBER: 1, names.VGPU_MEMORY: 500, names.VGPU_MEMORY_PERCENTAGE: 30},
        {},
        [ContainerRequest(1, 500, 30)],
    ),
    "amounts may stand in requests": (
        {names.VGPU_NUMBER: 1},
        {names.VGPU_MEMORY: 700, names.VGPU_CORES: 5},
        [ContainerRequest(1, 700, None, 5)],
    ),
    "the number must stand in limits": ({}, {names.VGPU_NUMBER: 1, names.VGPU_MEMORY: 700}, []),
    "no card at all": ({names.VGPU_NUMBER: 0, names.VGPU_MEMORY: 700}, {}, []),
    "something else": ({"cpu": 1}, {"cpu": 1}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_container_asks_for(name: str) -> None:
    limits, requests, want = CASES[name]
    resources = core.ResourceRequirements(limits=limits, requests=requests)
    assert container_requests(core.PodSpec(containers=(core.Container(resources=resources),)), NAMES) == want


def test_init_containers_ask_for_no_slices() -> None:
    resources = core.ResourceRequirements(limits={names.VGPU_NUMBER: 1})
    assert container_requests(core.PodSpec(init_containers=(core.Container(resources=resources),)), NAMES) == []


@pytest.mark.parametrize(
    ("containers", "init", "want"), [([1, 3], [], 4), ([2], [1, 3], 3), ([2], [1], 2), ([], [], 0)]
)
def test_whole_cards_count_for_the_pod(containers: list[int], init: list[int], want: int) -> None:
    def made(amounts: list[int]) -> tuple[core.Container, ...]:
        return tuple(
            core.Container(resources=core.ResourceRequirements(limits={names.GPU_NUMBER: amount})) for amount in amounts
        )

    spec = core.PodSpec(containers=made(containers), init_containers=made(init))
    assert most_at_once(spec, names.GPU_NUMBER) == want


TEXTS = {
    "one share": ("GPU-0,NVIDIA,4096,30:", [Share("GPU-0", "NVIDIA", 4096, 30)]),
    "no colon at the end": ("GPU-0,NVIDIA,4096,30", [Share("GPU-0", "NVIDIA", 4096, 30)]),
    "negative memory": ("GPU-0,NVIDIA,-5,30:", []),
    "negative cores": ("GPU-0,NVIDIA,4096,-1:", []),
    "no number": ("GPU-0,NVIDIA,abc,30:", []),
    "more than 32 bits": ("GPU-0,NVIDIA,2147483648,30:", []),
    "too few fields": ("GPU-0,NVIDIA:", []),
    "one of two is bad": ("GPU-0,NVIDIA,-5,30:GPU-1,NVIDIA,2048,10:", [Share("GPU-1", "NVIDIA", 2048, 10)]),
    "nothing": ("", []),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_share_is_dropped_alone(name: str) -> None:
    text, want = TEXTS[name]
    assert list(decode(text)) == want


SHARES = st.builds(
    Share,
    device=st.from_regex(r"[A-Za-z0-9\-\[\]]{1,12}", fullmatch=True),
    type=st.sampled_from(["NVIDIA", "Ascend310P"]),
    memory=st.integers(0, 2**31 - 1),
    cores=st.integers(0, 100),
)


@given(holding=st.lists(st.lists(SHARES, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple))
def test_what_is_written_is_read_again(holding: tuple[tuple[Share, ...], ...]) -> None:
    assert decode_containers(";".join(map(encode, holding))) == holding
    assert decode_containers("".join(encode(shares) + ";" for shares in holding)) == holding
