"""The score of storage, and filters that ask drivers for room, agree with their reference."""

from __future__ import annotations

from random import Random

import pytest

from stromboli.api import core
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import pod_group, queue
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.storage import Storage
from tests.scheduler.plugins.references.telling import Place, Told
from tests.scheduler.plugins.sessions import option
from tests.scheduler.plugins.volumes.building import claim, nodes, pod, storage_class, volume

CLASSES = {"local": "", "fast": "fast.example.com", "slow": "slow.example.com", "quiet": "quiet.example.com"}
TELLING = frozenset({"fast.example.com"})
SHAPES = (
    ((0, 10), (100, 0)),
    ((0, 0), (100, 10)),
    ((20, 9), (80, 2)),
    ((10, 3), (33, 10), (70, 1), (90, 4)),
    ((50, 7),),
)


def scene(random: Random, reference: Storage) -> Told:
    """Few nodes in few zones, claims of several classes, of which drivers tell a lot, some or nothing."""
    told = Told(queues={"default": queue().build()}, groups={"job": pod_group("job").members(1).build()})
    for builder in nodes(random.randint(4, 6)):
        labels = {"zone": random.choice("abc")} if random.random() < 0.9 else {}
        told.nodes[builder.name] = builder.label(**labels).build()
    reference.classes = {
        name: storage_class(name, provisioner) if provisioner else storage_class()
        for name, provisioner in CLASSES.items()
    }
    for at, size in enumerate(random.sample(range(1, 30), 8)):
        on = random.sample(list(told.nodes), random.choice([0, 1, 2]))
        reference.volumes[f"v{at}"] = volume(f"v{at}", f"{size}Gi", random.choice(["local", "fast", "quiet"]), on=on)
    reference.rooms = [some_room(random, f"r{at}") for at in range(random.randint(3, 8))]
    for at in range(20):
        name = random.choice(list(CLASSES))
        reference.claims[f"c{at}"] = claim(f"c{at}", name, f"{random.randint(1, 12) * 512}Mi")
    told.others = [*reference.classes.values(), *reference.volumes.values(), *reference.claims.values()]
    told.others += [*reference.rooms, *map(driver, sorted({*CLASSES.values()} - {""}))]
    for at in range(random.randint(8, 12)):
        used = random.sample(list(reference.claims), random.choice([1, 2, 2, 3]))
        told.pods[f"p{at}"] = pod(f"p{at}", *used).build()
    return told


def some_room(random: Random, name: str) -> core.CSIStorageCapacity:
    """Room in a zone, in all but one, everywhere, or nobody knows where; at times without saying how much."""
    topologies = [core.LabelSelector(match_labels={"zone": zone}) for zone in "abc"]
    elsewhere = core.Requirement(key="zone", operator="NotIn", values=("a",))
    topologies += [core.LabelSelector(match_expressions=(elsewhere,)), core.LabelSelector()]
    sizes = [None, "0", "1Gi", "4Gi", "9Gi", "30Gi"]
    return core.CSIStorageCapacity(
        metadata=core.ObjectMeta(name=name, namespace="kube-system", uid=name),
        storage_class_name=random.choice(["fast", "slow", "slow", "fast", "unheard-of"]),
        node_topology=random.choice([*topologies, *topologies, None]),
        capacity=random.choice(sizes),
        maximum_volume_size=random.choice([None, None, *sizes]),
    )


def driver(name: str) -> core.CSIDriver:
    return core.CSIDriver(
        metadata=core.ObjectMeta(name=name, uid=name), spec=core.CSIDriverSpec(storage_capacity=name in TELLING)
    )


def scored(random: Random, told: Told, reference: Storage) -> PluginOption:
    """The arguments and gates by which the reference goes."""
    reference.weight, reference.shape = random.choice([1, 1, 3]), random.choice(SHAPES)
    asks = random.random() < 0.5
    reference.telling = TELLING if asks else frozenset()
    told.options["feature-gates"] = {"StorageCapacityScoring": True, "CSIStorage": asks}
    told.options["csi-storage"] = True
    shape = [{"utilization": utilisation, "score": score} for utilisation, score in reference.shape]
    return option("predicates", {"volumebinding.weight": reference.weight, "volumebinding.shape": shape})


@pytest.mark.parametrize("seed", range(20))
def test_storage(seed: int) -> None:
    random, reference = Random(seed), Storage()
    told = scene(random, reference)
    plugin = scored(random, told, reference)
    Play(random, Story(told, [plugin], reference, evicts=(Place.RUNNING,))).run()
