"""Random small clusters in which constraints meet: hypothesis strategies for nodes and pods."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.testing import builders

ZONES, RACKS, APPS = ("z1", "z2"), ("r1", "r2"), ("a", "b")
KEYS = ("kubernetes.io/hostname", "zone", "rack")
NAMESPACES = ("ns", "other")
IMAGES = (("app:1", 300), ("base", 900), ("base:latest", 40))
MIB = 1024 * 1024


@dataclass(frozen=True)
class Scene:
    """Nodes, pods on them, and pods to be placed."""

    nodes: list[core.Node]
    placed: list[core.Pod]
    pending: list[core.Pod]


def optional(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


@st.composite
def nodes(draw: st.DrawFn, name: str) -> core.Node:
    builder = builders.node(name).offer(
        cpu=draw(st.sampled_from([0, 2, 4, 9])),
        memory=draw(st.sampled_from(["0", "3Gi", "8Gi"])),
        pods=draw(st.sampled_from([1, 2, 110])),
    )
    if draw(st.booleans()):
        builder = builder.offer(gpu=draw(st.sampled_from([0, 2])))
    labels = {"kubernetes.io/hostname": name, "zone": draw(optional(st.sampled_from(ZONES)))}
    labels |= {
        "rack": draw(optional(st.sampled_from(RACKS))),
        "size": draw(optional(st.sampled_from(["1", "5", "7", "x"]))),
    }
    labels["topology.kubernetes.io/zone"] = labels["zone"]
    builder = builder.label(**{key: value for key, value in labels.items() if value is not None})
    for key, effect in draw(st.lists(st.tuples(st.sampled_from("kl"), st.sampled_from(EFFECTS)), max_size=2)):
        builder = builder.taint(key, draw(st.sampled_from(["", "v"])), effect)
    if draw(st.integers(0, 6)) == 0:
        builder = builder.cordon()
    node = builder.build()
    held = draw(st.lists(st.sampled_from(IMAGES), unique=True, max_size=2))
    images = tuple(core.ContainerImage(names=(image,), size_bytes=size * MIB) for image, size in held)
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=images))


EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")

requirements = st.builds(
    core.Requirement,
    key=st.sampled_from(["zone", "rack", "size"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    values=st.lists(st.sampled_from(["z1", "r1", "5"]), min_size=1, max_size=2).map(tuple),
)
names = st.builds(
    core.Requirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.sampled_from(["n0", "n1"]).map(lambda name: (name,)),
)
node_terms = st.builds(
    core.NodeSelectorTerm,
    match_expressions=st.lists(requirements, max_size=2).map(tuple),
    match_fields=st.lists(names, max_size=1).map(tuple),
)
node_affinities = st.builds(
    core.NodeAffinity,
    required_during_scheduling_ignored_during_execution=st.none()
    | st.builds(core.NodeSelector, node_selector_terms=st.lists(node_terms, max_size=2).map(tuple)),
    preferred_during_scheduling_ignored_during_execution=st.lists(
        st.builds(core.PreferredSchedulingTerm, weight=st.integers(0, 50), preference=node_terms), max_size=2
    ).map(tuple),
)
label_selectors = st.one_of(
    st.sampled_from(APPS).map(lambda app: core.LabelSelector(match_labels={"app": app})),
    st.just(core.LabelSelector(match_expressions=(core.Requirement(key="app", operator="Exists"),))),
    st.just(core.LabelSelector()),
)
pod_terms = st.builds(
    core.PodAffinityTerm,
    label_selector=label_selectors,
    topology_key=st.sampled_from(KEYS),
    namespaces=st.sampled_from([(), ("other",)]),
    namespace_selector=st.sampled_from([None, None, core.LabelSelector(), core.LabelSelector(match_labels={"t": "1"})]),
)
pod_affinities = st.builds(
    core.PodAffinity,
    required_during_scheduling_ignored_during_execution=st.lists(pod_terms, max_size=1).map(tuple),
    preferred_during_scheduling_ignored_during_execution=st.lists(
        st.builds(core.WeightedPodAffinityTerm, weight=st.integers(1, 100), pod_affinity_term=pod_terms), max_size=1
    ).map(tuple),
)
affinities = st.builds(
    core.Affinity,
    node_affinity=st.none() | node_affinities,
    pod_affinity=st.none() | pod_affinities,
    pod_anti_affinity=st.none() | pod_affinities,
)
spreads = st.builds(
    core.TopologySpreadConstraint,
    max_skew=st.integers(1, 2),
    topology_key=st.sampled_from(KEYS),
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    label_selector=label_selectors,
    min_domains=st.sampled_from([None, 2]),
    node_affinity_policy=st.sampled_from([None, "Ignore"]),
    node_taints_policy=st.sampled_from([None, "Honor"]),
    match_label_keys=st.sampled_from([(), ("app",)]),
)
tolerations = st.builds(
    core.Toleration,
    key=st.sampled_from(["", "k", "l", "node.kubernetes.io/unschedulable"]),
    operator=st.sampled_from(["", "Equal", "Exists"]),
    value=st.sampled_from(["", "v"]),
    effect=st.sampled_from(["", *EFFECTS]),
)


@st.composite
def pods(draw: st.DrawFn, name: str, node: str | None) -> core.Pod:
    builder = builders.pod(name, draw(st.sampled_from(NAMESPACES))).label(app=draw(st.sampled_from(APPS)))
    asked: dict[str, list[builders.Amount]] = {"cpu": [0.5, 1, 2], "memory": ["512Mi", "1Gi"], "gpu": [1]}
    for resource, amounts in asked.items():
        if draw(st.integers(0, 3)):
            builder = builder.request(**{resource: draw(st.sampled_from(amounts))})
    if draw(st.integers(0, 3)) == 0:
        builder = builder.host_port(draw(st.sampled_from([80, 81])))
    if draw(st.integers(0, 4)) == 0:
        builder = builder.select(zone=draw(st.sampled_from(ZONES)))
    if draw(st.booleans()):
        builder = builder.affine(draw(affinities))
    builder = builder.tolerate(*draw(st.lists(tolerations, max_size=2)))
    if node is not None:
        builder = builder.on(node)
        if draw(st.integers(0, 5)) == 0:
            builder = builder.deleting()
    else:
        builder = builder.group("g" if builder.namespace == "ns" else "h")
    pod = builder.build()
    spec = msgspec.structs.replace(
        pod.spec,
        topology_spread_constraints=tuple(draw(st.lists(spreads, max_size=2))),
        containers=tuple(
            msgspec.structs.replace(
                one,
                image=draw(st.sampled_from(["app:1", "base", "none"])),
                ports=tuple(
                    msgspec.structs.replace(port, protocol=draw(st.sampled_from(["TCP", "UDP"]))) for port in one.ports
                ),
            )
            for one in pod.spec.containers
        ),
    )
    return msgspec.structs.replace(pod, spec=spec)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Up to four nodes with up to four pods, and up to three pods that want a node."""
    some = [draw(nodes(f"n{at}")) for at in range(draw(st.integers(1, 4)))]
    on = draw(st.lists(st.sampled_from([node.name for node in some]), max_size=4))
    placed = [draw(pods(f"old{at}", node)) for at, node in enumerate(on)]
    pending = [draw(pods(f"new{at}", None)) for at in range(draw(st.integers(1, 3)))]
    return Scene(some, placed, pending)
