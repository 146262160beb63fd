"""Pods that ask for devices, nodes that have some, and clusters of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.results import Bind
from stromboli.testing.builders import NodeBuilder, PodBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import policy, world
from tests.scheduler.plugins.sessions import Session, option

Amounts = Mapping[str, str | int]
HAMI_CORE, MIG = "hami-core", "mig"


def asking(pod_: PodBuilder, *limits: Amounts, init: Sequence[Amounts] = ()) -> core.Pod:
    """The pod with a container for each set of limits, and requests equal to them."""
    return _with_containers(pod_.build(), [_container(f"c{n}", each) for n, each in enumerate(limits)], init)


def _with_containers(built: core.Pod, containers: list[core.Container], init: Sequence[Amounts]) -> core.Pod:
    spec = msgspec.structs.replace(
        built.spec,
        containers=tuple(containers),
        init_containers=tuple(_container(f"i{n}", each) for n, each in enumerate(init)),
    )
    return msgspec.structs.replace(built, spec=spec)


def _container(name: str, limits: Amounts) -> core.Container:
    amounts: core.ResourceList = dict(limits)
    return core.Container(name=name, resources=core.ResourceRequirements(requests=amounts, limits=amounts))


def member(name: str, **annotations: str) -> PodBuilder:
    """A pod of the job ``j``."""
    return pod(name).group("j").annotate(**annotations)


def cluster(*more: core.Object, members: int = 1) -> Mirror:
    """A queue, a job and whatever else is given."""
    return world(queue().build(), pod_group("j").members(members).build(), *more)


def roomy(name: str, **amounts: str | int) -> NodeBuilder:
    """A node with room for everything but devices."""
    return node(name).offer(cpu=64, memory="256Gi", **amounts)


def with_capacity(builder: NodeBuilder, **capacity: str | int) -> core.Node:
    """The node with a capacity of its own."""
    built = builder.build()
    listed: core.ResourceList = {**built.status.allocatable, **capacity}
    return msgspec.structs.replace(built, status=msgspec.structs.replace(built.status, capacity=listed))


def devices(**arguments: object) -> PluginOption:
    """The plugin's entry; arguments without their prefix."""
    return option("deviceshare", {f"deviceshare.{key}": value for key, value in arguments.items()})


def devices_policy(**arguments: object) -> Policy:
    """A policy that places gangs on devices."""
    return policy("gang", "predicates", devices(**arguments))


def opened(mirror: Mirror, **arguments: object) -> Session:
    """A session with nothing but the plugin."""
    return Session(mirror=mirror, plugins=[devices(**arguments)])


def written(bind: Bind, key: str) -> str:
    """An annotation that goes along with a bind."""
    assert bind.extension is not None
    return bind.extension.annotations[key]


def task_of(pod_: core.Pod) -> Task:
    """The task of a pod, as the mirror makes it."""
    mirror = Mirror()
    mirror.apply_pod(pod_)
    assert not mirror.problems
    return mirror.tasks[f"{pod_.namespace}/{pod_.name}"]


VGPU = {names.VGPU_NUMBER: 40, names.VGPU_CORES: 400, names.VGPU_MEMORY: 65536}


def card(
    uuid: str,
    *,
    limit: int = 10,
    memory: int = 16384,
    type: str = "NVIDIA-A",
    health: str = "true",
    mode: str = "hami-core",
) -> str:
    """An entry of a node's register."""
    return f"{uuid},{limit},{memory},{type},{health},{mode}"


def gpu_node(name: str, *cards: str, number: int = 40, **more: int) -> core.Node:
    """A node that has registered these cards, and offers so many shares and some more of other resources."""
    return (
        roomy(name, **{**VGPU, names.VGPU_NUMBER: number, **more})
        .annotate(**{names.NODE_VGPU_REGISTER: "".join(f"{each}:" for each in cards)})
        .build()
    )


def slice_of(number: int = 1, memory: int | None = None, cores: int | None = None) -> dict[str, int]:
    """Limits of a container that asks for parts of cards."""
    limits = {names.VGPU_NUMBER: number, names.VGPU_MEMORY: memory, names.VGPU_CORES: cores}
    return {key: amount for key, amount in limits.items() if amount is not None}
