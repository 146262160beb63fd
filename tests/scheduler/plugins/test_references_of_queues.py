"""The votes of proportion and capacity about queues agree with their references."""

from __future__ import annotations

from itertools import permutations
from random import Random

import msgspec
import pytest

from stromboli.api import core
from stromboli.testing.builders import Amount, node, pod, pod_group, queue
from tests.scheduler.plugins.references.playing import Play, Story, Together
from tests.scheduler.plugins.references.queues import Capacity, KeptRoom, Proportion, with_jobs
from tests.scheduler.plugins.references.telling import Told
from tests.scheduler.plugins.sessions import Session, option

GPU = "nvidia.com/gpu"
PARENTS = {"a": "root", "b": "root", "a1": "a", "a2": "a", "b1": "b", "b2": "b", "c": "root"}


def scene(random: Random) -> Told:
    """A tree of queues, jobs in its leaves, and some room."""
    told = Told(queues={"root": queue("root").build()})
    for name, parent in PARENTS.items():
        told.queues[name] = some_queue(random, name, parent)
    for at in range(random.randint(4, 7)):
        builder = node(f"n{at}").offer(cpu=random.choice([4, 8]), memory=random.choice(["8Gi", "16Gi"]))
        told.nodes[f"n{at}"] = builder.offer(gpu=random.choice([2, 4])).build()
    leaves = [name for name in PARENTS if name not in PARENTS.values()]
    for at, name in enumerate(random.choices(leaves, k=6)):
        told.groups[f"g{at}"] = pod_group(f"g{at}").queue(name).build()
    for at in range(random.randint(12, 20)):
        asked: dict[str, Amount] = {"cpu": random.choice([1, 2]), "memory": random.choice(["1Gi", "3Gi"])}
        member = pod(f"p{at}").group(random.choice(list(told.groups))).request(**asked)
        member = member.request(gpu=1) if random.random() < 0.3 else member
        if random.random() < 0.4:
            member = member.on(random.choice(list(told.nodes)))
            member = member.deleting() if random.random() < 0.2 else member
        told.pods[f"p{at}"] = member.build()
    return told


def some_queue(random: Random, name: str, parent: str) -> core.Queue:
    def some(chance: float, *cpus: int) -> dict[str, Amount]:
        amounts: dict[str, Amount] = {
            "cpu": random.choice(cpus),
            "memory": f"{2 * random.choice(cpus)}Gi",
            GPU: random.choice([0, 1, 2]),
        }
        return {name: amount for name, amount in amounts.items() if random.random() < chance}

    builder = queue(name).parent(parent).weight(random.choice([1, 1, 2, 4])).priority(random.choice([0, 0, 5]))
    builder = builder.cap(**some(0.4, 0, 6, 12)).deserve(**some(0.5, 0, 2, 4, 8))
    builder = builder.state(random.choice(["Open", "Open", "Open", "Open", "Closed"]))
    guarantee = core.Guarantee(resource=dict(some(0.3, 1, 2, 6)))
    return builder._spec(guarantee=guarantee).build()


class Votes:
    """One story about queues."""

    def __init__(self, seed: int, plugin: str, reference: Proportion | Capacity) -> None:
        self.random, self.reference = Random(seed), reference
        self.told = scene(self.random)
        hierarchy = isinstance(reference, Capacity) and reference.hierarchy
        plugins = [option(plugin, hierarchy=hierarchy)]
        Play(self.random, Story(self.told, plugins, Together(), self.change, also=self.compare)).run()

    def change(self, random: Random, told: Told) -> None:
        """A queue asks for something else, and a node grows."""
        name = random.choice(list(PARENTS))
        told.queues[name] = some_queue(random, name, PARENTS[name])
        told.nodes["n0"] = node("n0").offer(cpu=16, memory="16Gi").build()

    def compare(self, session: Session) -> None:
        """Every vote about some queues and pods."""
        told, combination = self.told, session.combination
        known = with_jobs(told)
        pending = [told.pods[name] for name in told.pending()]
        for name in self.random.sample(known, min(2, len(known))):
            for one in self.random.sample(pending, min(2, len(pending))):
                got = combination.allocatable(session.queue(name), session.task(one.name))
                assert got == self.reference.allocatable(told, name, one), f"{one.name} in {name}"
            some = self.random.sample(pending, min(3, len(pending)))
            if some:
                got = combination.preemptive(session.queue(name), session.tasks(*(one.name for one in some)))
                assert got == self.reference.preemptive(told, name, some), f"{len(some)} in {name}"
            assert combination.overused(session.queue(name)) == self.reference.overused(told, name), name
        for left, right in self.random.sample(list(permutations(known, 2)), min(3, len(known))):
            order = self.reference.before(told, left, right)
            first = combination.queue_ordering.sorted([session.queue(left), session.queue(right)])[0].name
            if abs(order) > 1e-9:
                assert first == (left if order < 0 else right), f"{left} and {right}: {order}"


VOTERS: dict[str, tuple[str, Proportion | Capacity]] = {
    "proportion": ("proportion", Proportion()),
    "capacity": ("capacity", Capacity()),
    "capacity in a tree": ("capacity", Capacity(hierarchy=True)),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", VOTERS)
def test_votes_about_queues(name: str, seed: int) -> None:
    Votes(seed, *VOTERS[name])


@pytest.mark.parametrize("seed", range(10))
def test_kept_resources(seed: int) -> None:
    random = Random(seed)
    told = scene(random)
    for name in random.sample(told.pending(), min(4, len(told.pending()))):
        on = random.choice(list(told.nodes))
        status = msgspec.structs.replace(told.pods[name].status, nominated_node_name=on)
        told.pods[name] = msgspec.structs.replace(told.pods[name], status=status)
    Play(random, Story(told, ["capacity"], KeptRoom())).run()
