"""The part of kubectl's JSON path that printer columns use: fields, indexes, ``[*]`` and ``[?(@.a=="b")]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>[^.\[\]'"]+)
      | \[\s*'(?P<quoted>[^']+)'\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | (?P<all>\[\*\])
      | \[\?\(\s*@\.(?P<key>[^=!\s]+)\s*(?P<operator>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]""",
    re.VERBOSE,
)
Step = Callable[[Any], Iterator[Any]]


def find(value: Any, path: str) -> list[Any]:
    """Everything that ``path`` leads to; nothing when the path cannot be read."""
    found = [value]
    for step in _steps(path):
        found = [below for one in found for below in step(one)]
    return found


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("$").replace("\\.", "\0")
    if text and not text.startswith((".", "[")):
        text = "." + text
    steps = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return (lambda value: iter(()),)
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    name = match["field"] or match["quoted"]
    if name:
        return _field(name.replace("\0", "."))
    if match["index"]:
        index = int(match["index"])
        return lambda value: iter(value[index : index + 1 or None]) if isinstance(value, list) else iter(())
    if match["all"]:
        return _everything
    return _filter(match["key"], match["operator"] == "==", match["value"].strip("\"'"))


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _everything(value: Any) -> Iterator[Any]:
    return iter(value) if isinstance(value, list) else iter(value.values() if isinstance(value, dict) else ())


def _filter(key: str, wanted: bool, text: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = find(item, key)
            if (bool(found) and str(found[0]) == text) == wanted:
                yield item

    return step
