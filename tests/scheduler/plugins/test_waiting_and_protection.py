"""sla, cdp and pdb, by spec 06 sections 13, 20 and 21."""

from __future__ import annotations

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.policy import Policy
from stromboli.testing.builders import PodBuilder, created_at, node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, open_cycle
from tests.scheduler.plugins.sessions import Session, option

DAY = 86400.0
"""``worlds.NOW`` is a day after everything was born."""


def sla(arguments: dict[str, object] | None = None, *, ages: dict[str, float], own: dict[str, str]) -> Session:
    groups = [
        pod_group(name)
        .phase("Pending")
        .born(DAY - age)
        .annotate(**({names.SLA_WAITING_TIME: own[name]} if name in own else {}))
        for name, age in ages.items()
    ]
    return Session([queue().build(), *(one.build() for one in groups)], plugins=[option("sla", arguments)])


OWN = {"long": "1h"}
SLA_ORDER: dict[str, tuple[dict[str, object], dict[str, str], list[str]]] = {
    "a job's own waiting time beats everybody's": ({"sla-waiting-time": "3m"}, OWN, ["short", "long"]),
    "jobs with a waiting time come before those without": ({}, OWN, ["long", "short"]),
    "a waiting time that is no text counts as none": ({"sla-waiting-time": 1}, OWN, ["long", "short"]),
    "a negative one as well": ({"sla-waiting-time": "-1m"}, OWN, ["long", "short"]),
    "and one that cannot be read": ({"sla-waiting-time": "soon"}, {"long": "nonsense"}, ["long", "short"]),
}


@pytest.mark.parametrize("name", SLA_ORDER)
def test_jobs_are_ordered_by_the_end_of_their_waiting_time(name: str) -> None:
    arguments, own, want = SLA_ORDER[name]
    ages = {"long": 60.0, "short": 59.0}
    assert sla(arguments, ages=ages, own=own).job_order() == want


def test_a_job_past_its_waiting_time_is_let_in_and_keeps_its_place_unless_somebody_rejects_first() -> None:
    opened = sla({"sla-waiting-time": "2m"}, ages={"old": 200.0, "new": 10.0}, own={})
    plugin = opened.combination._tiers[0][0].hooks
    assert plugin.job_enqueueable is not None
    assert [plugin.job_enqueueable(opened.job(name)) for name in ("old", "new")] == [1, 0]
    assert opened.combination.job_pipelined(opened.job("old"))


def test_sla_in_an_earlier_tier_beats_overcommit() -> None:
    group = pod_group("j").phase("Pending").members(1).reserve(cpu=100).annotate(**{names.SLA_WAITING_TIME: "1h"})
    opened = Session([queue().build(), node("n").offer(cpu=1).build(), group.build()], plugins=["sla"])
    tiers = ((option("sla"),), (option("overcommit"),))
    cycle = open_cycle(opened.mirror, Policy(("enqueue",), tiers))
    assert cycle.combination.job_enqueueable(opened.job("j"))


def scheduled(name: str, ago: float, **labels: str) -> PodBuilder:
    condition = core.PodCondition(type="PodScheduled", status="True", last_transition_time=created_at(DAY - ago))
    builder = pod(name).group("g").request(cpu=1).on("n").label(**labels)
    return PodBuilder(**{**builder.__dict__, "status": core.PodStatus(phase="Running", conditions=(condition,))})


COOLDOWN = {
    "protected": (scheduled("v", 100, **{names.COOLDOWN_TIME: "600s"}), []),
    "over": (scheduled("v", 800, **{names.COOLDOWN_TIME: "600s"}), ["v"]),
    "unreadable": (scheduled("v", 100, **{names.COOLDOWN_TIME: "600abcde"}), ["v"]),
    "none": (scheduled("v", 1), ["v"]),
    "from the annotation": (scheduled("v", 100).annotate(**{names.COOLDOWN_TIME: "10m"}), []),
    "not known to be scheduled": (pod("v").group("g").on("n").label(**{names.COOLDOWN_TIME: "1h"}), ["v"]),
    "not running": (scheduled("v", 100, **{names.COOLDOWN_TIME: "1h"}).phase("Pending"), ["v"]),
}


@pytest.mark.parametrize("name", COOLDOWN)
def test_pods_that_have_only_just_started_are_spared(name: str) -> None:
    victim, want = COOLDOWN[name]
    opened = Session(
        [queue().build(), node("n").offer(cpu=4).build(), pod_group("g").build(), pod_group("h").build()],
        [victim.build(), pod("wants").group("h").build()],
        plugins=["cdp"],
    )
    assert core.timestamp(created_at(DAY)) == NOW
    assert opened.preemptable("wants", "v") == want
    assert opened.reclaimable("wants", "v") == want


def budget(name: str, allowed: int, disrupted: tuple[str, ...] = (), **labels: str) -> core.PodDisruptionBudget:
    return core.PodDisruptionBudget(
        metadata=core.ObjectMeta(name=name, namespace="ns"),
        spec=core.PodDisruptionBudgetSpec(selector=core.LabelSelector(match_labels=labels)),
        status=core.PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, created_at(0))
        ),
    )


BUDGETS: dict[str, tuple[list[core.PodDisruptionBudget], list[str]]] = {
    "no budget": ([], ["a1", "a2", "b1"]),
    "nothing allowed": ([budget("x", 0, app="a")], ["b1"]),
    "one allowed": ([budget("x", 1, app="a")], ["a1", "b1"]),
    "the stricter of two counts": ([budget("x", 2, app="a"), budget("y", 1, app="a")], ["a1", "b1"]),
    "an empty selector selects nothing": ([budget("x", 0)], ["a1", "a2", "b1"]),
    "a pod that is going already does not count": ([budget("x", 1, ("a1",), app="a")], ["a1", "a2", "b1"]),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_disruption_budgets_are_kept_at_all_three_points(name: str) -> None:
    budgets, want = BUDGETS[name]
    pods = [pod(one).label(app=one[0]).group("g").on("n") for one in ("a1", "a2", "b1")]
    opened = Session(
        [queue().build(), node("n").offer(cpu=4).build(), pod_group("g").build(), *budgets],
        [one.build() for one in pods],
        [pod("wants").group("g").build()],
        plugins=["pdb"],
    )
    assert opened.preemptable("wants", "a1", "a2", "b1") == want
    assert opened.reclaimable("wants", "a1", "a2", "b1") == want
    assert opened.victim_tasks("a1", "a2", "b1") == want


def test_a_pod_without_labels_may_always_go() -> None:
    opened = Session(
        [queue().build(), node("n").build(), pod_group("g").build(), budget("x", 0, app="a")],
        [pod("bare").group("g").on("n").build(), pod("wants").group("g").build()],
        plugins=["pdb"],
    )
    assert opened.preemptable("wants", "bare") == ["bare"]
