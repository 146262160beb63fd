"""Plays one random story to a session and to a reference, and compares their answers at every turn.

The story: a session opens; statements place, promise and evict, and are undone or decided on; the session closes; the
cluster changes; the next session opens over the same mirror. At every turn the questions are those of the actions
(which keep and forecast answers), and now and then those of the hooks themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import msgspec
import numpy as np
import pytest

from stromboli.api import core
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.results import CycleResult
from tests.scheduler.core.worlds import feed, world
from tests.scheduler.plugins.references.telling import Act, Place, Step, Told, request, requested
from tests.scheduler.plugins.sessions import Session, allowed_rows, totals


class Reference(Protocol):
    """What a plugin should answer."""

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Texts of the reasons for which a node is refused; an element may be ``unittest.mock.ANY``."""

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """The score of each candidate."""


EPSILON = 0.1
Change = Callable[[Random, Told], None]


@dataclass
class Story:
    """What is played."""

    told: Told
    plugins: Sequence[str | PluginOption]
    reference: Reference
    change: Change | None = None
    """What may happen between two sessions, by changing objects; the mirror is told of what has changed."""
    sessions: int = 2
    pipelines: bool = True
    evicts: tuple[Place, ...] = (Place.RUNNING, Place.BOUND)
    chooses: bool = True
    """Whether it is known which nodes have room: attached volumes take some that is in no pod's requests."""
    refused_too: bool = False
    """Whether pods are also put where the reference refuses them, as gang actions may."""
    together: tuple[str, ...] = ("gang",)
    unheeded: frozenset[str] = frozenset()
    """Resources of which nodes need not have as much as pods ask for: plugins see to them."""
    prepare: Callable[[Session], None] = field(default=lambda session: None)
    """Is called right after a session has opened."""
    also: Callable[[Session], None] = field(default=lambda session: None)
    """Compares what is no question about a pod."""


