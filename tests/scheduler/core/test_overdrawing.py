"""Binds are taken back when others have taken the room meanwhile: the last first, jobs as a whole, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stromboli.api import core
from stromboli.scheduler.core import overdrawing
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, option, policy, run_cycle, world

PROPORTION = policy("gang", "predicates", "proportion", actions="allocate")
CAPACITY = policy("gang", "predicates", "capacity", actions="allocate")
TREE = policy("gang", "predicates", option("capacity", hierarchy=True), actions="allocate")


def gang(name: str, size: int, among: str = "a", born: float = 0.0) -> list[core.Object]:
    group = pod_group(name).queue(among).members(size).born(born).build()
    return [group, *(pod(f"{name}-{at}").group(name).request(cpu=1).born(born).build() for at in range(size))]


def bound_elsewhere(mirror: Mirror, cores: int, among: str = "a") -> None:
    mirror.elsewhere.apply_pod_group(pod_group(f"far-{among}").queue(among).build(), ours=False)
    for number in range(cores):
        there = pod(f"far-{among}-{number}").group(f"far-{among}").request(cpu=1).on("far").build()
        mirror.elsewhere.apply_pod(there, ours=False)
    mirror.take_in_elsewhere()


@dataclass
class Case:
    """Queues, gangs by size (the oldest first), what others bind meanwhile, and the gangs that are taken back."""

    queues: list[core.Queue]
    gangs: list[tuple[int, str]]
    meanwhile: dict[str, int]
    want: set[str] = field(default_factory=set)
    policies: tuple[Policy, ...] = (PROPORTION, CAPACITY, TREE)


UNASKED = policy("gang", option("capacity", allocatable=False), actions="allocate")
FOUR = queue("a").cap(cpu=4).build()
CASES = {
    "nothing happens meanwhile": Case([FOUR], [(2, "a"), (2, "a")], {}),
    "there is still room": Case([FOUR], [(2, "a"), (1, "a")], {"a": 1}),
    "there is no room any more for one pod": Case([FOUR], [(2, "a"), (2, "a")], {"a": 1}, {"gang-1"}),
    "there is no room at all": Case([FOUR], [(2, "a"), (2, "a")], {"a": 4}, {"gang-0", "gang-1"}),
    "a queue without a capability": Case([queue("a").build()], [(2, "a")], {"a": 50}),
    "a capability of something else": Case([queue("a").cap(memory="4Gi").build()], [(2, "a")], {"a": 50}),
    "a capability of no cores says nothing": Case([queue("a").cap(cpu=0).build()], [(2, "a")], {"a": 50}),
    "another queue": Case([FOUR, queue("b").cap(cpu=4).build()], [(2, "a"), (4, "b")], {"b": 1}, {"gang-1"}),
    "a queue above, in a tree": Case(
        [queue("top").cap(cpu=4).build(), queue("a").parent("top").build(), queue("b").parent("top").build()],
        [(2, "a"), (2, "b")],
        {"b": 2},
        {"gang-1"},
        (TREE,),
    ),
    "a queue above, where there is no tree": Case(
        [queue("top").cap(cpu=4).build(), queue("a").parent("top").build(), queue("b").parent("top").build()],
        [(2, "a"), (2, "b")],
        {"b": 2},
        set(),
        (PROPORTION, CAPACITY),
    ),
    "nobody keeps to capabilities": Case([FOUR], [(2, "a")], {"a": 4}, set(), (policy("gang", actions="allocate"),)),
    "the keeper is not asked for it": Case([FOUR], [(2, "a")], {"a": 4}, set(), (UNASKED,)),
}
BY_POLICY = {f"{name} {at}": (case, one) for name, case in CASES.items() for at, one in enumerate(case.policies)}


@pytest.mark.parametrize(("case", "wanted"), BY_POLICY.values(), ids=BY_POLICY.keys())
def test_taken_back(case: Case, wanted: Policy) -> None:
    objects = [each for at, (size, among) in enumerate(case.gangs) for each in gang(f"gang-{at}", size, among, born=at)]
    mirror = world(node("n").offer(cpu=20, pods=100).build(), queue("root").build(), *case.queues, *objects)
    binds = run_cycle(mirror, wanted).binds
    assert len(binds) == sum(size for size, _ in case.gangs), "all are placed"
    for among, cores in case.meanwhile.items():
        bound_elsewhere(mirror, cores, among)
    taken = overdrawing.overdrawn(mirror, wanted, binds)
    assert {bind.task.job_id.partition("/")[2] for bind in taken} == case.want
    assert len(taken) == sum(size for at, (size, _) in enumerate(case.gangs) if f"gang-{at}" in case.want)
    for bind in taken:
        mirror.bind_failed(bind.task.uid)
    audit(mirror)
    assert overdrawing.overdrawn(mirror, wanted, binds) == []


def test_what_is_bound_already_is_not_taken_back() -> None:
    mirror = world(node("n").offer(cpu=20, pods=100).build(), FOUR, *gang("gang-0", 4))
    binds = run_cycle(mirror, CAPACITY).binds
    for number in range(4):
        mirror.apply_pod(pod(f"gang-0-{number}").group("gang-0").request(cpu=1).on("n").build())
    bound_elsewhere(mirror, 4)
    assert overdrawing.overdrawn(mirror, CAPACITY, binds) == []
