"""nodegroup, usage, tdm, resource-strategy-fit and extender agree with their references, alone and together."""

from __future__ import annotations

import json
from datetime import datetime
from random import Random

import pytest

from stromboli.api import core
from stromboli.scheduler.core import calling, loads
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import Amount, NodeBuilder, PodBuilder, node, pod, pod_group, queue
from tests.scheduler.plugins.references.extender import Extender, Service
from tests.scheduler.plugins.references.nodegroup import LABEL, NodeGroups
from tests.scheduler.plugins.references.playing import Change, Play, Reference, Story, Together
from tests.scheduler.plugins.references.resource_strategy_fit import LEAST, MOST, TYPE, WEIGHTS, StrategyFit
from tests.scheduler.plugins.references.tdm import PREEMPTABLE, ZONE, TimeDivision
from tests.scheduler.plugins.references.telling import Told
from tests.scheduler.plugins.references.usage import Usage
from tests.scheduler.plugins.sessions import option

GPU, FOO = "nvidia.com/gpu", "example.com/foo"
GROUPS = ("a", "b", "c", "d")
QUEUES = ("root", "top", "mid", "leaf", "lost", "ring1", "ring2")


def scene(random: Random) -> Told:
    """Nodes of some sizes and jobs in some queues; what single plugins look at is put on top."""
    told = Told()
    for at in range(random.randint(5, 10)):
        told.nodes[f"n{at}"] = some_node(random, f"n{at}").build()
    for name, parent in zip(QUEUES, ("", "", "top", "mid", "nowhere", "ring2", "ring1"), strict=True):
        told.queues[name] = queue(name).parent(parent).build()
    for name in QUEUES[2:]:
        told.groups[f"g-{name}"] = pod_group(f"g-{name}").queue(name).build()
    for at in range(random.randint(8, 20)):
        builder = some_pod(random, f"p{at}").group(random.choice(list(told.groups)))
        if random.random() < 0.3:
            builder = builder.on(random.choice(list(told.nodes)))
            builder = builder.deleting() if random.random() < 0.2 else builder
        told.pods[f"p{at}"] = builder.build()
    return told


def some_node(random: Random, name: str) -> NodeBuilder:
    builder = node(name).offer(
        cpu=random.choice([0, 4, 8, 16]), memory=random.choice(["0", "4G", "16G"]), pods=random.choice([3, 110])
    )
    for resource in (GPU, FOO):
        if random.random() < 0.5:
            builder = builder.offer(**{resource: random.choice([0, 2, 4])})
    return builder


def some_pod(random: Random, name: str) -> PodBuilder:
    """Few kinds of pods, so that some of them look the same."""
    builder = pod(name)
    choices: dict[str, list[Amount]] = {"cpu": [1, 2], "memory": ["1G"], GPU: [1], FOO: [1]}
    for resource, amounts in choices.items():
        if random.random() < (0.8 if resource in ("cpu", "memory") else 0.25):
            builder = builder.request(**{resource: random.choice(amounts)})
    return builder


def relabel(random: Random, told: Told, label: str, values: tuple[str, ...]) -> None:
    """Some nodes get another label of this kind, or none."""
    for name in random.sample(list(told.nodes), 3):
        labels = {key: value for key, value in told.nodes[name].metadata.labels.items() if key != label}
        if random.random() < 0.8:
            labels[label] = random.choice(values)
        old = told.nodes[name]
        meta = core.ObjectMeta(name=name, uid=old.metadata.uid, labels=labels, annotations=old.metadata.annotations)
        told.nodes[name] = core.Node(metadata=meta, spec=old.spec, status=old.status)


def annotate(random: Random, told: Told, **choices: list[str | None]) -> None:
    """Every pod gets one of the values of each annotation, or none."""
    for name, old in told.pods.items():
        chosen = {key: random.choice(values) for key, values in choices.items()}
        given = {key: value for key, value in chosen.items() if value is not None}
        meta = core.ObjectMeta(
            name=name,
            namespace="ns",
            uid=old.metadata.uid,
            annotations={**old.metadata.annotations, **given},
            deletion_timestamp=old.metadata.deletion_timestamp,
        )
        told.pods[name] = core.Pod(metadata=meta, spec=old.spec, status=old.status)


