"""Dealing nodes out to schedulers, in the order in which they are configured. Pure.

All nodes are looked at together: limits and order hold for a scheduler as a whole, however many nodes there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stromboli.controllers.sharding.policies import Filter, Policy, Score, Select
from stromboli.controllers.sharding.utilisation import Candidate


@dataclass(frozen=True, slots=True)
class Shard:
    """A scheduler and its policies, each with its weight."""

    name: str
    policies: tuple[tuple[Policy, Fraction], ...] = ()


def assign(shards: Sequence[Shard], nodes: Iterable[Candidate]) -> dict[str, tuple[str, ...]]:
    """Names of nodes by scheduler, the best first. No node is given twice."""
    left = sorted(nodes, key=lambda node: node.name)
    assigned: dict[str, tuple[str, ...]] = {}
    for shard in shards:
        taken = tuple(node.name for node in choose(shard, left))
        assigned[shard.name] = taken
        gone = frozenset(taken)
        left = [node for node in left if node.name not in gone]
    return assigned


def choose(shard: Shard, nodes: Iterable[Candidate]) -> Sequence[Candidate]:
    """The nodes that a scheduler takes of these: those that pass every filter, in the order of their scores, as many
    as every selector lets through."""
    policies = [policy for policy, _ in shard.policies]
    filters = [policy for policy in policies if isinstance(policy, Filter)]
    found: Sequence[Candidate] = [node for node in nodes if all(policy.admits(node) for policy in filters)]
    scores = [(policy, weight) for policy, weight in shard.policies if isinstance(policy, Score)]
    if scores:
        found = sorted(found, key=lambda node: -sum(weight * policy.score(node) for policy, weight in scores))
    for policy in policies:
        if isinstance(policy, Select):
            found = policy.select(found)
    return found
