"""The volume filters of predicates agree with their reference."""

from __future__ import annotations

from random import Random

import pytest

from stromboli.api import core
from stromboli.testing.builders import pod_group, queue
from tests.scheduler.plugins.references.claims import Volumes
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.telling import Place, Told
from tests.scheduler.plugins.sessions import option
from tests.scheduler.plugins.volumes.building import DRIVER, claim, csi_node, nodes, pod, storage_class, volume

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def scene(random: Random, reference: Volumes) -> Told:
    """Local volumes, attached ones, and ones that are to be made; claims that wait, and claims that are bound."""
    told = Told(queues={"default": queue().build()}, groups={"job": pod_group("job").members(1).build()})
    for builder in nodes(random.randint(5, 7)):
        labels = {key: random.choice("ab") for key in ("zone", ZONE, OLD_ZONE) if random.random() < 0.6}
        told.nodes[builder.name] = builder.label(**labels).build()
    hosts = list(told.nodes)
    reference.classes = {
        one.name: one
        for one in (storage_class(), storage_class("made", DRIVER), storage_class("zoned", DRIVER, zones=("a",)))
    }
    for at, size in enumerate(random.sample(range(1, 20), 10)):
        labels = {random.choice([ZONE, OLD_ZONE]): random.choice(["a", "b", "a__b"])} if random.random() < 0.3 else {}
        reference.volumes[f"v{at}"] = volume(
            f"v{at}",
            f"{size}Gi",
            class_=random.choice(["local", "local", "made"]),
            on=random.sample(hosts, random.choice([0, 1, 2, 3])),
            taken_by=random.choice(["", "", "", "c0", "somebody"]),
            handle=f"h{at}" if random.random() < 0.6 else "",
            labels=labels,
        )
    for at in range(20):
        bound = random.choice(list(reference.volumes)) if random.random() < 0.4 else ""
        selected = random.choice(hosts) if not bound and random.random() < 0.1 else ""
        class_ = random.choice(["local", "made", "zoned"])
        reference.claims[f"c{at}"] = claim(f"c{at}", class_, f"{random.randint(1, 12)}Gi", bound, selected=selected)
    reference.limits = {name: (DRIVER, random.choice([1, 2, 3])) for name in hosts if random.random() < 0.7}
    limits: list[core.Object] = [csi_node(name, limit) for name, (_, limit) in reference.limits.items()]
    told.others = [*reference.classes.values(), *reference.volumes.values(), *reference.claims.values(), *limits]
    bound_claims = [one.name for one in reference.claims.values() if one.spec.volume_name]
    for at in range(random.randint(10, 16)):
        running = bool(bound_claims) and random.random() < 0.35
        used = random.sample(bound_claims if running else list(reference.claims), random.choice([0, 1, 1]) or 1)
        if not running and random.random() < 0.4:
            used = random.sample(list(reference.claims), 2)
        member = pod(f"p{at}", *used)
        told.pods[f"p{at}"] = (member.on(random.choice(hosts)) if running else member).build()
    return told


@pytest.mark.parametrize("seed", range(20))
def test_volumes(seed: int) -> None:
    random, reference = Random(seed), Volumes()
    told = scene(random, reference)
    reference.weight = random.choice([0, 1, 3])
    told.options["feature-gates"] = {"StorageCapacityScoring": reference.weight > 0}
    plugin = option("predicates", {"volumebinding.weight": reference.weight})
    Play(random, Story(told, [plugin], reference, evicts=(Place.RUNNING,), chooses=False)).run()
