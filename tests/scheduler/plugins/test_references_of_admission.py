"""The votes on who is let in, and the extender's on overused queues, agree with their references."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from stromboli.api import core
from stromboli.scheduler.core import calling
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.records import Job, Phase
from stromboli.testing.builders import Amount, created_at, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import NOW
from tests.scheduler.plugins.references import admission, queues
from tests.scheduler.plugins.references.playing import Play, Story, Together
from tests.scheduler.plugins.references.telling import Told
from tests.scheduler.plugins.sessions import Session, option
from tests.scheduler.plugins.test_references_of_queues import PARENTS, some_queue
from tests.scheduler.plugins.test_references_of_queues import scene as crowd

DAY = 86400.0
GATES = ((), ("example.com/later",), (admission.QUEUE_GATE,), (admission.QUEUE_GATE, "example.com/later"))


def scene(random: Random) -> Told:
    """Queues with jobs of which some are in already, some have waited in vain, and some have gated pods."""
    told = crowd(random)
    leaves = random.sample([name for name in PARENTS if name not in PARENTS.values()], 3)
    for name in leaves:
        told.queues[name] = some_leaf(random, name)
    told.others = [priority_class("low", 1), priority_class("high", 9)]
    told.others += [some_quota(random, f"quota{at}") for at in range(random.choice([0, 1, 2]))]
    for at in range(random.randint(8, 12)):
        told.groups[f"g{at}"] = some_group(random, f"g{at}", random.choice(leaves))
    for at in range(20, random.randint(26, 36)):
        member = pod(f"p{at}").group(random.choice(list(told.groups))).request(cpu=random.choice([1, 4]), memory="2Gi")
        told.pods[f"p{at}"] = member.gated(*random.choice(GATES)).build()
    return told


def some_leaf(random: Random, name: str) -> core.Queue:
    """A queue for several jobs, of which it may not take all."""

    def some(least: int, most: int) -> dict[str, Amount]:
        cpu = random.randint(least, most)
        amounts: dict[str, Amount] = {"cpu": cpu, "memory": f"{3 * cpu}Gi", "nvidia.com/gpu": cpu // 2}
        return amounts if random.random() < 0.6 else {}

    return queue(name).parent(PARENTS[name]).cap(**some(8, 30)).deserve(**some(6, 24)).build()


def some_group(random: Random, name: str, queue: str) -> core.PodGroup:
    builder = pod_group(name).queue(queue).members(random.choice([1, 1, 2, 4]))
    builder = builder.phase(random.choice(["Pending", "Pending", "Inqueue", "Inqueue", "Running"]))
    builder = builder.unschedulable() if random.random() < 0.4 else builder
    builder = builder.priority_class(random.choice(["low", "high", ""]))
    builder = builder.born(DAY - random.choice([10, 119, 120, 121, 4000]))
    if random.random() < 0.4:
        builder = builder.annotate(**{admission.SLA: random.choice(["2m", "1h", "soon", "-1s"])})
    if random.random() < 0.85:
        asked: dict[str, Amount] = {
            "cpu": random.choice([0, 2, 5, 9, 14]),
            "memory": random.choice(["1Gi", "4Gi", "20Gi"]),
            "nvidia.com/gpu": random.choice([0, 1, 2]),
            "pods": 4,
        }
        builder = builder.reserve(**{name: much for name, much in asked.items() if random.random() < 0.7})
    return builder.build()


def some_quota(random: Random, name: str) -> core.ResourceQuota:
    hard: dict[str, Amount] = {"cpu": random.choice([4, 12]), "memory": "24Gi", "requests.cpu": 0, "pods": 9}
    return core.ResourceQuota(
        metadata=core.ObjectMeta(name=name, namespace="ns", uid=name),
        spec=core.ResourceQuotaSpec(hard={name: much for name, much in hard.items() if random.random() < 0.6}),
        status=core.ResourceQuotaStatus(used={"cpu": random.choice([0, 3]), "memory": "2Gi"}),
    )


Made = tuple[PluginOption, admission.Voter]


def shares(name: str, capacity: queues.Capacity) -> Callable[[Random, Told], Made]:
    return lambda random, told: (option(name, hierarchy=capacity.hierarchy), admission.Shares(capacity))


def overcommit(random: Random, told: Told) -> Made:
    factor = random.choice([0.5, 1.0, 1.2, 2.0])
    return option("overcommit", {"overcommit-factor": factor}), admission.Overcommit(factor if factor >= 1 else 1.2)


def sla(random: Random, told: Told) -> Made:
    written, seconds = random.choice([("2m", 120.0), ("soon", None), ("0s", None), ("1h", 3600.0)])
    return option("sla", {"sla-waiting-time": written}), admission.WaitingTimes(seconds)


def resourcequota(random: Random, told: Told) -> Made:
    return option("resourcequota"), admission.Quotas()


def extender(random: Random, told: Told) -> Made:
    broken = [name for name in (*told.groups, *told.queues) if random.random() < 0.2]
    reference = admission.Extender(admission.Opinions(frozenset(broken)), random.random() < 0.5)
    arguments = {
        "extender.urlPrefix": "http://x",
        "extender.ignorable": reference.ignorable,
        "extender.jobEnqueueableVerb": "admits",
        "extender.queueOverusedVerb": "overused",
    }
    told.options[calling.OPTION] = reference.service
    return option("extender", arguments), reference


KINDS: dict[str, Callable[[Random, Told], Made]] = {
    "proportion": shares("proportion", queues.Capacity()),
    "capacity": shares("capacity", queues.Capacity()),
    "capacity in a tree": shares("capacity", queues.Capacity(hierarchy=True)),
    "overcommit": overcommit,
    "resourcequota": resourcequota,
    "sla": sla,
    "extender": extender,
}


class Admitting:
    """One story in which jobs are let in while others are placed, promised room, and evicted."""

    def __init__(self, seed: str, *kinds: str) -> None:
        self.random = Random(seed)
        self.told, self.admissions = scene(self.random), admission.Admissions()
        made = [KINDS[kind](self.random, self.told) for kind in kinds]
        self.voters = {plugin.name: voter for plugin, voter in made}
        assert self.told.now == NOW
        assert core.timestamp(created_at(DAY)) == NOW
        Play(
            self.random,
            Story(self.told, [plugin for plugin, _ in made], Together(), self.change, also=self.compare, sessions=3),
        ).run()

    def change(self, random: Random, told: Told) -> None:
        """What became of the jobs, which is another story; a queue asks for something else, and a node grows."""
        for name, group in told.groups.items():
            told.groups[name] = some_group(random, name, group.spec.queue)
        name = random.choice(list(PARENTS))
        has_jobs = name in {group.spec.queue for group in told.groups.values()}
        told.queues[name] = some_leaf(random, name) if has_jobs else some_queue(random, name, PARENTS[name])
        told.nodes["n0"] = node("n0").offer(cpu=16, memory="16Gi").build()

    def compare(self, session: Session) -> None:
        """What is said of some jobs, now and after one of them was let in."""
        self._votes(session)
        waiting = [name for name in self._waiting() if self._is_admitted(session, name) or self.random.random() < 0.1]
        if waiting and self.random.random() < 0.4:
            name = self.random.choice(waiting)
            session.combination.job_enqueued(session.job(name))
            session.cycle.set_phase(session.job(name), Phase.INQUEUE)
            self.admissions.admit(self.told, name)
            self._votes(session)

    def _waiting(self) -> list[str]:
        admitted = {group.name for group in self.admissions.present(self.told)}
        return [
            name for name, group in self.told.groups.items() if group.status.phase == "Pending" and name not in admitted
        ]

    def _is_admitted(self, session: Session, name: str) -> bool:
        return session.combination.job_enqueueable(session.job(name))

    def _votes(self, session: Session) -> None:
        waiting = self._waiting()
        for name in self.random.sample(waiting, min(3, len(waiting))):
            want = {
                plugin: voter.vote(self.told, self.admissions, self.told.groups[name])
                for plugin, voter in self.voters.items()
            }
            assert votes(session, session.job(name)) == want, name
            assert self._is_admitted(session, name) == admission.decision(want.values()), name
        reference = self.voters.get("extender")
        if isinstance(reference, admission.Extender) and len(self.voters) == 1:
            queue = self.random.choice(list(self.told.queues))
            assert session.combination.overused(session.queue(queue)) == reference.overused(self.told, queue), queue


def votes(session: Session, job: Job) -> dict[str, int]:
    """What each plugin says that says anything."""
    hooks = {member.option.name: member.hooks.job_enqueueable for tier in session.combination._tiers for member in tier}
    return {name: int(hook(job)) for name, hook in hooks.items() if hook is not None}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_votes_on_admission(kind: str, seed: int) -> None:
    Admitting(f"{kind} {seed}", kind)


@pytest.mark.parametrize("seed", range(6))
def test_votes_on_admission_together(seed: int) -> None:
    random = Random(seed)
    sharing = random.choice(["proportion", "capacity", "capacity in a tree"])
    others = random.sample(["overcommit", "resourcequota", "sla", "extender"], 2)
    Admitting(f"together {seed}", sharing, *others)
