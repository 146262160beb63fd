"""The tree of queues, and the bars."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.dashboard import queues
from stromboli.dashboard.queues import QueueRow, Use, rows, tree
from stromboli.dashboard.sights import Sight
from stromboli.testing.builders import NodeBuilder, QueueBuilder, node, pod_group, queue

ROOT = queue("root")


def shape(*built: QueueBuilder) -> list[tuple[str, int]]:
    return [(found.name, depth) for depth, found in tree([one.build() for one in built])]


TREES: dict[str, tuple[list[QueueBuilder], list[tuple[str, int]]]] = {
    "none": ([], []),
    "no parent means root": ([queue("b"), queue("a"), ROOT], [("root", 0), ("a", 1), ("b", 1)]),
    "children follow their parent": (
        [ROOT, queue("z").parent("root"), queue("a").parent("root"), queue("z1").parent("z")],
        [("root", 0), ("a", 1), ("z", 1), ("z1", 2)],
    ),
    "a parent that is not there": ([ROOT, queue("lost").parent("ghost")], [("lost", 0), ("root", 0)]),
    "a circle is shown all the same": (
        [ROOT, queue("a").parent("b"), queue("b").parent("a")],
        [("root", 0), ("a", 0), ("b", 0)],
    ),
    "its own parent": ([queue("a").parent("a")], [("a", 0)]),
}


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    built, want = TREES[name]
    assert shape(*built) == want


def test_a_deep_chain_of_queues_is_no_deep_recursion() -> None:
    chain = [queue(f"q{depth}").parent(f"q{depth - 1}" if depth else "root") for depth in range(5000)]
    assert shape(ROOT, *chain)[-1] == ("q4999", 5000)


def use(built: QueueBuilder, allocated: core.ResourceList, *nodes: NodeBuilder, resource: str = "cpu") -> Use:
    made = built.build()
    held = core.Queue(
        metadata=made.metadata, spec=made.spec, status=core.QueueStatus(state="Open", allocated=allocated)
    )
    (row,) = rows(Sight(queues=[held], nodes=[one.build() for one in nodes]))
    return next(item for item in row.uses if item.resource == resource)


CPUS = node("n").offer(cpu=8)


def test_a_bar_ends_at_the_capability() -> None:
    found = use(queue().cap(cpu=4).deserve(cpu=2), {"cpu": "1"}, CPUS)
    assert (found.limited, found.used_part, found.deserved_part, found.guarantee_part) == (True, 0.25, 0.5, None)
    assert (found.used, found.deserved, found.guarantee, found.capability) == ("1", "2", "", "4")


def test_without_capability_it_ends_at_what_the_cluster_has() -> None:
    found = use(queue(), {"cpu": "2"}, CPUS, CPUS)
    assert (found.limited, found.of, found.used_part) == (False, "16", 0.125)


def test_more_than_the_capability_fills_the_bar_and_no_more() -> None:
    assert use(queue().cap(cpu=1).deserve(cpu=9), {"cpu": "4"}).used_part == 1.0


def test_an_amount_that_cannot_be_read_is_shown_as_none() -> None:
    assert use(queue().cap(cpu="many"), {"cpu": "few"}, CPUS).used == "0"


def test_resources_that_any_queue_names_are_measured_in_all() -> None:
    sight = Sight(queues=[queue("a").cap(**{"x.example/y": 3}).build(), queue("b").build()])
    assert [[item.resource for item in row.uses] for row in rows(sight)] == [["cpu", "memory", "x.example/y"]] * 2


def test_gangs_count_for_the_queues_above() -> None:
    built = [ROOT, queue("team").parent("root"), queue("a").parent("team"), queue("b").parent("team")]
    groups = [
        pod_group("1").queue("a").phase("Running"),
        pod_group("2").queue("a").phase("Pending"),
        pod_group("3").queue("b").phase(""),
        pod_group("4").queue("b").phase("Completed"),
    ]
    sight = Sight(queues=[one.build() for one in built], groups=[one.build() for one in groups])
    found: dict[str, QueueRow] = {row.name: row for row in rows(sight)}
    assert {name: (row.waiting, row.running) for name, row in found.items()} == {
        "root": (2, 1),
        "team": (2, 1),
        "a": (1, 1),
        "b": (1, 0),
    }


def test_two_thousand_queues_are_one_list() -> None:
    many = [queue(f"team-{number:04d}").build() for number in range(2000)]
    assert len(queues.rows(Sight(queues=[ROOT.build(), *many]))) == 2001
