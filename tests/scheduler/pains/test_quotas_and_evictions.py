"""The clusters of the reports about admission, quotas and evictions (pains P41 to P54), with the numbers they give."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, PlacementRefused
from stromboli.scheduler.core.policy import PluginOption, Policy, Tier
from stromboli.scheduler.core.records import Node, Task
from stromboli.testing.builders import PodBuilder, QueueBuilder, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import binds, evicted, open_cycle, picture, plugin_of, policy, run_cycle, world
from tests.scheduler.owners import Owners
from tests.scheduler.plugins.sessions import option

A100 = "nvidia.com/a100"
TREE = option("capacity", hierarchy=True)
BY_QUEUE = {"by weight": PluginOption("proportion"), "by deserved": PluginOption("capacity"), "in a tree": TREE}


def guaranteed(name: str, **amounts: int) -> QueueBuilder:
    resource = {key: str(amount) for key, amount in amounts.items()}
    return queue(name)._spec(guarantee=core.Guarantee(resource=dict(resource)), deserved=dict(resource))


def usual(queues: PluginOption, actions: str) -> Policy:
    """The plugins of the built-in policy, and one that shares between queues."""
    gang, drf = option("gang", preemptable=False), option("drf", preemptable=False)
    first = tuple(PluginOption(name) for name in ("priority",))
    second = tuple(PluginOption(name) for name in ("overcommit", "predicates", "nodeorder"))
    return Policy(tuple(actions.split()), ((*first, gang, PluginOption("conformance")), (drf, *second, queues)))


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p41_what_was_borrowed_of_a_guarantee_comes_back_to_a_full_cluster(queues: str) -> None:
    """org-1 is guaranteed nothing and uses 100 of 100; org-2 is guaranteed 50 and asks for 50."""
    mirror = world(
        [queue("root").build(), queue("org-1").build(), guaranteed("org-2", cpu=50).build()],
        node("n").offer(cpu=100, memory="500Gi").build(),
        pod_group("borrower").members(1).queue("org-1").phase("Running").build(),
        pod_group("owner").members(50).queue("org-2").phase("Pending").reserve(cpu=50).build(),
    )
    held = [pod(f"b{at}").group("borrower").request(cpu=1, memory="1Gi").on("n") for at in range(100)]
    wanted = [pod(f"o{at}").group("owner").request(cpu=1, memory="1Gi") for at in range(50)]
    cluster = Owners.of(mirror, [*held, *wanted], usual(BY_QUEUE[queues], "enqueue allocate reclaim backfill"))
    assert cluster.comes_to_rest(within=20)
    assert sum(name.startswith("o") for name in cluster.placed()) == 50
    assert sum(cluster.evictions) == 50


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p42_fifty_jobs_that_wait_for_one_node_do_not_stop_an_important_one_for_another(queues: str) -> None:
    nodes = [node(name).offer(cpu=4, memory="16Gi").label(host=name).build() for name in ("n1", "n2")]
    lesser = [pod_group(f"low{at}").members(1).priority_class("low").phase("Inqueue") for at in range(50)]
    low = [one.reserve(cpu=2, memory="1Gi").unschedulable().build() for one in lesser]
    pinned = [
        pod(f"low{at}").group(f"low{at}").request(cpu=2, memory="1Gi").priority(1).select(host="n1").build()
        for at in range(50)
    ]
    high = pod_group("high").members(1).priority_class("high").phase("Pending").reserve(cpu=4, memory="1Gi").born(9)
    mirror = world(
        [queue("root").build(), queue().build(), priority_class("low", 1), priority_class("high", 1000), *nodes],
        [*low, *pinned, high.build()],
        pod("high").group("high").request(cpu=4, memory="1Gi").priority(1000).select(host="n2").build(),
    )
    bound = binds(run_cycle(mirror, usual(BY_QUEUE[queues], "enqueue allocate backfill")))
    assert bound.pop("high") == "n2"
    assert list(bound.values()) == ["n1", "n1"]


@pytest.mark.parametrize("hierarchy", [False, True])
def test_p46_a_queue_that_deserves_gpus_alone_reclaims_for_a_pod_that_asks_for_more(hierarchy: bool) -> None:
    """The queue deserves two A100; its job asks for cpu and memory as well."""
    mirror = world(
        [queue("root").build(), queue("rich").deserve(cpu=1).build(), queue("q").deserve(**{A100: 2}).build()],
        node("n").offer(cpu=16, memory="64Gi", **{A100: 2}).build(),
        [pod_group("taken").members(1).queue("rich").phase("Running").build()],
        [pod(f"t{at}").group("taken").request(cpu=2, memory="4Gi", **{A100: 1}).on("n").build() for at in range(2)],
        pod_group("job").members(1).queue("q").build(),
        pod("claimant").group("job").request(cpu=4, memory="8Gi", **{A100: 1}).build(),
    )
    plugins = ("priority", "conformance", "predicates", option("capacity", hierarchy=hierarchy))
    assert len(evicted(run_cycle(mirror, policy(*plugins, actions="allocate reclaim")))) == 1


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p48_nobody_goes_for_a_pod_that_its_queue_would_not_let_in_all_the_same(queues: str) -> None:
    """Within a job: the victim's cpu would do, but the queue may hold no more memory."""
    mirror = world(
        [queue("root").build(), queue("q").cap(cpu=4, memory="4Gi").deserve(cpu=4, memory="4Gi").build()],
        node("n").offer(cpu=2, memory="64Gi").build(),
        pod_group("job").members(1).queue("q").build(),
        [pod(name).group("job").request(cpu=1, memory="2Gi").priority(1).on("n").build() for name in ("a", "b")],
        pod("wants").group("job").request(cpu=1, memory="3Gi").priority(100).build(),
    )
    result = run_cycle(mirror, usual(BY_QUEUE[queues], "enqueue allocate preempt reclaim"))
    assert not result.problems
    assert evicted(result) == []


