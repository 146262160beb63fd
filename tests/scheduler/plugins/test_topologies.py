"""task-topology and network-topology-aware, by spec 06 sections 24 and 25."""

from __future__ import annotations

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.plugin import Purpose
from stromboli.scheduler.core.records import ROOT_HYPER_NODE
from stromboli.scheduler.plugins.network_topology_aware import capped
from stromboli.scheduler.plugins.task_groups import BadTopology, TaskTopology, parse_groups
from stromboli.testing.builders import Amount, hyper_node, node, pod, pod_group, queue
from tests.scheduler.plugins.sessions import Session, option

ROLES = {"ps", "worker", "chief", "evaluator"}
NEAR, AWAY, ORDER = (
    names.TASK_TOPOLOGY_AFFINITY,
    names.TASK_TOPOLOGY_ANTI_AFFINITY,
    names.TASK_TOPOLOGY_TASK_ORDER,
)


def read(**annotations: str) -> TaskTopology | None:
    return TaskTopology.read(annotations, "ns/job", ROLES)


def test_annotations_are_read_as_groups() -> None:
    topology = read(**{NEAR: "ps,worker;ps,chief", AWAY: "ps;worker,chief", ORDER: "ps,worker,chief,evaluator"})
    assert topology is not None
    assert topology.near == [["ps", "worker"], ["ps", "chief"]]
    assert topology.away == [["ps"], ["worker", "chief"]]
    assert [topology.rank(role) for role in ("ps", "evaluator", "other")] == [4, 1, 0]
    assert [topology.priority(role) for role in ("ps", "worker", "chief", "evaluator")] == [4, 3, 3, 0]
    assert read() is None


def test_redundant_separators_are_kept_as_empty_names() -> None:
    assert parse_groups("ps,worker;ps,,chief,;") == [["ps", "worker"], ["ps", "", "chief", ""], [""]]
    assert read(**{NEAR: "ps,worker;ps,,chief,;"}) is not None


BAD = {
    "a role that does not exist": ({NEAR: "$%GF$^trtqwrg^"}, r"task \$%GF\$\^trtqwrg\^ do not exist in job <ns/job>"),
    "an order that names one that does not exist": ({ORDER: "ps,absent"}, "task absent do not exist in job <ns/job>"),
    "a role twice in a group": ({AWAY: "ps,ps"}, "task ps is duplicate in job <ns/job>"),
}


@pytest.mark.parametrize("name", BAD)
def test_annotations_that_make_no_sense_are_refused(name: str) -> None:
    annotations, message = BAD[name]
    with pytest.raises(BadTopology, match=message):
        read(**annotations)


def topology_session(annotations: dict[str, str], roles: dict[str, str], **running: str) -> Session:
    pods = [pod(name).group("g").role(role).request(cpu=1, memory="1Gi") for name, role in roles.items()]
    placed = [one.on(running[one.name]) if one.name in running else one for one in pods]
    return Session(
        [queue().build(), pod_group("g").members(1).annotate(**annotations).build()],
        [node(name).offer(cpu=3, memory="8Gi").build() for name in ("n1", "n2")],
        [one.build() for one in placed],
        plugins=["task-topology"],
    )


def test_tasks_of_the_larger_bucket_come_first_and_those_without_a_wish_last() -> None:
    roles = {"w0": "worker", "w1": "worker", "p0": "ps", "p1": "ps", "c0": "chief"}
    opened = topology_session({NEAR: "ps,worker", AWAY: "ps", ORDER: "ps,worker"}, roles)
    assert opened.task_order("c0", "w1", "w0", "p1", "p0")[-1] == "c0"
    assert opened.task_order("c0", "w1", "p0", "w0") == ["p0", "w0", "w1", "c0"]


def test_tasks_with_affinity_prefer_the_node_of_their_bucket_and_follow_the_cycle() -> None:
    opened = topology_session({NEAR: "ps,worker"}, {"p0": "ps", "w0": "worker"}, p0="n2")
    assert opened.scores("w0")["n2"] > opened.scores("w0")["n1"]
    statement = opened.cycle.statement()
    before = opened.scores("w0")
    statement.allocate(opened.task("w0"), opened.node("n2"))
    statement.discard()
    assert opened.scores("w0") == before


def test_tasks_with_anti_affinity_avoid_nodes_that_have_one_of_them() -> None:
    opened = topology_session({AWAY: "ps"}, {"p0": "ps", "p1": "ps", "p2": "ps"}, p0="n1")
    assert opened.scores("p1")["n1"] < opened.scores("p1")["n2"]
    opened.place("p1", "n2")
    assert opened.scores("p2")["n1"] == opened.scores("p2")["n2"]


def test_a_bad_annotation_only_takes_the_topology_of_its_job_away() -> None:
    opened = topology_session({NEAR: "ghost"}, {"p0": "ps"})
    assert opened.combination.scores == []
    assert any("ns/g" in warning and "ghost" in warning for warning in opened.view.warnings)


# network-topology-aware

PLUGIN = "network-topology-aware"
LEAVES = {"s3": ("a", "b"), "s4": ("c", "d"), "s5": ("e", "f"), "s6": ("g", "h")}


def tree() -> list[core.HyperNode]:
    return [
        hyper_node("s0", 3, children=("s1", "s2")),
        hyper_node("s1", 2, children=("s3", "s4")),
        hyper_node("s2", 2, children=("s5", "s6")),
        *(hyper_node(name, 1, nodes) for name, nodes in LEAVES.items()),
    ]


