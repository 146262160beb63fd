"""The array code of predicates, nodeorder and binpack agrees with the slow reference on random clusters.

Asked right after opening, through the evaluations of actions while pods are placed one after the other, so that what is
kept and brought up to date is compared as well, and through whole stories of several sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import pod_group, queue
from tests.scheduler.plugins import reference
from tests.scheduler.plugins.clusters import Scene, scenes
from tests.scheduler.plugins.references.playing import Play, Story
from tests.scheduler.plugins.references.telling import Place, Told
from tests.scheduler.plugins.sessions import Session, allowed_rows, option, totals

NAMESPACE_LABELS = {"ns": {"t": "1"}, "other": {}}
WEIGHTS = {"cpu": 2, "memory": 1, "nvidia.com/gpu": 3}
BINPACK = option(
    "binpack",
    {
        "binpack.weight": 5,
        "binpack.cpu": 2,
        "binpack.memory": 1,
        "binpack.resources": "nvidia.com/gpu",
        "binpack.resources.nvidia.com/gpu": 3,
    },
)

many = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def session(scene: Scene, *plugins: str | PluginOption) -> Session:
    namespaces = [
        core.Namespace(metadata=core.ObjectMeta(name=name, labels=dict(labels)))
        for name, labels in NAMESPACE_LABELS.items()
    ]
    groups = [pod_group("g").build(), pod_group("h", "other").build()]
    chosen = [BINPACK if name == "binpack" else name for name in plugins]
    return Session(
        [queue().build()], namespaces, scene.nodes, groups, scene.placed, scene.pending, plugins=["gang", *chosen]
    )


def cluster(scene: Scene) -> reference.Cluster:
    found = reference.Cluster({node.name: node for node in scene.nodes}, {}, NAMESPACE_LABELS)
    for pod in scene.placed:
        found.placed.setdefault(pod.spec.node_name, []).append(pod)
    return found


def expected_refusals(pod: core.Pod, known: reference.Cluster) -> Mapping[str, list[str]]:
    answers = {name: reference.refusals(pod, node, known) for name, node in known.nodes.items()}
    return {name: texts for name, texts in answers.items() if texts}


@many
@given(scenes())
def test_filters_refuse_the_same_nodes_for_the_same_reasons(scene: Scene) -> None:
    opened, known = session(scene, "predicates"), cluster(scene)
    for pod in scene.pending:
        assert opened.refusals(pod.name) == expected_refusals(pod, known)


@many
@given(scenes())
def test_scores_are_those_of_the_reference(scene: Scene) -> None:
    known, nodes = cluster(scene), scene.nodes
    opened, packed = session(scene, "nodeorder"), session(scene, "binpack")
    for pod in scene.pending:
        want = dict(zip([node.name for node in nodes], reference.node_order(pod, nodes, known), strict=True))
        assert opened.scores(pod.name) == pytest.approx(want)
        packing = {node.name: reference.bin_pack(pod, node, known, WEIGHTS, 5) for node in nodes}
        assert packed.scores(pod.name) == pytest.approx(packing, abs=0.051)


@many
@given(scenes(), st.fixed_dictionaries(dict.fromkeys(reference.DEFAULT_WEIGHTS, st.integers(0, 3))))
def test_scores_are_weighted_as_the_arguments_say(scene: Scene, weights: dict[str, int]) -> None:
    known, names = cluster(scene), [node.name for node in scene.nodes]
    opened = session(scene, option("nodeorder", {f"{name}.weight": weight for name, weight in weights.items()}))
    for pod in scene.pending:
        want = dict(zip(names, reference.node_order(pod, scene.nodes, known, weights), strict=True))
        assert opened.scores(pod.name) == pytest.approx(want)


@many
@given(scenes())
def test_answers_follow_the_placements_of_the_cycle(scene: Scene) -> None:
    opened, known = session(scene, "predicates", "nodeorder", "binpack"), cluster(scene)
    for pod in scene.pending:
        check(opened, pod, known)
        statement = opened.cycle.statement()
        if place_anywhere(opened, statement, pod, known):
            for other in scene.pending:
                check(opened, other, known)


@many
@given(scenes())
def test_a_placement_that_is_undone_leaves_no_trace_in_the_answers(scene: Scene) -> None:
    opened, known = session(scene, "predicates", "nodeorder", "binpack"), cluster(scene)
    first = scene.pending[0]
    check(opened, first, known)
    statement = opened.cycle.statement()
    for pod in scene.pending:
        place_anywhere(opened, statement, pod, known)
    for pod in scene.placed:
        task = opened.task(pod.name)
        if not pod.deleting and task.node is not None:
            statement.evict(task, "test")
    check_answers_exist(opened, first)
    statement.discard()
    for pod in scene.pending:
        check(opened, pod, cluster(scene))


def place_anywhere(opened: Session, statement: Statement, pod: core.Pod, known: reference.Cluster) -> bool:
    """Puts a pod on the first node that has the resources, filters or not."""
    task = opened.task(pod.name)
    for node in known.nodes.values():
        try:
            statement.allocate(task, opened.node(node.name))
        except PlacementRefused:
            continue
        known.placed.setdefault(node.name, []).append(pod)
        return True
    return False


def check(opened: Session, pod: core.Pod, known: reference.Cluster) -> None:
    refused = expected_refusals(pod, known)
    allowed = [name for name in known.nodes if name not in refused]
    assert allowed_rows(opened, pod.name) == set(allowed)
    nodes = [known.nodes[name] for name in allowed]
    want = [
        order + reference.bin_pack(pod, node, known, WEIGHTS, 5)
        for order, node in zip(reference.node_order(pod, nodes, known), nodes, strict=True)
    ]
    assert totals(opened, pod.name, allowed) == pytest.approx(dict(zip(allowed, want, strict=True)))


def check_answers_exist(opened: Session, pod: core.Pod) -> None:
    names = [node.name for node in opened.view.node_list if node is not None]
    assert set(totals(opened, pod.name, names)) == set(names)
    assert allowed_rows(opened, pod.name) <= set(names)


# -- whole stories -----------------------------------------------------------------------------------------------------


class Classic:
    """predicates, nodeorder and binpack as one: filters see other pods on a node than those that hold its resources."""

    SEEN = (Place.RUNNING, Place.LEAVING, Place.BOUND, Place.PLACED, Place.PROMISED)
    HOLDING = (Place.RUNNING, Place.LEAVING, Place.BOUND, Place.PLACED, Place.EVICTED)

    @staticmethod
    def _cluster(told: Told, places: tuple[Place, ...]) -> reference.Cluster:
        placed = {name: told.on(name, *places) for name in told.nodes}
        services = [(one.namespace, one.spec.selector) for one in told.others if isinstance(one, core.Service)]
        return reference.Cluster(told.nodes, placed, NAMESPACE_LABELS, services)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Those of predicates."""
        return reference.refusals(pod, node, self._cluster(told, self.SEEN))

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """nodeorder and binpack together."""
        holding = self._cluster(told, self.HOLDING)
        order = reference.node_order(pod, nodes, self._cluster(told, self.SEEN))
        packed = [reference.bin_pack(pod, node, holding, WEIGHTS, 5) for node in nodes]
        return {node.name: one + other for node, one, other in zip(nodes, order, packed, strict=True)}


