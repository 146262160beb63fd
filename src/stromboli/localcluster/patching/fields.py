"""Field management: who set which field (``metadata.managedFields``), and server-side apply on top of it. Pure.

Writes without a manager (the server's own controllers) leave ``managedFields`` as they are, and objects that nobody's
manager has touched are not tracked before their first apply; both as on the real server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stromboli.localcluster import clock, statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.patching import fieldsets
from stromboli.localcluster.patching.fieldsets import FieldSet
from stromboli.localcluster.statuses import Cause, StatusError
from stromboli.localcluster.storage import Object

BEFORE_FIRST_APPLY = "before-first-apply"

_UNTRACKED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        f"f:{name}": {}
        for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                     "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entry:
    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet

    @classmethod
    def parse(cls, wire: dict[str, Any]) -> _Entry:
        return cls(
            wire.get("manager", ""),
            wire.get("operation", "Update"),
            wire.get("apiVersion", ""),
            wire.get("subresource", ""),
            wire.get("time", ""),
            wire.get("fieldsV1") or {},
        )

    def is_of(self, other: _Entry) -> bool:
        return (self.manager, self.operation, self.subresource) == (other.manager, other.operation, other.subresource)

    def holding(self, fields: FieldSet) -> _Entry:
        if fields == self.fields:
            return self
        return _Entry(self.manager, self.operation, self.api_version, self.subresource, self.time, fields)

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time:
            wire["time"] = self.time
        wire |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields}
        if self.subresource:
            wire["subresource"] = self.subresource
        return wire

    def __str__(self) -> str:
        part = f' with subresource "{self.subresource}"' if self.subresource else ""
        return (
            f'"{self.manager}"{part} using {self.api_version}'
            if self.operation == "Update"
            else f'"{self.manager}"{part}'
        )


def track_create(served: ServedKind, new: Object, manager: str) -> Object:
    """The new object with its creator as manager of all it sets."""
    if not manager:
        return new
    fields = _tracked(served, fieldsets.added(served.schema, new), "")
    return _with_entries(new, [_entry(served, manager, "Update", "", fields)])


def track_update(served: ServedKind, new: Object, old: Object, manager: str, subresource: str) -> Object:
    """The updated object with ``manager`` as manager of all that changed."""
    before = old["metadata"].get("managedFields")
    sent = new["metadata"].get("managedFields")
    if not manager:
        return new
    if sent is not None and sent != before:
        # Clients may rewrite the bookkeeping (kubectl does when it moves to server-side apply) or wipe it.
        return _with_entries(new, [_Entry.parse(entry) for entry in sent if entry])
    difference = fieldsets.difference_of(served.schema, _bare(old), _bare(new))
    changed = _tracked(served, difference.changed, subresource)
    removed = _tracked(served, difference.removed, subresource)
    entries = [_Entry.parse(entry) for entry in before or ()]
    if not entries or not (changed or removed):
        return _with_entries(new, entries)
    mine = _entry(served, manager, "Update", subresource, changed)
    kept = []
    for entry in entries:
        left = fieldsets.without(entry.fields, removed)
        if entry.is_of(mine):
            mine = mine.holding(fieldsets.union(left, changed))
        elif left := fieldsets.without(left, changed):
            kept.append(entry.holding(left))
    return _with_entries(new, [*kept, *([mine] if mine.fields else [])])


def apply_to_nothing(served: ServedKind, applied: Object, manager: str) -> Object:
    """A configuration as the first state of an object."""
    fields = _tracked(served, fieldsets.fields_of(served.schema, applied), "")
    return _with_entries(applied, [_entry(served, manager, "Apply", "", fields)])


def apply(served: ServedKind, present: Object, applied: Object, manager: str, force: bool, subresource: str) -> Object:
    """``present`` with a configuration applied: its fields set, fields it no longer names removed.

    409 with one cause per field when others manage a field that would change, unless ``force``.
    """
    schema = served.schema
    live = _bare(present)
    wanted = _tracked(served, fieldsets.fields_of(schema, applied), subresource)
    entries = _entries_before_apply(served, present)
    mine = _entry(served, manager, "Apply", subresource, wanted)
    previous = next((entry for entry in entries if entry.is_of(mine)), None)
    others = [entry for entry in entries if not entry.is_of(mine)]
    result = fieldsets.merged(schema, live, _bare(applied))
    if previous is not None:
        kept_fields = wanted
        for other in others:
            kept_fields = fieldsets.union(kept_fields, other.fields)
        result = fieldsets.pruned(schema, result, fieldsets.released(previous.fields, kept_fields))
    difference = fieldsets.difference_of(schema, live, result)
    changed = _tracked(served, difference.changed, subresource)
    conflicts = [(other, fieldsets.common(other.fields, changed)) for other in others]
    conflicts = [(other, fields) for other, fields in conflicts if fields]
    if conflicts and not force:
        raise _conflict(conflicts)
    kept = []
    for other in others:
        left = fieldsets.without(fieldsets.without(other.fields, changed), difference.removed)
        if left:
            kept.append(other.holding(left))
    if previous is not None and previous.fields == wanted and result == live:
        mine = previous
    return _with_entries(result, [mine, *kept])


def _entries_before_apply(served: ServedKind, present: Object) -> list[_Entry]:
    entries = [_Entry.parse(entry) for entry in present["metadata"].get("managedFields") or ()]
    if entries:
        return entries
    fields = _tracked(served, fieldsets.added(served.schema, _bare(present)), "")
    return [_entry(served, BEFORE_FIRST_APPLY, "Update", "", fields)]


def _conflict(conflicts: list[tuple[_Entry, FieldSet]]) -> StatusError:
    found = [(entry, path) for entry, fields in conflicts for path in fieldsets.paths(fields)]
    if len(found) == 1:
        entry, path = found[0]
        message = f"Apply failed with 1 conflict: conflict with {entry}: {path}"
    else:
        texts = []
        for manager in dict.fromkeys(str(entry) for entry, _ in found):
            texts.append(f"conflicts with {manager}:")
            texts += [f"- {path}" for other, path in found if str(other) == manager]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(texts)
    causes = [Cause("FieldManagerConflict", path, f"conflict with {entry}") for entry, path in found]
    return statuses.StatusError(409, "Conflict", message, details={"causes": [cause.to_wire() for cause in causes]})


def _entry(served: ServedKind, manager: str, operation: str, subresource: str, fields: FieldSet) -> _Entry:
    return _Entry(manager, operation, served.kind.api_version, subresource, clock.timestamp(), fields)


def _tracked(served: ServedKind, fields: FieldSet, subresource: str) -> FieldSet:
    """Without what nobody manages, and without what the (sub)resource cannot write."""
    if subresource == "status":
        return {key: below for key, below in fields.items() if key == "f:status"}
    kept = {key: below for key, below in fields.items() if not (key == "f:status" and served.has_status)}
    metadata = kept.get("f:metadata")
    kept.pop("f:apiVersion", None)
    kept.pop("f:kind", None)
    if metadata is not None:
        left = {key: below for key, below in metadata.items() if key not in _UNTRACKED["f:metadata"]}
        if left:
            kept["f:metadata"] = left
        else:
            del kept["f:metadata"]
    return kept


def _bare(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _with_entries(obj: Object, entries: list[_Entry]) -> Object:
    bare = _bare(obj)
    if entries:
        bare["metadata"]["managedFields"] = [entry.to_wire() for entry in entries]
    return bare
