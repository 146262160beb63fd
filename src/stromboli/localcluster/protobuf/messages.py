"""The table of messages and fields (``messages.txt``), which also knows exact types that the client models do not."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple


class Field(NamedTuple):
    """One field of a message."""

    name: str
    type: str
    is_list: bool
    is_map: bool
    is_inline: bool


@cache
def messages() -> dict[str, dict[int, Field]]:
    """Fields of every message by their number; messages are named ``core.v1.Pod``."""
    text = resources.files(__package__).joinpath("messages.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: dict(map(_field, fields)) for name, *fields in rows}


def _field(text: str) -> tuple[int, Field]:
    name, _, rest = text.lstrip("~").partition("=")
    number, _, declared = rest.partition(":")
    is_list, is_map = declared.startswith("[]"), declared.startswith("{}")
    return int(number), Field(name, declared.removeprefix("[]").removeprefix("{}"), is_list, is_map, text[0] == "~")


@cache
def wire_types() -> dict[tuple[str, str], str]:
    """Exact types (``int64``, ``resource.Quantity``, ...) by message and field, as in ``("Container", "image")``.

    Lists and maps count as what they hold. Where groups share a message's name, the core group's wins.
    """
    found: dict[tuple[str, str], str] = {}
    for name, fields in sorted(messages().items(), key=lambda one: one[0].startswith("core."), reverse=True):
        for field in fields.values():
            found.setdefault((name.rpartition(".")[2], field.name), field.type)
    return found
