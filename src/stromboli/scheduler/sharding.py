"""The nodes that belong to this scheduler when several share a cluster by NodeShards (spec 04 section 22).

Own nodes are those that the own NodeShard desires and that no other shard still uses. They are worked out anew before
every cycle, and what is in use is told in the own status after it, when it differs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from stromboli.api import core
from stromboli.api.kinds import NODE_SHARDS
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError
from stromboli.kube.json import JsonObject
from stromboli.scheduler.coalescing import LatestWriter
from stromboli.scheduler.core.shards import nodes_of

log = logging.getLogger(__name__)

WRITE_SPACING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """What the own NodeShard is to say."""

    in_use: frozenset[str]
    to_remove: frozenset[str]
    to_add: frozenset[str]

    @classmethod
    def of(cls, in_use: frozenset[str], desired: Iterable[str]) -> ShardStatus:
        """Derived from what is in use and what is desired."""
        wanted = frozenset(desired)
        return cls(in_use, in_use - wanted, wanted - in_use)

    @classmethod
    def read(cls, status: core.NodeShardStatus) -> ShardStatus:
        """What the object says now."""
        return cls(frozenset(status.nodes_in_use), frozenset(status.nodes_to_remove), frozenset(status.nodes_to_add))

    def to_wire(self) -> JsonObject:
        """The fields of the status."""
        return {
            "nodesInUse": sorted(self.in_use),
            "nodesToRemove": sorted(self.to_remove),
            "nodesToAdd": sorted(self.to_add),
        }


class Shards:
    """The own shard, as of the last look."""

    def __init__(self, name: str) -> None:
        self.in_use: frozenset[str] = frozenset()
        self._name = name

    def look(self, shards: Mapping[tuple[str, str], core.NodeShard]) -> ShardStatus | None:
        """Take in the present NodeShards; answers the status to write, None when nothing is to be written.

        While the own object does not exist, the nodes in use stay what they were.
        """
        own, found = shards.get(("", self._name)), nodes_of(self._name, shards.values())
        if own is None or found is None:
            return None
        self.in_use = found
        status = ShardStatus.of(self.in_use, own.spec.nodes_desired)
        return status if status != ShardStatus.read(own.status) else None


class ShardWriter:
    """Writes the own status, the latest word only."""

    def __init__(self, client: Client, name: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._writer = LatestWriter[str, ShardStatus](
            "scheduler-shard", self._write, workers=1, spacing=WRITE_SPACING_SECONDS, clock=clock
        )

    def submit(self, status: ShardStatus | None) -> None:
        """Write this status as soon as possible."""
        if status is not None:
            self._writer.put(self._name, status)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._writer.run()

    async def _write(self, name: str, status: ShardStatus) -> None:
        moment = datetime.fromtimestamp(self._clock.time(), UTC)
        body = {"status": {**status.to_wire(), "lastUpdateTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}}
        try:
            await self._client.patch(NODE_SHARDS, name, body, subresource="status")
        except KubeError as error:  # the next cycle sees the difference again
            log.warning("NodeShard %s: status could not be written: %s", name, error)
