"""Regular expressions of members: RE2, as admission checks them, so that no expression can take for ever."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import re2  # type: ignore[import-untyped]

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=4096)
def finder(pattern: str) -> Callable[[str], bool]:
    """Tells whether a name contains a match; one that does not compile is contained in no name."""
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except re2.error:
        return lambda _name: False
    return lambda name: search(name) is not None
