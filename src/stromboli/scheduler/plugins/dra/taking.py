"""What is taken of devices: as a whole, in shares, and of counters that devices have in common.

Devices are told apart by driver, pool and name. One that several claims may have is taken in shares, each with a part
of its capacity. One that consumes counters takes of them what it says for as long as anybody has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from stromboli.scheduler.plugins.dra.sharing import Consumption, amount_of

if TYPE_CHECKING:
    from stromboli.api import core


class DeviceId(NamedTuple):
    """Identity of a device in the cluster."""

    driver: str
    pool: str
    name: str


class CounterId(NamedTuple):
    """Identity of a counter: its set is known in a pool under its name, or in one slice of the pool."""

    driver: str
    pool: str
    slice: int
    set: str
    name: str


class Draw(NamedTuple):
    """What a device takes of a counter, and how much there is of it in all."""

    counter: CounterId
    amount: Fraction
    limit: Fraction


Draws = Mapping[DeviceId, tuple[Draw, ...]]
"""What devices take of counters; devices that take nothing are absent."""


class Taken:
    """Devices in use. What is added and what is removed are exact opposites."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._users: Counter[DeviceId] = Counter()
        self._whole: Counter[DeviceId] = Counter()
        self._consumed: dict[tuple[DeviceId, str], Fraction] = {}
        self._drawn: dict[CounterId, Fraction] = {}

    def copy(self) -> Taken:
        """The same in books of their own."""
        copied = Taken(self._draws)
        copied._users, copied._whole = self._users.copy(), self._whole.copy()
        copied._consumed, copied._drawn = self._consumed.copy(), self._drawn.copy()
        return copied

    def take(self, device: DeviceId, share: Consumption | None = None) -> None:
        """Somebody has a device, or a share of it."""
        self._note(device, share, 1)

    def give_back(self, device: DeviceId, share: Consumption | None = None) -> None:
        """The reverse of :meth:`take`."""
        self._note(device, share, -1)

    def add(self, allocation: core.DeviceAllocation) -> None:
        """Takes everything that an allocation has for itself: with administrative access it only looks at devices."""
        for device, share in uses(allocation):
            self.take(device, share)

    def remove(self, allocation: core.DeviceAllocation) -> None:
        """The reverse of :meth:`add`."""
        for device, share in uses(allocation):
            self.give_back(device, share)

    def _note(self, device: DeviceId, share: Consumption | None, sign: int) -> None:
        before = self._users[device]
        self._users[device] += sign
        if (before > 0) != (self._users[device] > 0):
            for draw in self._draws.get(device, ()):
                self._drawn[draw.counter] = self._drawn.get(draw.counter, Fraction(0)) + sign * draw.amount
        if share is None:
            self._whole[device] += sign
            return
        for name, amount in share.items():
            key = (device, name)
            self._consumed[key] = self._consumed.get(key, Fraction(0)) + sign * amount

    def is_used(self, device: DeviceId) -> bool:
        """Whether anybody has the device or a share of it."""
        return self._users[device] > 0

    def is_whole(self, device: DeviceId) -> bool:
        """Whether somebody has the device alone."""
        return self._whole[device] > 0

    def consumed(self, device: DeviceId, capacity: str) -> Fraction:
        """How much of a capacity all shares have together."""
        return self._consumed.get((device, capacity), Fraction(0))

    def drawn(self, counter: CounterId) -> Fraction:
        """How much of a counter all devices in use have together."""
        return self._drawn.get(counter, Fraction(0))


def is_free(
    device: DeviceId,
    draws: Sequence[Draw],
    share: Consumption | None,
    capacity: Mapping[str, core.DeviceCapacity],
    books: Sequence[Taken],
) -> bool:
    """Whether a device, or with ``share`` a share of it, is still to be had by several books taken together."""
    if any(book.is_whole(device) if share is not None else book.is_used(device) for book in books):
        return False
    if any(
        sum((book.consumed(device, name) for book in books), amount) > amount_of(capacity[name].value)
        for name, amount in (share or {}).items()
    ):
        return False
    if any(book.is_used(device) for book in books):
        return True  # its counters have been drawn on already
    return all(sum((book.drawn(draw.counter) for book in books), draw.amount) <= draw.limit for draw in draws)


def uses(allocation: core.DeviceAllocation) -> Iterable[tuple[DeviceId, Consumption | None]]:
    """The devices that an allocation has for itself, each with what it consumes if it is a share."""
    for result in allocation.devices.results:
        if not result.admin_access:
            consumed = {name: amount_of(amount) for name, amount in result.consumed_capacity.items()}
            yield DeviceId(result.driver, result.pool, result.device), consumed if result.share_id else None
