"""From bytes to structs and back: single objects, list pages and lines of a watch.

The fast path trusts that an API server writes no ``null`` for a plain field. Other clients do (spec 01 section 1.4), so
a refused document is read again with its nulls removed before it is called bad. In a list or watch one bad object is
handed out as :class:`BadObject`; it never costs the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, cast

import msgspec

from stromboli.api.core.meta import Object, Struct
from stromboli.api.kinds import Kind

T = TypeVar("T", bound=Struct)
O = TypeVar("O", bound=Object)  # noqa: E741


class UndecodableObject(ValueError):
    """A document that does not have the shape of its kind; the text names the field."""


@dataclass(frozen=True, slots=True)
class BadObject:
    """An object of a list or watch that could not be decoded, as far as it could be read."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """``(namespace, name)``."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list. ``continuation`` is empty on the last page."""

    items: list[T]
    resource_version: str
    continuation: str
    remaining: int | None
    bad: list[BadObject]


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One line of a watch.

    ``type`` is ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``. ``object`` is set for the first three
    unless it was bad; bookmarks carry only ``resource_version``; errors carry the server's ``code`` and ``message``.
    """

    type: str
    object: T | None
    resource_version: str
    bad: BadObject | None = None
    code: int = 0
    message: str = ""


def decode(struct: type[T], data: bytes | str) -> T:
    """Decode one object. Raises :class:`UndecodableObject`."""
    try:
        return _decoder(struct).decode(data)
    except msgspec.DecodeError as error:
        return _decode_again(struct, data, error)


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


def decode_list(struct: type[O], data: bytes) -> ListPage[O]:
    """Decode a page of a list; bad items are set aside. Raises :class:`UndecodableObject` if it is no list at all."""
    try:
        page = _list_decoder(struct).decode(data)
    except msgspec.DecodeError:
        return _decode_list_apart(struct, data)
    return _page(page.metadata, page.items, [])


def decode_watch_event(struct: type[O], line: bytes) -> WatchEvent[O]:
    """Decode one line of a watch. Raises :class:`UndecodableObject` if the line is no watch event at all."""
    try:
        event = _EVENT.decode(line)
    except msgspec.DecodeError as error:
        raise UndecodableObject(f"not a watch event: {error}") from error
    if event.type in ("ERROR", "BOOKMARK"):
        return _signal(event)
    item = _decode_or_bad(struct, event.object)
    if isinstance(item, BadObject):
        return WatchEvent(event.type, None, item.resource_version, bad=item)
    return WatchEvent(event.type, item, item.metadata.resource_version)


class _ListMeta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continuation: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = msgspec.field(default=None, name="remainingItemCount")


class _List(msgspec.Struct, Generic[O], frozen=True, kw_only=True):
    metadata: _ListMeta = _ListMeta()
    items: list[O] = []


class _RawList(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _ListMeta = _ListMeta()


class _RawEvent(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 0
    reason: str = ""
    message: str = ""


_EVENT = msgspec.json.Decoder(_RawEvent)
_RAW_LIST = msgspec.json.Decoder(_RawList)
_STATUS = msgspec.json.Decoder(_Status)
_HEAD = msgspec.json.Decoder(_Head)


@cache
def _cached_decoder(struct: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(struct)


def _decoder(struct: type[T]) -> msgspec.json.Decoder[T]:
    return cast("msgspec.json.Decoder[T]", _cached_decoder(struct))


@cache
def _cached_list_decoder(struct: type[Object]) -> msgspec.json.Decoder[_List[Object]]:
    return msgspec.json.Decoder(_List[struct])  # type: ignore[valid-type]


def _list_decoder(struct: type[O]) -> msgspec.json.Decoder[_List[O]]:
    return cast("msgspec.json.Decoder[_List[O]]", _cached_list_decoder(struct))


def _decode_again(struct: type[T], data: bytes | str | msgspec.Raw, error: msgspec.DecodeError) -> T:
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(data)), struct)
    except msgspec.DecodeError:
        raise UndecodableObject(f"{struct.__name__}: {error}") from error


def _signal(event: _RawEvent) -> WatchEvent[O]:
    """An event that is about the watch itself, not an object."""
    try:
        if event.type == "BOOKMARK":
            return WatchEvent("BOOKMARK", None, _HEAD.decode(event.object).metadata.resource_version)
        status = _STATUS.decode(event.object)
    except msgspec.DecodeError as error:
        raise UndecodableObject(f"not a {event.type} event: {error}") from error
    return WatchEvent("ERROR", None, "", code=status.code, message=status.message or status.reason)


def _page(meta: _ListMeta, items: list[O], bad: list[BadObject]) -> ListPage[O]:
    return ListPage(items, meta.resource_version, meta.continuation, meta.remaining_item_count, bad)


def _decode_list_apart(struct: type[O], data: bytes) -> ListPage[O]:
    try:
        page = _RAW_LIST.decode(data)
    except msgspec.DecodeError as error:
        raise UndecodableObject(f"not a list of {struct.__name__}: {error}") from error
    decoded = [_decode_or_bad(struct, raw) for raw in page.items or ()]
    items = [item for item in decoded if not isinstance(item, BadObject)]
    bad = [item for item in decoded if isinstance(item, BadObject)]
    return _page(page.metadata, items, bad)


def _decode_or_bad(struct: type[O], raw: msgspec.Raw) -> O | BadObject:
    try:
        return _decoder(struct).decode(raw)
    except msgspec.DecodeError as error:
        first = error
    try:
        return _decode_again(struct, raw, first)
    except UndecodableObject as error:
        return _bad(raw, str(error))


def _bad(raw: msgspec.Raw, message: str) -> BadObject:
    document = msgspec.json.decode(raw)
    found = document.get("metadata") if isinstance(document, dict) else None
    metadata: dict[str, object] = found if isinstance(found, dict) else {}

    def text(name: str) -> str:
        value = metadata.get(name)
        return value if isinstance(value, str) else ""

    return BadObject(text("namespace"), text("name"), text("uid"), text("resourceVersion"), message)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
