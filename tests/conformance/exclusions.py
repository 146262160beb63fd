"""The one reviewed list of cases that this system answers differently on purpose.

``not_applicable.yaml`` maps a shell pattern for ``FILE::CASE ID`` to the reason. Everything else that is reported as
not applicable is derived from the case itself (an action or plugin that is not there), never from its name.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

import yaml

LIST = Path(__file__).with_name("not_applicable.yaml")


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Patterns with their reasons."""

    reasons: dict[str, str]

    @classmethod
    def read(cls, path: Path = LIST) -> Exclusions:
        """Load the list; every pattern needs a reason."""
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for pattern, reason in entries.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"{path.name}: {pattern!r} has no reason")
        return cls({pattern: " ".join(reason.split()) for pattern, reason in entries.items()})

    def reason(self, file: str, case: str) -> str | None:
        """Why this case is not applicable, or None when it must hold."""
        name = f"{file}::{case}"
        return next((reason for pattern, reason in self.reasons.items() if fnmatch.fnmatchcase(name, pattern)), None)

    def unused(self, names: set[str]) -> list[str]:
        """Patterns that match no case any more (``names`` are ``FILE::CASE ID``): the list must not rot."""
        return [pattern for pattern in self.reasons if not fnmatch.filter(names, pattern)]
