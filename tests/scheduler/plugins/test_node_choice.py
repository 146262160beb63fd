"""nodegroup, usage, tdm and resource-strategy-fit, by spec 06 sections 18, 19, 22 and 23."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core import loads
from stromboli.scheduler.plugins.resource_strategy_fit import Strategies, Strategy, is_prefix
from stromboli.scheduler.plugins.tdm import BadWindow, Window, disruptions
from stromboli.testing.builders import Amount, NodeBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW
from tests.scheduler.plugins.sessions import Session, allowed_rows, option

GROUPED = [node(f"n{at}").label(**{names.NODE_GROUP_NAME: f"group{at}"}) for at in (1, 2, 3, 4)] + [node("n5")]


def rules(required: str = "", preferred: str = "", forbidden: str = "", avoided: str = "") -> core.QueueAffinity:
    def listed(text: str) -> tuple[str, ...]:
        return tuple(f"group{digit}" for digit in text)

    return core.QueueAffinity(
        node_group_affinity=core.NodeGroupAffinity(
            required_during_scheduling_ignored_during_execution=listed(required),
            preferred_during_scheduling_ignored_during_execution=listed(preferred),
        ),
        node_group_anti_affinity=core.NodeGroupAffinity(
            required_during_scheduling_ignored_during_execution=listed(forbidden),
            preferred_during_scheduling_ignored_during_execution=listed(avoided),
        ),
    )


FULL = rules("13", "3", "24", "4")
NODE_GROUPS: dict[str, tuple[core.QueueAffinity | None, dict[str, object], list[float], set[str]]] = {
    "required, preferred and both kinds of anti-affinity": (FULL, {}, [100, 0, 150, -1, 0], {"n1", "n3", "n4"}),
    "preferred but not required": (rules("1", "3", "2", "4"), {}, [100, 0, 50, -1, 0], {"n1", "n3", "n4"}),
    "nothing said, not strict": (None, {"strict": False}, [0, 0, 0, 0, 0], {"n5"}),
    "nothing said, strict": (None, {}, [0, 0, 0, 0, 0], set()),
    "the first preferred is the best": (
        rules("", "13"),
        {"enablePreferredOrder": True},
        [50, 0, 25, 0, 0],
        {"n1", "n3"},
    ),
    "only anti-affinity allows only what is avoided": (rules("", "", "1", "2"), {}, [0, -1, 0, 0, 0], {"n2"}),
}


@pytest.mark.parametrize("name", NODE_GROUPS)
def test_queues_use_the_nodes_of_their_groups(name: str) -> None:
    affinity, arguments, scores, allowed = NODE_GROUPS[name]
    opened = Session(
        [queue("q")._spec(affinity=affinity).build(), pod_group("g").queue("q").build(), pod("p").group("g").build()],
        [one.build() for one in GROUPED],
        plugins=[option("nodegroup", arguments)],
    )
    assert list(opened.scores("p").values()) == scores
    assert {one.name for one in GROUPED} - opened.refusals("p").keys() == allowed


def test_with_hierarchy_the_nearest_ancestor_with_an_affinity_counts() -> None:
    queues = [queue("root"), queue("top")._spec(affinity=FULL), queue("mid").parent("top"), queue("q").parent("mid")]
    for hierarchy, want in ((True, {"n1", "n3", "n4"}), (False, set())):
        opened = Session(
            [one.build() for one in queues],
            [pod_group("g").queue("q").build(), pod("p").group("g").build(), *(one.build() for one in GROUPED)],
            plugins=[option("nodegroup", hierarchy=hierarchy)],
        )
        assert {one.name for one in GROUPED} - opened.refusals("p").keys() == want


# usage

LOADS = {"cpu": (81.0, 60.0, 0.0), "mem": (60.0, 81.0, 0.0), "fine": (80.0, 79.0, 0.0), "stale": (90.0, 81.0, 360.0)}


def loaded(arguments: dict[str, object], known: dict[str, tuple[float, float, float]]) -> Session:
    values = {
        name: loads.NodeLoad(NOW - age, {loads.PERIOD: cpu}, {loads.PERIOD: memory})
        for name, (cpu, memory, age) in known.items()
    }
    return Session(
        [queue().build(), pod_group("g").build(), pod("p").group("g").build()],
        [node(name).build() for name in (*known, "unknown")],
        plugins=[option("usage", arguments)],
        options={loads.OPTION: values},
    )


def test_loaded_nodes_are_refused_and_those_without_fresh_numbers_are_not() -> None:
    refused = loaded({"thresholds": {"cpu": 80, "mem": 80}}, LOADS).refusals("p")
    assert refused == {
        "cpu": ["the CPU load of the node exceeds the upper limit."],
        "mem": ["the memory load of the node exceeds the upper limit."],
    }


def test_a_threshold_that_is_no_integer_leaves_the_default() -> None:
    assert "fine" not in loaded({"thresholds": {"cpu": "0.5", "mem": None}}, LOADS).refusals("p")


USAGE: dict[str, tuple[dict[str, object], list[int]]] = {
    "equal weights": ({"usage.weight": 5, "cpu.weight": 1, "memory.weight": 1}, [300, 225, 150, 0, 0]),
    "mostly memory": ({"usage.weight": 5, "cpu.weight": 2, "memory.weight": 8}, [270, 240, 120, 0, 0]),
    "no weight at all": ({"cpu.weight": 0, "memory.weight": 0}, [0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", USAGE)
def test_idle_nodes_score_more(name: str) -> None:
    arguments, want = USAGE[name]
    known = {"a": (30.0, 50.0, 0.0), "b": (60.0, 50.0, 0.0), "c": (60.0, 80.0, 0.0), "old": (0.0, 0.0, 301.0)}
    assert list(loaded(arguments, known).scores("p").values()) == want


# tdm

WINDOWS = {
    "00:00_01:00": None,
    "00:00-01:00": 3600,
    "0:00-23:59": 86340,
    "0:00": None,
    "1:00-0:00": 82800,
    "1:0-0:0": None,
    " 0:00 - 1:00 ": 3600,
    "23:59-23:59": 86400,
    "63:59-23:59": None,
    "24:00-1:00": None,
}


@pytest.mark.parametrize("text", WINDOWS)
def test_windows_are_read_as_parts_of_the_day(text: str) -> None:
    want = WINDOWS[text]
    if want is None:
        with pytest.raises(BadWindow, match="format error"):
            Window.parse(text)
    else:
        assert Window.parse(text).seconds == want


@pytest.mark.parametrize(
    ("at", "is_open"),
    [("21:59:59", False), ("22:00:00", True), ("03:00:00", True), ("06:00:00", True), ("06:00:01", False)],
)
def test_a_window_over_midnight_is_open_on_both_sides(at: str, is_open: bool) -> None:
    now = datetime.fromisoformat(f"2026-03-01T{at}")
    assert Window.parse("22:00-06:00").is_open(now) is is_open


ALWAYS = {"tdm.revocable-zone.rz1": "0:00-0:00"}


def closed_zone() -> dict[str, object]:
    """A window that is not open now, whatever the local zone."""
    local = datetime.fromtimestamp(NOW)
    hour = (local.hour + 12) % 24
    return {"tdm.revocable-zone.rz2": f"{hour}:00-{hour}:01"}


def zones() -> list[NodeBuilder]:
    return [
        node("open").label(**{names.REVOCABLE_ZONE: "rz1"}),
        node("closed").label(**{names.REVOCABLE_ZONE: "rz2"}),
        node("strange").label(**{names.REVOCABLE_ZONE: "rz9"}),
        node("plain"),
    ]


def test_revocable_nodes_take_only_revocable_tasks_and_only_in_their_window() -> None:
    opened = Session(
        [queue().build(), pod_group("g").build(), *(one.offer(cpu=8).build() for one in zones())],
        [pod("may").group("g").annotate(**{names.REVOCABLE_ZONE: "*"}).build(), pod("not").group("g").build()],
        plugins=[option("tdm", {**ALWAYS, **closed_zone()})],
    )
    closed = f"current time beyond revocable zone rz2:{closed_zone()['tdm.revocable-zone.rz2']}"
    strange = "revocable zone rz9 not support"
    assert opened.refusals("may") == {"closed": [closed], "strange": [strange]}
    assert opened.refusals("not") == {
        "open": ["not allow to dispatch to revocable node"],
        "closed": [closed],
        "strange": [strange],
    }
    assert opened.scores("may", "open", "plain") == {"open": 100.0, "plain": 0.0}
    assert opened.scores("not", "plain") == {"plain": 0.0}


def test_any_number_of_zones_has_its_own_reasons() -> None:
    (window,) = closed_zone().values()
    hundreds = {f"z{at}": (ALWAYS["tdm.revocable-zone.rz1"], window, None)[at % 3] for at in range(600)}
    arguments = {f"tdm.revocable-zone.{zone}": written for zone, written in hundreds.items() if written}
    nodes = [node(f"in-{zone}").label(**{names.REVOCABLE_ZONE: zone}) for zone in hundreds]
    opened = Session(
        [queue().build(), pod_group("g").build(), *(one.offer(cpu=8).build() for one in [node("plain"), *nodes])],
        [pod("may").group("g").annotate(**{names.REVOCABLE_ZONE: "*"}).build(), pod("not").group("g").build()],
        plugins=[option("tdm", arguments)],
    )
    closed = {
        f"in-z{at}": [f"current time beyond revocable zone z{at}:{window}"]
        if at % 3 == 1
        else [f"revocable zone z{at} not support"]
        for at in range(600)
        if at % 3
    }
    open_ = {f"in-z{at}": ["not allow to dispatch to revocable node"] for at in range(0, 600, 3)}
    assert opened.refusals("may") == closed
    assert opened.refusals("not") == closed | open_
    assert allowed_rows(opened, "may") == {"plain", *open_}
    assert opened.scores("may", "plain", "in-z597") == {"plain": 0.0, "in-z597": 100.0}


BUDGETS = {
    "no budget": ({}, 1),
    "30% unavailable": ({names.JDB_MAX_UNAVAILABLE: "30%"}, 2),
    "99% unavailable": ({names.JDB_MAX_UNAVAILABLE: "99%"}, 5),
    "3 unavailable": ({names.JDB_MAX_UNAVAILABLE: "3"}, 3),
    "at least 3": ({names.JDB_MIN_AVAILABLE: "3"}, 2),
    "at least 30%": ({names.JDB_MIN_AVAILABLE: "30%"}, 3),
    "at least more than there are": ({names.JDB_MIN_AVAILABLE: "9"}, 0),
    "unreadable": ({names.JDB_MAX_UNAVAILABLE: "some"}, 1),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_job_loses_no_more_tasks_than_its_budget_lets_go(name: str) -> None:
    annotations, want = BUDGETS[name]
    running = [pod(f"p{at}").group("g").on("closed").annotate(**{names.PREEMPTABLE: "true"}) for at in range(5)]
    opened = Session(
        [queue().build(), *(one.offer(cpu=8).build() for one in zones())],
        [pod_group("g").annotate(**annotations).build(), *(one.build() for one in running)],
        plugins=[option("tdm", {**ALWAYS, **closed_zone()})],
    )
    assert disruptions(opened.job("g")) == want
    assert len(opened.victim_tasks()) == want


def test_zones_are_emptied_once_a_period_and_open_ones_not_at_all() -> None:
    running = [
        pod(f"{zone}-pod").group(zone).on(zone).annotate(**{names.PREEMPTABLE: "true"}) for zone in ("open", "closed")
    ]
    arguments = {**ALWAYS, **closed_zone(), "tdm.evict.period": "10m"}
    opened = Session(
        [queue().build(), *(one.offer(cpu=8).build() for one in zones())],
        [pod_group(name).build() for name in ("open", "closed")],
        [one.build() for one in running],
        plugins=[option("tdm", arguments)],
    )
    assert opened.victim_tasks() == ["closed-pod"]
    again = Session(mirror=opened.mirror, plugins=[option("tdm", arguments)])
    assert again.victim_tasks() == []


def test_steady_work_takes_from_preemptable_work_outside_the_zones() -> None:
    preemptable = {names.PREEMPTABLE: "true"}
    pods = [
        pod("inside").group("g").on("open").annotate(**preemptable),
        pod("outside").group("g").on("plain").annotate(**preemptable),
        pod("steady").group("h").annotate(**{names.PREEMPTABLE: "false"}),
        pod("preemptable").group("h").annotate(**preemptable),
    ]
    groups = [pod_group("g").annotate(**preemptable).born(-5).build(), pod_group("h").build()]
    opened = Session(
        [queue().build(), *groups, *(one.offer(cpu=8).build() for one in zones()), *(one.build() for one in pods)],
        plugins=[option("tdm", dict(ALWAYS))],
    )
    assert opened.preemptable("steady", "inside", "outside") == ["outside"]
    assert opened.preemptable("preemptable", "outside") == []
    assert opened.job_order() == ["h", "g"]
    assert opened.combination.job_starving(opened.job("h"))
    assert not opened.combination.job_starving(opened.job("g"))


# resource-strategy-fit

TYPE, WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
LEAST, MOST = "LeastAllocated", "MostAllocated"


def fitted(
    arguments: dict[str, object],
    allocatable: tuple[Amount, Amount] = ("500m", 500),
    request: Mapping[str, Amount] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> float:
    used = pod("used").group("g").request(cpu="200m", memory=200).on("n")
    asked: Mapping[str, Amount] = {"cpu": "100m", "memory": 100} if request is None else request
    opened = Session(
        [queue().build(), pod_group("g").build(), node("n").offer(cpu=allocatable[0], memory=allocatable[1]).build()],
        [used.build(), pod("p").group("g").request(**asked).annotate(**annotations or {}).build()],
        plugins=[option("resource-strategy-fit", arguments)],
    )
    return opened.scores("p")["n"]


def per_resource(**given: tuple[str, int]) -> dict[str, object]:
    return {"resources": {name: {"type": kind, "weight": weight} for name, (kind, weight) in given.items()}}


STRATEGIES: dict[str, tuple[float, float]] = {
    "least": (fitted(per_resource(cpu=(LEAST, 1), memory=(LEAST, 1))), 400),
    "most": (fitted(per_resource(cpu=(MOST, 1), memory=(MOST, 1))), 600),
    "least on a smaller node": (fitted(per_resource(cpu=(LEAST, 1), memory=(LEAST, 1)), ("400m", 400)), 250),
    "mixed 2 to 1": (fitted(per_resource(cpu=(LEAST, 2), memory=(MOST, 1))), 466.7),
    "mixed 1 to 2": (fitted(per_resource(cpu=(LEAST, 1), memory=(MOST, 2))), 533.3),
    "mixed 3 to 1": (fitted(per_resource(cpu=(LEAST, 3), memory=(MOST, 1))), 450),
    "memory only asked for": (fitted(per_resource(cpu=(LEAST, 1), memory=(MOST, 2)), request={"memory": 100}), 600),
    "a node without cpu": (fitted(per_resource(cpu=(LEAST, 1), memory=(MOST, 2)), (0, 400)), 500),
    "memory only scored": (fitted(per_resource(memory=(MOST, 2))), 600),
    "the pod's own least": (fitted({}, annotations={TYPE: LEAST, WEIGHT: '{"cpu": 2, "memory": 1}'}), 400),
    "the pod's own most": (fitted({}, annotations={TYPE: MOST, WEIGHT: '{"cpu": 1, "memory": 2}'}), 600),
    "the pod's own, one resource": (fitted({}, annotations={TYPE: LEAST, WEIGHT: '{"cpu": 2}'}), 400),
    "the pod's own, unreadable": (fitted({}, annotations={TYPE: LEAST, WEIGHT: "{cpu"}), 0),
    "the pod's own, without weights": (fitted({}, annotations={TYPE: LEAST}), 0),
    "nothing asked for": (fitted({}, request={}), 0),
    "a full node": (fitted({}, ("250m", 250)), 0),
    "another weight": (
        fitted({"resourceStrategyFitWeight": 20, **per_resource(cpu=(LEAST, 5), memory=(LEAST, 5))}),
        800,
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_nodes_are_scored_resource_by_resource(name: str) -> None:
    got, want = STRATEGIES[name]
    assert got == pytest.approx(want, abs=0.06)


@pytest.mark.parametrize("name", ["*", "cloudml.gpu**", "cloudml.*.gpu", "*.com/gpu", "*test*resource*", "cpu"])
def test_names_that_do_not_end_in_one_star_are_no_prefixes(name: str) -> None:
    assert not is_prefix(name)


def test_exact_beats_prefix_and_the_longest_prefix_wins() -> None:
    known = Strategies(
        {
            "nvidia.com/*": Strategy(weight=1),
            "nvidia.com/gpu/*": Strategy(weight=2),
            "nvidia.com/gpu": Strategy(weight=3),
        }
    )
    found = {name: known.of(name) for name in ("nvidia.com/gpu", "nvidia.com/gpu/v100", "nvidia.com/x", "cpu")}
    assert {name: one.weight for name, one in found.items() if one is not None} == {
        "nvidia.com/gpu": 3,
        "nvidia.com/gpu/v100": 2,
        "nvidia.com/x": 1,
    }


T4, A10 = "nvidia.com/t4", "nvidia.com/a10"
SCARCE: dict[str, tuple[dict[str, Amount], list[float]]] = {
    "without": ({"cpu": 1}, [500, 300, 200, 0]),
    "with t4": ({T4: 1}, [0, 300, 0, 0]),
    "with a10": ({A10: 1}, [0, 0, 200, 0]),
    "with both": ({T4: 1, A10: 1}, [0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", SCARCE)
def test_nodes_with_scarce_resources_are_kept_for_those_who_ask(name: str) -> None:
    request, want = SCARCE[name]
    sra = {"enable": True, "resources": f"{T4}, {A10}", "weight": 5, "resourceWeight": {T4: 2, A10: 3}}
    nodes = [
        node("none"),
        node("t4").offer(**{T4: 1}),
        node("a10").offer(**{A10: 1}),
        node("both").offer(**{T4: 1, A10: 1}),
    ]
    opened = Session(
        [queue().build(), pod_group("g").build(), *(one.offer(cpu=4).build() for one in nodes)],
        [pod("p").group("g").request(**request).build()],
        plugins=[option("resource-strategy-fit", {"resourceStrategyFitWeight": 0, "sra": sra})],
    )
    assert list(opened.scores("p").values()) == want


def test_cpu_and_memory_are_kept_in_proportion_to_idle_gpus() -> None:
    gpu = "nvidia.com/gpu"
    proportional = {"enable": True, "resources": gpu, "resourceProportion": {f"{gpu}.cpu": 4, f"{gpu}.memory": 4}}
    pods = [
        pod("small").request(cpu=4, memory="4G"),
        pod("large").request(cpu=10, memory="10G"),
        pod("gpu").request(cpu=10, memory="10G", gpu=1),
    ]
    nodes = [
        node("many").offer(cpu=30, memory="30G", gpu=6).build(),
        node("few").offer(cpu=26, memory="26G", gpu=2).build(),
    ]
    opened = Session(
        [queue().build(), pod_group("g").build(), *nodes, *(one.group("g").build() for one in pods)],
        plugins=[option("resource-strategy-fit", {"proportional": proportional})],
    )
    refused = {one: set(opened.refusals(one)) for one in ("small", "large", "gpu")}
    assert refused == {"small": set(), "large": {"many"}, "gpu": set()}
    assert opened.refusals("large")["many"] == [f"proportional of resource {gpu} check failed"]
