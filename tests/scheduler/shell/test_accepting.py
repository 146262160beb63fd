"""Which pods, PodGroups and nodes a scheduler takes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stromboli.api.core import Node, ObjectMeta, OwnerReference, Pod, PodGroup, PodSpec
from stromboli.scheduler.accepting import Acceptance, Share
from stromboli.scheduler.options import Partition
from stromboli.scheduler.partitioning import Ring

MEMBERS = ("s-0", "s-1")


def owned_by(member: str, prefix: str) -> str:
    """A key that the ring gives to this member."""
    ring = Ring(MEMBERS)
    return next(f"{prefix}-{number}" for number in range(1000) if ring.owner(f"{prefix}-{number}") == member)


def pod(scheduler: str = "volcano", node: str = "", name: str = "p", owner: str = "") -> Pod:
    owners = (OwnerReference(name=owner),) if owner else ()
    return Pod(
        metadata=ObjectMeta(name=name, owner_references=owners),
        spec=PodSpec(scheduler_name=scheduler, node_name=node),
    )


@dataclass
class Case:
    pod: Pod
    want: bool
    names: list[str] = field(default_factory=lambda: ["volcano"])


PODS = {
    "names this scheduler": Case(pod(), True),
    "names one of several": Case(pod("b"), True, ["a", "b"]),
    "names another scheduler": Case(pod("default-scheduler"), False),
    "another's pod on a node counts there": Case(pod("default-scheduler", node="n1"), True),
}


@pytest.mark.parametrize("case", PODS.values(), ids=PODS.keys())
def test_pods(case: Case) -> None:
    assert Acceptance(case.names).pod(case.pod) is case.want


def test_partition_takes_pods_by_their_first_owner_or_own_name() -> None:
    acceptance = Acceptance(["volcano"], share=Share.of(Partition("s-0", MEMBERS)))
    mine, other = owned_by("s-0", "job"), owned_by("s-1", "job")
    assert acceptance.pod(pod(name=mine))
    assert not acceptance.pod(pod(name=other))
    assert acceptance.pod(pod(name=other, owner=mine))
    assert not acceptance.pod(pod(name=mine, owner=other))


def test_partition_takes_foreign_pods_only_on_its_own_nodes() -> None:
    acceptance = Acceptance(["volcano"], share=Share.of(Partition("s-0", MEMBERS)))
    mine, other = owned_by("s-0", "node"), owned_by("s-1", "node")
    assert acceptance.pod(pod("default-scheduler", node=mine))
    assert not acceptance.pod(pod("default-scheduler", node=other))
    assert acceptance.node(Node(metadata=ObjectMeta(name=mine)))
    assert not acceptance.node(Node(metadata=ObjectMeta(name=other)))
    assert acceptance.pod_group(PodGroup(metadata=ObjectMeta(name=mine)))
    assert not acceptance.pod_group(PodGroup(metadata=ObjectMeta(name=other)))


SELECTORS = {
    "none takes all": ([], {}, True),
    "one of two is enough": (["zone:a", "disk:ssd"], {"disk": "ssd"}, True),
    "no match": (["zone:a"], {"zone": "b"}, False),
    "blanks are trimmed": ([" zone : a "], {"zone": "a"}, True),
    "entries without value are ignored": (["zone", "disk:"], {}, True),
}


@pytest.mark.parametrize(("selector", "labels", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_node_selector(selector: list[str], labels: dict[str, str], want: bool) -> None:
    node = Node(metadata=ObjectMeta(name="n", labels=labels))
    assert Acceptance(["volcano"], node_selector=selector).node(node) is want
