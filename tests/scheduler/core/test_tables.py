"""Sums over all nodes follow nodes as they come, change and go."""

from __future__ import annotations

import pytest

from stromboli.scheduler.core.mirror import Mirror
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import world


def cluster() -> Mirror:
    return world(
        [node(f"n{cpu}").offer(cpu=cpu, memory="1G").build() for cpu in (1, 2, 4)],
        queue("default").build(),
        pod_group("g").members(1).build(),
        [pod(f"p{cpu}").group("g").request(cpu=cpu).on(f"n{cpu}").build() for cpu in (1, 2, 4)],
    )


def totals(mirror: Mirror) -> tuple[float, float]:
    """cpu offered and used."""
    nodes = mirror.nodes
    return nodes.total(nodes.allocatable)[0] / 1000, nodes.total(nodes.used)[0] / 1000


@pytest.mark.parametrize("compacted", [False, True])
def test_a_node_that_is_gone_counts_in_no_sum(compacted: bool) -> None:
    mirror = cluster()
    assert totals(mirror) == (7, 7)
    mirror.delete_node("n2")
    if compacted:
        mirror.nodes.compact()
    assert totals(mirror) == (5, 5)


def test_a_node_that_comes_back_counts_once() -> None:
    mirror = cluster()
    mirror.delete_node("n2")
    mirror.apply_node(node("n2").offer(cpu=3, memory="1G").build())
    assert totals(mirror) == (8, 7)


def test_without_nodes_there_is_nothing() -> None:
    assert totals(world(queue("default").build())) == (0, 0)
