"""The grammar of cron schedules (spec 07 section 18.1): says yes or no, computes no times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from stromboli.api import durations

DESCRIPTORS: Final = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_EVERY: Final = "@every "
_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class _Field:
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int | None:
        """A number or name of the field, ``None`` for anything else."""
        if text.lower() in self.names:
            return self.lowest + self.names.index(text.lower())
        return int(text) if _NUMBER.fullmatch(text) else None


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))


def is_schedule(text: str) -> bool:
    """Whether ``text`` is a schedule: five fields or a descriptor. Dates that never come are accepted."""
    if text.startswith("@"):
        return text in DESCRIPTORS or (text.startswith(_EVERY) and _is_duration(text.removeprefix(_EVERY)))
    parts = text.split()
    return len(parts) == len(_FIELDS) and all(map(_is_field, parts, _FIELDS))


def _is_duration(text: str) -> bool:
    try:
        durations.parse(text)
    except ValueError:
        return False
    return True


def _is_field(text: str, field: _Field) -> bool:
    return all(_is_element(element, field) for element in text.split(",") if element)


def _is_element(text: str, field: _Field) -> bool:
    span, slash, step = text.partition("/")
    if slash and not (_NUMBER.fullmatch(step) and int(step) >= 1):
        return False
    low_text, dash, high_text = span.partition("-")
    if low_text in ("*", "?"):
        return "-" not in high_text
    low = field.number(low_text)
    high = field.number(high_text) if dash else low
    return low is not None and high is not None and field.lowest <= low <= high <= field.highest