def network_session(arguments: dict[str, object] | None = None, *, tier: int | None = 3, **amounts: Amount) -> Session:
    group = pod_group("g").members(1)
    group = group.topology("hard", tier) if tier is not None else group
    offer: dict[str, Amount] = {"cpu": 4, "memory": "8Gi"}
    return Session(
        [queue().build(), *(node(name).offer(**offer).build() for name in "abcdefgh"), *tree(), group.build()],
        [pod(f"p{at}").group("g").request(**(amounts or {"cpu": 2, "memory": "4Gi"})).build() for at in range(2)],
        plugins=[option(PLUGIN, arguments)],
    )


def test_nodes_near_to_where_the_gang_is_score_more() -> None:
    opened = network_session()
    assert set(opened.scores("p0").values()) == {0.0}
    opened.sub_job("g").allocated_hyper_node = "s3"
    assert opened.scores("p0", "a", "c", "e") == {"a": 100.0, "c": 66.7, "e": 33.3}
    doubled = network_session({"weight": 2})
    doubled.sub_job("g").allocated_hyper_node = "s3"
    assert doubled.scores("p0", "a", "c", "e") == {"a": 200.0, "c": 133.3, "e": 66.7}


def test_of_equally_near_nodes_those_with_more_of_the_gang_score_more() -> None:
    opened = network_session()
    opened.place("p0", "a")
    opened.sub_job("g").allocated_hyper_node = "s1"
    scores = opened.scores("p1", "a", "c", "e")
    assert scores["a"] == pytest.approx(scores["c"] + 50.0)
    assert scores["c"] > scores["e"]


def test_pods_without_a_topology_fill_hyper_nodes_of_low_tiers_first() -> None:
    opened = network_session(tier=None)
    before = opened.scores("p1", "a", "c")
    assert before["a"] == before["c"] > 0.0
    opened.place("p0", "a")
    after = opened.scores("p1", "b", "c", "e")
    assert after["b"] > after["c"] > after["e"]
    off = network_session({"hypernode.binpack.normal-pod.enable": False}, tier=None)
    assert set(off.scores("p1").values()) == {0.0}


def test_a_fading_of_zero_counts_the_lowest_tier_only() -> None:
    opened = network_session({"hypernode.binpack.normal-pod.fading": 0}, tier=None)
    opened.place("p0", "a")
    scores = opened.scores("p1", "b", "c", "e")
    assert scores["c"] == scores["e"] < scores["b"]


def test_hyper_nodes_are_scored_by_how_full_the_gang_would_make_them() -> None:
    opened = network_session(cpu=4, memory="8Gi")
    scores = opened.combination.hyper_node_scores(opened.sub_job("g"), opened.view.hyper_nodes.rows)
    assert scores["s1"] == pytest.approx(50.0)
    assert scores["s0"] == pytest.approx(25.0)
    assert scores["s3"] == pytest.approx(100.0)


def gradient(opened: Session, purpose: Purpose = Purpose.ALLOCATE, start: str = ROOT_HYPER_NODE) -> list[list[str]]:
    return opened.combination.gradient(opened.job("g"), None, start, purpose)


def test_hyper_nodes_are_tried_tier_by_tier_up_to_the_tier_allowed() -> None:
    assert gradient(network_session(tier=2)) == [["s3", "s4", "s5", "s6"], ["s1", "s2"]]
    assert gradient(network_session(tier=None)) == [[ROOT_HYPER_NODE]]
    assert gradient(network_session(tier=1), start="s2") == [["s5", "s6"]]


def test_a_gang_that_is_somewhere_stays_below_its_highest_allowed_ancestor() -> None:
    opened = network_session(tier=2)
    opened.job("g").allocated_hyper_node = "s3"
    assert gradient(opened) == [["s3", "s4"], ["s1"]]
    assert gradient(opened, start="s2") == []


def test_hyper_nodes_that_cannot_hold_the_minimum_are_left_out() -> None:
    def opened(cpu: int) -> Session:
        group = pod_group("g").members(1).topology("hard", 1).reserve(cpu=cpu).build()
        nodes = [node(name).offer(cpu=8).build() for name in "abcdefgh"]
        running = [pod(f"r{name}").request(cpu=4).on(name).build() for name in "abcdef"]
        return Session([queue().build(), *nodes, *tree(), group, *running], plugins=[PLUGIN])

    assert gradient(opened(10)) == [["s6"]]
    assert gradient(opened(10), Purpose.EVICT) == [["s3", "s4", "s5", "s6"]]
    assert gradient(opened(17), Purpose.EVICT) == []


def test_for_eviction_high_tiers_come_first_and_not_too_many() -> None:
    assert capped([["a", "b"], ["c", "d"]], 3) == [["c", "d"], ["b"]]
    assert capped([["a", "b"], ["c", "d"]], 1) == [["d"]]
    opened = network_session({"hypernode.gradient.evict.max-hypernodes": 4}, tier=2)
    assert gradient(opened, Purpose.EVICT) == [["s1", "s2"], ["s5", "s6"]]


def test_amounts_of_hyper_nodes_follow_the_cycle() -> None:
    opened = network_session(tier=1, cpu=4, memory="8Gi")
    rows = opened.view.hyper_nodes.rows
    before = opened.combination.hyper_node_scores(opened.sub_job("g"), {"s3": rows["s3"]})
    opened.place("p0", "a")
    after = opened.combination.hyper_node_scores(opened.sub_job("g"), {"s3": rows["s3"]})
    assert (before["s3"], after["s3"]) == (100.0, 0.0)