class Play:
    """One run of a story."""

    def __init__(self, random: Random, story: Story) -> None:
        self.random = random
        self.story = story
        self.told = story.told
        self.mirror: Mirror = world(story.told.objects())
        self.session = self._open()

    def run(self) -> None:
        """Everything, from the first opening to the last comparison."""
        for number in range(self.story.sessions):
            if number:
                self._between()
                self.session = self._open()
            self.compare(self.told.pending(), closely=True)
            for _ in range(self.random.randint(1, 3)):
                self._statement()
            result = self.session.cycle.close()
            assert result.problems == []
            self._note_close(result)

    def _open(self) -> Session:
        plugins = [*self.story.together, *self.story.plugins]
        session = Session(mirror=self.mirror, plugins=plugins, options=self.told.options)
        self.story.prepare(session)
        return session

    # Within a session

    def _statement(self) -> None:
        statement, told = self.session.cycle.statement(), len(self.told.steps)
        for _ in range(self.random.randint(1, 5)):
            self._act(statement)
            self.compare(self._some(self.told.pending(), 3))
        if self.random.random() < 0.5:
            statement.discard()
            del self.told.steps[told:]
        else:
            statement.commit()
        self.compare(self._some(self.told.pending(), 4), closely=True)

    def _act(self, statement: Statement) -> None:
        if self.random.random() < 0.3:
            victims = self.told.evictable(*self.story.evicts)
            if victims:
                victim = self.random.choice(victims)
                statement.evict(self.session.task(victim), "test")
                self.told.steps.append(Step(Act.EVICT, victim))
            return
        pending = [name for name in self.told.pending() if not self.told.pods[name].spec.scheduling_gates]
        if pending:
            self._put(statement, self.random.choice(pending))

    def _put(self, statement: Statement, name: str) -> None:
        pod = self.told.pods[name]
        nodes = [node for node in self.told.nodes.values() if self._takes(pod, node)]
        if not nodes:
            return
        node = self.random.choice(nodes).name
        task, fits = self.session.task(name), self._fits(pod, node)
        if not fits and not self.story.pipelines:
            return
        try:
            if fits and self.random.random() < 0.8 or not self.story.pipelines:
                statement.allocate(task, self.session.node(node))
                act = Act.PLACE
            else:
                statement.pipeline(task, self.session.node(node), eviction_occurred=False)
                act = Act.PROMISE
        except PlacementRefused:
            assert self.story.refused_too, f"{name} should fit on {node}"
            return
        self.told.steps.append(Step(act, name, node))

    def _fits(self, pod: core.Pod, node: str) -> bool:
        heeded = [name for name in requested(pod) if name not in self.story.unheeded]
        return all(request(pod, name) <= self.told.idle(node, name) for name in heeded)

    def _takes(self, pod: core.Pod, node: core.Node) -> bool:
        return self.story.refused_too or not self.story.reference.refusals(self.told, pod, node)

    def _some(self, names: Sequence[str], count: int) -> list[str]:
        return self.random.sample(list(names), min(count, len(names)))

    # Comparing

    def compare(self, names: Sequence[str], *, closely: bool = False) -> None:
        """All answers about some pods; closely: by the hooks themselves as well."""
        self.story.also(self.session)
        for name in names:
            pod = self.told.pods[name]
            want = self._refusals(pod)
            if closely:
                _same(f"refusals of {name}", self.session.refusals(name), want)
            allowed = [node for node in self.told.nodes if node not in want]
            _same(f"nodes that take {name}", sorted(allowed_rows(self.session, name)), sorted(allowed))
            self._compare_scores(pod, allowed)
            if len(allowed) > 2:
                self._compare_scores(pod, sorted(self._some(allowed, 2)))
            if self.story.chooses:
                self._compare_choice(pod, allowed)

    def _refusals(self, pod: core.Pod) -> dict[str, list[str]]:
        answers = {name: self.story.reference.refusals(self.told, pod, node) for name, node in self.told.nodes.items()}
        return {name: texts for name, texts in answers.items() if texts}

    def _compare_scores(self, pod: core.Pod, names: Sequence[str]) -> None:
        if names:
            want = self.story.reference.scores(self.told, pod, [self.told.nodes[name] for name in names])
            got = totals(self.session, pod.name, names)
            wanted = {name: want.get(name, 0.0) for name in names}
            assert got == pytest.approx(wanted, abs=1e-6), f"scores of {pod.name}: {got}, want {wanted}"

    def _compare_choice(self, pod: core.Pod, allowed: Sequence[str]) -> None:
        """The node that an action would take: one of the best that have the room, else of those that will have it."""
        names = {"cpu", "memory", *requested(pod)} - self.story.unheeded

        def has(room: Callable[[str, str], float], node: str) -> bool:
            return all(request(pod, name) < room(node, name) + EPSILON for name in names)

        later = [node for node in allowed if has(self.told.future, node)]
        now = [node for node in later if has(self.told.idle, node)]
        candidates = now or later
        choice = self.session.cycle.searches.of(self.session.task(pod.name)).choose(None, None)
        if not candidates:
            assert choice is None, pod.name
            return
        scores = self.story.reference.scores(self.told, pod, [self.told.nodes[name] for name in candidates])
        most = max(scores.get(name, 0.0) for name in candidates)
        best = [name for name in candidates if scores.get(name, 0.0) >= most - 1e-6]
        assert choice is not None, pod.name
        (chosen,) = self.session.view.row_nodes(np.array([choice.row]))
        assert (chosen.name in best, choice.waits) == (True, not now), f"{pod.name} on {chosen.name}, want {best}"

    # Between sessions

    def _note_close(self, result: CycleResult) -> None:
        self.told.steps.append(Step(Act.CLOSE))
        for bind in result.binds:
            if self.random.random() < 0.5:  # the others are still on their way
                self._confirm(bind.task.name, bind.node, bind.annotations)

    def _confirm(self, name: str, node: str, annotations: Mapping[str, str]) -> None:
        """The watch tells of a bound pod as it was written. What the reference knows of it stays the story's."""
        pod = self.told.pods[name]
        written = msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, annotations=dict(annotations)),
            spec=msgspec.structs.replace(pod.spec, node_name=node),
            status=msgspec.structs.replace(pod.status, phase="Running"),
        )
        feed(self.mirror, written)

    def _between(self) -> None:
        for name, (_, place) in self.told.where().items():
            going = self.random.random() < (0.7 if place.value == "leaving" else 0.1)
            if going and name in self.told.pods:
                self.told.gone[name] = self.told.pods.pop(name)
                self.told.steps.append(Step(Act.GO, name))
                self.mirror.delete_pod(f"{self.told.gone[name].namespace}/{name}")
        if self.story.change is not None:
            before = {id(one): one for one in self.told.objects()}
            self.story.change(self.random, self.told)
            for one in self.told.objects():
                if id(one) not in before:
                    feed(self.mirror, one)


def _same(what: str, got: object, want: object) -> None:
    assert got == want, f"{what}: {got}, want {want}"


class Together:
    """Several references as one: a node refused by one is not shown to the next, scores are added."""

    def __init__(self, *references: Reference) -> None:
        self._references = references

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """What the first that refuses says."""
        answers = (one.refusals(told, pod, node) for one in self._references)
        return next((texts for texts in answers if texts), [])

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """The sums."""
        each = [one.scores(told, pod, nodes) for one in self._references]
        return {node.name: sum(scores.get(node.name, 0.0) for scores in each) for node in nodes}
