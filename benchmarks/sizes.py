"""``python -m benchmarks.sizes``: lines per file and per function of our own tree, room by room.

Figures are median / 95th percentile / longest, as in the measurements of other projects that we compare ourselves with.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "stromboli"


@dataclass(slots=True)
class Room:
    """What was counted in one room."""

    name: str
    files: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    annotated: int = 0
    documented: int = 0

    def add(self, path: Path) -> None:
        """Counts one file."""
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        self.files.append(text.count("\n"))
        self.documented += ast.get_docstring(tree) is not None
        for function in _functions(tree):
            self.functions.append((function.end_lineno or function.lineno) - function.lineno + 1)
            self.annotated += _is_annotated(function)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            yield part


def _is_annotated(function: Function) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    untyped = [each for each in named if each.annotation is None and each.arg not in ("self", "cls")]
    return function.returns is not None and not untyped


def rooms() -> list[Room]:
    """Every room of the source, then tests and end-to-end tests."""
    places = sorted(path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__")
    named = [(f"src {path.name}", path) for path in places]
    named += [(name, ROOT / name) for name in ("tests", "e2e", "benchmarks")]
    return [_room(name, path) for name, path in named if path.is_dir()]


def _room(name: str, path: Path) -> Room:
    room = Room(name)
    for file in sorted(path.rglob("*.py")):
        room.add(file)
    return room


def _three(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    if not ordered:
        return "-"
    percentile = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return f"{statistics.median(ordered):.0f} / {percentile} / {ordered[-1]}"


def table(counted: Iterable[Room]) -> str:
    """The table, in Markdown."""
    lines = [
        "| room | files | lines | per file | per function | annotated | modules documented |",
        "|---|---|---|---|---|---|---|",
    ]
    for room in counted:
        annotated = f"{100 * room.annotated // max(len(room.functions), 1)} %"
        documented = f"{100 * room.documented // max(len(room.files), 1)} %"
        cells = (room.name, str(len(room.files)), f"{sum(room.files):,}".replace(",", " "), _three(room.files))
        lines.append(f"| {' | '.join((*cells, _three(room.functions), annotated, documented))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table(rooms()) + "\n")
