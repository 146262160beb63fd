"""Properties of cases under which this system answers differently on purpose, read off what upstream did in them.

Such a case is told by its own record, not by its name: other vectors in which upstream does the same are judged alike.
``not_applicable.yaml`` gives the reason for each property, under ``"property: NAME"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.conformance.vectors import JsonObject

_GANG_ACTIONS = frozenset({"gangpreempt", "gangreclaim"})


def placed_again(case: JsonObject) -> bool:
    """A task that a gang action has pipelined is placed once more in the same session, or found no node for."""
    promised: dict[str, str] = {}
    for step in (case.get("observed") or {}).get("afterActions") or ():
        states = {task: state for job in (step.get("tasks") or {}).values() for task, state in job.items()}
        failed = {task for job in (step.get("fitErrors") or {}).values() for task in job.get("tasks") or ()}
        if any(states.get(task) != state or task in failed for task, state in promised.items()):
            return True
        if step["action"] in _GANG_ACTIONS:
            promised |= {task: state for task, state in states.items() if state.startswith("Pipelined")}
    return False


def ambiguous_record(case: JsonObject) -> bool:
    """A job is recorded in a HyperNode whose name two objects of the case have; no API server would let that happen."""
    objects = (case.get("input", {}).get("hyperNodes") or {}).get("objects") or ()
    counts = Counter(resource["metadata"]["name"] for resource in objects)
    steps = (case.get("observed") or {}).get("afterActions") or ()
    records = [record for step in steps for record in (step.get("hyperNodes") or {}).values()]
    return any(counts[record.get("allocated") or ""] > 1 for record in records)


PROPERTIES: Mapping[str, Callable[[JsonObject], bool]] = MappingProxyType(
    {"placed again": placed_again, "ambiguous record": ambiguous_record}
)
