"""The filter for device claims agrees with its reference."""

from __future__ import annotations

from random import Random

import pytest

from stromboli.api import core
from stromboli.testing.builders import node, pod_group, queue
from tests.scheduler.plugins.dra.building import (
    DRIVER,
    claim,
    device,
    device_class,
    given,
    request,
    resource_slice,
    same,
)
from tests.scheduler.plugins.dra.test_claiming import pod
from tests.scheduler.plugins.references.devices import Chosen, Claim, Devices, Request
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.telling import Place, Told

CLASSES = {"gpu": frozenset({0, 1, 2}), "big": frozenset({2}), "net": frozenset({9})}


def sizes(wanted: frozenset[int]) -> str:
    """An expression for some sizes."""
    return f'device.attributes["{DRIVER}"].size in {sorted(wanted)}'


def some_claim(random: Random) -> Claim:
    """One or two requests of small numbers."""
    requests = []
    for _ in range(random.choice([1, 1, 2])):
        of = random.choice(list(CLASSES.values()))
        more = frozenset(random.sample(range(3), 2)) if random.random() < 0.3 and 9 not in of else of
        requests.append(Request(random.choice([1, 1, 2]), of & more))
    return Claim(tuple(requests), random.random() < 0.2)


def written(name: str, wanted: Claim, chosen: Chosen | None) -> core.ResourceClaim:
    """The claim as an object."""
    requests = []
    for at, one in enumerate(wanted.requests):
        of = "net" if 9 in one.sizes else "gpu"
        requests.append(request(f"r{at}", one.count, sizes(one.sizes), class_=of))
    constraints = (same("size"),) if wanted.alike else ()
    allocation = None
    if chosen is not None:
        pool, name_of = chosen
        allocation = given(name_of, pool=pool, node=pool if pool.startswith("n") else "")
    return claim(name, *requests, constraints=constraints, allocation=allocation)


def scene(random: Random, reference: Devices) -> Told:
    """Devices of nodes and of the network; claims of one pod, and claims that several use."""
    told = Told(queues={"default": queue().build()}, groups={"job": pod_group("job").members(1).build()})
    slices = []
    for at in range(random.randint(5, 6)):
        name = f"n{at}"
        told.nodes[name] = node(name).offer(cpu=64, memory="64Gi").build()
        reference.pools[name] = {f"gpu-{number}": random.randrange(3) for number in range(random.choice([0, 2, 3]))}
        slices.append(resource_slice(name, *devices_of(reference, name), node=name))
    reference.pools["shared"] = {f"port-{number}": 9 for number in range(3)}
    slices.append(resource_slice("shared", *devices_of(reference, "shared")))
    objects: list[core.ResourceClaim] = []
    free = [(pool, name) for pool, devices in reference.pools.items() for name in devices]
    for at in range(12):
        name, wanted = f"c{at}", some_claim(random)
        chosen = free.pop(random.randrange(len(free))) if free and random.random() < 0.15 else None
        reference.claims[name] = Claim(wanted.requests, wanted.alike, (chosen,) if chosen is not None else ())
        objects.append(written(name, wanted, chosen))
    for at in range(random.randint(8, 12)):
        used = random.sample(list(reference.claims), random.choice([0, 1, 1, 2]))
        reference.used[f"p{at}"] = used
        told.pods[f"p{at}"] = pod(f"p{at}", *used).build()
    told.others = [*(device_class(name, sizes(wanted)) for name, wanted in CLASSES.items()), *slices, *objects]
    return told


def devices_of(reference: Devices, pool: str) -> list[core.Device]:
    """As they stand in a slice."""
    return [device(name, size=size) for name, size in reference.pools[pool].items()]


@pytest.mark.parametrize("seed", range(12))
def test_device_claims(seed: int) -> None:
    random, reference = Random(seed), Devices()
    told = scene(random, reference)
    Play(random, Story(told, ["predicates"], reference, evicts=(Place.RUNNING,))).run()
