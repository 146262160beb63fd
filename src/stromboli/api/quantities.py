"""Kubernetes quantities, exactly: ``100m``, ``1.5Gi``, ``2e3``, ``-1``.

Values are :class:`fractions.Fraction`, so nothing is rounded until a whole number is asked for, and then away from zero
as Kubernetes does. As in ``resource.Quantity``, numbers finer than a nano are rounded away from zero to a nano, and
sizes are capped at 2^63 - 1.
Grammar: spec 01 section 1.1. Each text is parsed once; the caches are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from stromboli.api.unreadable import Unreadable

Quantity: TypeAlias = str | int | float
"""A quantity as the wire has it: text, or a bare number where the schema allows one."""

Style: TypeAlias = Literal["decimal", "binary", "exponent"]
"""How a quantity is written: ``k M G``, ``Ki Mi Gi``, or ``e3 e6 e9``."""

_BINARY = {suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_GRAMMAR = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<exponent>[eE][+-]?[0-9]+)|(?P<decimal>[numkMGTPE]?))",
)
_NANO = 10**9
_LARGEST = Fraction(2**63 - 1)
_LARGEST_EXPONENT = 400
"""Beyond this every number is out of range, and computing the power would only cost time."""
_LONGEST_TEXT = 256


class BadQuantity(Unreadable):
    """A text that is no quantity; the message quotes it."""


@lru_cache(maxsize=65536)
def parse(quantity: Quantity) -> Fraction:
    """The exact value. Raises :class:`BadQuantity`."""
    return _parse(quantity)[0]


@lru_cache(maxsize=65536)
def milli(quantity: Quantity) -> int:
    """Thousandths, rounded away from zero: ``1.5`` is 1500, ``1n`` is 1. Raises :class:`BadQuantity`."""
    return _away(_parse(quantity)[0] * 1000)


@lru_cache(maxsize=65536)
def value(quantity: Quantity) -> int:
    """The whole number, rounded away from zero: ``1.5Ki`` is 1536, ``100m`` is 1. Raises :class:`BadQuantity`."""
    return _away(_parse(quantity)[0])


def thousandths(amount: int) -> Fraction:
    """``amount`` milli as an exact value."""
    return Fraction(amount, 1000)


def is_quantity(quantity: object) -> bool:
    """Whether :func:`parse` accepts it."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return False
    try:
        parse(quantity)
    except BadQuantity:
        return False
    return True


def style_of(quantity: Quantity) -> Style:
    """The style a quantity is written in; plain numbers are decimal. Raises :class:`BadQuantity`."""
    return _parse(quantity)[1]


@lru_cache(maxsize=16384)
def format(amount: Fraction | int, style: Style = "decimal") -> str:  # noqa: A001
    """The canonical text: the largest suffix that leaves a whole number.

    Binary style falls back to decimal for amounts that are no whole number or below 1024 in size, as Kubernetes does.
    """
    exact = Fraction(_away(Fraction(amount) * _NANO), _NANO)
    if exact == 0:
        return "0"
    if style == "binary" and exact.denominator == 1 and abs(exact) >= 1024:
        return _format_binary(exact.numerator)
    return _format_decimal(exact, exponents=style == "exponent")


def canonical(quantity: Quantity) -> str:
    """The canonical text in the style it is written in: ``1000m`` is ``1``, ``2048Mi`` is ``2Gi``."""
    amount, style = _parse(quantity)
    return format(amount, style)


def equal(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> bool:
    """Whether two resource lists name the same resources with the same amounts, however they are written."""
    return left.keys() == right.keys() and all(parse(amount) == parse(right[name]) for name, amount in left.items())


@lru_cache(maxsize=65536)
def _parse(quantity: Quantity) -> tuple[Fraction, Style]:
    # repr keeps every digit of a float that JSON had; bool is an int to Python but no quantity.
    text = quantity if isinstance(quantity, str) else repr(quantity)
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise BadQuantity(f"{text[:64]!r} is not a quantity; write for example 500m, 2 or 4Gi")
    number, binary, exponent = match.group("number", "binary", "exponent")
    amount = Fraction(number)
    if binary:
        return _in_range(amount * _BINARY[binary]), "binary"
    power = int(exponent[1:]) if exponent else _DECIMAL[match.group("decimal")]
    power = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, power))
    return _in_range(amount * Fraction(10) ** power), "exponent" if exponent else "decimal"


def _in_range(amount: Fraction) -> Fraction:
    if abs(amount) > _LARGEST:
        return _LARGEST if amount > 0 else -_LARGEST
    return amount if _NANO % amount.denominator == 0 else Fraction(_away(amount * _NANO), _NANO)


def _away(amount: Fraction) -> int:
    if amount.denominator == 1:
        return amount.numerator
    whole = abs(amount).__ceil__()
    return whole if amount > 0 else -whole


def _format_binary(whole: int) -> str:
    chosen, size = "", 1
    for suffix, factor in _BINARY.items():
        if whole % factor == 0:
            chosen, size = suffix, factor
    return f"{whole // size}{chosen}"


def _format_decimal(amount: Fraction, *, exponents: bool) -> str:
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = amount / Fraction(10) ** power
        if scaled.denominator == 1:
            if exponents and power:
                return f"{scaled.numerator}e{power}"
            return f"{scaled.numerator}{suffix}"
    raise AssertionError("amounts are multiples of a nano")
