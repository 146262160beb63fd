"""Bool-strings of labels and annotations (spec 01 section 1.2)."""

from __future__ import annotations

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse(text: str) -> bool | None:
    """True or False for the twelve accepted spellings, None for anything else."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None
