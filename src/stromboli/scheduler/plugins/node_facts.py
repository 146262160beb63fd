"""What is read of Node objects for filters and scores, kept from cycle to cycle until some node looks different."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.plugins.selecting import NodeLabels
from stromboli.scheduler.plugins.tainting import NodeTaints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.scheduler.core.records import Node
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import View

_NAME = "node-facts"


class NodeFacts:
    """Labels, taints, cordons and images of all rows; worked out when first asked for."""

    def __init__(self, version: int, node_list: Sequence[Node | None]) -> None:
        self.version = version
        self._nodes = list(node_list)
        self.labels = NodeLabels(self._nodes)

    @cached_property
    def taints(self) -> NodeTaints:
        """Taints by class."""
        return NodeTaints(self._nodes)

    @cached_property
    def cordoned(self) -> Bools | None:
        """Per row whether ``spec.unschedulable`` is set; None when it is set nowhere."""
        marks = [
            node is not None and node.resource is not None and node.resource.spec.unschedulable for node in self._nodes
        ]
        return np.array(marks, dtype=bool) if any(marks) else None

    @cached_property
    def image_spread(self) -> dict[str, float]:
        """Image name to the part of all nodes that have it."""
        counts: dict[str, int] = {}
        nodes = [node for node in self._nodes if node is not None]
        for node in nodes:
            for image in node.images:
                counts[image] = counts.get(image, 0) + 1
        return {image: count / len(nodes) for image, count in counts.items()}


def of(view: View) -> NodeFacts:
    """The facts about the nodes of this cycle."""
    facts = view.memory.get(_NAME)
    if not isinstance(facts, NodeFacts) or facts.version != view.nodes.looks:
        facts = view.memory[_NAME] = NodeFacts(view.nodes.looks, view.node_list)
    return facts
