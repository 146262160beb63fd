"""Consumable capacity: how much of a device's capacity a request takes (``allowMultipleAllocations``).

A request says what it wants of each capacity; the device's policy says what it gets: the default when it wants nothing,
the next valid amount when it wants one that is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from stromboli.api import quantities

if TYPE_CHECKING:
    from stromboli.api import core

Consumption = Mapping[str, Fraction]
"""Amounts by the name of the capacity, as the device spells it."""


def consumption(device: core.Device, asked: core.ResourceList) -> Consumption | None:
    """What a request takes of a shared device, every capacity named; None when it can never have what it asks for."""
    if not set(asked) <= set(device.capacity):
        return None
    taken = {}
    for name, capacity in device.capacity.items():
        amount = _granted(capacity, asked.get(name))
        if amount is None or amount > amount_of(capacity.value):
            return None
        taken[name] = amount
    return taken


def _granted(capacity: core.DeviceCapacity, asked: str | int | float | None) -> Fraction | None:
    policy = capacity.request_policy
    if asked is None:
        default = policy.default if policy is not None else None
        return amount_of(capacity.value if default is None else default)
    wanted = amount_of(asked)
    if policy is not None and policy.valid_values:
        return min((value for value in map(amount_of, policy.valid_values) if value >= wanted), default=None)
    if policy is not None and policy.valid_range is not None:
        return _within(policy.valid_range, wanted)
    return wanted


def _within(valid: core.CapacityRange, wanted: Fraction) -> Fraction | None:
    """The least amount of a range that is enough."""
    least = amount_of(valid.min or 0)
    amount = max(wanted, least)
    step = amount_of(valid.step or 0)
    if step > 0:
        amount = least + -((least - amount) // step) * step
    return None if valid.max is not None and amount > amount_of(valid.max) else amount


def amount_of(quantity: str | int | float) -> Fraction:
    """A quantity as an exact number."""
    return Fraction(quantities.parse(str(quantity)))
