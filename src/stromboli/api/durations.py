"""Durations as Go writes them: ``1h30m``, ``1.5s``, ``250ms``, ``-2m`` (spec 01 section 1.2).

Inside the system a duration is an integer of nanoseconds or, through :func:`seconds`, a float of seconds.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

NANOSECOND = 1
MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

LONGEST = 2**63 - 1
"""Go's longest duration, about 292 years, in nanoseconds."""

_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # micro sign
    "\u03bcs": MICROSECOND,  # Greek mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_SMALL_UNITS = (("ms", MILLISECOND), ("\u00b5s", MICROSECOND), ("ns", NANOSECOND))
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")


class BadDuration(ValueError):
    """A text that is no duration; the message quotes it."""


@lru_cache(maxsize=4096)
def parse(text: str) -> int:
    """Nanoseconds. Raises :class:`BadDuration`, also beyond Go's range. A lone ``0`` needs no unit."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body == "0":
        return 0
    total, end = 0, 0
    while match := _PART.match(body, end):
        total += int(Decimal(match[1]) * _UNITS[match[2]])
        end = match.end()
    if end == 0 or end != len(body):
        raise BadDuration(f"{text!r} is not a duration; write for example 90s, 1m30s or 1.5h")
    if total > LONGEST:
        raise BadDuration(f"{text!r} is longer than 2562047h47m16s")
    return sign * total


def seconds(text: str) -> float:
    """Seconds. Raises :class:`BadDuration`."""
    return parse(text) / SECOND


def format(nanoseconds: int) -> str:  # noqa: A001
    """The canonical text: ``0s``, ``1m30s``, ``1h0m0s``, ``1.5s``, ``250ms``."""
    if nanoseconds < 0:
        return "-" + format(-nanoseconds)
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < SECOND:
        unit, size = next(
            (u, s) for u, s in (("ms", MILLISECOND), ("\u00b5s", MICROSECOND), ("ns", 1)) if nanoseconds >= s
        )
        return _decimal(nanoseconds, size) + unit
    hours, rest = divmod(nanoseconds, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    text = _decimal(rest, SECOND) + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def from_seconds(amount: float) -> str:
    """The canonical text of seconds, to the nanosecond."""
    return format(round(amount * SECOND))


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}"
