"""HyperNodes from labels of nodes (spec 03 section 8.5). Pure.

A topology type is a list of label keys, outermost first. The innermost, normally the host name, stands for the node
itself; the others are tiers, counted from the inside. Nodes with the same value at a tier form one HyperNode.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from stromboli.api import names
from stromboli.api.core import Node
from stromboli.api.phases import MemberType
from stromboli.controllers.hypernode.topologies import Discovered, SourceError

log = logging.getLogger(__name__)

SOURCE: Final = "label"
LONGEST_TYPE: Final = 20
NAME_TRIES: Final = 20
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
_ODD: Final = re.compile(r"[^a-z0-9.-]")

Suffix: TypeAlias = Callable[[], str]
"""Gives five random characters."""


@dataclass(frozen=True, slots=True)
class TopologyType:
    """A type by name and its tiers, the innermost first."""

    name: str
    tiers: tuple[str, ...]

    def prefix(self, tier: int) -> str:
        """Beginning of the names of HyperNodes of a tier."""
        return f"hypernode-{_ODD.sub('-', self.name.lower())}-tier{tier}"


@dataclass(frozen=True, slots=True)
class Existing:
    """A HyperNode that is there."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    """Nodes, or groups of them, with the same label value."""

    name: str
    tier: int
    key: str
    value: str
    members: set[str] = field(default_factory=set)


def parse_types(config: Mapping[str, object]) -> tuple[TopologyType, ...]:
    """The types of ``networkTopologyTypes``. A type that cannot be used is left out and logged.

    Raises:
        SourceError: the setting has another shape.
    """
    given = config.get("networkTopologyTypes") or {}
    if not isinstance(given, Mapping):
        raise SourceError("label: networkTopologyTypes must be a map from type name to a list of nodeLabel entries")
    found = (_parse_type(str(name), entries) for name, entries in given.items())
    return tuple(one for one in found if one is not None)


def _parse_type(name: str, entries: object) -> TopologyType | None:
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) and one.get("nodeLabel") for one in entries):
        raise SourceError(f"label: networkTopologyTypes.{name} must be a list of entries like nodeLabel: <key>")
    keys = [str(one["nodeLabel"]) for one in entries]
    if len(name.encode()) > LONGEST_TYPE:
        log.error("topology type %s is skipped: its name is longer than %d bytes", name, LONGEST_TYPE)
        return None
    if len(set(keys)) < len(keys):
        log.error("topology type %s is skipped: it names a label twice", name)
        return None
    return TopologyType(name, tuple(reversed(keys[:-1])))


def watched_labels(types: Iterable[TopologyType]) -> frozenset[str]:
    """Keys of labels on nodes that matter."""
    return frozenset(key for one in types for key in one.tiers)


def discover(
    types: Sequence[TopologyType], nodes: Iterable[Node], existing: Sequence[Existing], suffix: Suffix
) -> list[Discovered]:
    """The HyperNodes of these nodes. ``existing`` are all that there are, from this source or not.

    Raises:
        SourceError: no free name was found.
    """
    naming = _Naming(existing, suffix)
    groups: dict[tuple[str, str], _Group] = {}
    for node in sorted(nodes, key=lambda one: one.name):
        for topology in types:
            _place(node, topology, groups, naming)
    return [_discovered(group) for group in sorted(groups.values(), key=lambda one: (one.tier, one.name))]


def _place(node: Node, topology: TopologyType, groups: dict[tuple[str, str], _Group], naming: _Naming) -> None:
    """Put a node into its group, that into the next, and so on, as far as the node has labels."""
    member = node.name
    for tier, key in enumerate(topology.tiers, start=1):
        value = node.metadata.labels.get(key)
        if value is None:
            return
        group = groups.get((key, value))
        if group is None:
            group = groups[key, value] = _Group(naming.name(topology.prefix(tier), key, value), tier, key, value)
        group.members.add(member)
        member = group.name


def _discovered(group: _Group) -> Discovered:
    return Discovered(
        name=group.name,
        tier=group.tier,
        tier_name=group.key,
        member_type=MemberType.NODE if group.tier == 1 else MemberType.HYPER_NODE,
        members=tuple(sorted(group.members)),
        labels={group.key: group.value},
    )


class _Naming:
    """Names of HyperNodes: those they have, else new ones that nobody has."""

    def __init__(self, existing: Sequence[Existing], suffix: Suffix) -> None:
        self._suffix = suffix
        self._taken = {one.name for one in existing}
        self._own = sorted(
            (one for one in existing if one.labels.get(names.NETWORK_TOPOLOGY_SOURCE) == SOURCE),
            key=lambda one: one.name,
        )

    def name(self, prefix: str, key: str, value: str) -> str:
        for one in self._own:
            if one.name.startswith(prefix) and one.labels.get(key) == value:
                return one.name
        for _ in range(NAME_TRIES):
            name = f"{prefix}-{self._suffix()}"
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise SourceError(f"unable to get unique hyperNodeName after {NAME_TRIES} attempts")
