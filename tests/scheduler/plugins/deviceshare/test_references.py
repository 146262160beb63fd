"""deviceshare agrees with its references, device family by device family."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from stromboli.api import core, names
from stromboli.scheduler.plugins.deviceshare.configuration import FILE
from stromboli.testing.builders import PodBuilder, pod_group, queue
from tests.scheduler.plugins.deviceshare.stage import (
    asking,
    card,
    devices,
    gpu_node,
    member,
    roomy,
    slice_of,
    with_capacity,
)
from tests.scheduler.plugins.deviceshare.test_mindcluster import chips_node, config_map, wanting
from tests.scheduler.plugins.references.deviceshare import (
    CUT,
    GPU_MEMORY,
    GPU_NUMBER,
    DeviceShare,
    Family,
    GpuShare,
    Hami,
    Kind,
    VGpu,
)
from tests.scheduler.plugins.references.mindcluster import NPU as NPU_CORE
from tests.scheduler.plugins.references.mindcluster import REAL, MindCluster
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.telling import Told

Arguments = dict[str, object]
Made = tuple[Family, Arguments]


def scene(random: Random, node_of: Callable[[str], core.Node], pod_of: Callable[[PodBuilder], core.Pod]) -> Told:
    """Nodes with devices and some without, pods that hold some and pods that want some."""
    told = Told(queues={"default": queue().build()})
    told.groups = {name: pod_group(name).members(1).build() for name in ("j", "k")}
    for at in range(random.randint(5, 8)):
        told.nodes[f"n{at}"] = node_of(f"n{at}") if random.random() < 0.85 else roomy(f"n{at}").build()
    for at in range(random.randint(12, 20)):
        builder = member(f"p{at}").group(random.choice("jk"))
        if random.random() < 0.4:
            builder = builder.on(random.choice(list(told.nodes)))
            builder = builder.deleting() if random.random() < 0.2 else builder
        told.pods[f"p{at}"] = pod_of(builder)
    return told


def gpu_share(random: Random, policy: str) -> tuple[Told, Made]:
    by_memory = random.random() < 0.5

    def node_of(name: str) -> core.Node:
        offered = {GPU_NUMBER: random.choice([0, 1, 2, 4]), GPU_MEMORY: random.choice([2000, 4001])}
        builder = roomy(name, **{GPU_NUMBER: 100, GPU_MEMORY: 100000})
        sick = {names.GPU_UNHEALTHY_IDS: random.choice(["1", "0, x", ""])} if random.random() < 0.4 else {}
        return with_capacity(builder.annotate(**sick), **offered)

    def pod_of(builder: PodBuilder) -> core.Pod:
        asked = {GPU_MEMORY: random.choice([300, 600, 1000]), GPU_NUMBER: random.choice([1, 1, 2])}
        chosen = random.sample(list(asked), random.choice([1, 1, 2]))
        if builder.spec.node_name:
            builder = builder.annotate(**{names.GPU_INDEX: random.choice(["0", "1", "0,1", "2", "9", "0,x"])})
        init = [{GPU_MEMORY: 900}] if random.random() < 0.1 else []
        return asking(builder, {name: asked[name] for name in chosen}, init=init)

    switch = "GPUSharingEnable" if by_memory else "GPUNumberEnable"
    return scene(random, node_of, pod_of), (GpuShare(by_memory), {switch: True})


RULES = [{"app": "training", "team": "ml"}, {"app": "training"}, {"use": "inference"}]


def vgpu(random: Random, policy: str) -> tuple[Told, Made]:
    usual = (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES)
    number, memory, cores = asked = random.choice([usual, usual, ("x.io/cards", "x.io/memory", "x.io/cores")])
    percentage = random.choice(["", "", "x.io/percentage"])
    offered = {name: 100000 for name in (*asked, percentage) if name not in ("", *usual)}

    def node_of(name: str) -> core.Node:
        cards = [
            card(
                f"{name}-{at}",
                limit=random.choice([1, 2, 10]),
                memory=random.choice([8000, 16384]),
                type=random.choice(["NVIDIA-A", "NVIDIA-A", "NVIDIA-B", "Other"]),
                health=random.choice(["true", "true", "true", "false"]),
                mode=random.choice(["hami-core", "hami-core", "mps"]),
            )
            for at in range(random.randint(1, 4))
        ]
        return gpu_node(name, *cards, number=random.choice([40, 40, 40, 0]), **offered)

    def pod_of(builder: PodBuilder) -> core.Pod:
        labels = {"app": ["training", "other"], "team": ["ml"], "use": ["inference"]}
        builder = builder.label(
            **{key: random.choice(values) for key, values in labels.items() if random.random() < 0.5}
        )
        texts = {
            "nvidia.com/use-gputype": "nvidia-a,intel",
            "nvidia.com/nouse-gputype": "B",
            "volcano.sh/vgpu-podgroup-policy": "spread",
            "volcano.sh/vgpu-mode": random.choice(["hami-core", "mig"]),
        }
        builder = builder.annotate(**{key: text for key, text in texts.items() if random.random() < 0.15})
        if builder.spec.node_name:
            on = builder.spec.node_name
            shares = [
                f"{on}-{random.randrange(4)},NVIDIA,{random.choice([1000, 4000])},{random.choice([0, 30])}:"
                for _ in range(random.choice([0, 1, 2]))
            ]
            builder = builder.annotate(**{names.VGPU_IDS: random.choice(["", ";"]).join(shares)})
        limits = [
            slice_of(random.choice([1, 1, 2]), random.choice([None, 1000, 4000]), random.choice([None, 30, 100]))
            for _ in range(random.choice([1, 1, 2]))
        ]
        limits = [{asked[usual.index(name)]: amount for name, amount in each.items()} for each in limits]
        if percentage and random.random() < 0.4:
            limits[0][percentage] = random.choice([10, 33, 60])
        return asking(builder, *limits)

    rules = random.sample(RULES, random.choice([0, 0, 1, 2]))
    told = scene(random, node_of, pod_of)
    said = {"resourceCountName": number, "resourceMemoryName": memory, "resourceCoreName": cores}
    told.others.append(configured({"nvidia": {**said, "resourceMemoryPercentageName": percentage}}))
    reference = VGpu(policy, rules, resources=asked, percentage=percentage)
    return told, (reference, {"VGPUEnable": True, "GPUExclusiveRules": rules})


def ascend(random: Random, reference: Hami, memories: list[int], *, networks: list[int | None]) -> Told:
    """Nodes whose cards are on some of the networks (None: it is not known), and pods that want some of them."""
    kind = reference.kind

    def node_of(name: str) -> core.Node:
        known = [network for network in networks if network is not None] if random.random() < 0.8 else networks
        cards = []
        for at in range(random.randint(0, 3) + 3 * (len(networks) > 1)):
            listed = {"id": f"{name}-{at}", "index": at, "count": random.choice([1, 2, 7]), "devcore": 8}
            network = random.choice(known or networks)
            custom = {} if network is None else {"custominfo": {"NetworkID": network}}
            cards.append({**listed, "devmem": random.choice(memories), **custom})
        random.shuffle(cards)
        register = {f"hami.io/node-register-{kind.word}": json.dumps(cards)}
        return roomy(name, **{kind.number: random.choice([100, 100, 0])}).annotate(**register).build()

    def pod_of(builder: PodBuilder) -> core.Pod:
        if builder.spec.node_name:
            amounts = f"{random.choice(kind.templates)},{random.choice([0, 0, 8])}"
            share = f"{builder.spec.node_name}-{random.randrange(3)},{kind.word},{amounts}"
            record = {f"hami.io/{kind.word}-devices-allocated": f"{share}:;"} if random.random() < 0.8 else {}
            builder = builder.annotate(**record)
        uses = {f"hami.io/{use}-{kind.word}-uuid": "n0-0,n1-1,n2-0,n2-1" for use in ("use", "no-use")}
        builder = builder.annotate(**{key: text for key, text in uses.items() if random.random() < 0.1})
        limits = []
        for _ in range(random.choice([1, 1, 2])):
            memory = random.choice([None, None, 1024, 3073, kind.templates[-1], kind.whole, kind.capacity + 1])
            number = random.choice([1, 1, 2, 3] if len(networks) > 1 else [1, 1, 2])
            limits.append({kind.number: number, **({} if memory is None else {kind.memory: memory})})
        return asking(builder, *limits)

    return scene(random, node_of, pod_of)


def hami(random: Random, policy: str) -> tuple[Told, Made]:
    reference, whole = Hami(policy), Hami.kind.whole
    memories = [whole, whole, Hami.kind.capacity, Hami.kind.templates[-1]]
    return ascend(random, reference, memories, networks=[None]), (reference, {"AscendHAMiVNPUEnable": True})


ASCEND_910 = Kind("Ascend910B", (8192, 16384), 32768, 40000)


def networks(random: Random, policy: str) -> tuple[Told, Made]:
    """Cards of a configured kind, several of which are best taken from one network."""
    kind = ASCEND_910
    reference = Hami(policy, kind)
    told = ascend(random, reference, [kind.whole, kind.whole, kind.whole, 16384], networks=[None, 0, 1, 1, 2])
    entry = {
        "commonWord": kind.word,
        "resourceName": kind.number,
        "resourceMemoryName": kind.memory,
        "memoryAllocatable": kind.whole,
        "memoryCapacity": kind.capacity,
        "templates": [{"name": f"t{memory}", "memory": memory} for memory in reversed(kind.templates)],
    }
    told.others.append(configured({"vnpus": {"configs": [entry]}}))
    return told, (reference, {"AscendHAMiVNPUEnable": True})


MIG_GROUPS = {"small": [(10, 3), (20, 1)], "mixed": [(20, 1), (10, 1)], "large": [(40, 1)]}


def configured(document: dict[str, object]) -> core.ConfigMap:
    """The device configuration."""
    meta = core.ObjectMeta(name="volcano-vgpu-device-config", namespace="kube-system")
    return core.ConfigMap(metadata=meta, data={FILE: json.dumps(document)})


def geometries() -> list[object]:
    """``MIG_GROUPS`` as the configuration says it."""
    groups = [
        {
            "group": group,
            "geometries": [{"name": f"{group}-{memory}", "memory": memory, "count": count} for memory, count in kinds],
        }
        for group, kinds in MIG_GROUPS.items()
    ]
    return [{"models": [CUT], "allowedGeometries": groups}]


def mig(random: Random, policy: str) -> tuple[Told, Made]:
    """Some nodes have cards that are cut, others the same cards whole; they list their memory by a factor, if any."""
    free: dict[str, list[str]] = {}
    factor = random.choice([None, 0, 1, 2, 3])
    memory = 40 // max(factor or 0, 1)

    def node_of(name: str) -> core.Node:
        mode, cards = random.choice(["mig", "mig", "hami-core"]), []
        for at in range(random.randint(1, 3)):
            cards.append(card(f"{name}-{at}", limit=7, memory=memory, type=f"NVIDIA-{CUT}", mode=mode))
            group = random.choice(list(MIG_GROUPS))
            count = sum(count for _, count in MIG_GROUPS[group]) if mode == "mig" else 0
            free.setdefault(name, []).extend(f"{name}-{at}[{group}-{position}]" for position in range(count))
        return gpu_node(name, *cards)

    def pod_of(builder: PodBuilder) -> core.Pod:
        instances = free.get(builder.spec.node_name, [])
        if instances:
            taken = instances.pop(random.randrange(len(instances)))
            builder = builder.annotate(**{names.VGPU_IDS: f"{taken},NVIDIA,5,{random.choice([0, 30])}:"})
        texts = {
            "volcano.sh/vgpu-podgroup-policy": "spread",
            "volcano.sh/vgpu-mode": random.choice(["hami-core", "mig"]),
        }
        builder = builder.annotate(**{key: text for key, text in texts.items() if random.random() < 0.2})
        limits = [
            slice_of(random.choice([1, 1, 2]), random.choice([None, 3, 5, 7, 10, 15, 30]), random.choice([None, 30]))
            for _ in range(random.choice([1, 1, 2]))
        ]
        return asking(builder, *limits)

    told = scene(random, node_of, pod_of)
    nvidia = {} if factor is None else {"gpuMemoryFactor": factor}
    told.others.append(configured({"nvidia": {"knownMigGeometries": geometries(), **nvidia}}))
    return told, (VGpu(policy, [], MIG_GROUPS, factor or 0), {"VGPUEnable": True})


FAMILIES = {"gpushare": gpu_share, "vgpu": vgpu, "mig": mig, "hami": hami, "networks": networks}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", FAMILIES)
def test_a_device_family_agrees_with_its_reference(name: str, seed: int) -> None:
    random = Random(f"{name} {seed}")
    policy, weight = random.choice(["binpack", "spread", ""]), random.choice([0, 1, 10])
    told, (family, switches) = FAMILIES[name](random, policy)
    plugin = devices(**switches, SchedulePolicy=policy, ScheduleWeight=weight)
    ignored = frozenset({Hami.kind.memory, ASCEND_910.memory})
    story = Story(told, [plugin], DeviceShare([family], weight), together=("gang", "predicates"), unheeded=ignored)
    Play(random, story).run()


# MindCluster


def chips_scene(random: Random, reference: MindCluster) -> Told:
    """Nodes with chips, some of which are cut, whole chips that are taken, and pods that want either."""
    told = Told(queues={"default": queue().build()}, groups={"j": pod_group("j").members(1).build()})
    lists: dict[str, object] = {}
    for at in range(random.randint(4, 7)):
        name, count = f"n{at}", random.randint(1, 4)
        if random.random() < 0.15:
            told.nodes[name] = roomy(name, **{NPU_CORE: 8}).build()
            continue
        told.nodes[name] = chips_node(name, count)
        reference.chips[name] = list(range(count))
        reference.sick[name] = [random.randrange(count)] if random.random() < 0.2 else []
        sick = ",".join(f"Ascend310P-{chip}" for chip in reference.sick[name])
        lists[f"mindx-dl-deviceinfo-{name}"] = {"DeviceList": {"huawei.com/Ascend310P-Unhealthy": sick}}
    reference.separated = {name for name in reference.chips if random.random() < 0.1}
    states = {f"mindx-dl-nodeinfo-{name}": {"NodeStatus": "PreSeparate"} for name in reference.separated}
    told.others = [
        config_map("cluster-info-device-0", "mindx-dl", data=json.dumps(lists)),
        config_map("cluster-info-node-cm", "mindx-dl", data=json.dumps(states)),
    ]
    at = 0
    for name, chips in reference.chips.items():
        smaller = random.choice([None, None, *LEFT_OVER])
        for chip in chips:
            for text, real in parts_of(random, chip) if smaller is None else crowded(chip, smaller):
                annotations = {NPU_CORE: text, **({REAL: f"Ascend310P-2c-105-0_{real}"} if real else {})}
                told.pods[f"old{at}"] = asking(member(f"old{at}", **annotations).on(name), {NPU_CORE: 1})
                at += 1
    for number in range(random.randint(8, 14)):
        cores = random.choice([1, 2, 2, 4, 4, 8, 16, 3])
        level, dvpp = random.choice(["", "high", "low"]), random.choice(["", "", "yes", "no", "null", "odd"])
        told.pods[f"p{number}"] = wanting(f"p{number}", cores, level=level, dvpp=dvpp)
    return told


def parts_of(random: Random, chip: int) -> list[tuple[str, str]]:
    """What running pods have of a chip: whole, or slices of which one may still be in the making."""
    if random.random() < 0.25:
        return [(str(chip), "")] if random.random() < 0.5 else []
    names = random.sample(["vir01", "vir01", "vir02", "vir02_1c", "vir04_3c_ndvpp"], random.randint(0, 3))
    made = [(f"{chip}-{name}", str(number)) for number, name in enumerate(names)]
    return [(text, real if random.random() < 0.9 else "") for text, real in made]


LEFT_OVER = {"vir02_1c": ["vir04", "vir02"], "vir04_3c": ["vir04"]}
"""Smaller slices, and slices that leave room for them and not for the larger ones with as many cores."""


def crowded(chip: int, smaller: str) -> list[tuple[str, str]]:
    """Chips with room for a smaller slice, while one of that kind is being made on the first."""
    names = LEFT_OVER[smaller] if chip else [smaller]
    return [(f"{chip}-{name}", str(number) if chip else "") for number, name in enumerate(names)]


@pytest.mark.parametrize("seed", range(12))
def test_chips(seed: int) -> None:
    random = Random(seed)
    reference = MindCluster(random.choice([0, 1, 2]))
    told = chips_scene(random, reference)
    plugin = devices(AscendMindClusterVNPUEnable=True, ScheduleWeight=reference.weight)
    Play(random, Story(told, [plugin], reference, together=("gang", "predicates"))).run()
