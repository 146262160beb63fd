"""drf, flat and hierarchical, by spec 06 section 8 and the pains C6 and P68."""

from __future__ import annotations

from collections import Counter

import pytest

from stromboli.api import core
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Queue
from stromboli.scheduler.plugins.fair_tree import PATH, WEIGHTS, place_of
from stromboli.testing.builders import QueueBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import open_cycle, world
from tests.scheduler.plugins.sessions import Session, option

HIERARCHICAL = option("drf", hierarchy=True)


def placed(name: str, path: str, weights: str = "") -> QueueBuilder:
    found = queue(name)
    annotations = {PATH: path, **({WEIGHTS: weights} if weights else {})}
    return QueueBuilder(found.name, annotations=annotations)


def work(name: str, in_queue: str, count: int, *, running: int = 0, **request: str | int) -> list[core.Object]:
    group = pod_group(name).members(1).queue(in_queue)
    pods = [pod(f"{name}-{at}").group(name).request(**request) for at in range(count)]
    return [group.build(), *(one.on("n").build() if at < running else one.build() for at, one in enumerate(pods))]


def test_the_job_with_the_smaller_dominant_share_comes_first() -> None:
    opened = Session(
        [queue().build(), node("n").offer(cpu=10, memory="10Gi").build()],
        work("big", "default", 2, running=1, cpu=4, memory="1Gi"),
        work("small", "default", 2, running=1, cpu=1, memory="3Gi"),
        work("none", "default", 1, cpu=1),
        plugins=["drf"],
    )
    assert opened.job_order() == ["none", "small", "big"]
    opened.place("none-0", "n")
    assert opened.job_order() == ["none", "small", "big"]


def test_a_task_goes_while_its_job_keeps_the_larger_share_without_it() -> None:
    opened = Session(
        [queue().build(), node("n").offer(cpu=10, memory="10Gi").build()],
        work("big", "default", 4, running=4, cpu=2),
        work("new", "default", 1, cpu=2),
        plugins=["drf"],
    )
    assert opened.preemptable("new-0", "big-0", "big-1", "big-2", "big-3") == ["big-0", "big-1", "big-2"]


PLACES: dict[str, tuple[str, str, tuple[tuple[str, ...], tuple[float, ...]], int]] = {
    "weights for all": ("root/eng/dev", "100/50/20", (("eng", "dev"), (50.0, 20.0)), 0),
    "missing weights count as 1": ("root/a/b", "1/2", (("a", "b"), (2.0, 1.0)), 0),
    "no weights": ("root/a", "", (("a",), (1.0,)), 0),
    "less than 1 counts as 1": ("root/a", "1/0.2", (("a",), (1.0,)), 0),
    "what is no number counts as 1 and is reported": ("root/a", "1/heavy", (("a",), (1.0,)), 1),
    "more weights than names": ("root/a", "1/2/3", (("a",), (2.0,)), 0),
    "only the root": ("root", "1", (("q",), (1.0,)), 0),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_place_of_a_queue_is_read_from_its_annotations(name: str) -> None:
    path, weights, want, warnings = PLACES[name]
    said: list[str] = []
    mirror = world(placed("q", path, weights).build())
    place = place_of(mirror.queues["q"], said.append)
    assert (place.names, place.weights) == want
    assert len(said) == warnings
    assert all("q" in text and WEIGHTS in text for text in said)


def test_a_queue_without_a_place_stands_below_the_root_by_its_name() -> None:
    mirror = world(queue("q").build())
    assert place_of(mirror.queues["q"], lambda text: None).names == ("q",)


def allocate(*given: list[core.Object]) -> Counter[str]:
    """Tasks bound per job, with nothing but fairness to decide."""
    mirror = world(*given)
    cycle = open_cycle(mirror, Policy(("allocate",), ((option("gang"), HIERARCHICAL),)))
    cycle.execute("allocate")
    result = cycle.close()
    assert not result.problems
    return Counter(bind.task.name.rpartition("-")[0] for bind in result.binds)


def test_a_parent_that_can_still_grow_shares_with_its_sibling_by_weight() -> None:
    bound = allocate(
        [node("n").offer(cpu=10, memory="10Gi", pods=500).build()],
        [placed("sci", "root/sci", "100/50").build()],
        [placed("dev", "root/eng/dev", "100/50/50").build(), placed("prod", "root/eng/prod", "100/50/50").build()],
        work("sci", "sci", 10, cpu=1, memory="1Gi"),
        work("dev", "dev", 10, cpu=1),
        work("prod", "prod", 10, memory="1Gi"),
    )
    assert bound == {"sci": 5, "dev": 5, "prod": 5}


def test_siblings_that_are_saturated_leave_their_share_to_the_others() -> None:
    bound = allocate(
        [node("n").offer(cpu=30, memory="30Gi", pods=500).build()],
        [placed(name, f"root/{name}", "100/25").build() for name in ("pg1", "pg2", "pg4")],
        [placed("pg31", "root/pg3/pg31", "100/25/50").build(), placed("pg32", "root/pg3/pg32", "100/25/50").build()],
        work("pg1", "pg1", 30, cpu=1),
        work("pg2", "pg2", 30, cpu=1),
        work("pg31", "pg31", 30, cpu=1),
        work("pg32", "pg32", 30, memory="1Gi"),
        work("pg4", "pg4", 30, memory="1Gi"),
    )
    assert bound == {"pg1": 10, "pg2": 10, "pg31": 10, "pg32": 15, "pg4": 15}


def test_reclaim_takes_from_a_queue_that_would_still_come_after_the_reclaimers() -> None:
    opened = Session(
        [node("n").offer(cpu=4, memory="8Gi").build()],
        [placed("a", "root/a", "1/1").build(), placed("b", "root/b", "1/1").build()],
        work("rich", "a", 4, running=4, cpu=1),
        work("poor", "b", 1, cpu=1),
        plugins=[HIERARCHICAL],
    )
    assert opened.reclaimable("poor-0", "rich-0", "rich-1") == ["rich-0", "rich-1"]
    assert opened.queue_order() == ["b", "a"]


def test_imagined_amounts_leave_no_trace() -> None:
    opened = Session(
        [node("n").offer(cpu=4, memory="8Gi").build()],
        [placed("a", "root/a", "1/1").build(), placed("b", "root/b", "1/1").build()],
        work("x", "a", 2, running=1, cpu=1),
        work("y", "b", 2, running=1, cpu=1),
        plugins=[HIERARCHICAL],
    )

    def verdict(left: str, right: str) -> bool:
        ordering = opened.combination.queue_ordering
        queues: list[Queue] = [opened.queue(left), opened.queue(right)]
        return ordering.plugin_key(queues[0]) < ordering.plugin_key(queues[1])

    before = verdict("a", "b"), verdict("b", "a")
    opened.reclaimable("x-1", "y-0")
    assert (verdict("a", "b"), verdict("b", "a")) == before == (False, False)


def test_c6_weights_shorter_than_the_path_do_not_stop_anything() -> None:
    bound = allocate(
        [node("n").offer(cpu=4, memory="4Gi").build()],
        [placed("q", "root/a/b", "1/2").build(), queue("plain").build()],
        work("x", "q", 2, cpu=1, memory="1Gi"),
        work("y", "plain", 2, cpu=1, memory="1Gi"),
    )
    assert bound == {"x": 2, "y": 2}
