"""What is decided does not depend on the order in which a cluster was heard of, whichever action and plugin decides.

One order is part of the snapshot: a new node goes to the end of the node list (spec 04 section 17), of which of equally
good nodes the first is taken. Nodes are heard of in that order here, with everything else anywhere between them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core import calling, loads
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins import PLUGINS as BUILT_IN
from stromboli.testing.builders import node, pod, pod_group, priority_class, queue
from tests.scheduler.actions.test_every_plugin import NODES, objects
from tests.scheduler.actions.test_every_plugin import PLUGINS as USUAL
from tests.scheduler.core.worlds import NOW, picture, run_cycle, world
from tests.scheduler.plugins.sessions import option

CYCLES = 2
SHORT = settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def closed_zone() -> dict[str, object]:
    """A zone that takes nothing now and gives back what it has, whatever the local time."""
    hour = (datetime.fromtimestamp(NOW).hour + 12) % 24
    return {"tdm.revocable-zone.rz1": f"{hour}:00-{hour}:01"}


VERBS = ("predicate", "prioritize", "preemptable", "reclaimable", "queueOverused", "jobEnqueueable", "jobReady")
SERVICE = {"extender.urlPrefix": "http://x", **{f"extender.{verb}Verb": verb for verb in VERBS}}
VARIANTS: dict[str, tuple[PluginOption, ...]] = {
    **{name: options for name, options in USUAL.items() if name != "shares"},
    "proportion": (option("proportion"),),
    "capacity": tuple(one for one in USUAL["shares"] if one.name == "capacity"),
    "gang": (option("gang"), option("gang", preemptable=False), option("gang", reclaimable=False)),
    "predicates": (option("predicates"), option("predicates", {"predicate.CacheEnable": True})),
    "tdm": (option("tdm", closed_zone()), *USUAL["tdm"]),
    "extender": (option("extender", dict(SERVICE)),),
}
"""Every built-in plugin, as policies may have it."""


class Service:
    """An extender whose opinion is a function of what it is asked about, in whatever order."""

    def __call__(self, url: str, body: bytes, timeout: float) -> bytes:
        asked: dict[str, Any] = json.loads(body)
        verb = url.rpartition("/")[2]
        return json.dumps(self._answer(verb, asked)).encode()

    def _answer(self, verb: str, asked: dict[str, Any]) -> dict[str, object]:
        match verb:
            case "predicate":
                refused = _opinion(asked["task"]["name"], asked["node"]["name"]) == 0
                return {"status": "no" if refused else "", "code": 2}
            case "prioritize":
                scores = {node["name"]: _opinion(asked["task"]["name"], node["name"]) for node in asked["nodes"]}
                return {"nodeScore": scores}
            case "preemptable" | "reclaimable":
                return {"status": 1, "victims": [one for one in asked["evictees"] if _opinion(one["name"])]}
            case "queueOverused":
                return {"overused": False}
            case "jobEnqueueable":
                return {"status": _opinion(asked["job"]["name"]) % 3 - 1}
            case _:
                return {"status": True}


def _opinion(*words: str) -> int:
    return hashlib.sha256(" ".join(words).encode()).digest()[0] % 8


@st.composite
def clusters(draw: st.DrawFn) -> list[core.Object]:
    """As for every plugin, with budgets and quotas that allow only some of what is wanted."""
    found: list[core.Object] = draw(objects())
    for app in draw(st.lists(st.sampled_from("ab"), unique=True)):
        selector = core.LabelSelector(match_labels={"app": app})
        found.append(
            core.PodDisruptionBudget(
                metadata=core.ObjectMeta(name=f"keep-{app}", namespace="ns", uid=f"keep-{app}"),
                spec=core.PodDisruptionBudgetSpec(selector=selector),
                status=core.PodDisruptionBudgetStatus(disruptions_allowed=draw(st.integers(0, 2))),
            )
        )
    if draw(st.booleans()):
        found.append(
            core.ResourceQuota(
                metadata=core.ObjectMeta(name="quota", namespace="ns", uid="quota"),
                spec=core.ResourceQuotaSpec(hard={"cpu": draw(st.integers(1, 4))}),
            )
        )
    return found


@st.composite
def policies(draw: st.DrawFn, actions: Sequence[str], plugin: str | None = None) -> Policy:
    """These actions in any order, with any plugins in two tiers, the one among them."""
    chosen = draw(st.lists(st.sampled_from(sorted(VARIANTS)), min_size=5, unique=True))
    chosen = list(dict.fromkeys([*([plugin] if plugin else []), "gang", "predicates", *chosen]))
    plugins = [draw(st.sampled_from(VARIANTS[name])) for name in chosen]
    if any(one.name == "drf" and one.switches.hierarchy for one in plugins):
        plugins = [one for one in plugins if one.name != "proportion"]
    plugins = draw(st.permutations(plugins))
    cut = draw(st.integers(0, len(plugins)))
    tiers = tuple(tuple(part) for part in (plugins[:cut], plugins[cut:]) if part)
    return Policy(tuple(draw(st.permutations(actions))), tiers, tiers_agree_on_victims=draw(st.booleans()))


def otherwise_told(given_: Sequence[core.Object], random: Random) -> Mirror:
    """The same cluster, heard of in another order."""
    nodes = iter([one for one in given_ if isinstance(one, core.Node)])
    shuffled = random.sample(given_, len(given_))
    mirror = world([next(nodes) if isinstance(one, core.Node) else one for one in shuffled])
    for known in (mirror.nodes_by_name, mirror.queues, mirror.jobs, mirror.tasks):
        _reinsert(known, random)
    return mirror


def _reinsert(known: dict[str, Any], random: Random) -> None:
    pairs = random.sample(list(known.items()), len(known))
    known.clear()
    known.update(pairs)


def decided(result: CycleResult) -> Iterator[object]:
    """All that a cycle says, without how long it took. What is carried out is carried out in the same order."""
    yield from (result.binds, result.evictions)
    for unordered in (
        result.pods,
        result.pod_groups,
        result.events,
        result.queues,
        result.gate_removals,
        result.reports,
        result.problems,
        result.warnings,
        result.faults,
    ):
        yield sorted(map(repr, unordered))


def compared(given_: list[core.Object], wanted: Policy, seed: int | None, order: int) -> Iterator[CycleResult]:
    """Some cycles over both mirrors, and what they decided alike."""
    random = Random(order)
    left, right = world(given_), otherwise_told(given_, random)
    told = {name: (at * 37 + order) % 100 for at, name in enumerate(NODES)}
    options = {
        calling.OPTION: Service(),
        loads.OPTION: {name: loads.NodeLoad(NOW, {"10m": told[name]}, {"10m": told[name]}) for name in NODES},
    }
    for number in range(CYCLES):
        results = [run_cycle(one, wanted, seed=seed, now=NOW + 10 * number, options=options) for one in (left, right)]
        assert not results[0].problems
        for one, other in zip(*map(decided, results), strict=True):
            assert one == other
        assert picture(left) == picture(right)
        yield results[0]


SEEDS = st.one_of(st.none(), st.integers(0, 9))
ORDERS = st.integers(0, 2**16)


def test_every_action_and_every_plugin_is_here() -> None:
    assert VARIANTS.keys() == {plugin.name for plugin in BUILT_IN}
    assert {one.name for options in VARIANTS.values() for one in options} == VARIANTS.keys()


@pytest.mark.parametrize("action", sorted(ACTIONS))
@SHORT
@given(data=st.data(), given_=clusters(), seed=SEEDS, order=ORDERS)
def test_an_action(action: str, data: st.DataObject, given_: list[core.Object], seed: int | None, order: int) -> None:
    actions = dict.fromkeys(("allocate", action))
    _note(compared(given_, data.draw(policies(list(actions))), seed, order))


@pytest.mark.parametrize("plugin", sorted(VARIANTS))
@SHORT
@given(data=st.data(), given_=clusters(), seed=SEEDS, order=ORDERS)
def test_a_plugin(plugin: str, data: st.DataObject, given_: list[core.Object], seed: int | None, order: int) -> None:
    _note(compared(given_, data.draw(policies(sorted(ACTIONS), plugin)), seed, order))


def _note(results: Iterable[CycleResult]) -> None:
    for result in results:
        event("binds" if result.binds else "binds nothing")
        event("evicts" if result.evictions else "evicts nobody")


def victims(count: int, *, minimum: int = 0) -> list[core.Object]:
    """A job of low priority on a node of a revocable zone that is full."""
    preemptable = {names.PREEMPTABLE: "true"}
    running = [pod(f"old-{at}").group("old").label(app="a").request(cpu=1).on("n0") for at in range(count)]
    return [
        queue("qa").build(),
        priority_class("low", 1),
        priority_class("high", 9),
        node("n0").label(**{names.REVOCABLE_ZONE: "rz1"}).offer(cpu=count, memory="64Gi").build(),
        pod_group("old").queue("qa").members(minimum).priority_class("low").phase("Running").build(),
        *(one.annotate(**preemptable).build() for one in running),
    ]


def claimants(*jobs: str, size: int) -> list[core.Object]:
    """Jobs of high priority that wait."""
    found: list[core.Object] = []
    for name in jobs:
        found.append(pod_group(name).queue("qa").members(size).priority_class("high").phase("Inqueue").build())
        found += [pod(f"{name}-{at}").group(name).priority(9).request(cpu=1).build() for at in range(size)]
    return found


def budget(allowed: int) -> core.Object:
    """So many pods of app ``a`` may go."""
    return core.PodDisruptionBudget(
        metadata=core.ObjectMeta(name="keep", namespace="ns", uid="keep"),
        spec=core.PodDisruptionBudgetSpec(selector=core.LabelSelector(match_labels={"app": "a"})),
        status=core.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


SCARCE: dict[str, tuple[list[core.Object], str, list[PluginOption]]] = {
    "a budget lets one of those go that shuffle offers": ([*victims(4), budget(1)], "shuffle", [option("pdb")]),
    "one of those leaves whose zone has closed": (victims(4), "shuffle", [option("tdm", closed_zone())]),
    "a budget lets one of those go that preempt offers": (
        [*victims(4), *claimants("new", size=1), budget(1)],
        "preempt",
        [option("pdb"), option("gang", preemptable=False), option("priority", preemptable=False)],
    ),
    "a gang can do without one": (
        [*victims(4, minimum=3), *claimants("new", size=1)],
        "preempt",
        [option("gang"), option("priority", preemptable=False)],
    ),
    "two gangs of two want the last place": (
        [*victims(0), node("n0").offer(cpu=1, memory="64Gi").build(), *claimants("new", "newer", size=2)],
        "preempt",
        [option("gang"), option("priority")],
    ),
}


@pytest.mark.parametrize("case", SCARCE)
def test_where_not_all_can_be_served_the_same_ones_are(case: str) -> None:
    given_, action, plugins = SCARCE[case]
    wanted = Policy((action,), (tuple(plugins),))
    for order in range(6):
        first, *_ = compared(given_, wanted, None, order)
        assert bool(first.evictions) == ("gangs" not in case)
        assert any("once resource is released" in update.message for update in first.pods) == (action == "preempt")
