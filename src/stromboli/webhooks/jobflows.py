"""JobFlows: their flows must form a graph without cycles (spec 07 section 17)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from stromboli.webhooks.context import Context
from stromboli.webhooks.errors import FieldError, Reason, first_said, sentence, some
from stromboli.webhooks.shapes import Flow, JobFlow, JsonObject, read


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The faults of the flows' dependencies. Of flows with the same name the last one counts."""
    flows = read(JobFlow, obj).spec.flows
    positions = {flow.name: index for index, flow in enumerate(flows)}
    undefined = sorted(_undefined(flows, positions))
    if undefined:
        return some(first_said(_undefined_fault(*found) for found in undefined))
    cycle = _cycle(flows, positions)
    return some(first_said(_cycle_fault(positions[name]) for name in cycle))


def _undefined(flows: Sequence[Flow], positions: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Targets that are no flows, and where they stand."""
    for index in positions.values():
        for number, target in enumerate(_targets(flows[index])):
            if target not in positions:
                yield target, index, number


def _undefined_fault(target: str, index: int, number: int) -> FieldError:
    text = f"jobflow Flow is not DAG: vertex is not defined: {target}"
    return sentence(f"spec.flows[{index}].dependsOn.targets[{number}]", text, Reason.NOT_FOUND)


def _cycle_fault(index: int) -> FieldError:
    return sentence(f"spec.flows[{index}].dependsOn.targets", "jobflow Flow is not DAG")


def _cycle(flows: Sequence[Flow], positions: dict[str, int]) -> Sequence[str]:
    """Flows that wait for one another in a circle, each once; none for a graph without cycles."""
    try:
        TopologicalSorter({name: _targets(flows[index]) for name, index in positions.items()}).prepare()
    except CycleError as error:
        return list(dict.fromkeys(error.args[1]))
    return []


def _targets(flow: Flow) -> Sequence[str]:
    return flow.depends_on.targets if flow.depends_on else []
