"""Which nodes are whose when several schedulers share a cluster by NodeShards (spec 04 section 22)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api import core


def nodes_of(name: str, shards: Iterable[core.NodeShard]) -> frozenset[str] | None:
    """Nodes that the shard desires and that no other still uses; None when there is no shard of that name."""
    known = {shard.name: shard for shard in shards}
    own = known.pop(name, None)
    if own is None:
        return None
    taken = frozenset(node for shard in known.values() for node in shard.status.nodes_in_use)
    return frozenset(own.spec.nodes_desired) - taken
