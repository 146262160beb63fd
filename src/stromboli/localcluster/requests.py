"""What callers may say beside the object: options of writes and deletions, selectors of lists, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from stromboli.localcluster.extending import SYSTEM, User, ignore_warning
from stromboli.localcluster.storage import Object, Stored

FieldValidation = Literal["Ignore", "Warn", "Strict"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of create, update and patch. The defaults are those of the controllers inside the server."""

    user: User = SYSTEM
    dry_run: bool = False
    field_manager: str = ""
    """Without a manager the write leaves ``managedFields`` alone."""
    field_validation: FieldValidation = "Ignore"
    force: bool = False
    """Server-side apply: take over fields that others manage."""
    warn: Callable[[str], None] = ignore_warning


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion. ``grace_period`` is in seconds; None takes the kind's default."""

    user: User = SYSTEM
    dry_run: bool = False
    propagation: Propagation | None = None
    grace_period: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    warn: Callable[[str], None] = ignore_warning


INTERNAL = WriteOptions()
INTERNAL_DELETE = DeleteOptions()


@dataclass(frozen=True, slots=True)
class Deleted:
    """How a deletion went: the object's last or present state, and whether it is gone already."""

    obj: Object
    gone: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """A consistent list at ``revision``."""

    items: list[Stored] = field(default_factory=list)
    revision: int = 0
    continue_token: str = ""
    remaining: int = 0

    @property
    def objects(self) -> list[Object]:
        """The items as (read-only) dicts."""
        return [stored.object for stored in self.items]
