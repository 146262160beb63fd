"""extender (spec 06 section 28): filter and score, against a service whose opinion is a function of what it is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stromboli.api import core
from stromboli.scheduler.core import calling
from tests.scheduler.plugins.references.telling import Told


def opinion(pod: str, node: str, free: float) -> int:
    """What the service thinks of a node, 0 to 9; ``free`` are idle milli-cpus."""
    return (sum(map(ord, pod + node)) + int(free) // 1000) % 10


@dataclass
class Service:
    """Answers in process. Calls about some pods fail."""

    broken: frozenset[str] = frozenset()

    def __call__(self, url: str, body: bytes, timeout: float) -> bytes:
        """One call."""
        asked: dict[str, Any] = json.loads(body)
        pod = asked["task"]["name"]
        if pod in self.broken:
            raise calling.CallFailed(f"no answer about {pod}")
        if url.endswith("/predicate"):
            return json.dumps(self._predicate(pod, asked["node"])).encode()
        nodes = asked["nodes"]
        scores = {node["name"]: opinion(pod, node["name"], _idle(node)) for node in nodes}
        return json.dumps({"nodeScore": scores}).encode()

    @staticmethod
    def _predicate(pod: str, node: Mapping[str, Any]) -> dict[str, object]:
        thought = opinion(pod, node["name"], _idle(node))
        return {"status": f"opinion {thought}" if thought < 3 else "", "code": thought}


def _idle(node: Mapping[str, Any]) -> float:
    return float(node["idle"].get("cpu", 0.0))


@dataclass
class Extender:
    """The plugin's arguments."""

    service: Service
    predicate: bool = True
    prioritize: bool = True
    ignorable: bool = False
    managed: Sequence[str] = field(default_factory=list)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """A message refuses; so does a call that fails, unless it may be ignored."""
        if not self.predicate or not self._interested(pod):
            return []
        if pod.name in self.service.broken:
            return [] if self.ignorable else [f"no answer about {pod.name}"]
        thought = opinion(pod.name, node.name, told.idle(node.name, "cpu"))
        return [f"opinion {thought}"] if thought < 3 else []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """Unweighted."""
        if not self.prioritize or not self._interested(pod) or pod.name in self.service.broken:
            return {}
        return {node.name: float(opinion(pod.name, node.name, told.idle(node.name, "cpu"))) for node in nodes}

    def _interested(self, pod: core.Pod) -> bool:
        listed = [one.resources for one in (*pod.spec.init_containers, *pod.spec.containers)]
        names = {name for one in listed for name in (*one.requests, *one.limits)}
        return not self.managed or any(name in names for name in self.managed)
