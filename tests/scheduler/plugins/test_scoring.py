"""binpack, nodeorder and predicates, by the cases of spec 06 sections 14 to 16."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.api import core
from stromboli.scheduler.core.policy import Arguments
from stromboli.scheduler.plugins import node_facts
from stromboli.scheduler.plugins.affinity import stretched
from stromboli.scheduler.plugins.binpack import resource_weights
from stromboli.scheduler.plugins.nodeorder import WEIGHTS, fewest_first
from stromboli.testing.builders import NodeBuilder, PodBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import binds, policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session, option

FOO, GPU = "example.com/foo", "nvidia.com/gpu"


def test_binpack_reads_its_weights() -> None:
    given = {
        "binpack.weight": 10,
        "binpack.cpu": 5,
        "binpack.memory": 2,
        "binpack.resources": "nvidia.com/gpu, example.com/foo",
        "binpack.resources.nvidia.com/gpu": 7,
        "binpack.resources.example.com/foo": -3,
    }
    assert resource_weights(given) == {"cpu": 5, "memory": 2, GPU: 7, FOO: 1}


BINPACK: dict[str, tuple[dict[str, object], dict[str, tuple[float, float, float]]]] = {
    "all resources": (
        {
            "weight": 10,
            "cpu": 2,
            "memory": 3,
            "resources": f"{GPU}, {FOO}",
            f"resources.{GPU}": 7,
            f"resources.{FOO}": 8,
        },
        {"p1": (700, 137.5, 0), "p2": (0, 375, 0), "p3": (0, 531.2, 0), "p4": (0, 173.1, 0)},
    ),
    "foo not listed": (
        {"weight": 1, "cpu": 1, "memory": 1, "resources": GPU, f"resources.{GPU}": 23},
        {"p1": (75, 15.6, 0), "p2": (0, 37.5, 0), "p3": (0, 50.5, 0), "p4": (0, 50, 0)},
    ),
}


@pytest.mark.parametrize("name", BINPACK)
def test_binpack_prefers_the_fullest_node(name: str) -> None:
    given, want = BINPACK[name]
    nodes = [
        node("n1").offer(cpu=2, memory="4Gi"),
        node("n2").offer(cpu=4, memory="16Gi", gpu=4),
        node("n3").offer(cpu=2, memory="4Gi", **{FOO: 16}),
    ]
    pods = [
        pod("p1").request(cpu=1, memory="1Gi").on("n1"),
        pod("p2").request(cpu=1.5, memory="0Gi").on("n3"),
        pod("p3").request(cpu=2, memory="10Gi", gpu=2),
        pod("p4").request(cpu=3, memory="4Gi", **{FOO: 3}),
    ]
    opened = Session(
        [queue().build(), *(one.build() for one in nodes), pod_group("g").build()],
        [one.group("g").build() for one in pods],
        plugins=[option("binpack", {f"binpack.{key}": value for key, value in given.items()})],
    )
    for name_of_pod, scores in want.items():
        assert tuple(opened.scores(name_of_pod).values()) == pytest.approx(scores, abs=0.06)


def only(name: str) -> Arguments:
    return {f"{other}.weight": int(other == name) for other in WEIGHTS}


def labelled(name: str, **labels: str) -> NodeBuilder:
    return node(name).offer(cpu=4, memory="8Gi").label(**labels)


def preferring_zone(zone: str) -> core.Affinity:
    requirement = core.Requirement(key="zone", operator="In", values=(zone,))
    term = core.NodeSelectorTerm(match_expressions=(requirement,))
    preferred = core.PreferredSchedulingTerm(weight=100, preference=term)
    return core.Affinity(
        node_affinity=core.NodeAffinity(preferred_during_scheduling_ignored_during_execution=(preferred,))
    )


def preferring_pods(app: str, key: str) -> core.Affinity:
    term = core.PodAffinityTerm(label_selector=core.LabelSelector(match_labels={"app": app}), topology_key=key)
    weighted = core.WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return core.Affinity(
        pod_affinity=core.PodAffinity(preferred_during_scheduling_ignored_during_execution=(weighted,))
    )


def spread_over(key: str) -> PodBuilder:
    constraint = core.TopologySpreadConstraint(
        max_skew=1,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway",
        label_selector=core.LabelSelector(match_labels={"app": "a"}),
    )
    return pod("p").label(app="a").request(cpu=1)._spec(topology_spread_constraints=(constraint,))


SMALL_AND_LARGE = [node("small").offer(cpu=2, memory="4Gi"), node("large").offer(cpu=4, memory="8Gi")]
ZONES = [labelled(f"n{at}", zone=f"z{at}") for at in (1, 2, 3)]
PLAIN = pod("p").request(cpu=1, memory="1G")
NODE_ORDER: dict[str, tuple[str, list[NodeBuilder], list[PodBuilder], PodBuilder, str]] = {
    "least requested takes the larger": ("leastrequested", SMALL_AND_LARGE, [], PLAIN, "large"),
    "most requested takes the smaller": ("mostrequested", SMALL_AND_LARGE, [], PLAIN, "small"),
    "balanced takes the node with the same proportions": (
        "balancedresource",
        [node("even").offer(cpu=2, memory="2Gi"), node("odd").offer(cpu=4, memory="2Gi")],
        [],
        pod("p").request(cpu=1, memory="1Gi"),
        "even",
    ),
    "preferred node affinity": ("nodeaffinity", ZONES, [], PLAIN.affine(preferring_zone("z2")), "n2"),
    "a taint to be avoided": (
        "tainttoleration",
        [labelled("n1").taint("k", effect="PreferNoSchedule"), labelled("n2")],
        [],
        PLAIN,
        "n2",
    ),
    "preferred pod affinity": (
        "podaffinity",
        ZONES,
        [pod("friend").label(app="s1").on("n1"), pod("noise").label(app="s2").on("n3")],
        PLAIN.affine(preferring_pods("s1", "zone")),
        "n1",
    ),
    "spread over zones with 2, 1 and 0 pods": (
        "podtopologyspread",
        ZONES,
        [pod("a").label(app="a").on("n1"), pod("b").label(app="a").on("n1"), pod("c").label(app="a").on("n2")],
        spread_over("zone"),
        "n3",
    ),
    "spread over hosts counts the pods of the host": (
        "podtopologyspread",
        [labelled("n1", **{"kubernetes.io/hostname": "n1"}), labelled("n2", **{"kubernetes.io/hostname": "n2"})],
        [pod("a").label(app="a").on("n1")],
        spread_over("kubernetes.io/hostname"),
        "n2",
    ),
}


@pytest.mark.parametrize("name", NODE_ORDER)
def test_nodeorder_prefers(name: str) -> None:
    score, nodes, there, wanted, best = NODE_ORDER[name]
    opened = Session(
        [queue().build(), pod_group("g").build(), *(one.build() for one in nodes)],
        [one.build() for one in there],
        [wanted.group("g").build()],
        plugins=[option("nodeorder", only(score))],
    )
    scores = opened.scores("p")
    assert max(scores, key=lambda key: scores[key]) == best
    assert sum(number == scores[best] for number in scores.values()) == 1


def test_with_all_weights_zero_there_is_no_score() -> None:
    opened = Session(
        [queue().build(), pod_group("g").build(), node("n").build(), pod("p").group("g").build()],
        plugins=[option("nodeorder", dict.fromkeys((f"{name}.weight" for name in WEIGHTS), 0))],
    )
    assert opened.combination.scores == []


def test_pods_that_a_service_selects_are_spread_over_hosts_and_zones_by_default() -> None:
    service = core.Service(
        metadata=core.ObjectMeta(name="web", namespace="ns"), spec=core.ServiceSpec(selector={"app": "web"})
    )
    nodes = [labelled(name, **{"kubernetes.io/hostname": name}).build() for name in ("n1", "n2", "n3")]
    there = [pod("w1").label(app="web").on("n1").build(), pod("w2").label(app="web").on("n1").build()]
    opened = Session(
        [queue().build(), pod_group("g").build(), service, *nodes, *there],
        [pod("p").label(app="web").group("g").build(), pod("other").label(app="x").group("g").build()],
        [pod("w3").label(app="web").on("n2").build()],
        plugins=[option("nodeorder", only("podtopologyspread"))],
    )
    scores = opened.scores("p")
    assert scores["n3"] > scores["n2"] > scores["n1"]
    assert set(opened.scores("other").values()) == {0.0}


def test_normalising_is_whole_numbers_over_candidates() -> None:
    assert fewest_first(np.array([0.0, 1.0, 3.0])).tolist() == [100.0, 67.0, 0.0]
    assert fewest_first(np.zeros(2)).tolist() == [100.0, 100.0]
    assert stretched(np.array([-5.0, 0.0, 10.0])).tolist() == [0.0, 33.0, 100.0]
    assert stretched(np.array([7.0, 7.0])).tolist() == [0.0, 0.0]


def test_reasons_accumulate_in_order_until_one_aborts() -> None:
    full = node("full").offer(pods=0).cordon()
    clash = node("clash").offer(pods=1)
    opened = Session(
        [queue().build(), pod_group("g").build(), full.build(), clash.build()],
        [pod("old").host_port(80).on("clash").build(), pod("p").host_port(80).group("g").build()],
        plugins=["predicates"],
    )
    assert opened.refusals("p") == {
        "full": ["node(s) pod number exceeded", "node(s) were unschedulable"],
        "clash": ["node(s) pod number exceeded", "node(s) didn't have free ports for the requested pod ports"],
    }


def test_filters_that_are_switched_off_do_not_refuse() -> None:
    tainted = node("n").taint("k").label(zone="z1").build()
    off = {f"predicate.{name}Enable": False for name in ("NodeAffinity", "TaintToleration")}
    opened = Session(
        [queue().build(), pod_group("g").build(), tainted, pod("p").select(zone="z2").group("g").build()],
        plugins=[option("predicates", off)],
    )
    assert opened.refusals("p") == {}


def test_a_node_takes_no_more_pods_than_it_allows_within_one_cycle() -> None:
    mirror = world(
        [queue().build(), pod_group("g").build(), node("n").offer(cpu=4, pods=2).build()],
        [pod(f"p{at}").group("g").build() for at in range(3)],
    )
    result = run_cycle(mirror, policy("gang", "predicates"))
    assert sorted(binds(result)) == ["p0", "p1"]


def test_a_gang_that_is_given_up_takes_its_pods_out_of_the_way_of_others() -> None:
    term = core.PodAffinityTerm(
        label_selector=core.LabelSelector(
            match_expressions=(core.Requirement(key="role", operator="In", values=("worker",)),)
        ),
        topology_key="kubernetes.io/hostname",
    )
    apart = core.Affinity(
        pod_anti_affinity=core.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    )
    worker = pod("w").label(role="worker").request(cpu=10).affine(apart)
    big, small = node("big").offer(cpu=14), node("small").offer(cpu=3)
    mirror = world(
        [queue().build()],
        [one.label(**{"kubernetes.io/hostname": one.name}).build() for one in (big, small)],
        [pod_group("gang").members(2).build(), pod_group("single").members(1).born(5).build()],
        [PodBuilder(**{**worker.__dict__, "name": f"gang-w-{at}"}).group("gang").build() for at in range(2)],
        [PodBuilder(**{**worker.__dict__, "name": "single-w-0"}).group("single").build()],
    )
    assert binds(run_cycle(mirror, policy("gang", "predicates"))) == {"single-w-0": "big"}


def test_clusters_without_affinity_pay_nothing_for_it() -> None:
    opened = Session(
        [queue().build(), pod_group("g").build(), node("n").offer(cpu=4).build(), pod("p").group("g").build()],
        plugins=["predicates", "nodeorder"],
    )
    evaluation = opened.cycle.searches.of(opened.task("p"))
    assert evaluation._cluster_filters == []
    assert evaluation._cluster_scores == []
    assert len(opened.combination.books) == 1


def test_facts_about_nodes_are_kept_until_a_node_looks_different() -> None:
    opened = Session([queue().build(), node("n").label(zone="a").build()], plugins=["predicates"])
    facts = node_facts.of(opened.view)
    opened.cycle.close()
    opened.mirror.apply_node(node("n").label(zone="a").offer(cpu=5).build())
    again = Session(mirror=opened.mirror, plugins=["predicates"])
    assert node_facts.of(again.view) is facts
    again.cycle.close()
    opened.mirror.apply_node(node("n").label(zone="b").build())
    third = Session(mirror=opened.mirror, plugins=["predicates"])
    assert node_facts.of(third.view) is not facts
    assert "b" in node_facts.of(third.view).labels.column("zone")[1]
