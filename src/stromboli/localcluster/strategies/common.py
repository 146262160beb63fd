"""A strategy that does nothing, for kinds to refine, and small tools of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.localcluster.schemas.validating import bad
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object


class Plain:
    """Nothing is particular; kinds override what is."""

    def default(self, obj: Object) -> None:
        """Nothing to fill in."""

    def prepare_create(self, obj: Object) -> None:
        """Nothing to set."""

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Nothing to carry over."""

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        """Nothing to check beyond what all kinds share."""
        return []


def spec_of(obj: Object, name: str = "spec") -> dict[str, Any]:
    """The object's ``spec`` (or another part), put there when it is missing."""
    spec = obj.get(name)
    if not isinstance(spec, dict):
        spec = obj[name] = {}
    return spec


def set_defaults(obj: dict[str, Any], **defaults: Any) -> None:
    """Fill in fields that are missing or null."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = value


def immutable(path: str, new: Any, old: Any) -> Iterator[Cause]:
    """``field is immutable`` when the values differ."""
    if new != old:
        yield bad(path, new, "field is immutable")
