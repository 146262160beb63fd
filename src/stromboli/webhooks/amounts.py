"""Quantities and resource lists as admission judges and prints them (spec 07 sections 6, 9.3 and 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.api import quantities
from stromboli.api.quantities import Quantity
from stromboli.api.resourcenames import is_extended
from stromboli.webhooks.errors import FieldError, invalid
from stromboli.webhooks.shapes import ResourceList

_COUNTED: Final = frozenset(
    ("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
     "services.nodeports", "services.loadbalancers")
)  # fmt: skip
"""Names without a prefix that count objects."""

_GRAMMAR_TEXT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def malformed(resources: ResourceList, field: str, *, bracketed: bool = False) -> Iterator[FieldError]:
    """An error for each entry of ``resources`` that is no quantity; nothing else here accepts such an entry."""
    for name, amount in sorted(resources.items()):
        if not quantities.is_quantity(amount):
            yield invalid(entry(field, name, bracketed=bracketed), str(amount), _GRAMMAR_TEXT)


def entry(field: str, name: str, *, bracketed: bool) -> str:
    """Path of one entry of a resource list: ``limits[cpu]`` in pods, ``capability.cpu`` in queues."""
    return f"{field}[{name}]" if bracketed else f"{field}.{name}"


def amount_faults(name: str, amount: Quantity, field: str) -> Iterator[FieldError]:
    """Negative amounts, and fractions of what is counted."""
    if quantities.parse(amount) < 0:
        yield invalid(field, quantities.canonical(amount), "must be greater than or equal to 0")
    if is_whole(name) and quantities.milli(amount) % 1000:
        yield invalid(field, quantities.canonical(amount), "must be an integer")


def is_whole(name: str) -> bool:
    """Whether only whole amounts of ``name`` make sense."""
    return is_extended(name) or name in _COUNTED
