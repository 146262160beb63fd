"""Broken manifests, each one or two changes away from one that is accepted, and what clients are told.

``<topic>.yaml`` is written by hand: a ``manifest`` that is accepted, and ``cases`` that say what is set (by JSON
pointer) or dropped. With ``operation: update`` the manifest is stored first and the changed one is put over it; with
``stored`` the object of that name, which exists already, is changed or deleted. ``<topic>.golden.yaml`` holds message
and fields by case as recorded from the system and read by a person; ``E2E_RECORD=1`` writes it anew.

Nothing here is particular to one server: the same runs against the embedded cluster and a real kube-apiserver.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stromboli.api import kinds
from stromboli.api.kinds import Kind

Json = dict[str, Any]
HERE = Path(__file__).parent
BY_KIND: Mapping[str, Kind] = {kind.kind: kind for kind in (*kinds.OWN, kinds.PODS)}


@dataclass(frozen=True, slots=True)
class Case:
    """One broken manifest."""

    name: str
    set: Mapping[str, Any] = field(default_factory=dict)
    drop: Sequence[str] = ()
    stored: str = ""
    operation: str = ""

    def broken(self, manifest: Json) -> Json:
        """A copy of ``manifest`` with this case's changes."""
        obj = copy.deepcopy(manifest)
        for pointer, value in self.set.items():
            container, key = _place(obj, pointer)
            if key == "-":
                container.append(copy.deepcopy(value))
            else:
                container[key] = copy.deepcopy(value)
        for pointer in self.drop:
            container, key = _place(obj, pointer)
            del container[key]
        return obj


@dataclass(frozen=True, slots=True)
class Topic:
    """One file: a manifest that is accepted, and ways to break it."""

    name: str
    kind: Kind
    manifest: Json
    operation: str
    cases: Sequence[Case]

    @property
    def golden(self) -> Path:
        """The file of what clients are told."""
        return HERE / f"{self.name}.golden.yaml"

    def wanted(self) -> dict[str, Json]:
        """What clients are told, by case."""
        return dict(yaml.safe_load(self.golden.read_text()))

    def record(self, seen: Mapping[str, Json]) -> None:
        """Keep what clients were told as what they shall be told."""
        self.golden.write_text(yaml.safe_dump(dict(seen), sort_keys=False, allow_unicode=True, width=110))


def topics() -> list[Topic]:
    """Every topic, by name."""
    return [_topic(path) for path in sorted(HERE.glob("*.yaml")) if not path.name.endswith(".golden.yaml")]


def _topic(path: Path) -> Topic:
    content = yaml.safe_load(path.read_text())
    operation = content.get("operation", "create")
    cases = [Case(name, **{"operation": operation, **changes}) for name, changes in content["cases"].items()]
    return Topic(path.stem, BY_KIND[content["manifest"]["kind"]], content["manifest"], operation, cases)


def world() -> Iterator[Json]:
    """What the broken manifests refer to: queues, in the order in which they can be created."""
    yield from yaml.safe_load_all((HERE / "world" / "queues.yaml").read_text())


def _place(obj: Any, pointer: str) -> tuple[Any, Any]:
    """The container that ``pointer`` points into, made where it is missing, and the key in it."""
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")]
    for part in above:
        obj = obj[int(part)] if isinstance(obj, list) else obj.setdefault(part, {})
    return obj, int(last) if isinstance(obj, list) and last != "-" else last