Made = tuple[PluginOption, Reference, Change | None]


def node_groups(random: Random, told: Told) -> Made:
    def decide(random: Random, told: Told) -> None:
        relabel(random, told, LABEL, GROUPS)
        for name in QUEUES:
            given = affinity(random) if random.random() < 0.6 else None
            old = told.queues[name]
            told.queues[name] = core.Queue(
                metadata=old.metadata,
                spec=core.QueueSpec(weight=1, parent=old.spec.parent, affinity=given),
                status=old.status,
            )

    relabel(random, told, LABEL, GROUPS)
    decide(random, told)
    given = {"strict": random.random() < 0.5, "enablePreferredOrder": random.random() < 0.5}
    hierarchy = random.random() < 0.5
    reference = NodeGroups(given["strict"], given["enablePreferredOrder"], hierarchy)
    return option("nodegroup", given, hierarchy=hierarchy), reference, decide


def affinity(random: Random) -> core.QueueAffinity:
    def some() -> tuple[str, ...]:
        return tuple(random.sample(GROUPS, random.choice([0, 0, 1, 2, 3])))

    sides = [
        core.NodeGroupAffinity(
            required_during_scheduling_ignored_during_execution=some(),
            preferred_during_scheduling_ignored_during_execution=some(),
        )
        if random.random() < 0.8
        else None
        for _ in range(2)
    ]
    return core.QueueAffinity(node_group_affinity=sides[0], node_group_anti_affinity=sides[1])


def usage(random: Random, told: Told) -> Made:
    own, cpu, memory = (random.choice([0, 1, 2, 8]) for _ in range(3))
    arguments: dict[str, object] = {"usage.weight": own, "cpu.weight": cpu, "memory.weight": memory}
    reference = Usage(own, cpu, memory)
    if random.random() < 0.7:
        reference.cpu_limit, reference.memory_limit = random.choice([50, 90]), random.choice([50, 90])
        arguments["thresholds"] = {"cpu": reference.cpu_limit, "mem": reference.memory_limit}
    elif random.random() < 0.5:
        arguments["thresholds"] = {"cpu": "many", "mem": 0.5}

    def measure(random: Random, told: Told) -> None:
        reference.measured = {
            name: (
                random.choice([0.0, 299.0, 300.0, 301.0]),
                random.choice([0, 50, 51.5, 81, 100]),
                random.random() * 100,
            )
            for name in told.nodes
            if random.random() < 0.8
        }
        told.options[loads.OPTION] = {
            name: loads.NodeLoad(told.now - age, {"10m": cpu}, {"10m": memory})
            for name, (age, cpu, memory) in reference.measured.items()
        }

    measure(random, told)
    return option("usage", arguments), reference, measure


def time_division(random: Random, told: Told) -> Made:
    hour = datetime.fromtimestamp(told.now).hour

    def at(hours: int, minute: str = "00") -> str:
        return f"{(hour + hours) % 24}:{minute}"

    windows = [
        "0:00-0:00",
        f"{at(-1)}-{at(1)}",
        f"{at(1)}-{at(2)}",
        f"{at(-3)}-{at(-1, '59')}",
        f"{at(0)}-{at(0, '01')}",
    ]
    windows += [f" {at(2)}-{at(1)} ", f"{at(-2)}-{at(0)}", "0:0-1:00", "now", "25:00-1:00"]
    zones = {f"z{number}": random.choice(windows) for number in range(5)}
    labels = (*zones, "unheard-of")
    relabel(random, told, LABEL, GROUPS)
    relabel(random, told, ZONE, labels)
    annotate(random, told, **{ZONE: ["*", "*", "z1", None, None], PREEMPTABLE: ["true", "1", "no", None]})
    arguments: dict[str, object] = {f"tdm.revocable-zone.{zone}": window for zone, window in zones.items()}
    return option("tdm", arguments), TimeDivision(zones), lambda random, told: relabel(random, told, ZONE, labels)


