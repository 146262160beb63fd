"""Which changes of a job are accepted (spec 07 section 10).

Equality is the original's: quantities by amount, an empty list or map like a missing one, Go's zero values like missing
ones. Where a member is a pointer in Go (an explicit zero differs from nothing) it is kept as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stromboli.api import quantities
from stromboli.api.batch import MOST_REPLICAS
from stromboli.webhooks import topologies
from stromboli.webhooks.errors import FieldError, Reason, first_said, sentence, some
from stromboli.webhooks.shapes import Job, JsonObject, Task, read

FREE_OF_SPEC: Final = frozenset(("minAvailable", "priorityClassName"))
DEFAULT_MAX_RETRY: Final = 3
"""Retries of a task or job that says nothing, or 0 (spec 02)."""
FREE_OF_TASK: Final = frozenset(("replicas", "minAvailable"))

_FIXED_TEXT: Final = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` "
    "and `PriorityClassName`"
)
_QUANTITY_MAPS: Final = frozenset(("limits", "requests", "overhead"))
_QUANTITIES: Final = frozenset(("sizeLimit", "divisor"))
_MAPS: Final = frozenset(
    ("labels", "annotations", "nodeSelector", "matchLabels", "matchAttributes", "options", "plugins",
     "volumeAttributes", "limits", "requests", "overhead")
)  # fmt: skip
"""Members that are maps: empty is missing."""
_VALUES: Final = frozenset(("resources", "metadata", "template", "spec", "status"))
"""Members that Go holds by value: an empty object is missing."""
_POINTERS: Final = frozenset(("storageClassName", "volumeAttributesClassName", "runtimeClassName", "volumeMode"))
"""Texts that Go holds by pointer: empty is not missing."""
_PLAIN_FLAGS: Final = frozenset(
    ("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly", "maxRetry", "minReadySeconds",
     "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "hostPort")
)  # fmt: skip
"""Numbers and switches that Go holds by value: zero and false are missing."""


def update_faults(obj: JsonObject, old: JsonObject, job: Job) -> list[FieldError]:
    """What is wrong with the change; the message says only the first."""
    return some(first_said(_faults(obj, old, job)))


def replica_faults(job: Job, before: Job | None = None) -> list[FieldError]:
    """Whether all tasks together have more replicas than the controller takes; the field is the task that is too much.

    A job that had as many ``before`` may still be changed, for instance to fewer.
    """
    allowed = max(MOST_REPLICAS, _replicas(before) if before else 0)
    total = 0
    for index, task in enumerate(job.spec.tasks):
        total += max(task.replicas, 0)
        if total > allowed:
            text = f"too many replicas: {_replicas(job)} in all tasks, must be at most {MOST_REPLICAS}"
            return [sentence(f"spec.tasks[{index}].replicas", text)]
    return []


def _replicas(job: Job) -> int:
    return sum(max(task.replicas, 0) for task in job.spec.tasks)


def _faults(obj: JsonObject, old: JsonObject, job: Job) -> Iterator[FieldError]:
    for index, task in enumerate(job.spec.tasks):
        yield from _task_faults(task, f"spec.tasks[{index}]", job)
    if job.spec.min_available > sum(task.replicas for task in job.spec.tasks):
        yield sentence("spec.minAvailable", "job 'minAvailable' must not be greater than total replicas")
    if job.spec.min_available < 0:
        yield sentence("spec.minAvailable", "job 'minAvailable' must be >= 0")
    yield from topologies.tier_faults(job.spec.network_topology, "spec.networkTopology")
    before = read(Job, old, "oldObject")
    yield from replica_faults(job, before)
    if len(before.spec.tasks) != len(job.spec.tasks):
        yield sentence("spec.tasks", "job updates may not add or remove tasks", Reason.FORBIDDEN)
    for name in changed_members(obj.get("spec", {}), old.get("spec", {})):
        yield sentence(f"spec.{name}", _FIXED_TEXT, Reason.FORBIDDEN)


def _task_faults(task: Task, field: str, job: Job) -> Iterator[FieldError]:
    least = task.min_available
    if task.replicas < 0:
        yield sentence(f"{field}.replicas", f"'replicas' must be >= 0 in task: {task.name}")
    if least is not None and least < 0:
        yield sentence(f"{field}.minAvailable", f"'minAvailable' must be >= 0 in task: {task.name}")
    if least is not None and least > task.replicas:
        yield sentence(f"{field}.minAvailable", f"'minAvailable' must be <= 'replicas' in task: {task.name}")
    yield from _joined(list(topologies.partition_faults(task, field, job.metadata.name)))


def _joined(faults: list[FieldError]) -> Iterator[FieldError]:
    """A partition policy's faults are one check: its texts stand together."""
    if faults:
        yield sentence(faults[0].field, "".join(fault.text for fault in faults), faults[0].reason)


def changed_members(spec: JsonObject, before: JsonObject) -> list[str]:
    """Members of the two specs that differ although they may not, in name order."""
    new, old = _fixed(spec), _fixed(before)
    return sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))


def _fixed(spec: JsonObject) -> JsonObject:
    """The part of a spec that no update may change, in comparable form."""
    kept = {name: value for name, value in spec.items() if name not in FREE_OF_SPEC}
    kept["tasks"] = [_fixed_of_task(task) for task in spec.get("tasks", ())]
    kept["volumes"] = [
        # The job controller fills in the name of a claim it has made itself.
        _without(volume, frozenset(("volumeClaimName",))) if "volumeClaim" in volume else volume
        for volume in spec.get("volumes", ())
    ]
    comparable: JsonObject = _comparable(kept)
    return comparable


def _fixed_of_task(task: JsonObject) -> JsonObject:
    """The part of a task that no update may change.

    ``kubectl apply`` replaces the list of tasks by the manifest's, so applying a manifest twice takes out of the tasks
    what admission filled in. Where that means the same (no retries given is three retries) it is no change; the
    original refuses it. What would change running jobs stays refused: a lost task name, a lost DNS policy.
    """
    fixed = _without(task, FREE_OF_TASK)
    return {**fixed, "maxRetry": fixed.get("maxRetry") or DEFAULT_MAX_RETRY}


def _without(obj: JsonObject, names: frozenset[str]) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in names}


def _comparable(value: Any, within: str = "") -> Any:
    """``value`` without members that mean nothing, quantities as exact amounts. ``within`` names the member it is."""
    if isinstance(value, dict):
        members = {name: _comparable(item, within if within in _MAPS else name) for name, item in value.items()}
        if within in _QUANTITY_MAPS:
            return {name: _amount(item) for name, item in value.items()}
        if within in _MAPS:
            return members
        return {name: item for name, item in members.items() if not _is_missing(name, item)}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return _amount(value) if within in _QUANTITIES else value


def _is_missing(name: str, value: Any) -> bool:
    match value:
        case list():
            return not value
        case dict():
            return not value and (name in _MAPS or name in _VALUES)
        case str():
            return not value and name not in _POINTERS
        case bool() | int():
            return not value and name in _PLAIN_FLAGS
        case _:
            return value is None


def _amount(value: Any) -> Any:
    return quantities.parse(value) if quantities.is_quantity(value) else value
