"""Every place of a JSON value whose type is wrong, where the library that reads values stops at the first.

Mutating webhooks see objects before the API server looks at their schema: whoever sent one that cannot be read shall
learn all that is wrong with it in one go. Only what cannot be read is looked into, so good objects pay nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from stromboli.webhooks.errors import FieldError, wrong_type

_FAULT: Final = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)


def misfits(kind: Any, value: Any, path: str) -> Iterator[FieldError]:
    """What of ``value``, which is at ``path``, does not fit ``kind``; at least one fault where ``kind`` cannot hold it.

    Lists and structs are looked into. A map is one field, whatever is wrong in it.
    """
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        inside = False
        for fault in _inside(kind, value, path):
            inside = True
            yield fault
        if not inside:
            yield _fault(str(error), path)


def _inside(kind: Any, value: Any, path: str) -> Iterator[FieldError]:
    """The misfits among the members or elements of a value."""
    kind = _without_none(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        for member in msgspec.structs.fields(kind):
            if member.encode_name in value:
                place = f"{path}.{member.encode_name}" if path else member.encode_name
                yield from misfits(member.type, value[member.encode_name], place)
    elif get_origin(kind) is list and isinstance(value, list):
        (element,) = get_args(kind)
        for index, item in enumerate(value):
            yield from misfits(element, item, f"{path}[{index}]")


def _without_none(kind: Any) -> Any:
    """The other kind of an optional one."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    others = [each for each in get_args(kind) if each is not NoneType]
    return others[0] if len(others) == 1 else kind


def _fault(message: str, path: str) -> FieldError:
    found = _FAULT.fullmatch(message)
    what, below = (found["what"], found["path"] or "") if found else (message, "")
    below = below.partition("[...]")[0]  # The library does not say which key of a map it was.
    whole = f"{path}{below}" if path else below.removeprefix(".")
    return wrong_type(whole or "object", what[:1].lower() + what[1:])
