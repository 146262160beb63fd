"""JobFlows: their flows must form a graph without cycles (spec 07 section 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from stromboli.webhooks.context import Context
from stromboli.webhooks.errors import FieldError, Reason, sentence
from stromboli.webhooks.shapes import JobFlow, JsonObject, read


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The fault of the flows' dependencies. Of flows with the same name the last one counts."""
    flows = read(JobFlow, obj).spec.flows
    graph = {flow.name: flow.depends_on.targets if flow.depends_on else [] for flow in flows}
    undefined = sorted({target for targets in graph.values() for target in targets} - graph.keys())
    if undefined:
        text = f"jobflow Flow is not DAG: vertex is not defined: {undefined[0]}"
        return [sentence("spec.flows", text, Reason.NOT_FOUND)]
    return [sentence("spec.flows", "jobflow Flow is not DAG")] if _has_cycle(graph) else []


def _has_cycle(graph: Mapping[str, Sequence[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
