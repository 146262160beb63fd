"""Identity of objects: UID, generated names, and the preconditions that protect them from confusion."""

from __future__ import annotations

import random
import uuid

from stromboli.api.kinds import Kind
from stromboli.localcluster import clock, statuses
from stromboli.localcluster.storage import Object

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58
_SERVER_SET = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")


def assign(obj: Object) -> None:
    """Give a new object its UID and creation time; a resourceVersion of the client's is refused (400)."""
    metadata = obj["metadata"]
    if metadata.get("resourceVersion") not in (None, "", "0"):
        raise statuses.bad_request("resourceVersion should not be set on objects to be created")
    for name in _SERVER_SET:
        metadata.pop(name, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = clock.timestamp()


def generates_name(obj: Object) -> bool:
    """Whether the server has to find a name."""
    metadata = obj["metadata"]
    return not metadata.get("name") and bool(metadata.get("generateName"))


def generate_name(obj: Object) -> None:
    """Set ``name`` to ``generateName`` and five random characters."""
    base = obj["metadata"]["generateName"][:_LONGEST_BASE]
    obj["metadata"]["name"] = base + "".join(random.choices(_SUFFIX_ALPHABET, k=5))


def check_preconditions(kind: Kind, present: Object, uid: str | None, version: str | None) -> None:
    """409 when the object is another one, or another revision, than the writer thinks."""
    metadata = present["metadata"]
    name = metadata["name"]
    if uid and uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise statuses.conflict(kind, name, why)
    if version and version != "0" and version != metadata["resourceVersion"]:
        raise statuses.conflict(kind, name)


def check_deletion_preconditions(kind: Kind, present: Object, uid: str | None, version: str | None) -> None:
    """Like :func:`check_preconditions`, in the words that a deletion uses (which names the kind, not the resource)."""
    metadata = present["metadata"]
    named = Kind(kind.group, kind.version, kind.kind, kind.kind)
    if uid and uid != metadata["uid"]:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']})"
        raise statuses.conflict(
            named, metadata["name"], f"{why}. The object might have been deleted and then recreated"
        )
    if version and version != metadata["resourceVersion"]:
        found = metadata["resourceVersion"]
        why = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record"
        raise statuses.conflict(named, metadata["name"], f"{why} ({found}). The object might have been modified")
