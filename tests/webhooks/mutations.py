"""Damage to JSON values and to the bytes of reviews, the same every time for the same random numbers."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson

Place = tuple[Any, Any]
"""A container and a key in it."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308, "", " ", "0", "-1", "NaN",
    "a" * 300, "\x00", "\ud7ff", "Ω≈ç√", "💣", "../..", "a/b/c", "*", "%", "100%", "1e400", "9" * 400, "1Ki", ".",
    "@every 1h", "((((((((((", "[z-a]", "(?P<n>", "a{1000}", [], {}, [[]], {"": ""}, [None], {"a": None}, "root",
    "default",
)  # fmt: skip
"""Values that break what is not careful."""


def places(value: Any) -> Iterator[Place]:
    """Every member of every container in ``value``."""
    waiting = [value]
    while waiting:
        container = waiting.pop()
        keys = container if isinstance(container, dict) else range(len(container))
        for key in list(keys):
            yield container, key
            if isinstance(container[key], dict | list):
                waiting.append(container[key])


def damaged(value: Any, dice: random.Random) -> Any:
    """A copy of ``value`` with one to four injuries."""
    value = copy.deepcopy(value)
    for _ in range(dice.randint(1, 4)):
        found = list(places(value))
        if not found:
            return dice.choice(ODD)
        container, key = dice.choice(found)
        dice.choice(INJURIES)(container, key, dice)
    return value


def _replace(container: Any, key: Any, dice: random.Random) -> None:
    container[key] = copy.deepcopy(dice.choice(ODD))


def _drop(container: Any, key: Any, dice: random.Random) -> None:
    del container[key]


def _wrap(container: Any, key: Any, dice: random.Random) -> None:
    for _ in range(dice.choice((1, 3, 200, 400))):
        container[key] = dice.choice(([container[key]], {"a": container[key]}))


def _repeat(container: Any, key: Any, dice: random.Random) -> None:
    count = dice.choice((2, 20, 60))
    container[key] = [container[key]] * count if dice.random() < 0.5 else str(container[key])[:200] * count


def _swap(container: Any, key: Any, dice: random.Random) -> None:
    """Put a member under another member's name."""
    others = list(container) if isinstance(container, dict) else list(range(len(container)))
    container[dice.choice(others)] = container[key]


def _rename(container: Any, key: Any, dice: random.Random) -> None:
    if isinstance(container, dict):
        container[dice.choice(("", "name", "spec", "metadata", str(key).upper(), f"{key}\u200b"))] = container.pop(key)


INJURIES: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    _replace,
    _replace,
    _drop,
    _wrap,
    _repeat,
    _swap,
    _rename,
)


def body_of(value: Any, dice: random.Random) -> bytes:
    """The bytes of a review, sometimes hurt as well."""
    try:
        body = orjson.dumps(value)
    except orjson.JSONEncodeError:  # Deeper than the library writes.
        return b"[" * 5000
    return body if dice.random() < 0.8 else _hurt(body, dice)


def _hurt(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    match dice.randrange(5):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + bytes([body[at] ^ (1 << dice.randrange(8))]) + body[at + 1 :]
        case 2:
            return body[:at] + dice.randbytes(4) + body[at:]
        case 3:
            return body[at:] + body[:at]
        case _:
            return body + b" " * dice.choice((1, 10_000)) + body[: dice.randrange(3)]
