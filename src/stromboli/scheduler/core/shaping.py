"""Shapes: pods that nodes cannot tell apart share one (interned by content).

Labels enter a shape only under keys that somebody's affinity or spreading selects on, annotations only under keys that
a plugin asked for; otherwise every pod with an index label would be a shape of its own. When such a key is new, shapes
are made anew: ``epoch`` moves and tasks get their shape again before a cycle next looks at them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from stromboli.api import core
from stromboli.api.requests import DEFAULT_RULES, RequestRules
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import EPSILON, Columns, widened
from stromboli.scheduler.core.records import Attached, Shape

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class Shapes:
    """All shapes of a mirror."""

    def __init__(self, columns: Columns, rules: RequestRules = DEFAULT_RULES) -> None:
        self._columns = columns
        self._rules = rules
        self._by_content: dict[bytes, Shape] = {}
        self._affine: dict[int, Shape] = {}
        self._label_keys: set[str] = set()
        self._annotation_keys: frozenset[str] = frozenset()
        self._next_index = 0
        self.epoch = 0

    def of(
        self, pod: core.Pod, labels: Mapping[str, str], annotations: Mapping[str, str], attached: Attached = ()
    ) -> Shape:
        """The shape of a pod that attaches these volumes. Raises ``BadQuantity`` when a request cannot be read."""
        self._notice_selectors(pod.spec)
        content = _Content(
            pod, self._chosen(labels, self._label_keys), self._chosen(annotations, self._annotation_keys), attached
        )
        shape = self._by_content.get(content.key)
        if shape is None:
            shape = self._make(content)
            self._by_content[content.key] = shape
            affinity = pod.spec.affinity
            if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
                self._affine[shape.index] = shape
        return shape

    def again(self, shape: Shape, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Shape:
        """The shape of the present epoch for a task that has one of an earlier epoch."""
        return self.of(shape.pod, labels, annotations, shape.attached)

    def read_annotations(self, keys: frozenset[str]) -> None:
        """Annotations under these keys become part of shapes."""
        if not keys <= self._annotation_keys:
            self._annotation_keys |= keys
            self.epoch += 1

    def widen(self) -> None:
        """Pads all shapes after new resource columns."""
        for shape in self._by_content.values():
            shape.request = widened(shape.request, self._columns.width)
            shape.delta.clear()

    def ignore(self, rules: RequestRules, columns: Sequence[int]) -> None:
        """Requests are computed by these rules from now on; what known shapes have in these columns is dropped."""
        self._rules = rules
        dropped = list(columns)
        for shape in self._by_content.values():
            shape.request[dropped] = 0.0
            shape.requested = tuple(column for column in shape.requested if column not in dropped)
            shape.compared = tuple(column for column in shape.compared if column not in dropped)
            _write_for_rows(shape)
            shape.delta.clear()

    def prune(self, used: Iterable[Shape]) -> None:
        """Forgets shapes that no task has."""
        kept = {shape.index for shape in used}
        self._by_content = {key: shape for key, shape in self._by_content.items() if shape.index in kept}
        for index in [index for index in self._affine if index not in kept]:
            del self._affine[index]

    def affine(self) -> Collection[Shape]:
        """Shapes whose pods have inter-pod affinity or anti-affinity, now and whenever one looks again."""
        return self._affine.values()

    def select_on(self, keys: Iterable[str]) -> None:
        """Labels under these keys become part of shapes."""
        new = set(keys)
        if not new <= self._label_keys:
            self._label_keys |= new
            self.epoch += 1

    def __len__(self) -> int:
        return len(self._by_content)

    def _notice_selectors(self, spec: core.PodSpec) -> None:
        if spec.affinity is None and not spec.topology_spread_constraints:
            return
        self.select_on(_selected_keys(spec))

    def _chosen(self, pairs: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
        return {key: pairs[key] for key in keys if key in pairs} if pairs else {}

    def _make(self, content: _Content) -> Shape:
        request = {**amounts.bounded(amounts.request_of(content.pod, self._rules)), **dict(content.attached)}
        vector = self._columns.vector(request)
        cpu, memory = amounts.nonzero_request(content.pod)
        shape = Shape(self._next_index, content.pod, vector, (min(cpu, amounts.LARGEST), min(memory, amounts.LARGEST)))
        self._next_index += 1
        shape.labels, shape.annotations, shape.attached = content.labels, content.annotations, content.attached
        shape.requested = self._columns.requested(vector)
        shape.compared = tuple(sorted(self._columns.intern(name) for name in request))
        _write_for_rows(shape)
        shape.best_effort = all(amount < EPSILON for name, amount in request.items() if name != "pods")
        return shape


def _write_for_rows(shape: Shape) -> None:
    shape.row_request = tuple((column, float(shape.request[column])) for column in shape.requested)
    shape.row_compared = tuple((column, float(shape.request[column])) for column in shape.compared)


class _Content:
    """What makes two pods the same to every node."""

    def __init__(self, pod: core.Pod, labels: dict[str, str], annotations: dict[str, str], attached: Attached) -> None:
        self.pod, self.labels, self.annotations, self.attached = pod, labels, annotations, attached

    @cached_property
    def key(self) -> bytes:
        pod, spec = self.pod, self.pod.spec
        resized = [
            (status.name, status.resources, status.allocated_resources)
            for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
            if status.resources is not None or status.allocated_resources
        ]
        claims = [volume for volume in spec.volumes if volume != core.Volume(name=volume.name)]
        ephemeral = pod.name if any(volume.ephemeral for volume in claims) else ""
        return _ENCODER.encode(
            (
                pod.namespace,
                ephemeral,
                spec.containers,
                spec.init_containers,
                spec.resources,
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                claims,
                spec.resource_claims,
                spec.host_network,
                resized,
                pod.status.resize,
                pod.status.resource_claim_statuses,
                self.labels,
                self.annotations,
                self.attached,
            )
        )


def _selected_keys(spec: core.PodSpec) -> Iterator[str]:
    affinity = spec.affinity
    if affinity is not None:
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if side is not None:
                for term in side.required_during_scheduling_ignored_during_execution:
                    yield from _keys(term.label_selector)
                for weighted in side.preferred_during_scheduling_ignored_during_execution:
                    yield from _keys(weighted.pod_affinity_term.label_selector)
    for constraint in spec.topology_spread_constraints:
        yield from _keys(constraint.label_selector)
        yield from constraint.match_label_keys


def _keys(selector: core.LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (requirement.key for requirement in selector.match_expressions)
