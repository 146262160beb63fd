"""Pauses that double each time: what may be done again, but less and less often. Nobody waits longer than before."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float
    until: float


class Pauses(Generic[K]):
    """One for each key; times are seconds since the epoch."""

    def __init__(self) -> None:
        self._known: dict[K, _Pause] = {}

    def begin(self, key: K, now: float, first: float) -> None:
        """The first pause, or one twice as long as the last."""
        known = self._known.get(key)
        seconds = first if known is None else 2.0 * known.seconds
        self._known[key] = _Pause(seconds, now + seconds)

    def lasts(self, key: K, now: float) -> bool:
        """Whether there is a pause now."""
        known = self._known.get(key)
        return known is not None and now < known.until

    def keep(self, wanted: Callable[[K], bool]) -> None:
        """Forget the others: their next pause is a first one."""
        self._known = {key: pause for key, pause in self._known.items() if wanted(key)}