def strategy_fit(random: Random, told: Told) -> Made:
    resources = {
        name: (random.choice([LEAST, MOST]), random.choice([1, 2, 5]))
        for name in random.sample(["cpu", "memory", "pods", GPU, FOO, "nvidia.com/*", "example.com/f*", "nvidia*"], 4)
    }
    if random.random() < 0.2:
        resources = {}
    scarce = {name: random.choice([0, 1, 3]) for name in (GPU, FOO)} if random.random() < 0.5 else {}
    rates = {name: (random.choice([0.0, 0.5, 2.0]), random.choice([0.0, 1.0])) for name in (GPU, FOO)}
    if random.random() < 0.4:
        rates = {}
    weight, scarce_weight = random.choice([0, 10, 3]), random.choice([0, 5])
    arguments: dict[str, object] = {
        "resourceStrategyFitWeight": weight,
        "resources": {name: {"type": kind, "weight": own} for name, (kind, own) in resources.items()},
        "sra": {
            "enable": bool(scarce),
            "resources": ", ".join(scarce),
            "weight": scarce_weight,
            "resourceWeight": scarce,
        },
        "proportional": {
            "enable": bool(rates),
            "resources": ",".join(rates),
            "resourceProportion": {
                f"{name}.{of}": rate
                for name, both in rates.items()
                for of, rate in zip(("cpu", "memory"), both, strict=True)
            },
        },
    }
    own = [json.dumps({"cpu": 2, FOO: 1}), json.dumps({"memory": 1, "pods": 0}), "{oops", None]
    annotate(random, told, **{TYPE: [LEAST, MOST, "Odd", None, None, None], WEIGHTS: own})
    return (
        option("resource-strategy-fit", arguments),
        StrategyFit(weight, resources, scarce, scarce_weight, rates),
        resize,
    )


def extender(random: Random, told: Told) -> Made:
    broken = frozenset(random.sample(list(told.pods), random.choice([0, 2])))
    verbs = random.choice([("predicate", "prioritize"), ("predicate",), ("prioritize",)])
    ignorable = random.random() < 0.7 or "prioritize" in verbs  # a score that fails is a problem of the cycle
    managed = random.choice([[], [], [GPU], [FOO, "cpu"]])
    reference = Extender(Service(broken), "predicate" in verbs, "prioritize" in verbs, ignorable, managed)
    arguments: dict[str, object] = {f"extender.{verb}Verb": verb for verb in verbs}
    arguments |= {"extender.urlPrefix": "http://x/", "extender.ignorable": ignorable}
    arguments |= {"extender.managedResources": managed} if managed else {}
    told.options[calling.OPTION] = reference.service
    return option("extender", arguments), reference, resize


def resize(random: Random, told: Told) -> None:
    """Some nodes offer something else."""
    for name in random.sample(list(told.nodes), 2):
        old = told.nodes[name]
        status = some_node(random, name).build().status
        told.nodes[name] = core.Node(metadata=old.metadata, spec=old.spec, status=status)


KINDS = {
    "nodegroup": node_groups,
    "usage": usage,
    "tdm": time_division,
    "resource-strategy-fit": strategy_fit,
    "extender": extender,
}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", KINDS)
def test_a_plugin_agrees_with_its_reference(name: str, seed: int) -> None:
    random = Random(f"{name} {seed}")
    told = scene(random)
    plugin, reference, change = KINDS[name](random, told)
    Play(random, Story(told, [plugin], reference, change)).run()


@pytest.mark.parametrize("seed", range(15))
def test_plugins_agree_together(seed: int) -> None:
    random = Random(seed)
    told = scene(random)
    made = [KINDS[name](random, told) for name in random.sample(list(KINDS), 3)]

    def change(random: Random, told: Told) -> None:
        for _, _, one in made:
            if one is not None:
                one(random, told)

    Play(random, Story(told, [plugin for plugin, _, _ in made], Together(*(one for _, one, _ in made)), change)).run()
