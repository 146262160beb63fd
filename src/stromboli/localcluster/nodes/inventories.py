"""Which simulated nodes there are: from flags, or from a YAML file of Node objects and compact groups.

A group is ``{count: 100, name: n%05d, capacity: {cpu: 8}, labels: {zone: "z{i%4}"}, annotations: {}, taints: []}``. In
names and in values of labels and annotations ``%d``-like forms and ``{i}``, ``{i%4}``, ``{i//8}`` stand for the node's
number, counted from 0 within its group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from stromboli.api import manifests, names

JsonObject: TypeAlias = dict[str, object]

DEFAULT_CAPACITY: Mapping[str, str] = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_EXPRESSION = re.compile(r"\{i(?:(%|//)([1-9]\d*))?\}")
_NUMBER_FORM = re.compile(r"%0?\d*d")
_GROUP_FIELDS = {"count", "name", "capacity", "allocatable", "labels", "annotations", "taints", "unschedulable"}


class InventoryError(ValueError):
    """A node flag or file that cannot be used; the message names the place and what is expected."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``count`` nodes that differ only by their number."""

    count: int
    name: str = "node-%d"
    capacity: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_CAPACITY))
    allocatable: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, object]] = ()
    unschedulable: bool = False

    def nodes(self) -> Iterator[JsonObject]:
        """The Node objects of the group, without the conditions that heartbeats add."""
        for number in range(self.count):
            yield self._node(number)

    def _node(self, number: int) -> JsonObject:
        name = fill(self.name, number)
        labels = {
            names.HOSTNAME: name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **{key: fill(value, number) for key, value in self.labels.items()},
        }
        metadata: JsonObject = {"name": name, "labels": labels}
        if self.annotations:
            metadata["annotations"] = {key: fill(value, number) for key, value in self.annotations.items()}
        spec: JsonObject = {}
        if self.taints:
            spec["taints"] = [dict(taint) for taint in self.taints]
        if self.unschedulable:
            spec["unschedulable"] = True
        status: JsonObject = {
            "capacity": dict(self.capacity),
            "allocatable": {**self.capacity, **self.allocatable},
        }
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def fill(template: str, number: int) -> str:
    """Put a node's number into a name or value template."""

    def replaced(match: re.Match[str]) -> str:
        operator, operand = match.groups()
        if operator == "%":
            return str(number % int(operand))
        if operator == "//":
            return str(number // int(operand))
        return str(number)

    text = _EXPRESSION.sub(replaced, template)
    return _NUMBER_FORM.sub(lambda match: match.group() % number, text)


def parse_pairs(text: str, flag: str) -> dict[str, str]:
    """``a=1,b=2`` as a mapping. Raises :class:`InventoryError` naming ``flag``."""
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InventoryError(f"{flag}: {part!r} is not of the form key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def load_inventory(path: Path) -> list[JsonObject]:
    """Node objects described by a YAML file: documents or a list, each a Node or a group.

    Raises :class:`InventoryError` with the file, the entry and what is wrong with it.
    """
    try:
        documents = list(manifests.documents(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InventoryError(f"{path}: {error.strerror}; give a readable file to --nodes") from error
    except yaml.YAMLError as error:
        raise InventoryError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    entries: list[object] = []
    for document in documents:
        entries.extend(document if isinstance(document, list) else [] if document is None else [document])
    nodes = [node for index, entry in enumerate(entries) for node in _entry(entry, f"{path}: entry {index}")]
    return unique(nodes)


def unique(nodes: Sequence[JsonObject]) -> list[JsonObject]:
    """The nodes, unless two share a name: then :class:`InventoryError`."""
    seen: set[object] = set()
    for node in nodes:
        metadata = node["metadata"]
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if name in seen:
            raise InventoryError(f'node name "{name}" is used twice; put %d or {{i}} into the name')
        seen.add(name)
    return list(nodes)


def _entry(entry: object, place: str) -> Iterator[JsonObject]:
    if not isinstance(entry, dict):
        raise InventoryError(f"{place}: expected a Node object or a group with count, got {type(entry).__name__}")
    if entry.get("kind") == "Node":
        metadata = entry.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise InventoryError(f"{place}: metadata.name: required")
        yield _labelled(entry, metadata)
        return
    yield from _group(entry, place).nodes()


def _labelled(node: JsonObject, metadata: Mapping[str, object]) -> JsonObject:
    """The Node with the label of its name, which a kubelet gives its node; labels that are no mapping stay so."""
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        return node
    return {**node, "metadata": {**metadata, "labels": {names.HOSTNAME: metadata["name"], **labels}}}


def _group(entry: Mapping[str, object], place: str) -> NodeGroup:
    unknown = sorted(str(key) for key in entry.keys() - _GROUP_FIELDS)
    if unknown:
        raise InventoryError(f"{place}: unknown field {unknown[0]}; a group has {', '.join(sorted(_GROUP_FIELDS))}")
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise InventoryError(f"{place}: count: expected a whole number of nodes, got {count!r}")
    name = entry.get("name", "node-%d")
    if not isinstance(name, str):
        raise InventoryError(f"{place}: name: expected a string, got {name!r}")
    taints = entry.get("taints", [])
    if not isinstance(taints, list) or not all(isinstance(taint, dict) for taint in taints):
        raise InventoryError(f"{place}: taints: expected a list of {{key, value, effect}}")
    return NodeGroup(
        count=count,
        name=name,
        capacity={**DEFAULT_CAPACITY, **_texts(entry, "capacity", place)},
        allocatable=_texts(entry, "allocatable", place),
        labels=_texts(entry, "labels", place),
        annotations=_texts(entry, "annotations", place),
        taints=taints,
        unschedulable=bool(entry.get("unschedulable", False)),
    )


def _texts(entry: Mapping[str, object], name: str, place: str) -> dict[str, str]:
    value = entry.get(name) or {}
    if not isinstance(value, dict):
        raise InventoryError(f"{place}: {name}: expected a mapping, got {type(value).__name__}")
    return {str(key): str(item) for key, item in value.items()}
