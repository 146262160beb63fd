"""All objects of a store as one document, and back, with the changes that a journal holds beyond it. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from stromboli.localcluster.storage import Key, StorageError, Store, Stored


def take(store: Store) -> bytes:
    """Everything that is stored, for :func:`restore`."""
    objects = [
        {"group": stored.key.group, "plural": stored.key.plural, "object": orjson.Fragment(stored.encoded)}
        for stored in store.rows()
    ]
    return orjson.dumps({"format": 1, "revision": store.revision, "objects": objects})


def restore(store: Store, snapshot: bytes, changes: Iterable[bytes] = ()) -> None:
    """Fill a store from a snapshot and the lines of journals, oldest first; what the snapshot has already is skipped.

    Raises :class:`StorageError`, having changed nothing.
    """
    try:
        document = orjson.loads(snapshot)
        if document["format"] != 1:
            raise StorageError(f"unknown snapshot format {document['format']!r}: made by another version")
        rows = {stored.key: stored for stored in map(_stored, document["objects"])}
        revision = max([int(document["revision"]), *(stored.revision for stored in rows.values())])
        for line in changes:
            revision = _replay(rows, revision, orjson.loads(line))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"not a snapshot: {error}") from error
    store.load(revision, rows.values())


def _replay(rows: dict[Key, Stored], revision: int, change: dict[str, Any]) -> int:
    """Repeat one line of a journal; the revision reached."""
    if "after" in change:
        if change["after"] > revision:
            raise StorageError(f"the changes between the revisions {revision} and {change['after']} are missing")
        return revision
    if change["revision"] <= revision:
        return revision
    if "object" in change:
        stored = _stored(change)
        rows[stored.key] = stored
    else:
        del rows[Key(change["group"], change["plural"], change["namespace"], change["name"])]
    return int(change["revision"])


def _stored(entry: dict[str, Any]) -> Stored:
    obj = entry["object"]
    metadata = obj["metadata"]
    key = Key(entry["group"], entry["plural"], metadata.get("namespace", ""), metadata["name"])
    return Stored(key, obj, int(metadata["resourceVersion"]))
