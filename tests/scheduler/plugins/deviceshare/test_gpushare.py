"""Whole cards, and cards shared by memory alone."""

from __future__ import annotations

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.deviceshare.plugin import MOST_REASONS
from tests.scheduler.core.worlds import NOW, run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    asking,
    cluster,
    devices_policy,
    member,
    opened,
    roomy,
    with_capacity,
    written,
)

MEMORY, NUMBER = {"GPUSharingEnable": True}, {"GPUNumberEnable": True}
NO_MEMORY = ["GpuShare no enough gpu memory on node n1"]
NO_NUMBER = ["GpuNumber no enough gpu number on node n1"]


def gpus(number: int = 2, memory: int = 2000, *, unhealthy: str = "") -> core.Node:
    offered = {names.GPU_NUMBER: number, names.GPU_MEMORY: memory}
    builder = roomy("n1", **{names.GPU_NUMBER: 100, names.GPU_MEMORY: 100000}).annotate(
        **{names.GPU_UNHEALTHY_IDS: unhealthy}
    )
    return with_capacity(builder, **offered)


def on_cards(name: str, memory: int = 0, number: int = 0, index: str = "0") -> core.Pod:
    return asking(member(name, **{names.GPU_INDEX: index}).on("n1"), limits(memory, number))


def limits(memory: int = 0, number: int = 0) -> dict[str, int]:
    asked = {names.GPU_MEMORY: memory, names.GPU_NUMBER: number}
    return {name: amount for name, amount in asked.items() if amount}


def refused(mode: dict[str, bool], pod: core.Pod, *more: core.Object) -> list[str]:
    return opened(cluster(*more, pod), **mode).refusals("p").get("n1", [])


SHORT: list[core.Object] = [gpus(), on_cards("a", 10), on_cards("b", 1, index="1")]
FILTERED: dict[str, tuple[dict[str, bool], dict[str, int], list[core.Object], list[str]]] = {
    "memory on an idle card": (MEMORY, limits(1000), [gpus()], []),
    "memory that no card has": (MEMORY, limits(1001), [gpus()], NO_MEMORY),
    "memory is never put together": (MEMORY, limits(1000), SHORT, NO_MEMORY),
    "a card beyond what it can bear": (MEMORY, limits(1), [gpus(1), on_cards("a", 3000)], NO_MEMORY),
    "whole cards": (NUMBER, limits(number=2), [gpus()], []),
    "too many whole cards": (NUMBER, limits(number=3), [gpus()], NO_NUMBER),
    "a card that somebody uses": (NUMBER, limits(number=2), [gpus(), on_cards("a", number=1)], NO_NUMBER),
    "a sick card": (NUMBER, limits(number=2), [gpus(unhealthy="x, 1")], NO_NUMBER),
    "a record that cannot be read": (NUMBER, limits(number=2), [gpus(), on_cards("a", number=1, index="0,x")], []),
    "a record of no card here": (NUMBER, limits(number=2), [gpus(), on_cards("a", number=1, index="7")], []),
    "a node without cards": (NUMBER, limits(number=2), [gpus(0)], []),
    "the other mode": (NUMBER, limits(1001), [gpus()], []),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERED)
def test_what_a_node_takes(name: str) -> None:
    mode, asked, given, want = FILTERED[name]
    assert refused(mode, asking(member("p"), asked), *given) == want


def cards(mirror: Mirror, **arguments: object) -> dict[str, str]:
    binds = run_cycle(mirror, devices_policy(**arguments)).binds
    return {bind.task.name: written(bind, names.GPU_INDEX) for bind in binds}


def test_the_lowest_card_is_taken_and_none_twice_in_a_cycle() -> None:
    pods = [asking(member(f"p{n}"), limits(600)) for n in range(3)]
    mirror = cluster(gpus(), *pods)
    assert cards(mirror, **MEMORY) == {"p0": "0", "p1": "1"}
    assert opened(mirror, **MEMORY).refusals("p2") == {"n1": NO_MEMORY}


def test_whole_cards_are_those_with_the_lowest_ids() -> None:
    mirror = cluster(gpus(4), on_cards("a", number=1, index="1"), asking(member("p"), limits(number=2)))
    assert cards(mirror, **NUMBER) == {"p": "0,2"}


def test_only_memory_takes_a_lock() -> None:
    for mode, asked, keys in ((MEMORY, limits(10), ["gpu"]), (NUMBER, limits(number=1), [])):
        mirror = cluster(gpus(), asking(member("p"), asked))
        (bind,) = run_cycle(mirror, devices_policy(NodeLockEnable=True, **mode)).binds
        assert bind.extension is not None
        assert [lock.key for lock in bind.extension.locks] == keys
        assert written(bind, names.PREDICATE_TIME) == str(int(NOW * 10**9))


def test_init_containers_count_by_the_largest() -> None:
    pod = asking(member("p"), limits(10), init=[limits(1001)])
    assert refused(MEMORY, pod, gpus()) == NO_MEMORY


def test_there_is_no_score() -> None:
    mirror = cluster(gpus(), asking(member("p"), limits(10)))
    assert opened(mirror, ScheduleWeight=10, SchedulePolicy="binpack", **MEMORY).scores("p") == {"n1": 0.0}


def test_refusals_that_name_nodes_are_bounded() -> None:
    nodes = [
        with_capacity(roomy(f"n{n}"), **{names.GPU_NUMBER: 1, names.GPU_MEMORY: 10}) for n in range(MOST_REASONS + 9)
    ]
    refused_by = opened(cluster(*nodes, asking(member("p"), limits(11))), **MEMORY).refusals("p")
    assert refused_by["n0"] == ["GpuShare no enough gpu memory on node n0"]
    texts = [text for texts in refused_by.values() for text in texts]
    assert len(texts) == len(nodes)
    assert texts.count("GpuShare no enough gpu memory") == 9
