"""network-topology-aware and task-topology agree with their references."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import permutations
from random import Random

import pytest

from stromboli.api import core
from stromboli.scheduler.core.plugin import Purpose
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import Amount, hyper_node, node, pod, pod_group, queue
from tests.scheduler.plugins.references.network_topology_aware import (
    NetworkTopology,
    all_names,
    members,
)
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.task_topology import TaskTopology, task_priority
from tests.scheduler.plugins.references.telling import Told
from tests.scheduler.plugins.sessions import Session, option

FOO = "example.com/foo"
NETWORK = "network-topology-aware"


def tree(random: Random, nodes: list[str]) -> dict[str, core.HyperNode]:
    """Up to three tiers, one of which may be left out; a few nodes hang higher up, or nowhere."""
    leaves, free = {}, list(nodes)
    for at in range(random.randint(1, 4)):
        taken = tuple(free.pop() for _ in range(min(len(free), random.randint(1, 3))))
        leaves[f"leaf{at}"] = hyper_node(f"leaf{at}", 1, taken)
    step = random.choice([1, 1, 2])
    middle, loose = {}, list(leaves)
    for at in range(random.choice([0, 1, 2])):
        below = tuple(loose.pop() for _ in range(min(len(loose), random.randint(1, 2))))
        direct = (free.pop(),) if free and random.random() < 0.4 else ()
        middle[f"middle{at}"] = hyper_node(f"middle{at}", 1 + step, direct, below)
    top = {"high": hyper_node("high", 2 + step, (), tuple(middle))} if middle and random.random() < 0.6 else {}
    return {**leaves, **middle, **top}


def clustered(random: Random) -> Told:
    """Nodes in HyperNodes, and gangs of which some have a topology."""
    told = Told(queues={"default": queue().build()})
    for at in range(random.randint(5, 10)):
        builder = node(f"n{at}").offer(cpu=random.choice([4, 8]), memory=random.choice(["4G", "9G"]))
        told.nodes[f"n{at}"] = builder.offer(**{FOO: 4} if random.random() < 0.4 else {}).build()
    told.hyper_nodes = tree(random, random.sample(list(told.nodes), len(told.nodes)))
    for at in range(4):
        group = pod_group(f"g{at}").members(1)
        group = group.topology("hard", random.choice([1, 2, 3, 4])) if at < 3 else group
        told.groups[f"g{at}"] = group.reserve(cpu=random.choice([0, 5, 12, 30]), memory="2G").build()
    for at in range(random.randint(10, 20)):
        member = pod(f"p{at}").group(f"g{random.randrange(4)}").request(cpu=random.choice([1, 2]))
        member = member.request(memory="1G") if random.random() < 0.8 else member
        member = member.request(**{FOO: 1}) if random.random() < 0.3 else member
        if random.random() < 0.35:
            member = member.on(random.choice(list(told.nodes)))
            member = member.deleting() if random.random() < 0.2 else member
        told.pods[f"p{at}"] = member.build()
    return told


def network(random: Random) -> tuple[PluginOption, NetworkTopology]:
    weights = {"cpu": random.choice([0, 1, 3]), "memory": random.choice([0, 1, 4])}
    if random.random() < 0.6:
        weights[FOO] = random.choice([0, 2])
    reference = NetworkTopology(
        weights, random.choice([0, 1, 10]), random.random() < 0.8, random.choice([0.0, 0.8, 1.5])
    )
    arguments: dict[str, object] = {
        "weight": reference.weight,
        "hypernode.binpack.cpu": weights["cpu"],
        "hypernode.binpack.memory": weights["memory"],
        "hypernode.binpack.normal-pod.enable": reference.packs_normal_pods,
        "hypernode.binpack.normal-pod.fading": reference.fading,
        "hypernode.gradient.evict.max-hypernodes": 50,
    }
    if FOO in weights:
        arguments |= {"hypernode.binpack.resources": f" {FOO} ,", f"hypernode.binpack.resources.{FOO}": weights[FOO]}
    return option(NETWORK, arguments), reference


class Network:
    """One story about HyperNodes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.told = clustered(self.random)
        self.plugin, self.reference = network(self.random)
        story = Story(self.told, [self.plugin], self.reference, self.change, prepare=self.allocate, also=self.compare)
        Play(self.random, story).run()

    def allocate(self, session: Session) -> None:
        """Tells the jobs where they are; actions would have found out."""
        for name in self.told.groups:
            chosen = self.random.choice(["", *all_names(self.told)])
            self.reference.allocated[name] = chosen
            job = session.job(name)
            job.allocated_hyper_node = chosen
            for sub_job in job.sub_jobs.values():
                sub_job.allocated_hyper_node = chosen

    def change(self, random: Random, told: Told) -> None:
        """Nodes change their size, and some leave for another HyperNode."""
        name = random.choice(list(told.nodes))
        told.nodes[name] = node(name).offer(cpu=16, memory="16G").build()
        fresh = tree(random, random.sample(list(told.nodes), len(told.nodes)))
        told.hyper_nodes = {name: fresh.get(name, hyper_node(name, 1)) for name in {**told.hyper_nodes, **fresh}}

    def compare(self, session: Session) -> None:
        """HyperNodes, by score and by gradient."""
        known, told = session.view.hyper_nodes, self.told
        assert known.ready
        for group in told.groups.values():
            job = session.job(group.name)
            candidates = [name for name in all_names(told) if members(told, name)]
            if job.sub_jobs:
                rows = {name: known.rows[name] for name in candidates}
                scores = session.combination.hyper_node_scores(session.sub_job(group.name), rows)
                assert scores == pytest.approx(self.reference.hyper_nodes(told, group, candidates)), group.name
            start = self.random.choice(candidates)
            for purpose in Purpose:
                found = session.combination.gradient(job, None, start, purpose)
                want = self.reference.gradient(told, group, start, evict=purpose is Purpose.EVICT)
                got = [sorted(names) for names in found]
                assert got == want, f"gradient of {group.name} from {start}, {purpose}: {got}, want {want}"


