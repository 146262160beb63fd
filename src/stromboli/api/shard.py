"""``shard.volcano.sh/v1alpha1``: NodeShard (spec 01 section 13)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.api.meta import Resource
from stromboli.api.modelling import REQUIRED, Model, Time


class NodeShardSpec(Model):
    """The nodes that a scheduler should have."""

    nodes_desired: Annotated[list[str], REQUIRED] = []
    """Names of nodes."""


class NodeShardStatus(Model):
    """The nodes that a scheduler has."""

    last_update_time: Time | None = None
    """When the shard was computed."""
    nodes_in_use: list[str] = []
    """Nodes the scheduler uses."""
    nodes_to_remove: list[str] = []
    """In use, not desired."""
    nodes_to_add: list[str] = []
    """Desired, not in use."""


class NodeShard(Resource):
    """The share of the cluster's nodes of the scheduler of the same name."""

    KIND: ClassVar[Kind] = kinds.NODE_SHARDS

    spec: Annotated[NodeShardSpec, REQUIRED] = Field(default_factory=NodeShardSpec)
    status: NodeShardStatus = Field(default_factory=NodeShardStatus)
