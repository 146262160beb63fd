"""From Kubernetes' Protobuf envelope to the object that JSON would have been. Pure."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from stromboli.localcluster.protobuf.messages import Field, messages

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class BadMessage(ValueError):
    """Bytes that are no message of a known kind; the message says why."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in an enveloped message. Raises :class:`BadMessage`."""
    if not body.startswith(_MAGIC):
        raise BadMessage("the body does not begin with the Kubernetes Protobuf prefix")
    try:
        envelope = _message("runtime.Unknown", body[len(_MAGIC) :], raw=True)
        identity = envelope.get("typeMeta", {})
        api_version, kind = identity.get("apiVersion", ""), identity.get("kind", "")
        obj = _message(_name_of(api_version, kind), envelope.get("raw", b""))
    except BadMessage:
        raise
    except (IndexError, struct.error, OverflowError, OSError, RecursionError, ValueError) as error:
        raise BadMessage(f"the Protobuf message is damaged: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **obj}


def _name_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    for name in (f"{group.partition('.')[0] or 'core'}.{version}.{kind}", f"meta.v1.{kind}"):
        if name in messages():
            return name
    raise BadMessage(f'kind "{kind}" of version "{api_version}" is not known in Protobuf; send JSON')


def _message(name: str, data: bytes, *, raw: bool = False) -> dict[str, Any]:
    """Fields of a message; what Go leaves out of JSON when it is empty is left out. Unknown numbers are skipped."""
    fields = messages().get(name)
    if fields is None:
        raise BadMessage(f"a message stands where a value of type {name} belongs")
    result: dict[str, Any] = {}
    for number, wire in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_map:
            key, value = _entry(field, wire)
            result.setdefault(field.name, {})[key] = value
            continue
        for value in _values(field, wire, raw):
            _put(result, field, value)
    return result


def _put(result: dict[str, Any], field: Field, value: Any) -> None:
    if field.is_inline:
        result.update(value)
    elif field.is_list:
        result.setdefault(field.name, []).append(value)
    elif value not in ("", None):
        result[field.name] = value


def _entry(field: Field, wire: int | bytes) -> tuple[str, Any]:
    if not isinstance(wire, bytes):
        raise BadMessage(f"a number stands where an entry of {field.name} belongs")
    parts = dict(_wire(wire))
    key, value = parts.get(1, b""), parts.get(2, b"" if _is_bytes(field.type) else 0)
    if not isinstance(key, bytes):
        raise BadMessage(f"a number stands where a key of {field.name} belongs")
    return key.decode(), _value(field.type, value, raw=False)


def _is_bytes(declared: str) -> bool:
    return declared in ("string", "bytes") or "." in declared


def _values(field: Field, wire: int | bytes, raw: bool) -> Iterator[Any]:
    if field.is_list and isinstance(wire, bytes) and not _is_bytes(field.type):
        position = 0
        while position < len(wire):  # packed numbers
            number, position = _varint(wire, position)
            yield _value(field.type, number, raw)
    else:
        yield _value(field.type, wire, raw)


def _value(declared: str, wire: int | bytes, raw: bool) -> Any:
    if isinstance(wire, bytes):
        match declared:
            case "string":
                return wire.decode()
            case "bytes":
                return wire if raw else base64.b64encode(wire).decode()
            case "double":
                return struct.unpack("<d", wire)[0]
            case _:
                return _special(declared, wire)
    if declared == "bool":
        return bool(wire)
    return wire - (1 << 64) if wire >= 1 << 63 else wire


def _special(declared: str, wire: bytes) -> Any:
    """Messages that have a form of their own in JSON."""
    match declared.rpartition(".")[2]:
        case "Time" | "MicroTime" if declared.startswith("meta."):
            return _time(_message(declared, wire), micro=declared.endswith("MicroTime"))
        case "Quantity":
            return _message(declared, wire).get("string", "0")
        case "IntOrString":
            found = _message(declared, wire)
            return found.get("strVal", "") if found.get("type") == 1 else found.get("intVal", 0)
        case "FieldsV1" | "RawExtension" | "JSON":
            content = next((part for _, part in _wire(wire) if isinstance(part, bytes)), b"")
            return orjson.loads(content) if content else None
        case "ExtraValue" | "Verbs":
            return _message(declared, wire).get("items", [])
        case _:
            return _message(declared, wire)


def _time(parts: dict[str, Any], *, micro: bool) -> str | None:
    if not parts.get("seconds"):
        return None
    moment = datetime.fromtimestamp(parts["seconds"], UTC)
    if micro:
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{parts.get('nanos', 0) // 1000:06d}Z"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# The wire format: https://protobuf.dev/programming-guides/encoding


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if kind == _BYTES:
            length, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise BadMessage(f"the Protobuf message is damaged: wire type {kind}")
        if position + length > len(data):
            raise BadMessage("the Protobuf message is cut short")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise BadMessage("the Protobuf message is damaged: a number has no end")
