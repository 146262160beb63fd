"""Arguments of job plugins, with the rules of Go's ``flag`` package (spec 02 section 21).

Reading never fails: an unknown flag or a bad value ends it, what was read before keeps its value and everything else
its default, and the complaint is logged. A job must not be lost over a flag that does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias

log = logging.getLogger(__name__)

Value: TypeAlias = str | int | bool

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class _Stop(Exception):
    """Nothing more is read; the text says why, empty when there is nothing to complain about."""


def read(plugin: str, arguments: Sequence[str], defaults: Mapping[str, Value]) -> dict[str, Value]:
    """The values of the flags in ``defaults`` after reading ``arguments``. A default has the type of its flag."""
    values = dict(defaults)
    rest = list(arguments)
    try:
        while rest:
            _read_one(rest, values, defaults)
    except _Stop as stop:
        if str(stop):
            log.warning("plugin %s: %s; the arguments from here on are ignored", plugin, stop)
    return values


def _read_one(rest: list[str], values: dict[str, Value], defaults: Mapping[str, Value]) -> None:
    token = rest.pop(0)
    if not token.startswith("-") or token in ("-", "--"):
        raise _Stop
    name, equals, text = token.removeprefix("-").removeprefix("-").partition("=")
    if name not in defaults:
        raise _Stop(f"unknown flag {token!r}")
    default = defaults[name]
    if not equals:
        if isinstance(default, bool):
            values[name] = True
            return
        if not rest:
            raise _Stop(f"flag {token!r} needs a value")
        text = rest.pop(0)
    values[name] = _value(token, text, default)


def _value(token: str, text: str, default: Value) -> Value:
    if isinstance(default, bool):
        if text not in _TRUE | _FALSE:
            raise _Stop(f"{token!r} is not true or false")
        return text in _TRUE
    if isinstance(default, int):
        try:
            return int(text, 0)
        except ValueError:
            raise _Stop(f"{token!r} is not a whole number") from None
    return text
