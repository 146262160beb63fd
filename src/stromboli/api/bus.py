"""``bus.volcano.sh/v1alpha1``: Command (spec 01 section 6)."""

from __future__ import annotations

from typing import ClassVar

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.api.meta import OwnerReference, Resource


class Command(Resource):
    """A one-shot order for a Job or queue; consumed by deleting it. Its fields are at the top level."""

    KIND: ClassVar[Kind] = kinds.COMMANDS

    action: str = ""
    """Action to run."""
    target: OwnerReference | None = None
    """Object the command is for."""
    reason: str = ""
    """Free text."""
    message: str = ""
    """Free text."""
