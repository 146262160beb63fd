"""Arguments of the ``mpi`` job plugin, as far as admission needs them: the master task's name (spec 07 section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

DEFAULT_MASTER: Final = "master"
_FLAGS: Final = frozenset(("master", "worker", "port"))


def master_name(arguments: Sequence[str]) -> str:
    """The master task's name; where arguments cannot be parsed, what was understood up to there counts."""
    given = dict(_flags(arguments))
    return given.get("master", DEFAULT_MASTER)


def _flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Flags in Go's manner: ``--x=v``, ``-x=v``, ``--x v``, ``-x v``; the first thing that is no flag ends them."""
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if not argument.startswith("-") or name not in _FLAGS:
            return
        text = value if equals else next(remaining, None)
        if text is None or (name == "port" and not text.lstrip("+-").isdecimal()):
            return
        yield name, text