def ten_gangs(minimum: int, *, surplus: int = 0) -> Iterable[core.Object]:
    """Ten jobs of ten pods over ten nodes, a pod of each job on each node; the last job may have pods to spare."""
    for job in range(10):
        spare = surplus if job == 7 else 0
        yield pod_group(f"train{job}").members(minimum - spare).queue("trains").phase("Running").build()
        for at in range(10):
            one = pod(f"train{job}-{at}").group(f"train{job}").request(cpu=1, memory="1Gi").on(f"n{at}")
            yield one.annotate(**{names.PREEMPTABLE: "true"}).build()


def asked_of_ten_gangs(gangs: Iterable[core.Object]) -> Mirror:
    return world(
        [queue("root").build(), queue("trains").deserve(cpu=1, memory="1Gi").build()],
        queue("claims").deserve(cpu=90, memory="900Gi").build(),
        [node(f"n{at}").offer(cpu=10, memory="100Gi").build() for at in range(10)],
        gangs,
        pod_group("claim").members(10).queue("claims").build(),
        [pod(f"claim-{at}").group("claim").request(cpu=1, memory="1Gi").build() for at in range(10)],
    )


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p49_ten_pods_cost_one_training_and_not_ten(queues: str) -> None:
    mirror = asked_of_ten_gangs(ten_gangs(minimum=10))
    result = run_cycle(mirror, usual(BY_QUEUE[queues], "enqueue allocate gangreclaim"))
    assert not result.problems
    assert len({name.partition("-")[0] for name in evicted(result)}) == 1
    assert len(evicted(result)) == 10


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p49_pods_to_spare_go_before_any_training_is_broken(queues: str) -> None:
    mirror = asked_of_ten_gangs(ten_gangs(minimum=10, surplus=10))
    result = run_cycle(mirror, usual(BY_QUEUE[queues], "enqueue allocate gangreclaim"))
    assert {name.partition("-")[0] for name in evicted(result)} == {"train7"}


@pytest.mark.parametrize("queues", BY_QUEUE)
def test_p50_pods_that_hold_a_node_but_do_not_start_may_be_preempted(queues: str) -> None:
    """Five pods are bound and wait for an image that never comes."""
    mirror = world(
        [queue("root").build(), queue().build(), priority_class("low", 1), priority_class("high", 100)],
        node("n").offer(cpu=5, memory="64Gi").build(),
        [pod_group(f"low{at}").members(1).priority_class("low").build() for at in range(5)],
        [
            pod(f"low{at}").group(f"low{at}").request(cpu=1, memory="1Gi").priority(1).on("n", "Pending").build()
            for at in range(5)
        ],
        pod_group("high").members(1).priority_class("high").build(),
        pod("high").group("high").request(cpu=1, memory="1Gi").priority(100).build(),
    )
    result = run_cycle(mirror, usual(BY_QUEUE[queues], "enqueue allocate preempt"))
    assert len(evicted(result)) == 1
    assert [update.nominated_node for update in result.pods if update.task.name == "high"] == ["n"]


@pytest.mark.parametrize("queues", BY_QUEUE)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_p52_a_job_without_tasks_does_not_end_the_turn_of_its_queue(queues: str, action: str) -> None:
    mirror = world(
        [queue("root").build(), queue("rich").deserve(cpu=1, memory="1Gi").build()],
        queue("poor").deserve(cpu=2, memory="8Gi").build(),
        node("n").offer(cpu=3, memory="64Gi").build(),
        pod_group("held").members(1).queue("rich").phase("Running").build(),
        [pod(f"h{at}").group("held").request(cpu=1, memory="1Gi").on("n").build() for at in range(3)],
        pod_group("empty").members(1).queue("poor").build(),
        pod_group("starving").members(1).queue("poor").born(9).build(),
        pod("starving").group("starving").request(cpu=1, memory="1Gi").build(),
    )
    result = run_cycle(mirror, usual(BY_QUEUE[queues], f"enqueue allocate {action}"))
    assert not result.problems
    assert evicted(result)
    assert [update.nominated_node for update in result.pods if update.task.name == "starving"] == ["n"]


