"""What a container's command would do, for the few commands whose outcome can be read off.

Understood: ``sleep N`` (with s, m, h, d or ``infinity``), ``exit N``, ``true``, ``false``, ``:``, ``echo TEXT``, alone
or in ``sh -c "..."`` joined by ``;``, newlines, ``&&`` and ``||``. Anything else is unknown, and the caller's default
applies.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_SHELLS = {"sh", "bash", "ash", "dash"}
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How long a command runs (seconds, may be infinite), its exit code and what it prints."""

    seconds: float
    exit_code: int
    output: tuple[str, ...] = ()


def outcome(argv: Sequence[str]) -> Outcome | None:
    """The outcome of a command line, or None when it cannot be told."""
    if not argv:
        return None
    program = argv[0].rsplit("/", 1)[-1]
    if program in _SHELLS:
        return _shell(argv[2]) if len(argv) >= 3 and argv[1] in ("-c", "-ec", "-xc") else None
    result = _simple([program, *argv[1:]])
    return None if result is None else result[0]


def _shell(script: str) -> Outcome | None:
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=True)
    try:
        words = list(lexer)
    except ValueError:
        return None
    seconds, code, output = 0.0, 0, list[str]()
    joint = ";"
    for operator, command in _split(words):
        joint = operator
        if (joint == "&&" and code != 0) or (joint == "||" and code == 0) or not command:
            continue
        step = _simple(command)
        if step is None:
            return None
        result, leaves = step
        seconds, code = seconds + result.seconds, result.exit_code
        output += result.output
        if leaves or math.isinf(seconds):
            break
    return Outcome(seconds, code, tuple(output))


def _split(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Simple commands with the operator before each."""
    parts: list[tuple[str, list[str]]] = [(";", [])]
    for word in words:
        if word in (";", "&&", "||", ";;"):
            parts.append((word[:2] if word != ";;" else ";", []))
        else:
            parts[-1][1].append(word)
    return parts


def _simple(command: Sequence[str]) -> tuple[Outcome, bool] | None:
    """Outcome of one simple command and whether it leaves the shell."""
    match [command[0].rsplit("/", 1)[-1], *command[1:]]:
        case ["true" | ":"]:
            return Outcome(0.0, 0), False
        case ["false"]:
            return Outcome(0.0, 1), False
        case ["exit"]:
            return Outcome(0.0, 0), True
        case ["exit", code] if code.isdigit():
            return Outcome(0.0, int(code) % 256), True
        case ["sleep", *durations] if durations:
            seconds = [_duration(text) for text in durations]
            known = [value for value in seconds if value is not None]
            return (Outcome(sum(known), 0), False) if len(known) == len(seconds) else None
        case ["echo", *words] if not set(words) & {">", ">>", "|", "&", "<"}:
            return Outcome(0.0, 0, (" ".join(words),)), False
        case _:
            return None


def _duration(text: str) -> float | None:
    if text in ("infinity", "inf"):
        return math.inf
    unit = _UNITS.get(text[-1:])
    number = text[:-1] if unit is not None else text
    try:
        value = float(number)
    except ValueError:
        return None
    return value * (unit or 1.0) if value >= 0 else None
