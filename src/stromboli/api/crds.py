"""The CustomResourceDefinitions, generated from the models (spec 01 sections 2 and 26.1).

``python -m stromboli.api.crds DIR`` writes one file a definition into DIR; the output depends on the models only.
Each says that Helm must never delete it: with a definition go all its objects (ADR 44).
Batch and flow definitions carry no descriptions: with those of a pod template they would exceed what
client-side apply can store (spec 01 section 2).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from stromboli.api.batch import CronJob, Job
from stromboli.api.bus import Command
from stromboli.api.config import ColocationConfiguration
from stromboli.api.flow import JobFlow, JobTemplate
from stromboli.api.kinds import CUSTOM_RESOURCE_DEFINITIONS
from stromboli.api.meta import Resource
from stromboli.api.nodeinfo import Numatopology
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.schemas import schema_of
from stromboli.api.shard import NodeShard
from stromboli.api.topology import HyperNode


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; priority 1 shows it in wide output only."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0

    def to_wire(self) -> dict[str, object]:
        """The column as the API server wants it."""
        wire: dict[str, object] = {"jsonPath": self.path, "name": self.name, "type": self.type}
        return wire | {"priority": self.priority} if self.priority else wire


@dataclass(frozen=True, slots=True)
class Definition:
    """What a definition says beyond the schema.

    ``subresources`` of ``None`` is not the same as ``{}``: a PodGroup explicitly has none. Any column at all hides the
    age that ``kubectl`` shows by itself.
    """

    resource: type[Resource]
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] | None = ("status",)
    columns: tuple[Column, ...] = ()
    descriptions: bool = True


KEPT = {"helm.sh/resource-policy": "keep"}
"""The annotation that makes Helm leave an object where it is when it leaves the release."""
_AGE_PATH = ".metadata.creationTimestamp"

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        Job,
        short_names=("vcjob", "vj"),
        columns=(
            Column("STATUS", ".status.state.phase"),
            Column("minAvailable", ".status.minAvailable", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            Column("AGE", _AGE_PATH, "date"),
            Column("QUEUE", ".spec.queue", priority=1),
        ),
        descriptions=False,
    ),
    Definition(CronJob, short_names=("cronvcjob", "cronvj"), descriptions=False),
    Definition(Command, subresources=None),
    Definition(
        PodGroup,
        short_names=("pg", "podgroup-v1beta1"),
        subresources=(),
        columns=(
            Column("STATUS", ".status.phase"),
            Column("minMember", ".spec.minMember", "integer"),
            Column("RUNNINGS", ".status.running", "integer"),
            Column("AGE", _AGE_PATH, "date"),
            Column("QUEUE", ".spec.queue", priority=1),
        ),
    ),
    Definition(Queue, short_names=("q", "queue-v1beta1"), columns=(Column("PARENT", ".spec.parent"),)),
    Definition(
        JobFlow,
        short_names=("jf",),
        columns=(Column("Status", ".status.state.phase"), Column("Age", _AGE_PATH, "date")),
        descriptions=False,
    ),
    Definition(JobTemplate, short_names=("jt",), descriptions=False),
    Definition(
        HyperNode,
        short_names=("hn",),
        columns=(
            Column("Tier", ".spec.tier"),
            Column("TierName", ".spec.tierName"),
            Column("NodeCount", ".status.nodeCount", "integer"),
            Column("Age", _AGE_PATH, "date"),
        ),
    ),
    Definition(Numatopology, short_names=("numatopo",), subresources=None),
    Definition(NodeShard, short_names=("nsh",), columns=(Column("AGE", _AGE_PATH, "date"),)),
    Definition(ColocationConfiguration),
)


def custom_resource_definitions() -> list[dict[str, object]]:
    """All definitions, as plain data ready to be applied."""
    return [_to_wire(definition) for definition in DEFINITIONS]


def write(directory: Path) -> list[Path]:
    """Write one YAML file a definition, named ``<group>_<plural>.yaml``; returns what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for definition in DEFINITIONS:
        kind = definition.resource.KIND
        path = directory / f"{kind.group}_{kind.plural}.yaml"
        path.write_text(_yaml(_to_wire(definition)))
        written.append(path)
    return written


def _to_wire(definition: Definition) -> dict[str, object]:
    kind = definition.resource.KIND
    names: dict[str, object] = {"kind": kind.kind, "listKind": kind.list_kind, "plural": kind.plural}
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    names["singular"] = kind.kind.lower()
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"annotations": dict(KEPT), "name": kind.resource},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(definition)],
        },
    }


def _version(definition: Definition) -> dict[str, object]:
    version: dict[str, object] = {}
    if definition.columns:
        version["additionalPrinterColumns"] = [column.to_wire() for column in definition.columns]
    version["name"] = definition.resource.KIND.version
    version["schema"] = {"openAPIV3Schema": schema_of(definition.resource, descriptions=definition.descriptions)}
    version |= {"served": True, "storage": True}
    if definition.subresources is not None:
        version["subresources"] = {name: {} for name in definition.subresources}
    return version


class _Dumper(yaml.SafeDumper):
    """Writes repeated parts out: the API server's own tools do not all read anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _yaml(document: dict[str, object]) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120)
    return "---\n" + text


def main(arguments: list[str]) -> None:
    """Write the definitions into the one directory named."""
    if len(arguments) != 1:
        sys.exit("usage: python -m stromboli.api.crds DIR")
    for file in write(Path(arguments[0])):
        print(file)


if __name__ == "__main__":
    main(sys.argv[1:])
