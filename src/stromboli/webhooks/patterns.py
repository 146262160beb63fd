"""Regular expressions as users of HyperNodes know them: RE2, which has no look-around and no exponential search.

Python's ``re`` accepts other expressions and can be made to run for hours by one of them, so it has no say here.
"""

from __future__ import annotations

from typing import Final

import re2  # type: ignore[import-untyped]

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False

_GO_REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
"""The library's reasons in the words that clients have always seen, where the two differ."""


def fault(pattern: str) -> str | None:
    """``<reason>: `<offending part>``` where the pattern does not compile, else ``None``."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        return _in_go_words(_text(error))
    return None


def _text(error: Exception) -> str:
    first = error.args[0] if error.args else ""
    return first.decode(errors="replace") if isinstance(first, bytes) else str(first)


def _in_go_words(text: str) -> str:
    reason, colon, part = text.partition(": ")
    words = _GO_REASONS.get(reason, reason)
    return f"{words}: `{part}`" if colon else f"{words}: ``"
