"""The objects of the fake API server, their versions and their history. Plain memory: no I/O.

What is kept of the API server's behaviour is what clients build on: one rising resource version for all kinds, UIDs,
generations, optimistic locking, finalizers, status as a subresource, history that can be forgotten (410).
No admission, no schema, no garbage collection of dependents.
"""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from stromboli.api.kinds import POD_GROUPS, Kind
from stromboli.kube import json
from stromboli.kube.errors import ApiError, api_error
from stromboli.kube.json import JsonObject

Key: TypeAlias = tuple[str, str]
Resource: TypeAlias = tuple[str, str, str]
"""``(group, version, plural)``."""


def resource_of(kind: Kind) -> Resource:
    """The resource of a kind."""
    return kind.group, kind.version, kind.plural


WITHOUT_STATUS_SUBRESOURCE = frozenset({resource_of(POD_GROUPS)})


def refuse(code: int, reason: str, message: str, **details: object) -> ApiError:
    """The error that the server answers with a Status of this code."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }
    return api_error(code, json.encode(status))


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a resource's history. ``before`` is ``None`` for a creation, ``deleted`` marks the end."""

    version: int
    before: JsonObject | None
    after: JsonObject
    deleted: bool


@dataclass(slots=True)
class _Collection:
    objects: dict[Key, JsonObject] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)