def test_p53_the_order_of_tiers_does_not_decide_who_is_protected() -> None:
    """Whichever tier conformance and capacity are in: neither critical pods nor what a queue deserves is taken."""
    victims = []
    for tiers in permutations(["conformance", "capacity"]):
        mirror = world(
            [queue("root").build(), queue("safe").deserve(cpu=2, memory="8Gi").build()],
            [queue("rich").deserve(cpu=1, memory="8Gi").build(), queue("poor").deserve(cpu=3, memory="8Gi").build()],
            node("n").offer(cpu=5, memory="64Gi").build(),
            [pod_group(name).members(1).queue(name).phase("Running").build() for name in ("safe", "rich")],
            [pod(f"safe{at}").group("safe").request(cpu=1, memory="1Gi").on("n").build() for at in range(2)],
            [held(f"rich{at}", critical=at == 0).build() for at in range(3)],
            pod_group("poor").members(1).queue("poor").build(),
            [pod(f"poor{at}").group("poor").request(cpu=1, memory="1Gi").build() for at in range(2)],
        )
        found = tuple(_tier(name) for name in ("gang predicates", *tiers))
        victims.append(evicted(run_cycle(mirror, Policy(("enqueue", "allocate", "reclaim"), found))))
    assert victims[0] == victims[1]
    assert set(victims[0]) <= {"rich1", "rich2"}
    assert victims[0]


def _tier(plugins: str) -> Tier:
    return tuple(PluginOption(name) for name in plugins.split())


def held(name: str, *, critical: bool) -> PodBuilder:
    one = pod(name).group("rich").request(cpu=1, memory="1Gi").on("n")
    return one._spec(priority_class_name="system-node-critical") if critical else one


FAULTS = {"refuses": PlacementRefused("no"), "fails": ValueError("a fault of the plugin")}


@pytest.mark.parametrize("fault", FAULTS)
def test_p54_a_plugin_that_fails_half_way_leaves_the_accounts_of_the_others_as_they_were(fault: str) -> None:
    counts = {"one": 0, "three": 0}

    def fail(task: Task, _: Node) -> None:
        if task.name == "p1":
            raise FAULTS[fault]

    plugins = {name: plugin_of(counting(counts, name), name) for name in counts}
    plugins["two"] = plugin_of(Hooks(on_allocate=fail), "two")
    mirror = two_of_a_gang()
    before = picture(mirror)
    cycle = open_cycle(mirror, policy("gang", "one", "two", "three", actions="allocate"), plugins=plugins)
    cycle.execute("allocate")
    assert counts == {"one": 0, "three": 0}
    result = cycle.close()
    assert not result.binds
    assert picture(mirror) == before
    assert all(str(FAULTS[fault]) in problem for problem in result.problems)
    assert result.problems


def test_an_accounting_slip_while_something_is_undone_ends_nothing_and_is_named_once() -> None:
    counts = {"one": 0, "three": 0}

    def slip(task: Task, _: Node) -> None:
        raise ArithmeticError("more taken away than there was")

    def refuse(task: Task, _: Node) -> None:
        if task.name == "p1":
            raise PlacementRefused("no")

    plugins = {name: plugin_of(counting(counts, name), name) for name in counts}
    plugins["two"] = plugin_of(Hooks(on_allocate=refuse, on_deallocate=slip), "two")
    mirror = two_of_a_gang()
    before = picture(mirror)
    result = run_cycle(mirror, policy("gang", "one", "two", "three", actions="allocate"), plugins=plugins)
    assert counts == {"one": 0, "three": 0}
    assert picture(mirror) == before
    assert sum("more taken away than there was" in problem for problem in result.problems) == 1


def counting(counts: dict[str, int], name: str) -> Hooks:
    def add(_task: Task, _node: Node) -> None:
        counts[name] += 1

    def subtract(_task: Task, _node: Node) -> None:
        counts[name] -= 1

    return Hooks(on_allocate=add, on_deallocate=subtract)


def two_of_a_gang() -> Mirror:
    return world(
        [queue("root").build(), queue().build(), node("n").offer(cpu=4).build(), pod_group("g").members(2).build()],
        [pod(f"p{at}").group("g").request(cpu=1).build() for at in range(2)],
    )
