"""Ascend cards that HAMi cuts by templates."""

from __future__ import annotations

import json

import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.deviceshare.configuration import DEFAULTS, FILE
from stromboli.scheduler.plugins.deviceshare.hami import Registered, trim
from tests.scheduler.core.worlds import NOW, run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    asking,
    cluster,
    devices_policy,
    member,
    opened,
    roomy,
    written,
)

W = "Ascend310P"
COUNT, MEMORY = f"huawei.com/{W}", f"huawei.com/{W}-memory"
REFUSED = {"n1": ["no ascend device available"]}
ON = {"AscendHAMiVNPUEnable": True}
WHOLE = 21527


Listed = dict[str, object]


def npu(index: int, *, network: int | None = None, count: int = 7, memory: int = WHOLE) -> Listed:
    listed: Listed = {"id": f"N{index}", "index": index, "count": count, "devmem": memory, "devcore": 8}
    return listed if network is None else {**listed, "custominfo": {"NetworkID": network}}


def npus(*cards: Listed, word: str = W, name: str = "n1") -> core.Node:
    builder = roomy(name, **{f"huawei.com/{word}": 100})
    return builder.annotate(**{f"hami.io/node-register-{word}": json.dumps(cards)}).build()


def wanting(name: str, *amounts: tuple[int | None, int | None], **annotations: str) -> core.Pod:
    limits = [
        {key: amount for key, amount in ((COUNT, number), (MEMORY, memory)) if amount is not None}
        for number, memory in amounts
    ]
    return asking(member(name, **annotations), *limits)


def holding(name: str, *shares: str) -> core.Pod:
    record = {f"hami.io/{W}-devices-allocated": "".join(f"{share}:;" for share in shares)}
    return asking(member(name, **record).on("n1"), {COUNT: 1})


def test_memory_is_trimmed_to_a_template() -> None:
    (kind,) = DEFAULTS.vnpus.configs
    assert trim(kind, 3073) == (6144, "vir02")
    assert trim(kind, 12289) == (WHOLE, "")
    assert trim(kind, 24577) == (0, "")


FILTERED: dict[str, tuple[list[Listed], list[tuple[int | None, int | None]], bool]] = {
    "a slice": ([npu(0)], [(1, 1024)], True),
    "a whole card": ([npu(0)], [(1, None)], True),
    "memory alone": ([npu(0)], [(None, 1024)], True),
    "more than a card has is not taken for nothing": ([npu(0)], [(1, 24577)], False),
    "slices of several cards": ([npu(0), npu(1)], [(2, 1024)], False),
    "several whole cards": ([npu(0), npu(1)], [(2, WHOLE)], True),
    "several whole cards, by number alone": ([npu(0), npu(1)], [(2, None)], True),
    "several cards that are no larger than a slice": (
        [npu(0, memory=12288), npu(1, memory=12288)],
        [(2, None)],
        False,
    ),
    "one card that is no larger than a slice": ([npu(0, memory=12288)], [(1, None)], True),
    "several whole cards, and one no larger than a slice": (
        [npu(0), npu(1, memory=12288), npu(2)],
        [(2, None)],
        True,
    ),
    "more cards than there are": ([npu(0)], [(2, None)], False),
    "containers never share a card": ([npu(0)], [(1, 1024), (1, 1024)], False),
    "a card for each container": ([npu(0), npu(1)], [(1, 1024), (1, 1024)], True),
}


@pytest.mark.parametrize("name", FILTERED)
def test_what_a_node_takes(name: str) -> None:
    cards, amounts, fits = FILTERED[name]
    mirror = cluster(npus(*cards), wanting("p", *amounts))
    assert opened(mirror, **ON).refusals("p") == ({} if fits else REFUSED)


HELD = {
    "a slice leaves room": (["N0,Ascend310P,3072,0"], 1024, True),
    "not for a whole card": (["N0,Ascend310P,3072,0"], None, False),
    "the second container counts": (["N9,Ascend310P,1,0", "N0,Ascend310P,21527,0"], 1024, False),
    "a card that is not there": (["N9,Ascend310P,21527,0"], None, True),
    "no record at all": (["junk"], None, True),
    "all cores are taken": (["N0,Ascend310P,1,8"], 1024, False),
}


@pytest.mark.parametrize("name", HELD)
def test_what_running_pods_hold(name: str) -> None:
    shares, memory, fits = HELD[name]
    mirror = cluster(npus(npu(0)), holding("a", *shares), wanting("p", (1, memory)))
    assert opened(mirror, **ON).refusals("p") == ({} if fits else REFUSED)


def test_a_full_number_of_users_is_full() -> None:
    mirror = cluster(npus(npu(0, count=1)), holding("a", "N0,Ascend310P,3072,0"), wanting("p", (1, 1)))
    assert opened(mirror, **ON).refusals("p") == REFUSED


def allocated(mirror: Mirror, word: str = W, **arguments: object) -> dict[str, str]:
    binds = run_cycle(mirror, devices_policy(**ON, **arguments)).binds
    return {bind.task.name: written(bind, f"hami.io/{word}-devices-allocated") for bind in binds}


def test_everything_that_goes_along_with_the_bind() -> None:
    mirror = cluster(npus(npu(0), npu(1)), wanting("p", (1, 1024), (1, None)))
    (bind,) = run_cycle(mirror, devices_policy(NodeLockEnable=True, **ON)).binds
    assert bind.extension is not None
    shares, seconds = "N0,Ascend310P,3072,0:;N1,Ascend310P,21527,0:;", str(int(NOW))
    assert bind.extension.annotations == {
        "hami.io/Ascend310P-devices-to-allocate": shares,
        "hami.io/Ascend310P-devices-allocated": shares,
        "huawei.com/Ascend310P": '[{"UUID":"N0","temp":"vir01"},{"UUID":"N1"}]',
        "predicate-time": seconds,
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": seconds,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": seconds,
    }
    (lock,) = bind.extension.locks
    assert (lock.key, lock.handed_over) == (W, False)


