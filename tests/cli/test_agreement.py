"""Previews and simulations agree with what a live scheduler then does, in random clusters, cycle for cycle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

import msgspec
import pytest

from stromboli.api import core, kinds
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.engine import Round
from stromboli.cli.rehearsing.previewing import Verdict, preview
from stromboli.cli.rehearsing.simulating import Simulation, simulate
from stromboli.cli.rehearsing.snapshots import Snapshot, gather
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy, Switches
from stromboli.scheduler.core.results import CycleResult
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.builders import node, pod, pod_group, priority_class, queue
from tests.cli.living import Living
from tests.cli.situations import vcjob
from tests.scheduler.plugins.dra.building import claim, device_class, devices, resource_slice

CLUSTERS = int(os.environ.get("AGREEMENT_CLUSTERS", "15"))
"""Random clusters for each of the three tests, spread over the policies. 200 take some minutes."""
LOOKS = 6
"""Cycles that are compared."""
NOW = core.timestamp("2026-01-02T00:00:00Z")


def policy(actions: str, *tiers: str, hierarchy: bool = False) -> Policy:
    """A policy of plugins by name."""
    switches = Switches(hierarchy=hierarchy)
    made = (
        tuple(PluginOption(name, switches) if name == "capacity" else PluginOption(name) for name in tier.split())
        for tier in tiers
    )
    return Policy(tuple(actions.split()), tuple(made))


POLICIES = {
    "the built-in one": DEFAULT_POLICY,
    "priorities that preempt": policy(
        "enqueue allocate preempt", "priority gang conformance", "predicates proportion nodeorder binpack"
    ),
    "shares that are reclaimed": policy(
        "enqueue allocate reclaim backfill", "priority gang conformance proportion", "drf predicates nodeorder"
    ),
    "amounts that are reclaimed": policy(
        "enqueue allocate reclaim", "priority gang conformance capacity", "predicates nodeorder"
    ),
    "a hierarchy with all of it": policy(
        "enqueue allocate preempt reclaim",
        "priority gang conformance capacity",
        "predicates nodeorder binpack",
        hierarchy=True,
    ),
}


@dataclass(frozen=True)
class World:
    """A random cluster: objects by kind, and vcjobs whose pods come when they are admitted."""

    objects: Mapping[kinds.Kind, list[core.Object]]
    jobs: list[JsonObject]

    @property
    def priorities(self) -> list[core.PriorityClass]:
        return [item for item in self.objects[kinds.PRIORITY_CLASSES] if isinstance(item, core.PriorityClass)]


LEAVES = ("default", "default", "other", "leaf-a", "leaf-b")
"""Queues that may have work; of one that is named twice there is more."""


def furnish(random: Random) -> World:
    """Nodes of several sizes, queues (two of them under a third), gangs that run, and gangs and vcjobs that wait."""
    sizes = [random.choice([2, 4, 8]) for _ in range(random.randrange(2, 7))]
    nodes: list[core.Object] = [
        node(f"n{at}").offer(cpu=size, memory="32Gi", pods=20).build() for at, size in enumerate(sizes)
    ]
    groups: list[core.Object] = []
    pods: list[core.Object] = []
    left = dict(enumerate(sizes))
    for number in range(random.randrange(3, 12)):
        _gang(random, f"old{number}", left, groups, pods, runs=random.random() < 0.7)
    return World(
        {
            kinds.PRIORITY_CLASSES: [priority_class("high", 100)],
            kinds.NODES: nodes,
            kinds.QUEUES: list(_queues(random, sum(sizes))),
            kinds.POD_GROUPS: groups,
            kinds.PODS: pods,
        },
        [_job(random, f"new{number}") for number in range(random.randrange(3))],
    )


def _queues(random: Random, total: int) -> Iterator[core.Object]:
    yield queue("root").build()
    yield (
        queue("dept").parent("root").deserve(cpu=random.randrange(1, total)).cap(cpu=random.randrange(2, total)).build()
    )
    for name in sorted(set(LEAVES)):
        made = queue(name).weight(random.randrange(1, 4)).deserve(cpu=random.randrange(1, total))
        made = made.parent("dept" if name.startswith("leaf") else "root")
        yield (made.unreclaimable() if random.random() < 0.2 else made).build()


def _gang(
    random: Random, name: str, left: dict[int, int], groups: list[core.Object], pods: list[core.Object], *, runs: bool
) -> None:
    size, high = random.randrange(1, 5), random.random() < (0.1 if runs else 0.6)
    made = pod_group(name).queue(random.choice(LEAVES)).members(random.randrange(1, size + 1)).reserve(cpu=size)
    made = made.born(1000 + len(groups)).phase("Running" if runs else random.choice(["Pending", "Inqueue"]))
    groups.append((made.priority_class("high") if high else made).build())
    for at in range(size):
        pod_made = pod(f"{name}-{at}").group(name).request(cpu=1).born(1000 + len(groups))
        where = next((number for number, room in left.items() if room), None)
        if runs and where is not None:
            left[where] -= 1
            pod_made = pod_made.on(f"n{where}")
        pods.append((pod_made.priority(100) if high else pod_made).build())


def _job(random: Random, name: str) -> JsonObject:
    replicas = random.randrange(1, 6)
    made = vcjob(
        name,
        replicas=replicas,
        minimum=random.randrange(1, replicas + 1),
        requests={"cpu": random.choice(["1", "2", "3"])},
        queue=random.choice(LEAVES),
    )
    if random.random() < 0.4:
        made["spec"]["priorityClassName"] = "high"
    return made


def settle(server: FakeApiServer, world: World) -> None:
    """Put the world on the server, jobs without PodGroups."""
    for kind, objects in world.objects.items():
        for obj in objects:
            server.put(kind, dict(core.to_builtins(obj, kind)))


def submit(server: FakeApiServer, living: Living, job: JsonObject, priorities: list[core.PriorityClass]) -> None:
    """What the job controller does: the PodGroup now, the pods when it is admitted."""
    group = members.pod_group(job, priorities, NOW)
    server.put(kinds.POD_GROUPS, dict(core.to_builtins(group, kinds.POD_GROUPS)))
    living.awaited["/".join(group.key)] = list(members.pods(job, priorities))


async def look(server: FakeApiServer) -> Snapshot:
    with Api(find("", server.url, {})) as api:
        return await asyncio.to_thread(gather, api)


def expected(round_: Round) -> tuple[object, ...]:
    """What a rehearsed cycle decides."""
    binds = {start.pod: start.node for start in round_.started}
    return binds, sorted((one.pod, one.reason) for one in round_.evicted), set(round_.admitted)


def decided(result: CycleResult, pending: set[str]) -> tuple[object, ...]:
    """What a live cycle decided; ``pending`` were not admitted before."""
    binds = {bind.task.key: bind.node for bind in result.binds}
    admitted = {one.job_id for one in result.pod_groups if one.job_id in pending and one.status.phase != "Pending"}
    return binds, sorted((one.task.key, one.reason) for one in result.evictions), admitted


def waiting_groups(server: FakeApiServer) -> set[str]:
    return {
        f"{group['metadata']['namespace']}/{group['metadata']['name']}"
        for group in server.objects(kinds.POD_GROUPS)
        if group.get("status", {}).get("phase") in (None, "", "Pending")
    }


CASES = [(name, seed) for seed in range(CLUSTERS) for name in [list(POLICIES)[seed % len(POLICIES)]]]


@pytest.mark.parametrize(("name", "seed"), CASES)
async def test_a_simulation_decides_what_the_scheduler_decides(server: FakeApiServer, name: str, seed: int) -> None:
    world = furnish(Random(seed))
    settle(server, world)
    async with await server.client() as client:
        living = Living(server, client, POLICIES[name])
        found = simulate(await look(server), POLICIES[name], cycles=LOOKS, jobs=world.jobs)
        for job in world.jobs:
            submit(server, living, job, world.priorities)
        async with living:
            for round_ in found.rounds:
                pending = waiting_groups(server)
                assert decided(await living.cycle(), pending) == expected(round_), f"cycle {round_.number}"


def with_devices(random: Random) -> World:
    """A random cluster some of whose nodes have devices, for which some of the pods have claims of their own."""
    world = furnish(random)
    classes: list[core.Object] = [device_class()]
    slices: list[core.Object] = [
        resource_slice(f"s-{each.name}", *devices(random.randrange(1, 4)), node=each.name)
        for each in world.objects[kinds.NODES]
        if random.random() < 0.6
    ]
    claims: list[core.Object] = []
    pods: list[core.Object] = []
    for each in world.objects[kinds.PODS]:
        assert isinstance(each, core.Pod)
        if each.spec.node_name or random.random() < 0.4:
            pods.append(each)
            continue
        claims.append(claim(f"c-{each.name}"))
        named = (core.PodResourceClaim(name="gpu", resource_claim_name=f"c-{each.name}"),)
        pods.append(msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, resource_claims=named)))
    more = {kinds.DEVICE_CLASSES: classes, kinds.RESOURCE_SLICES: slices, kinds.RESOURCE_CLAIMS: claims}
    return World({**world.objects, **more, kinds.PODS: pods}, [])


@pytest.mark.parametrize(("name", "seed"), CASES)
async def test_a_simulation_with_device_claims_agrees_as_well(server: FakeApiServer, name: str, seed: int) -> None:
    settle(server, with_devices(Random(2000 + seed)))
    async with await server.client() as client:
        living = Living(server, client, POLICIES[name])
        found = simulate(await look(server), POLICIES[name], cycles=LOOKS)
        async with living:
            for round_ in found.rounds:
                pending = waiting_groups(server)
                assert decided(await living.cycle(), pending) == expected(round_), f"cycle {round_.number}"


@pytest.mark.parametrize("name", POLICIES)
def test_random_clusters_have_something_to_decide(name: str) -> None:
    """Pods start and wait under every policy, vcjobs, too; under those that evict pods are evicted."""
    rules = POLICIES[name]
    found = [_offline(seed, rules) for seed in range(20)]
    started = [{start.pod.partition("/")[2][:3] for start in one.started} for one in found]
    assert {"old", "new"} <= set().union(*started)
    assert any(one.waiting for one in found)
    assert any(one.evicted for one in found) == bool({"preempt", "reclaim"} & set(rules.actions))


def test_claims_of_random_clusters_are_given_and_refused() -> None:
    """Pods with claims start in them, and fewer than with devices for all."""
    some = all_ = 0
    for seed in range(20):
        world = with_devices(Random(2000 + seed))
        claiming = {
            f"{each.namespace}/{each.name}"
            for each in world.objects[kinds.PODS]
            if isinstance(each, core.Pod) and each.spec.resource_claims
        }
        everywhere: list[core.Object] = [resource_slice("everywhere", *devices(99))]
        plenty = {**world.objects, kinds.RESOURCE_SLICES: everywhere}
        some += len(claiming & {start.pod for start in _simulated(world, DEFAULT_POLICY).started})
        started = _simulated(World(plenty, []), DEFAULT_POLICY).started
        all_ += len(claiming & {start.pod for start in started})
    assert 0 < some < all_


def _simulated(world: World, rules: Policy) -> Simulation:
    objects = [obj for listed in world.objects.values() for obj in listed]
    return simulate(Snapshot(NOW, tuple(objects)), rules, cycles=LOOKS, jobs=world.jobs)


def _offline(seed: int, rules: Policy) -> Simulation:
    return _simulated(furnish(Random(seed)), rules)


@pytest.mark.parametrize(("name", "seed"), CASES)
async def test_a_preview_says_what_the_scheduler_does(server: FakeApiServer, name: str, seed: int) -> None:
    random = Random(1000 + seed)
    world = furnish(random)
    settle(server, world)
    job = _job(random, "train")
    async with await server.client() as client:
        living = Living(server, client, POLICIES[name])
        found = preview(await look(server), POLICIES[name], job)
        submit(server, living, job, world.priorities)
        placed: dict[str, str] = {}
        evicted: list[tuple[str, str]] = []
        async with living:
            for _ in range(LOOKS):
                result = await living.cycle()
                placed |= {bind.task.key: bind.node for bind in result.binds if bind.task.name.startswith("train-")}
                evicted += [(one.task.key, one.reason) for one in result.evictions]
                if len(placed) >= job["spec"]["minAvailable"]:
                    break
    told = [(one.pod, one.reason) for one in found.evictions]
    match found.verdict:
        case Verdict.FITS_NOW:
            assert (sum(found.placements.values()), told) == (len(placed), evicted)
        case Verdict.FITS_AFTER_EVICTING:
            assert (sum(found.placements.values()), sorted(told)) == (len(placed), sorted(evicted))
            assert told
        case _:
            assert placed == {}
