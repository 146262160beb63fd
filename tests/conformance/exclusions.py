"""The one reviewed list of cases that this system answers differently on purpose.

``not_applicable.yaml`` maps a shell pattern for ``FILE::CASE ID``, or ``property: NAME``, to the reason. Everything
else that is reported as not applicable is derived from the case itself (an action or plugin that is not there), never
from its name.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.conformance.properties import PROPERTIES
from tests.conformance.vectors import JsonObject

LIST = Path(__file__).with_name("not_applicable.yaml")
_MARK = "property: "


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Patterns with their reasons."""

    reasons: dict[str, str]
    properties: dict[str, str] = field(default_factory=dict)
    """Name of a property of ``properties.PROPERTIES`` to the reason."""

    @classmethod
    def read(cls, path: Path = LIST) -> Exclusions:
        """Load the list; every pattern needs a reason."""
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for pattern, reason in entries.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"{path.name}: {pattern!r} has no reason")
        reasons = {pattern: " ".join(reason.split()) for pattern, reason in entries.items()}
        properties = {key.removeprefix(_MARK): reasons.pop(key) for key in list(reasons) if key.startswith(_MARK)}
        unknown = sorted(properties.keys() - PROPERTIES.keys())
        if unknown:
            raise ValueError(f"{path.name}: there is no property {', '.join(unknown)}")
        return cls(reasons, properties)

    def reason(self, file: str, case: str) -> str | None:
        """Why this case is not applicable, or None when it must hold."""
        name = f"{file}::{case}"
        return next((reason for pattern, reason in self.reasons.items() if fnmatch.fnmatchcase(name, pattern)), None)

    def reason_within(self, case: JsonObject) -> str | None:
        """Why this case is not applicable by what upstream did in it, or None."""
        return next((reason for name, reason in self.properties.items() if PROPERTIES[name](case)), None)

    def unused(self, names: set[str]) -> list[str]:
        """Patterns that match no case any more (``names`` are ``FILE::CASE ID``): the list must not rot."""
        return [pattern for pattern in self.reasons if not fnmatch.filter(names, pattern)]
