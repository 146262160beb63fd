"""gangpreempt and gangreclaim (spec 05 sections 13 to 16)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stromboli.api import core, names
from stromboli.scheduler.actions.bundles import Bundle, approved, bundles_of, in_order, total
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, PlacementRefused
from stromboli.scheduler.core.records import Job, Node, Task
from stromboli.testing.builders import PodBuilder, QueueBuilder, hyper_node, node, pod, pod_group, priority_class, queue
from tests.scheduler.actions.gradients import Gradients
from tests.scheduler.core.worlds import audit, binds, evicted, picture, plugin_of, policy, run_cycle, world

PLUGINS = {"gradients": Gradients}


def worker(name: str, **labels: str) -> PodBuilder:
    return pod(name).group("g").role("w").request(cpu=1).on("n1").label(**labels)


def split(mirror: Mirror, *names_: str) -> dict[str, list[str]]:
    """Names of the tasks in the safe and the whole bundle."""
    job = mirror.jobs["ns/g"]
    tasks = [mirror.tasks[f"ns/{name}"] for name in names_] or list(job.tasks.values())
    bundles = bundles_of(job, tasks, mirror.columns.width)
    return {("whole" if bundle.whole else "safe"): [task.name for task in bundle.tasks] for bundle in bundles}


class TestBundles:
    def test_surplus_is_safe_least_important_first(self) -> None:
        pods = [worker(f"p{index}").priority(10 - index).build() for index in range(5)]
        mirror = world(queue().build(), pod_group("g").members(3, w=3).build(), pods)
        assert split(mirror) == {"safe": ["p4", "p3"], "whole": ["p2", "p1", "p0"]}

    def test_without_roles_the_minimum_alone_decides(self) -> None:
        mirror = world(queue().build(), pod_group("g").members(2).build(), [worker(f"p{i}").build() for i in range(4)])
        assert split(mirror) == {"safe": ["p0", "p1"], "whole": ["p2", "p3"]}

    def test_groups_are_kept(self) -> None:
        pods = [worker(f"p{i}", part=str(i // 2)).build() for i in range(6)]
        group = pod_group("g").members(4).sub_group("s", "part", size=2, minimum=2)
        mirror = world(queue().build(), group.build(), pods)
        assert split(mirror, "p0", "p2", "p4") == {"safe": ["p0"], "whole": ["p2", "p4"]}

    def test_what_is_broken_may_go(self) -> None:
        pods = [worker(f"p{i}", part=str(i // 2)).build() for i in range(5)]
        group = pod_group("g").members(3).sub_group("s", "part", size=2, minimum=2)
        mirror = world(queue().build(), group.build(), pods)
        assert split(mirror, "p0", "p2", "p4") == {"safe": ["p4"], "whole": ["p0", "p2"]}

    def test_a_gang_below_its_minimum_is_safe_to_take(self) -> None:
        mirror = world(queue().build(), pod_group("g").members(10).build(), worker("a").build(), worker("b").build())
        assert split(mirror) == {"safe": ["a", "b"]}

    def test_a_whole_bundle_costs_the_whole_gang(self) -> None:
        mirror = world(queue().build(), pod_group("g").members(2).build(), worker("a").build(), worker("b").build())
        (bundle,) = bundles_of(mirror.jobs["ns/g"], [mirror.tasks["ns/a"]], mirror.columns.width)
        assert (bundle.gain[0], bundle.cost[0]) == (1000, 2000)

    def test_plugins_shrink_safe_bundles_and_drop_whole_ones(self) -> None:
        mirror = world(queue().build(), pod_group("g").members(1).build(), [worker(n).build() for n in "abc"])
        bundles = bundles_of(mirror.jobs["ns/g"], mirror.jobs["ns/g"].tasks.values(), mirror.columns.width)
        left = approved(bundles, [mirror.tasks["ns/a"]], mirror.columns.width)
        assert [[task.name for task in bundle.tasks] for bundle in left] == [["a"]]
        assert left[0].gain[0] == 1000

    def _two(self, *sizes: int) -> tuple[list[Bundle], Mirror]:
        mirror = world(
            queue().build(),
            [pod_group(f"j{index}").members(size).build() for index, size in enumerate(sizes)],
            [
                pod(f"j{index}-{each}").group(f"j{index}").request(cpu=1).on("n1").build()
                for index, size in enumerate(sizes)
                for each in range(size)
            ],
        )
        bundles = [
            bundle
            for job in mirror.jobs.values()
            for bundle in bundles_of(job, [next(iter(job.tasks.values()))], mirror.columns.width)
        ]
        return bundles, mirror

    def test_what_pays_more_goes_first_and_ties_go_by_name(self) -> None:
        bundles, mirror = self._two(4, 2, 2)
        need = total([mirror.tasks["ns/j0-0"]], mirror.columns.width)
        ordered = in_order(bundles, need, lambda left, right: 0)
        assert [bundle.job.name for bundle in ordered] == ["j1", "j2", "j0"]

    def test_the_order_of_victims_comes_before_what_pays(self) -> None:
        bundles, mirror = self._two(4, 2)
        need = total([mirror.tasks["ns/j0-0"]], mirror.columns.width)

        def by_name(left: Job, right: Job) -> int:
            return (left.name > right.name) - (left.name < right.name)

        assert [bundle.job.name for bundle in in_order(bundles, need, by_name)] == ["j0", "j1"]


RACKS = [
    *[node(f"n{index}").offer(cpu=2).build() for index in range(1, 5)],
    hyper_node("r1", 1, ("n1", "n2")),
    hyper_node("r2", 1, ("n3", "n4")),
]
CLASSES = [priority_class("low", 1), priority_class("high", 9)]


@dataclass(frozen=True)
class Case:
    victims: list[core.Object]
    want: int
    arguments: dict[str, object] = field(default_factory=dict)
    minimum: int = 0
    annotations: dict[str, str] = field(default_factory=dict)
    hard: bool = True


def full(*nodes: str) -> list[core.Object]:
    return [pod(f"on-{name}").group("old").request(cpu=2).on(name).build() for name in nodes]


CASES = {
    "surplus of one rack goes": Case(full("n1", "n2", "n3", "n4"), 2),
    "a gang goes as a whole when it must": Case(full("n1", "n2", "n3", "n4"), 2, minimum=4),
    "not when that is not allowed": Case(full("n1", "n2", "n3", "n4"), 0, {"allowWholeBundle": False}, minimum=4),
    "a group that says no stays": Case(full("n1", "n2", "n3", "n4"), 0, annotations={names.PREEMPTABLE: "false"}),
    "a group that says yes goes": Case(full("n1", "n2", "n3", "n4"), 2, annotations={names.PREEMPTABLE: "true"}),
    "a domain too many is not tried": Case(full("n1", "n2", "n3", "n4"), 2, {"maxDomains": 1}),
    "without topology a bundle goes wherever its tasks are": Case(full("n1", "n2", "n3", "n4"), 4, hard=False),
}


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_room_for_a_gang(case: Case, action: str) -> None:
    mirror = waiting_gang(case, other_queue=action == "gangreclaim")
    before = picture(mirror)
    wanted = policy("gang", "priority", "gradients", actions=f"allocate {action}", **{action: case.arguments})
    result = run_cycle(mirror, wanted, plugins=PLUGINS)
    assert len(result.evictions) == case.want
    assert {eviction.reason for eviction in result.evictions} <= {action}
    assert result.problems == []
    audit(mirror)
    if not case.want:
        assert picture(mirror) == before
    elif case.hard:
        assert evicted(result) in (["on-n1", "on-n2"], ["on-n3", "on-n4"])


def waiting_gang(case: Case, *, other_queue: bool) -> Mirror:
    urgent = pod_group("new").members(2).priority_class("high").queue("q2" if other_queue else "q1")
    return world(
        RACKS,
        CLASSES,
        queue("q1").build(),
        queue("q2").build(),
        pod_group("old").queue("q1").members(case.minimum).priority_class("low").annotate(**case.annotations).build(),
        case.victims,
        (urgent.topology("hard", 1) if case.hard else urgent).build(),
        [pod(f"new-{index}").group("new").request(cpu=2).build() for index in range(2)],
    )


def test_what_was_promised_is_kept_when_the_victims_have_gone() -> None:
    mirror = waiting_gang(CASES["surplus of one rack goes"], other_queue=False)
    wanted = policy("gang", "priority", "gradients", actions="allocate gangpreempt")
    first = run_cycle(mirror, wanted, plugins=PLUGINS)
    assert mirror.jobs["ns/new"].sub_jobs["ns/new"].nominated_hyper_node in ("r1", "r2")
    assert {update.nominated_node for update in first.pods if update.task.job_id == "ns/new"} != {""}
    for name in evicted(first):
        mirror.delete_pod(f"ns/{name}")
    again = run_cycle(mirror, wanted, plugins=PLUGINS)
    assert len(binds(again)) == 2
    assert again.evictions == []


def test_an_equal_priority_is_no_reason_to_preempt() -> None:
    mirror = waiting_gang(CASES["surplus of one rack goes"], other_queue=False)
    mirror.apply_priority_class(priority_class("low", 9))
    assert evicted(run_cycle(mirror, policy("gang", "gradients", actions="gangpreempt"), plugins=PLUGINS)) == []


def test_an_unusable_number_of_domains_is_named() -> None:
    mirror = waiting_gang(CASES["surplus of one rack goes"], other_queue=False)
    wanted = policy("gang", "priority", "gradients", actions="gangpreempt", gangpreempt={"maxDomains": 0})
    result = run_cycle(mirror, wanted, plugins=PLUGINS)
    assert result.problems == ["gangpreempt: maxDomains must be at least 1, 8 is used"]
    assert len(result.evictions) == 2


class TestReclaimingGangs:
    """What is particular to taking from other queues."""

    def world(self, *, first_gives: bool = True, second_gives: bool = True, closed: bool = False) -> Mirror:
        def giving(builder: QueueBuilder, gives: bool) -> core.Queue:
            return (builder if gives else builder.unreclaimable()).build()

        taker = queue("taker").born(2)
        return world(
            node("n1").offer(cpu=4).build(),
            giving(queue("first"), first_gives),
            giving(queue("second").born(1), second_gives),
            (taker.state("Closed") if closed else taker).build(),
            [pod_group(f"g-{name}").queue(name).members(0).phase("Running").build() for name in ("first", "second")],
            [
                pod(f"{name}-{index}").group(f"g-{name}").request(cpu=1).on("n1").build()
                for name in ("first", "second")
                for index in range(2)
            ],
            pod_group("new").queue("taker").members(1).build(),
            pod("new-0").group("new").request(cpu=1).build(),
        )

    def evict(self, mirror: Mirror, *plugins: str) -> list[str]:
        wanted = policy("gang", *plugins, actions="gangreclaim")
        return evicted(run_cycle(mirror, wanted))

    def test_the_queue_served_last_gives_first(self) -> None:
        assert self.evict(self.world()) == ["second-0", "second-1"]

    def test_a_queue_that_does_not_give_back_is_left_alone(self) -> None:
        assert self.evict(self.world(second_gives=False)) == ["first-0", "first-1"]
        assert self.evict(self.world(first_gives=False, second_gives=False)) == []

    def test_a_queue_that_may_not_take_takes_nothing(self) -> None:
        assert self.evict(self.world(closed=True), "proportion") == []


def test_a_ready_job_asks_for_its_next_sub_job_only() -> None:
    group = pod_group("new").members(1).priority_class("high").sub_group("s", "part", size=1)
    mirror = world(
        node("n1").offer(cpu=3).build(),
        CLASSES,
        queue().build(),
        pod_group("old").members(0).priority_class("low").phase("Running").build(),
        [pod(f"old-{index}").group("old").request(cpu=1).on("n1").build() for index in range(2)],
        group.build(),
        pod("has").group("new").label(part="0").request(cpu=1).on("n1").build(),
        [pod(f"new-{index}").group("new").label(part=str(index)).request(cpu=1).build() for index in (1, 2)],
    )
    result = run_cycle(mirror, policy("priority", actions="gangpreempt"))
    told = {update.task.name: update.message for update in result.pods}
    assert "once resource is released" in told["new-1"]
    assert told["new-2"].startswith("pod group is"), "nothing was tried for the second one"


def test_a_confined_gang_without_domain_takes_nothing() -> None:
    mirror = waiting_gang(CASES["surplus of one rack goes"], other_queue=False)
    mirror.apply_pod_group(pod_group("new").queue("q1").members(2).priority_class("high").topology("hard", 0).build())
    before = picture(mirror)
    wanted = policy("gang", "priority", "gradients", actions="gangpreempt")
    assert evicted(run_cycle(mirror, wanted, plugins=PLUGINS)) == []
    assert picture(mirror) == before


def test_a_gang_that_would_not_fit_anyway_takes_nothing() -> None:
    mirror = waiting_gang(CASES["surplus of one rack goes"], other_queue=False)
    mirror.apply_pod(pod("new-1").group("new").request(cpu=3).build())
    before = picture(mirror)
    wanted = policy("gang", "priority", "gradients", actions="gangpreempt")
    assert evicted(run_cycle(mirror, wanted, plugins=PLUGINS)) == []
    assert picture(mirror) == before


def test_a_plan_that_cannot_be_carried_out_leaves_no_trace_and_is_named() -> None:
    placed: list[str] = []

    def refuse_later(task: Task, target: Node) -> None:
        placed.extend([task.name] if task.job_id == "ns/new" else [])
        if len(placed) > 2:  # the two placements of the trial pass, their replay does not
            raise PlacementRefused("gone meanwhile")

    mirror = waiting_gang(Case(full("n1", "n2"), 2), other_queue=False)
    before = picture(mirror)
    plugins = {**PLUGINS, "late": plugin_of(Hooks(on_allocate=refuse_later), "late")}
    wanted = policy("gang", "priority", "gradients", "late", actions="gangpreempt")
    result = run_cycle(mirror, wanted, plugins=plugins)
    assert result.evictions == []
    assert "the plan for ns/new could not be carried out: gone meanwhile" in result.problems
    assert picture(mirror) == before
