"""CEL selectors of devices, evaluated by the ``cel`` library.

``device.driver``, ``device.allowMultipleAllocations``, ``device.attributes["domain"].name`` and
``device.capacity["domain"].name`` are there, a domain that the device has nothing of is an empty map. Of Kubernetes'
own CEL libraries there are quantities (comparison, sign, conversion), semantic versions (comparison, parts) and
``cel.bind``. Anything else fails to evaluate and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stromboli.api import quantities

if TYPE_CHECKING:
    from stromboli.api import core

_QUANTITY, _VERSION = "quantity", "semver"
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"|' + r"'((?:[^'\\]|\\.)*)'")
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_BIND = "cel.bind("


class SelectorError(Exception):
    """An expression that cannot be compiled or evaluated; the text says why."""


def matches(expression: str, driver: str, device: core.Device) -> bool:
    """Whether a device satisfies an expression. Raises SelectorError."""
    import cel

    program, domains = _compiled(expression)
    context = cel.Context({"device": _device(driver, device, domains)}, dict(_FUNCTIONS))
    try:
        answer = program.execute(context)
    except KeyError as error:
        raise SelectorError(f"CEL runtime error: no such key: {error.args[0]}".replace("'", "")) from error
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        raise SelectorError(f"CEL runtime error: {error}") from error
    if not isinstance(answer, bool):
        raise SelectorError(f"CEL result of type {type(answer).__name__} could not be converted to bool")
    return answer


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[Any, tuple[str, ...]]:
    # A late import: the package brings a terminal toolkit along, and few clusters have device claims.
    import cel

    try:
        program = cel.compile(_without_binds(expression))
    except (ValueError, TypeError) as error:
        raise SelectorError(f"CEL compile error: {' '.join(str(error).split())}") from error
    return program, tuple(dict.fromkeys(first or second for first, second in _LITERAL.findall(expression)))


def _without_binds(expression: str) -> str:
    """``cel.bind(name, value, body)`` as ``[value].map(name, body)[0]``, which every implementation understands."""
    start = expression.find(_BIND)
    if start < 0:
        return expression
    parts, end = _arguments(expression, start + len(_BIND))
    if len(parts) != 3:
        raise SelectorError("CEL compile error: cel.bind takes a name, a value and an expression")
    name, value, body = (part.strip() for part in parts)
    return _without_binds(f"{expression[:start]}[{value}].map({name}, {body})[0]{expression[end:]}")


def _arguments(expression: str, start: int) -> tuple[list[str], int]:
    """The arguments of a call that opens before ``start``, and where it has ended."""
    parts: list[str] = []
    depth, begin, at = 0, start, start
    while at < len(expression):
        literal = _LITERAL.match(expression, at)
        if literal is not None:
            at = literal.end()
            continue
        sign = expression[at]
        if sign in "([{":
            depth += 1
        elif sign in ")]}" and depth:
            depth -= 1
        elif sign == ")":
            return [*parts, expression[begin:at]], at + 1
        elif sign == "," and not depth:
            parts.append(expression[begin:at])
            begin = at + 1
        at += 1
    raise SelectorError("CEL compile error: cel.bind is not closed")


def _device(driver: str, device: core.Device, domains: tuple[str, ...]) -> dict[str, object]:
    attributes: dict[str, dict[str, object]] = {domain: {} for domain in domains}
    capacity: dict[str, dict[str, object]] = {domain: {} for domain in domains}
    for name, attribute in device.attributes.items():
        domain, own = qualified(name, driver)
        attributes.setdefault(domain, {})[own] = _plain(attribute)
    for name, amount in device.capacity.items():
        domain, own = qualified(name, driver)
        capacity.setdefault(domain, {})[own] = _quantity(amount.value)
    shared = device.allow_multiple_allocations
    return {"driver": driver, "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": shared}


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and own name of an attribute; without a domain it is the driver's."""
    domain, slash, own = name.rpartition("/")
    return (domain, own) if slash else (driver, name)


def _plain(attribute: core.DeviceAttribute) -> object:
    if attribute.version is not None:
        return _semver(attribute.version)
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    return None


# -- quantities and versions: maps with one key, so that equal values are equal to CEL ---------------------------------


def _quantity(text: str | int | float) -> dict[str, str]:
    return {_QUANTITY: str(Fraction(quantities.parse(str(text))))}


def _semver(text: str) -> dict[str, str]:
    if _SEMVER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a semantic version")
    return {_VERSION: text.partition("+")[0]}


def _amount(value: Mapping[str, str]) -> Fraction:
    return Fraction(value[_QUANTITY])


def _precedence(value: Mapping[str, str]) -> tuple[object, ...]:
    """A key that sorts versions; one with a pre-release part comes before the one without."""
    found = _SEMVER.fullmatch(value[_VERSION])
    assert found is not None
    *numbers, early = found.groups()
    parts: list[tuple[int, int, str]] = []
    if early:
        parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in early.split(".")]
    return (*map(int, numbers), early is None, parts)


def _compare(left: Mapping[str, str], right: Mapping[str, str]) -> int:
    order: Callable[[Mapping[str, str]], Any] = _amount if _QUANTITY in left else _precedence
    first, second = order(left), order(right)
    return int(first > second) - int(first < second)


def _part(index: int) -> Callable[[Mapping[str, str]], object]:
    return lambda value: _precedence(value)[index]


def _as_integer(value: Mapping[str, str]) -> int:
    amount = _amount(value)
    if amount.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return amount.numerator


def _sign(value: Mapping[str, str]) -> int:
    amount = _amount(value)
    return int(amount > 0) - int(amount < 0)


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "quantity": _quantity,
    "semver": _semver,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "sign": _sign,
    "isInteger": lambda value: _amount(value).denominator == 1,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: float(_amount(value)),
    "add": lambda left, right: {_QUANTITY: str(_amount(left) + _amount(right))},
    "sub": lambda left, right: {_QUANTITY: str(_amount(left) - _amount(right))},
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
}
