"""Amounts of resources: read from lists, summed, and written for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from stromboli.api import names, quantities

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(listed: Mapping[str, Any] | None, resource: str) -> Fraction | None:
    """What the list says of a resource; None when it says nothing or nothing readable."""
    value = (listed or {}).get(resource)
    try:
        return None if value is None else Fraction(quantities.parse(value))
    except (ValueError, TypeError):
        return None


def total(lists: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    """The sum of lists, by resource; what cannot be read counts as nothing."""
    result: dict[str, Fraction] = {}
    for listed in lists:
        for resource in listed:
            result[resource] = result.get(resource, Fraction()) + (amount(listed, resource) or Fraction())
    return result


def ordered(resources: Iterable[str]) -> list[str]:
    """Resources in the order in which people look for them: cpu, memory, then the others by name; no pod counts."""
    others = sorted(set(resources) - {names.CPU, names.MEMORY, names.PODS})
    return [names.CPU, names.MEMORY, *others]


def part(used: Fraction | float, of: Fraction | float | None) -> float:
    """The share of ``of`` that is used, at most 1; of nothing or of no amount, something is all of it."""
    if not of:
        return float(bool(used))
    return round(min(float(used / of), 1.0), 4)


def is_binary(resource: str) -> bool:
    """Whether amounts of the resource are bytes."""
    return resource in (names.MEMORY, names.EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


def is_minor(resource: str) -> bool:
    """Whether people only want to see it where somebody asks for it: disks and huge pages."""
    return resource == names.EPHEMERAL_STORAGE or resource.startswith("hugepages-")


def text(value: Fraction | float | None, resource: str) -> str:
    """The amount in three digits or so, with a binary prefix for bytes: ``12.5``, ``1,024``, ``1.5 Ti``."""
    if value is None:
        return ""
    number, suffix = float(value), ""
    if is_binary(resource):
        power = 0
        while abs(number) >= 1024 and power < len(_BINARY) - 1:
            number, power = number / 1024, power + 1
        suffix = f" {_BINARY[power]}".rstrip()
    return _digits(number) + suffix


def _digits(number: float) -> str:
    for limit, places in ((10, 2), (100, 1)):
        if abs(number) < limit:
            return f"{number:.{places}f}".rstrip("0").rstrip(".")
    return f"{number:,.0f}"