class Memory:
    """All objects of the fake server. Objects handed out are copies."""

    def __init__(self) -> None:
        self._collections: dict[Resource, _Collection] = {}
        self._version = 100
        self._forgotten = 0  # history up to and including this version is gone
        self._uids = itertools.count(1)
        self._wakers: list[Callable[[], None]] = []

    @property
    def version(self) -> int:
        """The latest resource version."""
        return self._version

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, key: Key) -> JsonObject:
        """A copy of one object. Raises ``NotFound``."""
        return copy.deepcopy(self._at(resource, key))

    def list(self, resource: Resource, namespace: str = "") -> list[JsonObject]:
        """Copies of all objects (of a namespace), ordered by namespace and name."""
        objects = self._collection(resource).objects
        return [copy.deepcopy(objects[key]) for key in sorted(objects) if namespace in ("", key[0])]

    def since(self, resource: Resource, version: int) -> Sequence[Change]:
        """Changes after ``version``, for a watch that is under way."""
        history = self._collection(resource).history
        return history[bisect.bisect_right(history, version, key=lambda change: change.version) :]

    def check_remembered(self, version: int) -> None:
        """Raise ``Gone`` when what happened after ``version`` is forgotten."""
        if version < self._forgotten:
            raise refuse(410, "Expired", f"too old resource version: {version} ({self._forgotten})")

    def forget(self) -> None:
        """Forget the history, as etcd's compaction does: new watches from older versions answer 410."""
        self._version += 1
        self._forgotten = self._version

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have ``callback`` called after every change; returns what ends that."""
        self._wakers.append(callback)
        return lambda: self._wakers.remove(callback)

    # -- writing ---------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, namespace: str, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Store a new object. Raises ``AlreadyExists`` or ``Invalid``."""
        new = copy.deepcopy(obj)
        meta = new.setdefault("metadata", {})
        if namespace:
            meta["namespace"] = namespace
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName']}{next(self._uids):05d}"
        name = meta.get("name")
        if not name:
            raise refuse(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        collection = self._collection(resource)
        if (namespace, name) in collection.objects:
            raise refuse(409, "AlreadyExists", f'{resource[2]} "{name}" already exists', name=name, kind=resource[2])
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", now())
        meta["generation"] = 1
        return self._store(resource, (namespace, name), None, new, dry_run)

    def replace(
        self, resource: Resource, key: Key, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Replace an object, or only its status. Raises ``NotFound`` and ``Conflict``."""
        old = self._at(resource, key)
        meta = json.metadata(obj)
        _check_preconditions(resource, old, uid=meta.get("uid"), version=meta.get("resourceVersion"))
        new = _merged(old, copy.deepcopy(obj), subresource, whole=resource in WITHOUT_STATUS_SUBRESOURCE)
        if new == old:
            return copy.deepcopy(old)  # nothing to write, and no new version
        if json.metadata(new).get("deletionTimestamp") and not json.metadata(new).get("finalizers"):
            return self._remove(resource, key, new, dry_run)
        return self._store(resource, key, old, new, dry_run)

    def delete(self, resource: Resource, key: Key, *, uid: str = "", version: str = "") -> JsonObject:
        """Delete an object, or mark it deleted while it has finalizers. Raises ``NotFound`` and ``Conflict``."""
        old = self._at(resource, key)
        _check_preconditions(resource, old, uid=uid, version=version)
        if not json.metadata(old).get("finalizers"):
            return self._remove(resource, key, old, dry_run=False)
        if json.metadata(old).get("deletionTimestamp"):
            return copy.deepcopy(old)
        new = copy.deepcopy(old)
        new["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
        return self._store(resource, key, old, new, dry_run=False)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _collection(self, resource: Resource) -> _Collection:
        return self._collections.setdefault(resource, _Collection())

    def _at(self, resource: Resource, key: Key) -> JsonObject:
        found = self._collection(resource).objects.get(key)
        if found is None:
            raise refuse(404, "NotFound", f'{resource[2]} "{key[1]}" not found', name=key[1], kind=resource[2])
        return found

    def _store(
        self, resource: Resource, key: Key, old: JsonObject | None, new: JsonObject, dry_run: bool
    ) -> JsonObject:
        if dry_run:
            return new
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        collection = self._collection(resource)
        collection.objects[key] = new
        collection.history.append(Change(self._version, old, new, deleted=False))
        self._wake()
        return copy.deepcopy(new)

    def _remove(self, resource: Resource, key: Key, last: JsonObject, dry_run: bool) -> JsonObject:
        gone = copy.deepcopy(last)
        if dry_run:
            return gone
        self._version += 1
        gone["metadata"]["resourceVersion"] = str(self._version)
        collection = self._collection(resource)
        before = collection.objects.pop(key)
        collection.history.append(Change(self._version, before, gone, deleted=True))
        self._wake()
        return copy.deepcopy(gone)

    def _wake(self) -> None:
        for waker in list(self._wakers):
            waker()


def now() -> str:
    """The present, as timestamps spell it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_preconditions(resource: Resource, old: JsonObject, *, uid: object, version: object) -> None:
    meta = json.metadata(old)
    for field_name, wanted in (("uid", uid), ("resourceVersion", version)):
        if wanted and wanted != meta.get(field_name):
            raise refuse(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {resource[2]} "{meta["name"]}": the object has been modified'
                f" ({field_name} {wanted}, now {meta.get(field_name)})",
                name=meta["name"],
                kind=resource[2],
            )


def _merged(old: JsonObject, new: JsonObject, subresource: str, *, whole: bool) -> JsonObject:
    """What a write through the main resource or a subresource makes of the stored object.

    ``whole``: the kind has no status subresource, its status is written like everything else.
    """
    if subresource == "status":
        changed = copy.deepcopy(old)
        changed.pop("status", None)
        return changed | ({"status": new["status"]} if "status" in new else {})
    if not whole:
        new.pop("status", None)
        if "status" in old:
            new["status"] = copy.deepcopy(old["status"])
    meta, was = new.setdefault("metadata", {}), json.metadata(old)
    for field_name in ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "generation"):
        if field_name in was:
            meta[field_name] = was[field_name]
    for field_name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        meta.pop(field_name, None)
        if field_name in was:
            meta[field_name] = was[field_name]
    ignored = ("metadata", "status")
    if {k: v for k, v in new.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}:
        meta["generation"] = int(was.get("generation") or 0) + 1
    return new
