"""From bytes to structs and back. Envelopes (list pages, watch lines) are opened by :mod:`stromboli.kube`.

The fast path trusts that an API server writes no ``null`` for a plain field. Other clients do (spec 01 section 1.4), so
a refused document is read again with its nulls removed before it is called bad.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar, cast

import msgspec

from stromboli.api.core.meta import Struct
from stromboli.api.kinds import Kind
from stromboli.api.unreadable import Unreadable

T = TypeVar("T", bound=Struct)


class UndecodableObject(Unreadable):
    """A document that does not have the shape of its kind; the text names the field."""


def decode(struct: type[T], data: bytes | str) -> T:
    """Decode one object. Raises :class:`UndecodableObject`."""
    try:
        return cast("msgspec.json.Decoder[T]", _decoder(struct)).decode(data)
    except msgspec.DecodeError as error:
        first = error
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(data)), struct)
    except msgspec.DecodeError:
        # The first error counts positions in the document as it was sent.
        raise UndecodableObject(f"{struct.__name__}: {first}") from first


def from_builtins(struct: type[T], value: object) -> T:
    """The struct of an object that is already plain dicts and lists. Raises :class:`UndecodableObject`."""
    try:
        return msgspec.convert(value, struct)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_without_nulls(value), struct)
    except msgspec.ValidationError as error:
        raise UndecodableObject(f"{struct.__name__}: {error}") from error


def to_builtins(obj: Struct, kind: Kind | None = None) -> dict[str, object]:
    """The object as plain dicts and lists with zero values left out, with ``apiVersion`` and ``kind`` when given."""
    head: dict[str, object] = {"apiVersion": kind.api_version, "kind": kind.kind} if kind else {}
    body: dict[str, object] = msgspec.to_builtins(obj)
    return head | body


def encode(obj: Struct, kind: Kind | None = None) -> bytes:
    """JSON of the object, see :func:`to_builtins`."""
    return msgspec.json.encode(to_builtins(obj, kind)) if kind else msgspec.json.encode(obj)


@cache
def _decoder(struct: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(struct)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
