"""Who gets which node: spec 03 sections 10.2, 10.3 and 10.6."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.core import Node, Pod, from_builtins
from stromboli.controllers.sharding.assigning import assign
from stromboli.controllers.sharding.configuration import parse
from stromboli.controllers.sharding.utilisation import Candidate, Utilisation, utilisation

WARM = {"node.volcano.sh/warmup": "true"}


def candidate(name: str, cpu: float | None, *, warm: bool = False) -> Candidate:
    used = None if cpu is None else Utilisation(Fraction(str(cpu)))
    return Candidate(name, used, WARM if warm else {})


def policy(name: str, weight: float = 1, **arguments: float) -> str:
    given = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    return f"{{name: {name}, weight: {weight}, arguments: {{{given}}}}}"


def rate(low: float, high: float, weight: float = 1) -> str:
    return policy("allocation-rate", weight, minCPUUtil=low, maxCPUUtil=high)


def dealt(nodes: list[Candidate], **schedulers: str) -> dict[str, list[str]]:
    """``name="policy, policy"`` by scheduler."""
    entries = "\n".join(f"- {{name: {name}, policies: [{text}]}}" for name, text in schedulers.items())
    found = parse({"sharding.yaml": f"schedulerConfigs:\n{entries}"})
    return {name: list(names) for name, names in assign(found.shards, nodes).items()}


EIGHT = [
    candidate("n1", 0.10, warm=True),
    candidate("n2", 0.55),
    candidate("n3", 0.05, warm=True),
    candidate("n4", 0.40),
    candidate("n5", 0.65, warm=True),
    candidate("n6", 0.90),
    candidate("n7", 0.30, warm=True),
    candidate("n8", None),
]
FOUR = [candidate("a", 0.4), candidate("b", 0.8), candidate("c", 0.2), candidate("d", 0.6)]
THREE = [candidate("low", 0.2), candidate("mid", 0.4), candidate("high", 0.7)]

CASES: dict[str, tuple[list[Candidate], str, list[str]]] = {
    "rate and warmth": (EIGHT, f"{rate(0, 0.6)}, {policy('warmup', 2)}", ["n7", "n1", "n3", "n2", "n4"]),
    "two filters": (THREE, f"{rate(0, 0.5)}, {rate(0.3, 1)}", ["mid"]),
    "warmth alone": (
        [candidate("a", 0.1), candidate("b", 0.2, warm=True), candidate("c", 0.3)], policy("warmup"), ["b", "a", "c"]
    ),
    "weights": (
        [candidate("warm", 0.0, warm=True), candidate("cold", 0.6)],
        f"{rate(0, 1, 10)}, {policy('warmup')}",
        ["cold", "warm"],
    ),
    "a limit": (FOUR, f"{rate(0, 1)}, {policy('node-limit', maxNodes=2)}", ["b", "d"]),
    "fewer than wanted": (FOUR, f"{rate(0.8, 1)}, {policy('node-limit', minNodes=3, maxNodes=9)}", ["b"]),
    "one point": (FOUR, rate(0.4, 0.4), ["a"]),
    "no bounds at all": (FOUR, "{name: allocation-rate}", ["b", "d", "a", "c"]),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "policies", "want"), CASES.values(), ids=CASES.keys())
def test_what_one_scheduler_gets(nodes: list[Candidate], policies: str, want: list[str]) -> None:
    assert dealt(nodes, only=policies) == {"only": want}


def test_who_comes_first_takes_first() -> None:
    assert dealt(THREE, one=rate(0, 1), two=rate(0, 1)) == {"one": ["high", "mid", "low"], "two": []}


def test_halves_are_rounded_away_from_zero() -> None:
    nodes = [candidate("half", 0.5), candidate("under", 0.4875), candidate("over", 0.5125)]
    assert dealt(nodes, below=rate(0, 0.49), above=rate(0.5, 1)) == {"below": ["under"], "above": ["over", "half"]}


def test_a_limit_holds_for_all_nodes_together() -> None:
    """Defect 22 of spec 03 section 13: it held for each batch of 50."""
    nodes = [candidate(f"n{number:03}", number / 120) for number in range(120)]
    found = dealt(nodes, one=f"{rate(0, 1)}, {policy('node-limit', maxNodes=100)}", two=rate(0, 1))
    assert (len(found["one"]), len(found["two"])) == (100, 20)
    assert found["one"][0] == "n119"


def test_without_a_highest_rate_all_nodes_pass() -> None:
    """Defect 22 of spec 03 section 13: only idle nodes passed."""
    assert dealt(THREE, only="{name: allocation-rate, arguments: {minCPUUtil: 0.3}}") == {"only": ["high", "mid"]}


def test_no_nodes() -> None:
    assert dealt([], one=rate(0, 1), two=rate(0, 1)) == {"one": [], "two": []}


NODES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40).map(
    lambda given: [candidate(f"n{number}", round(cpu, 4), warm=warm) for number, (cpu, warm) in enumerate(given)]
)


@given(NODES, st.integers(1, 10), st.randoms())
def test_no_node_is_given_twice_and_the_order_of_nodes_does_not_matter(
    nodes: list[Candidate], most: int, random: object
) -> None:
    chain = f"{rate(0, 0.7)}, {policy('warmup')}, {policy('node-limit', maxNodes=most)}"
    first = dealt(nodes, one=chain, two=rate(0.3, 1), three=policy("warmup"))
    every = [name for names in first.values() for name in names]
    assert len(every) == len(set(every)) == len(nodes), "the last takes whatever is left"
    assert len(first["one"]) <= most
    shuffled = list(nodes)
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis types it as object
    assert dealt(shuffled, one=chain, two=rate(0.3, 1), three=policy("warmup")) == first


# -- utilisation -------------------------------------------------------------------------------------------------------


def node(**capacity: str) -> Node:
    return from_builtins(Node, {"metadata": {"name": "n"}, "status": {"capacity": capacity}})


def pod(cpu: str = "0", memory: str = "0", phase: str = "Running", **fields: Any) -> Pod:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    meta = {"name": "p", "annotations": fields.pop("annotations", {})}
    return from_builtins(
        Pod, {"metadata": meta, "spec": {"containers": containers, **fields}, "status": {"phase": phase}}
    )


def test_shares_of_capacity() -> None:
    pods = [pod("1", "1Gi"), pod("2", "2Gi"), pod("500m", "512Mi")]
    found = utilisation(node(cpu="8", memory="32Gi"), pods)
    assert (float(found.cpu), float(found.memory), found.pods) == (0.4375, 0.109375, 3)


def test_more_than_there_is_counts_as_all() -> None:
    assert utilisation(node(cpu="8"), [pod("10")]).cpu == 1


@pytest.mark.parametrize(
    "given",
    [
        pod("4", phase="Succeeded"),
        pod("4", phase="Failed"),
        pod("4", annotations={"kubernetes.io/config.mirror": "x"}),
    ],
)
def test_pods_that_do_not_count(given: Pod) -> None:
    assert utilisation(node(cpu="8"), [given]) == Utilisation()


def test_init_containers_and_overhead_do_not_count() -> None:
    init = [{"name": "i", "resources": {"requests": {"cpu": "8"}}}]
    assert utilisation(node(cpu="8"), [pod("1", initContainers=init, overhead={"cpu": "4"})]).cpu == Fraction(1, 8)


def test_no_capacity() -> None:
    assert utilisation(node(), [pod("1")]) == Utilisation(pods=1)