def test_pods_of_one_cycle_share_cards_as_far_as_they_go() -> None:
    pods = [wanting(f"p{n}", (1, 12288)) for n in range(3)]
    mirror = cluster(npus(npu(0), npu(1)), *pods)
    assert allocated(mirror) == {"p0": "N0,Ascend310P,12288,0:;", "p1": "N1,Ascend310P,12288,0:;"}
    assert opened(mirror, **ON).refusals("p2") == REFUSED


CHOSEN = {
    "binpack": ("binpack", "N1"),
    "spread": ("spread", "N0"),
    "no policy": ("", "N0"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_policy_says_which_card(name: str) -> None:
    preference, want = CHOSEN[name]
    mirror = cluster(npus(npu(0), npu(1)), holding("a", "N1,Ascend310P,3072,0"), wanting("p", (1, 1024)))
    assert allocated(mirror, SchedulePolicy=preference) == {"p": f"{want},Ascend310P,3072,0:;"}


NAMED = {
    "a card that is wanted": ({f"hami.io/use-{W}-uuid": "N1"}, "N1"),
    "a card that is not wanted": ({f"hami.io/no-use-{W}-uuid": "N0"}, "N1"),
    "both": ({f"hami.io/use-{W}-uuid": "N0,N1", f"hami.io/no-use-{W}-uuid": "N0"}, "N1"),
}


@pytest.mark.parametrize("name", NAMED)
def test_pods_may_name_cards(name: str) -> None:
    annotations, want = NAMED[name]
    mirror = cluster(npus(npu(0), npu(1)), wanting("p", (1, 1024), **annotations))
    assert allocated(mirror) == {"p": f"{want},Ascend310P,3072,0:;"}


def test_pods_that_name_different_cards_are_told_apart_from_the_first_cycle_on() -> None:
    one, other = ({f"hami.io/use-{W}-uuid": uuid} for uuid in ("N0", "N9"))
    mirror = cluster(npus(npu(0)), wanting("a", (1, 1024), **other), wanting("b", (1, 1024), **one))
    session = opened(mirror, **ON)
    assert session.task("a").shape is not session.task("b").shape
    assert (session.refusals("a"), session.refusals("b")) == (REFUSED, {})


def test_memory_is_left_to_the_plugin() -> None:
    """No node lists the memory resource, so that the ordinary check of resources would refuse them all."""
    mirror = cluster(npus(npu(0)), wanting("p", (1, 1024)))
    assert mirror.tasks["ns/p"].shape.request.sum() > 0
    assert allocated(mirror) == {"p": "N0,Ascend310P,3072,0:;"}
    assert MEMORY in mirror.rules.ignored
    mirror.apply_pod(wanting("later", (1, 1024)))
    columns = [mirror.columns.names[column] for column in mirror.tasks["ns/later"].shape.compared]
    assert MEMORY not in columns


def test_unreadable_registers_are_no_devices() -> None:
    broken = roomy("n1", **{COUNT: 100}).annotate(**{f"hami.io/node-register-{W}": "[{]"}).build()
    assert opened(cluster(broken, wanting("p", (1, 24577))), **ON).refusals("p") == {}


NETWORKED = """
vnpus:
- {commonWord: Ascend910B, resourceName: huawei.com/Ascend910B, resourceMemoryName: huawei.com/Ascend910B-memory,
   memoryAllocatable: 65536, memoryCapacity: 65536}
"""


def networked(number: int) -> Mirror:
    meta = core.ObjectMeta(name="volcano-vgpu-device-config", namespace="kube-system")
    configured = core.ConfigMap(metadata=meta, data={FILE: NETWORKED})
    cards = [npu(index, network=network, memory=65536) for index, network in enumerate([0, 1, 1, 2])]
    pod = asking(member("p"), {"huawei.com/Ascend910B": number})
    return cluster(configured, npus(*cards, word="Ascend910B"), pod)


def test_cards_of_one_network_go_together() -> None:
    assert allocated(networked(2), "Ascend910B") == {"p": "N1,Ascend910B,65536,0:N2,Ascend910B,65536,0:;"}
    assert allocated(networked(3), "Ascend910B") == {
        "p": "N1,Ascend910B,65536,0:N2,Ascend910B,65536,0:N0,Ascend910B,65536,0:;"
    }


def test_nearness_counts_in_the_score() -> None:
    arguments = {**ON, "ScheduleWeight": 1, "SchedulePolicy": "binpack"}
    assert opened(networked(2), **arguments).scores("p") == {"n1": 10.0}
    assert opened(networked(3), **arguments).scores("p") == {"n1": 7.0}


def test_scores_look_at_the_first_card_of_each_container() -> None:
    mirror = cluster(npus(npu(0), npu(1)), holding("a", "N1,Ascend310P,3072,0"), wanting("p", (1, 1), (1, 1)))
    session = opened(mirror, ScheduleWeight=1, SchedulePolicy="binpack", **ON)
    assert session.scores("p") == {"n1": 14.0}


def test_what_is_registered_knows_its_network() -> None:
    assert Registered(custominfo={"NetworkID": 3}).network == 3
    assert Registered(custominfo={"NetworkID": "x"}).network is None
