"""Writing only what changes, and only to the object that was meant.

Every function here may be called again with the same arguments and then writes nothing, which is what keeps
reconciling cheap and conflicts rare. Identity is namespace, name and UID: where a UID is known it is checked, so that
nothing meant for one object lands on its namesake.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.kube import json
from stromboli.kube.client import Client, PatchType
from stromboli.kube.errors import AlreadyExists, Conflict, NotFound
from stromboli.kube.json import JsonObject

ATTEMPTS = 5


def covers(present: object, wanted: object) -> bool:
    """Whether ``present`` already says everything that ``wanted`` says. Lists must agree in length and order."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(
            covers(present.get(key), value) if value is not None else present.get(key) is None
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(present) == len(wanted)
            and all(covers(*pair) for pair in zip(present, wanted, strict=True))
        )
    return _same(present, wanted)


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    """The smallest JSON merge patch (RFC 7386) that makes ``new`` of ``old``; empty when they are equal."""
    patch: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or not _same(before, value):
            patch[key] = value
    return patch


def _same(one: object, other: object) -> bool:
    """Equality as JSON sees it: to Python, ``True == 1``."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


async def apply(
    client: Client,
    kind: Kind,
    obj: JsonObject,
    *,
    field_manager: str,
    present: JsonObject | None = None,
    subresource: str | None = None,
    force: bool = True,
) -> JsonObject:
    """Server-side apply ``obj``; with ``present`` given, nothing is sent when that already says the same.

    ``metadata.uid`` in ``obj`` makes sure that only that object is written (``Conflict`` otherwise). A field that is
    left out of ``obj`` to be removed is not noticed by the comparison: leave ``present`` out then.
    """
    if present is not None and covers(present, obj):
        return present
    namespace, name = json.key_of(obj)
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    return await client.patch(
        kind,
        name,
        body,
        namespace,
        type=PatchType.APPLY,
        subresource=subresource,
        field_manager=field_manager,
        force=force,
    )


async def patch_changes(
    client: Client,
    kind: Kind,
    old: JsonObject,
    new: JsonObject,
    *,
    subresource: str | None = None,
    field_manager: str | None = None,
    lock: bool = False,
) -> JsonObject:
    """Send what differs between ``old`` and ``new`` as a merge patch; ``old`` comes back when nothing does.

    ``old`` is the object as it was read: the patch is bound to its UID, and with ``lock`` to its resource version
    (``Conflict`` when they do not hold any more).
    """
    patch = merge_patch(old, new)
    if not patch:
        return old
    meta = patch.setdefault("metadata", {})
    if uid := json.uid_of(old):
        meta["uid"] = uid
    if lock:
        meta["resourceVersion"] = json.resource_version_of(old)
    namespace, name = json.key_of(old)
    return await client.patch(kind, name, patch, namespace, subresource=subresource, field_manager=field_manager)


async def create_if_absent(client: Client, kind: Kind, obj: JsonObject) -> tuple[JsonObject, bool]:
    """Create ``obj`` unless there is one of that name; returns what is there, and whether this call created it."""
    namespace, name = json.key_of(obj)
    attempts = ATTEMPTS
    while True:
        try:
            return await client.create(kind, obj), True
        except AlreadyExists:
            pass
        try:
            return await client.get(kind, name, namespace), False
        except NotFound:  # deleted between the two requests
            attempts -= 1
            if not attempts:
                raise


async def delete_if_present(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None = None,
    *,
    uid: str | None = None,
    propagation: str | None = None,
    grace_period_seconds: int | None = None,
) -> bool:
    """Delete an object; false when it, or the one with that ``uid``, is gone already.

    Raises ``Conflict`` when the one with that ``uid`` is still there and the server could not delete it just now.
    """
    try:
        await client.delete(
            kind, name, namespace, uid=uid, propagation=propagation, grace_period_seconds=grace_period_seconds
        )
    except NotFound:
        return False
    except Conflict:
        if uid is None or await _is_there(client, kind, name, namespace, uid):
            raise
        return False  # a namesake: ours is gone
    return True


async def _is_there(client: Client, kind: Kind, name: str, namespace: str | None, uid: str) -> bool:
    try:
        return json.uid_of(await client.get(kind, name, namespace)) == uid
    except NotFound:
        return False


async def update_with_retry(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None,
    change: Callable[[JsonObject], JsonObject | None],
    *,
    uid: str | None = None,
    subresource: str | None = None,
) -> JsonObject:
    """Read, change and update an object, anew after each conflict, up to five times.

    ``change`` gets a copy that it may modify, and returns the object to write; ``None``, or an object that equals what
    was read, writes nothing. Raises ``NotFound`` when the object, or the one with that ``uid``, is gone, and
    ``Conflict`` when others are always quicker.
    """
    attempts = ATTEMPTS
    while True:
        present = await client.get(kind, name, namespace)
        _check_uid(kind, present, uid)
        wanted = change(copy.deepcopy(present))
        if wanted is None or wanted == present:
            return present
        try:
            return await client.update(kind, wanted, subresource=subresource)
        except Conflict:
            attempts -= 1
            if not attempts:
                raise


def has_finalizer(obj: JsonObject, finalizer: str) -> bool:
    """Whether ``finalizer`` holds the object."""
    return finalizer in (json.metadata(obj).get("finalizers") or ())


async def add_finalizer(client: Client, kind: Kind, obj: JsonObject, finalizer: str) -> JsonObject:
    """Have ``finalizer`` hold the object, unless it does already. Raises ``NotFound`` when the object is gone."""
    return await _change_finalizers(client, kind, obj, lambda names: [*names, finalizer], has_finalizer(obj, finalizer))


async def remove_finalizer(client: Client, kind: Kind, obj: JsonObject, finalizer: str) -> JsonObject | None:
    """Let go of the object; ``None`` when it is gone."""
    if not has_finalizer(obj, finalizer):
        return obj
    try:
        return await _change_finalizers(
            client, kind, obj, lambda names: [name for name in names if name != finalizer], done=False
        )
    except NotFound:
        return None


async def _change_finalizers(
    client: Client, kind: Kind, obj: JsonObject, change: Callable[[list[str]], list[str]], done: bool
) -> JsonObject:
    if done:
        return obj
    namespace, name = json.key_of(obj)
    uid = json.uid_of(obj)
    present, attempts = obj, ATTEMPTS
    while True:
        names = list(json.metadata(present).get("finalizers") or ())
        wanted = list(dict.fromkeys(change(names)))
        if wanted == names:
            return present
        # The list is replaced as a whole, so it must be the list that was read.
        meta = {"finalizers": wanted or None, "resourceVersion": json.resource_version_of(present)}
        try:
            return await client.patch(kind, name, {"metadata": meta}, namespace)
        except Conflict:
            attempts -= 1
            if not attempts:
                raise
        present = await client.get(kind, name, namespace)
        _check_uid(kind, present, uid)


def _check_uid(kind: Kind, present: JsonObject, uid: str | None) -> None:
    if uid and json.uid_of(present) != uid:
        namespace, name = json.key_of(present)
        message = f'{kind.resource} "{namespace}/{name}" with UID {uid} is gone, there is another of that name'
        raise NotFound(404, {"reason": "NotFound", "message": message})