@pytest.mark.parametrize("seed", range(10))
def test_hyper_nodes(seed: int) -> None:
    Network(seed)


# task-topology

ROLES = ("ps", "worker", "chief", "other")
NEAR = ("ps,worker", "worker", "ps,worker;ps,chief", "ps,worker,chief", "ps,,worker;")
AWAY = ("ps", "ps;chief", "worker,chief", "ps;worker")
REQUESTS: list[dict[str, Amount]] = [{"cpu": 1}, {"cpu": 2, "memory": "1Gi"}, {"cpu": 1, FOO: 1}, {}]
RANKS = ("ps,worker", "chief,ps")


def roles(random: Random) -> Told:
    """Jobs with several tasks."""
    told = Told(queues={"default": queue().build()})
    for at in range(random.randint(5, 8)):
        builder = node(f"n{at}").offer(cpu=random.choice([2, 6, 9]), memory="8Gi", pods=random.choice([4, 110]))
        told.nodes[f"n{at}"] = builder.offer(**{FOO: 3} if random.random() < 0.5 else {}).build()
    for name in ("a", "b", "c"):
        kinds = {"affinity": NEAR, "anti-affinity": AWAY, "task-order": RANKS}
        chosen = {f"volcano.sh/task-topology-{kind}": random.choice([None, *texts]) for kind, texts in kinds.items()}
        given = {key: text for key, text in chosen.items() if text is not None}
        if random.random() < 0.1:
            given["volcano.sh/task-topology-affinity"] = random.choice(["ghost", "ps,ps"])
        told.groups[name] = pod_group(name).members(1).annotate(**given).build()
    for at in range(random.randint(10, 20)):
        name = random.choice("abc")
        member = pod(f"p{at}").group(name).request(**random.choice(REQUESTS))
        member = member.role(random.choice(ROLES)) if random.random() < 0.9 else member
        member = member.priority(random.choice([0, 1, 5])) if random.random() < 0.3 else member
        if random.random() < 0.2:
            member = member.annotate(**{"volcano.sh/task-priority": random.choice(["1", "3"])})
        if random.random() < 0.3:
            member = member.on(random.choice(list(told.nodes)))
            member = member.deleting() if random.random() < 0.2 else member
        told.pods[f"p{at}"] = member.build()
    return told


class TaskOrder:
    """One story about tasks. The order is asked for by pair; whole jobs have one as well."""

    def __init__(self, seed: int, *, prioritised: bool) -> None:
        self.random = Random(seed)
        self.told, self.prioritised = roles(self.random), prioritised
        weight = self.random.choice([1, 1, 3, 0])
        self.reference = TaskTopology(weight)
        plugins = [option("task-topology", {"task-topology.weight": weight})]
        if prioritised:
            plugins.insert(self.random.choice([0, 1]), option("priority"))
        self.first = plugins[0].name
        Play(self.random, Story(self.told, plugins, self.reference, also=self.compare)).run()

    def before(self, left: core.Pod, right: core.Pod) -> int:
        """Below 0 when the left pod goes first, by plugins and then by UID, all pods being of one age."""
        opinions = [self.reference.before(self.told, left, right)]
        if self.prioritised:
            by_priority = task_priority(right) - task_priority(left)
            opinions.insert(0 if self.first == "priority" else 1, by_priority)
        by_uid = (left.metadata.uid > right.metadata.uid) - (left.metadata.uid < right.metadata.uid)
        return next((opinion for opinion in opinions if opinion), by_uid)

    def compare(self, session: Session) -> None:
        """Some pairs of any jobs, and all Pending tasks of one."""
        pending = [self.told.pods[name] for name in self.told.pending()]
        ordering = session.combination.task_ordering
        pairs = list(permutations(pending, 2))
        for left, right in self.random.sample(pairs, min(6, len(pairs))):
            first = ordering.sorted([session.task(left.name), session.task(right.name)])[0].name
            assert first == (left if self.before(left, right) < 0 else right).name, f"{left.name} and {right.name}"
        job = self.random.choice("abc")
        own = [pod for pod in pending if self.told.group_of(pod).name == job]
        got = [task.name for task in ordering.sorted(session.task(pod.name) for pod in own)]
        assert got == [pod.name for pod in sorted(own, key=cmp_to_key(self.before))], job


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("prioritised", [False, True], ids=["alone", "with priority"])
def test_task_topology(seed: int, prioritised: bool) -> None:
    TaskOrder(seed, prioritised=prioritised)
