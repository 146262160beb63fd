"""HyperNodes from a fabric: spec 03 section 8.4."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.hypernode.fabric import discover
from stromboli.controllers.hypernode.topologies import Discovered, SourceError
from stromboli.controllers.hypernode.ufm import EMPTY_ANSWERS, Endpoint, UfmSource
from stromboli.testing.clocks import SkippingClock
from tests.controllers.hypernode.fake_ufm import PASSWORD, USER, FakeUfm, fake_ufm, port

CREDENTIALS = {"username": USER, "password": PASSWORD}
TWO_GROUPS = [
    *(port(f"leaf{leaf}", f"node{node}") for leaf in range(4) for node in range(4)),
    *(port(f"leaf{leaf}", f"node{node}") for leaf in range(4, 7) for node in (4, 5)),
    *(port("leaf7", f"node{node}") for node in (5, 6)),
    *(port(f"leaf{leaf}", "node7") for leaf in (4, 7)),
    port("leaf0", "node9", "Switch IB Port"),
]


def test_two_groups() -> None:
    seen = discover(TWO_GROUPS)
    assert [(one.name, one.tier, one.members) for one in seen] == [
        ("leaf-hn-0", 1, ("node0", "node1", "node2", "node3")),
        ("leaf-hn-1", 1, ("node4", "node5", "node6", "node7")),
        ("spine-hn", 2, ("leaf-hn-0", "leaf-hn-1")),
    ]
    assert seen[2].spec()["members"][0] == {"type": "HyperNode", "selector": {"exactMatch": {"name": "leaf-hn-0"}}}
    assert "tierName" not in seen[0].spec()


def test_children_of_the_spine_are_sorted_as_texts() -> None:
    seen = discover([port(f"leaf{number:02}", f"node{number}") for number in range(11)])
    assert seen[-1].members[:4] == ("leaf-hn-0", "leaf-hn-1", "leaf-hn-10", "leaf-hn-2")


def test_nothing_comes_of_nothing() -> None:
    assert discover([]) == []
    assert discover([port("leaf", "node", "Switch"), {"description": "Computer"}]) == []


PORTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=30).map(
    lambda pairs: [port(f"leaf{leaf}", f"node{node}") for leaf, node in pairs]
)


@given(PORTS)
def test_groups_are_a_partition_and_no_leaf_has_nodes_in_two(ports: list[dict[str, str]]) -> None:
    leaves = [set(one.members) for one in discover(ports) if one.tier == 1]
    assert sum(map(len, leaves)) == len(set().union(*leaves)) if leaves else not ports
    for leaf in {one["peer_node_name"] for one in ports}:
        nodes = {one["system_name"] for one in ports if one["peer_node_name"] == leaf}
        assert sum(bool(nodes & group) for group in leaves) == 1


@given(PORTS, st.randoms())
def test_the_order_of_ports_does_not_matter(ports: list[dict[str, str]], random: object) -> None:
    shuffled = list(ports)
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis types it as object
    assert discover(shuffled) == discover(ports)


BAD_SETTINGS = {
    "no endpoint": ({}, CREDENTIALS, "UFM endpoint is not configured"),
    "an empty endpoint": ({"endpoint": ""}, CREDENTIALS, "UFM endpoint is not configured"),
    "an endpoint that is no text": ({"endpoint": 5}, CREDENTIALS, "endpoint must be a text"),
    "no credentials": ({"endpoint": "x"}, {}, "UFM authentication credentials are not configured"),
    "no password": ({"endpoint": "x"}, {"username": "u", "password": ""}, "credentials are not configured"),
}


@pytest.mark.parametrize(("config", "credentials", "text"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_settings_that_cannot_work_are_an_error_and_no_crash(
    config: dict[str, object], credentials: dict[str, str], text: str
) -> None:
    """Defect 20 of spec 03 section 13: a missing endpoint crashed the process."""
    with pytest.raises(SourceError, match=text):
        Endpoint.parse(config, credentials)


def test_endpoints() -> None:
    assert Endpoint.parse({"endpoint": "ufm.example:443//"}, CREDENTIALS).url == "https://ufm.example:443"
    assert Endpoint.parse({"endpoint": "http://ufm/"}, CREDENTIALS).url == "http://ufm"
    assert not Endpoint.parse({"endpoint": "u", "insecureSkipVerify": True}, CREDENTIALS).verify
    assert Endpoint.parse({"endpoint": "u", "insecureSkipVerify": "true"}, CREDENTIALS).verify


class Enough(Exception):
    """The clock of a test has been asked to wait often enough."""


class PollsOf(SkippingClock):
    """A clock that ends a loop at its n-th wait."""

    def __init__(self, polls: int) -> None:
        super().__init__()
        self._polls = polls

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if len(self.slept) >= self._polls:
            raise Enough


async def published(fake: FakeUfm, polls: int, credentials: dict[str, str] = CREDENTIALS) -> list[int]:
    """Sizes of the pictures that come of that many polls."""
    seen: list[int] = []

    async def publish(found: Sequence[Discovered]) -> bool:
        seen.append(len(found))
        return True

    clock = PollsOf(polls)
    source = UfmSource(Endpoint.parse({"endpoint": fake.url}, credentials), 60, clock=clock)
    with pytest.raises(Enough):
        await source.run(publish)
    assert (fake.asked, clock.slept) == (polls, [60] * polls)
    fake.asked = 0
    return seen


async def test_ports_become_a_picture_again_and_again() -> None:
    async with fake_ufm(*TWO_GROUPS) as fake:
        assert await published(fake, 3) == [3, 3, 3]


@pytest.mark.parametrize("answer", ["not json", "{}", "[1, 2]"])
async def test_an_answer_that_is_none_changes_nothing(answer: str) -> None:
    async with fake_ufm() as fake:
        fake.answer = answer
        assert await published(fake, 3) == []


async def test_a_refusal_changes_nothing() -> None:
    async with fake_ufm(*TWO_GROUPS) as fake:
        assert await published(fake, 2, {**CREDENTIALS, "password": "wrong"}) == []
        fake.status = 500
        assert await published(fake, 2) == []


async def test_an_empty_answer_is_believed_only_after_a_while() -> None:
    """Defect 19 of spec 03 section 13: one empty answer wiped out the topology."""
    async with fake_ufm() as fake:
        assert await published(fake, EMPTY_ANSWERS - 1) == []
        assert await published(fake, EMPTY_ANSWERS + 1) == [0, 0]
