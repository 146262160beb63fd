"""Finds and loads vector files: where they are, what a case looks like.

``DIR`` may hold ``scheduler/`` and ``webhooks/`` or be one of the two. Without an argument the environment variable
``CONFORMANCE_DIR`` names it, else the directory ``../shared/conformance`` beside the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

JsonObject = dict[str, Any]

DEFAULT_DIRECTORY = Path(__file__).resolve().parents[2] / ".." / "shared" / "conformance"


@dataclass(frozen=True, slots=True)
class VectorFile:
    """One file of scheduler vectors."""

    name: str
    cases: tuple[JsonObject, ...]

    @property
    def is_sessions(self) -> bool:
        """Whole scheduling cycles, as opposed to single calls."""
        return self.name.endswith(".sessions.json")


def directory(argument: str | None = None) -> Path:
    """The directory that holds the vectors; it need not exist."""
    return Path(argument or os.environ.get("CONFORMANCE_DIR") or DEFAULT_DIRECTORY).resolve()


def suite(root: Path, name: str) -> Path | None:
    """Directory of one suite (``scheduler`` or ``webhooks``): under ``root``, or ``root`` itself."""
    for candidate in (root / name, root):
        if candidate.name == name and any(candidate.glob("*.json")):
            return candidate
    return None


def scheduler_files(root: Path) -> Iterator[VectorFile]:
    """The scheduler's vector files by name; a file that is not JSON is an error that names it."""
    scheduler = suite(root, "scheduler")
    for path in sorted(scheduler.glob("*.json")) if scheduler else ():
        yield load(path)


def load(path: Path) -> VectorFile:
    """Read one file of scheduler vectors."""
    try:
        content = orjson.loads(path.read_bytes())
        return VectorFile(path.name, tuple(content["cases"]))
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of vectors: {error}") from error
