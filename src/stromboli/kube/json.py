"""The shape of API objects as plain data, and their encoding.

Objects that are not on a hot path travel as what ``orjson`` makes of them: dictionaries with string keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import orjson

JsonObject: TypeAlias = dict[str, Any]
"""One decoded API object. ``Any`` because its fields are whatever the server sent."""


def encode(value: object) -> bytes:
    """Compact JSON. Raises ``TypeError`` for what JSON cannot carry."""
    return orjson.dumps(value)


def decode_object(raw: bytes) -> JsonObject:
    """Decode one JSON object; ``ValueError`` when the bytes are not JSON or not an object."""
    value = orjson.loads(raw)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value


def decode_without_managers(raw: bytes) -> JsonObject:
    """As :func:`decode_object`, without ``metadata.managedFields``: the larger half of many objects, read by nobody.

    An object that is written back without them keeps those that the server knows.
    """
    value = decode_object(raw)
    metadata(value).pop("managedFields", None)
    return value


def metadata(obj: Mapping[str, Any]) -> JsonObject:
    """``obj.metadata``, or an empty dictionary (not attached to the object) when there is none."""
    found = obj.get("metadata")
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """``(namespace, name)`` of an object; the namespace is empty for cluster-scoped objects."""
    meta = metadata(obj)
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")


def uid_of(obj: Mapping[str, Any]) -> str:
    """``metadata.uid``, or an empty string."""
    return str(metadata(obj).get("uid") or "")


def resource_version_of(obj: Mapping[str, Any]) -> str:
    """``metadata.resourceVersion``, or an empty string."""
    return str(metadata(obj).get("resourceVersion") or "")
