"""Object metadata, the base of all hot structs, and the clock-free reading of wire times."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeAlias

import msgspec

ResourceList: TypeAlias = dict[str, str | int | float]
"""Resource name to quantity as the wire has it."""


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the hot structs: immutable, camelCase on the wire, unknown fields ignored, zero values left out.

    The garbage collector does not track them, which is safe because objects read from JSON hold no cycles.
    """


class OwnerReference(Struct, frozen=True, kw_only=True):
    """``metav1.OwnerReference``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


@lru_cache(maxsize=16384)
def _shared_owners(owners: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    return owners


class ObjectMeta(Struct, frozen=True, kw_only=True):
    """``metav1.ObjectMeta`` without managed fields."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Share owner references: all pods of a Job have the same."""
        if self.owner_references:
            msgspec.structs.force_setattr(self, "owner_references", _shared_owners(self.owner_references))


class Object(Struct, frozen=True, kw_only=True):
    """Anything with metadata. Identity is namespace, name and UID."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """``metadata.uid``."""
        return self.metadata.uid

    @property
    def key(self) -> tuple[str, str]:
        """``(namespace, name)``."""
        return (self.metadata.namespace, self.metadata.name)

    @property
    def deleting(self) -> bool:
        """Whether a deletion time is set."""
        return self.metadata.deletion_timestamp is not None

    @property
    def created(self) -> float:
        """Creation time in seconds since the epoch; 0 when unset."""
        return timestamp(self.metadata.creation_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)


@lru_cache(maxsize=65536)
def timestamp(text: str | None) -> float:
    """Seconds since the epoch of an RFC 3339 time; 0.0 for an absent one.

    Raises ValueError naming the text when it is not a time with a zone.
    """
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-06-24T09:17:58Z") from error
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write for example {text}Z")
    return moment.astimezone(UTC).timestamp()
