"""proportion, by spec 06 section 9."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.plugins import queue_quotas
from stromboli.scheduler.plugins.proportion import Standing, share_out
from stromboli.testing.builders import Amount, node, pod, pod_group, queue
from tests.scheduler.core.worlds import binds, policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session


def job(name: str, in_queue: str, *, phase: str = "Pending", **asks: str | int) -> core.PodGroup:
    return pod_group(name).members(1).queue(in_queue).phase(phase).reserve(**asks).build()


def test_each_queue_gets_its_weight_of_what_it_asks_for() -> None:
    pods = [pod(f"{name}{at}").group(name).request(cpu=1).build() for name in "ab" for at in range(9)]
    opened = Session(
        [queue("a").weight(1).build(), queue("b").weight(2).build(), node("n").offer(cpu=9, memory="9Gi").build()],
        [job("a", "a"), job("b", "b")],
        pods,
        plugins=["proportion"],
    )
    for name in ("a0", "a1", "a2"):
        assert opened.combination.allocatable(opened.queue("a"), opened.task(name))
        opened.place(name, "n")
    assert not opened.combination.allocatable(opened.queue("a"), opened.task("a3"))
    for name in ("b0", "b1", "b2", "b3", "b4", "b5"):
        opened.place(name, "n")
    assert not opened.combination.allocatable(opened.queue("b"), opened.task("b6"))


@st.composite
def standings(draw: st.DrawFn) -> tuple[list[Standing], Floats]:
    amounts = st.lists(st.sampled_from([0.0, 1.0, 3.0, 10.0]), min_size=3, max_size=3).map(np.array)
    world_queue = world(queue("q").build()).queues["q"]
    found = [
        Standing(
            queue=world_queue,
            weight=draw(st.integers(0, 4)),
            guarantee=np.zeros(3),
            limit=draw(amounts),
            request=draw(amounts),
            deserved=np.zeros(3),
            inqueue=np.zeros(3),
            elastic=np.zeros(3),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]
    return found, draw(amounts)


@given(standings())
def test_water_filling_gives_nobody_too_much_and_no_more_than_there_is(drawn: tuple[list[Standing], Floats]) -> None:
    found, total = drawn
    share_out(found, total)
    for standing in found:
        assert (standing.deserved <= np.minimum(standing.limit, standing.request) + EPSILON).all()
    assert (sum((one.deserved for one in found), np.zeros(3)) <= total + EPSILON).all()


def test_a_closed_queue_admits_nothing_and_gives_nothing() -> None:
    opened = Session(
        [queue("q").state("Closed").build(), node("n").offer(cpu=4, memory="4Gi").build()],
        [job("j", "q", cpu=1)],
        [pod("p").group("j").request(cpu=1).build()],
        plugins=["proportion"],
    )
    assert not opened.combination.job_enqueueable(opened.job("j"))
    assert not opened.combination.allocatable(opened.queue("q"), opened.task("p"))
    assert not opened.combination.preemptive(opened.queue("q"), opened.tasks("p"))
    assert "q" in opened.view.refusals["ns/j"].message


def test_what_is_already_bound_is_not_reserved_a_second_time() -> None:
    bound = [pod(f"b{at}").group("big").request(cpu=1).on("n", "Pending").build() for at in range(3)]
    mirror = world(
        [queue("q").cap(cpu=4).build(), node("n").offer(cpu=10, memory="9Gi").build()],
        [pod_group("big").members(3).queue("q").reserve(cpu=3).phase("Inqueue").build()],
        [job("one", "q", cpu=1)],
        bound,
        [pod("p").group("one").request(cpu=1).build()],
    )
    assert binds(run_cycle(mirror, policy("gang", "proportion"))) == {"p": "n"}


def test_what_does_not_fit_is_refused_with_the_resources_by_name() -> None:
    opened = Session(
        [queue("q").cap(cpu=2, memory="1Gi").build(), node("n").offer(cpu=10, memory="9Gi").build()],
        [job("j", "q", cpu=3, memory="2Gi")],
        [pod("p").group("j").request(cpu=1).build()],
        plugins=["proportion"],
    )
    assert not opened.combination.job_enqueueable(opened.job("j"))
    assert opened.events() == ["queue resource quota insufficient: insufficient cpu, insufficient memory"]


def test_a_guarantee_that_takes_the_room_of_all_others_is_named() -> None:
    greedy = queue("greedy")._spec(guarantee=core.Guarantee(resource={"cpu": "1000"}))
    modest = queue("modest")._spec(guarantee=core.Guarantee(resource={"cpu": "1"}))
    for plugin in ("proportion", "capacity"):
        opened = Session(
            [greedy.build(), modest.build(), queue("q").build(), queue("capped").cap(cpu=0.5, memory=1).build()],
            [node("n").offer(cpu=10, memory="9Gi").build()],
            [job("j", "q", cpu=3), job("m", "capped", memory="1Gi")],
            plugins=[plugin],
        )
        assert not opened.combination.job_enqueueable(opened.job("j"))
        assert opened.view.refusals["ns/j"].message == (
            "The group needs cpu 3; queue q may hold cpu 0, of which cpu 0 is taken: short by cpu 3. "
            "Queue greedy is guaranteed cpu 1k, kept free for it: lower its guarantee, or ask for less."
        )
        assert not opened.combination.job_enqueueable(opened.job("m"))
        assert opened.view.refusals["ns/m"].message.endswith(
            "Raise spec.capability, use another queue, or ask for less; waiting does not help: "
            "it would not start in the empty cluster either."
        )


def test_absurd_amounts_of_queues_are_cut_to_what_swallows_no_others() -> None:
    absurd: dict[str, Amount] = {"cpu": "1e30", "memory": "1e30"}
    vain = queue("vain").cap(**absurd).deserve(**absurd)._spec(guarantee=core.Guarantee(resource=absurd)).build()
    opened = Session([vain, queue("q").build(), node("n").offer(cpu=10).build()], plugins=["proportion"])
    for read in (queue_quotas.capability_of, queue_quotas.deserved_of, queue_quotas.guarantee_of):
        assert read(vain.spec, opened.view)[:2].tolist() == [2.0**50, 2.0**60]


def test_queues_go_by_priority_then_by_share() -> None:
    queues = [queue("first").priority(5).build(), queue("idle").build(), queue("busy").build()]
    opened = Session(
        [*queues, node("n").offer(cpu=10, memory="9Gi").build()],
        [job(name, name, phase="Running") for name in ("first", "idle", "busy")],
        [pod("f").group("first").request(cpu=2).on("n").build(), pod("i").group("idle").request(cpu=1).build()],
        [pod("b").group("busy").request(cpu=1).on("n").build()],
        plugins=["proportion"],
    )
    assert opened.queue_order() == ["first", "idle", "busy"]
    assert opened.combination.overused(opened.queue("busy"))
    assert not opened.combination.overused(opened.queue("idle"))


def test_tasks_are_reclaimed_while_their_queue_holds_more_than_it_deserves() -> None:
    running = [pod(f"r{at}").group("rich").request(cpu=1).on("n").build() for at in range(4)]
    opened = Session(
        [queue("rich").build(), queue("poor").build(), node("n").offer(cpu=4, memory="8Gi", pods=10).build()],
        [job("rich", "rich", phase="Running"), job("poor", "poor", phase="Inqueue")],
        running,
        [pod(f"p{at}").group("poor").request(cpu=1).build() for at in range(4)],
        plugins=["proportion"],
    )
    assert opened.reclaimable("p0", "r0", "r1", "r2", "r3") == ["r0", "r1"]


def test_a_queue_without_jobs_has_no_account_and_nothing_breaks() -> None:
    opened = Session([queue("q").build(), node("n").offer(cpu=1).build()], plugins=["proportion"])
    assert opened.queue_order() == ["q"]
    assert opened.combination.overused(opened.queue("q"))
    result = opened.cycle.close()
    assert not result.problems
    values = {sample.name: sample.value for sample in result.samples}
    assert values["queue_allocated_milli_cpu"] == 0.0


def test_a_negative_weight_counts_as_none_and_is_named() -> None:
    """It took what the other queues deserve: with weights of 1 and -1 nobody deserved anything."""
    opened = Session(
        [node("n").offer(cpu=4, memory="4Gi").build()],
        [queue("q").build(), queue("odd").weight(-1).build()],
        [pod_group(name).queue(name).members(1).build() for name in ("q", "odd")],
        [pod(name).group(name).request(cpu=4, memory="1Gi").build() for name in ("q", "odd")],
        plugins=["proportion"],
    )
    assert opened.combination.allocatable(opened.queue("q"), opened.task("q"))
    assert not opened.combination.allocatable(opened.queue("odd"), opened.task("odd"))
    assert opened.view.warnings == ["queue odd has weight -1, which counts as 0"]


def test_where_no_weight_is_left_to_share_by_a_guarantee_is_kept_all_the_same() -> None:
    opened = Session(
        [node("n").offer(cpu=4, memory="4Gi").build()],
        [queue("q").weight(0)._spec(guarantee=core.Guarantee(resource={"cpu": "2", "memory": "2Gi"})).build()],
        [pod_group("q").queue("q").members(1).build(), pod("q").group("q").request(cpu=2, memory="1Gi").build()],
        plugins=["proportion"],
    )
    assert opened.combination.allocatable(opened.queue("q"), opened.task("q"))
