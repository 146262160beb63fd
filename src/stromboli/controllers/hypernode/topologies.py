"""What a source finds: HyperNodes as they should be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from stromboli.api.phases import MemberType
from stromboli.kube.json import JsonObject


class SourceError(Exception):
    """A source that cannot start as it is configured; one line that names the setting."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """A HyperNode that should exist. Its members are all of one type and known by name."""

    name: str
    tier: int
    member_type: MemberType
    members: tuple[str, ...]
    tier_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> JsonObject:
        """``spec`` of the HyperNode."""
        members = [
            {"type": self.member_type.value, "selector": {"exactMatch": {"name": name}}} for name in self.members
        ]
        named = {"tierName": self.tier_name} if self.tier_name else {}
        return {"tier": self.tier, **named, "members": members}


Publish: TypeAlias = Callable[[Sequence[Discovered]], Awaitable[bool]]
"""Takes a complete picture and returns once the cluster looks like it; false when some of it could not be written."""


class Source(Protocol):
    """Where HyperNodes come from. Implement this and register a maker in :data:`.sources.SOURCES`."""

    async def run(self, publish: Publish) -> None:
        """Look, publish, and look again when something may have changed, until cancelled.

        What cannot be found out is not published: an empty picture deletes everything that the source has made.
        """
        ...