def service(namespace: str, **selector: str) -> core.Service:
    meta = core.ObjectMeta(name="-".join(selector.values()) or "nobody", namespace=namespace)
    return core.Service(metadata=meta, spec=core.ServiceSpec(selector=selector))


SERVICES = [service("ns", app="a"), service("other", app="a"), service("ns", app="b"), service("other")]


@settings(many, max_examples=40)
@given(scenes(), st.randoms(use_true_random=False))
def test_answers_follow_whole_stories(scene: Scene, random: Random) -> None:
    namespaces = [
        core.Namespace(metadata=core.ObjectMeta(name=name, labels=dict(labels)))
        for name, labels in NAMESPACE_LABELS.items()
    ]
    told = Told(
        nodes={node.name: node for node in scene.nodes},
        pods={pod.name: pod for pod in [*scene.placed, *scene.pending]},
        groups={"g": pod_group("g").build(), "h": pod_group("h", "other").build()},
        queues={"default": queue().build()},
        others=[*namespaces, *random.sample(SERVICES, random.randint(0, 3))],
    )

    def change(random: Random, told: Told) -> None:
        """A node gets the labels, taints and room of another."""
        one, other = (random.choice(list(told.nodes.values())) for _ in range(2))
        labels = {**other.metadata.labels, "kubernetes.io/hostname": one.name}
        meta = core.ObjectMeta(name=one.name, uid=one.metadata.uid, labels=labels)
        told.nodes[one.name] = core.Node(metadata=meta, spec=other.spec, status=other.status)

    Play(random, Story(told, ["predicates", "nodeorder", BINPACK], Classic(), change)).run()
