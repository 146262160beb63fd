"""Which kinds the server serves, and what is particular about each: the built-in table and the established CRDs.

The table holds only what discovery shows and the registry asks (short names, subresources, selectable fields); fields
and their types come from the generated client models (:mod:`stromboli.localcluster.schemas.reflection`) or from a CRD's
schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.extending import Handler, Strategy, Subresource
from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.storage import Object

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers (JSON paths with a leading dot)."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A CRD's additional printer column."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Names:
    """How users may call a kind."""

    singular: str
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedKind:
    """One kind as it is served."""

    kind: Kind
    names: Names
    load_schema: Callable[[], Schema]
    verbs: tuple[str, ...] = ALL_VERBS
    has_status: bool = False
    """Whether there is a status subresource, so that main writes keep the status and status writes the rest."""
    has_generation: bool = False
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    """Dotted paths that field selectors may name besides metadata.name and metadata.namespace."""
    columns: tuple[Column, ...] | None = None
    """A CRD's printer columns; None for built-in kinds, whose tables are in ``tables``."""
    is_custom: bool = False
    requires_version: bool = False
    """Whether an update must carry a resourceVersion (custom resources)."""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    handler: Handler | None = None
    """Serves the kind itself when it is not stored (reviews, bindings)."""
    strategy: Strategy | None = None

    @cached_property
    def schema(self) -> Schema:
        """Fields and types; worked out on first use."""
        return self.load_schema()


@dataclass(frozen=True, slots=True)
class _Row:
    kind: Kind
    short: tuple[str, ...] = ()
    status: bool = False
    generation: bool = False
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    all: bool = False
    model: str = ""


_PODS_BY = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENTS_BY = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_WORKLOAD_SCALE = ScalePaths(selector=".status.selector")

# Kinds that only users' manifests name; nothing in the system reads them.
_INGRESSES = Kind("networking.k8s.io", "v1", "ingresses", "Ingress")
_INGRESS_CLASSES = Kind("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False)
_AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
_ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)

_ROWS: tuple[_Row, ...] = (
    _Row(kinds.NAMESPACES, ("ns",), status=True, selectable=("status.phase",)),
    _Row(kinds.NODES, ("no",), status=True, selectable=("spec.unschedulable",)),
    _Row(kinds.PODS, ("po",), status=True, selectable=_PODS_BY, all=True),
    _Row(kinds.SERVICES, ("svc",), status=True, selectable=("spec.clusterIP", "spec.type"), all=True),
    _Row(kinds.ENDPOINTS, ("ep",)),
    _Row(kinds.CONFIG_MAPS, ("cm",)),
    _Row(kinds.SECRETS, selectable=("type",)),
    _Row(kinds.SERVICE_ACCOUNTS, ("sa",)),
    _Row(kinds.EVENTS, ("ev",), selectable=_EVENTS_BY, model="CoreV1Event"),
    _Row(kinds.POD_TEMPLATES),
    _Row(kinds.REPLICATION_CONTROLLERS, ("rc",), True, True, _WORKLOAD_SCALE, ("status.replicas",), True),
    _Row(kinds.RESOURCE_QUOTAS, ("quota",), status=True),
    _Row(kinds.LIMIT_RANGES, ("limits",)),
    _Row(kinds.PERSISTENT_VOLUMES, ("pv",), status=True),
    _Row(kinds.PERSISTENT_VOLUME_CLAIMS, ("pvc",), status=True),
    _Row(kinds.DEPLOYMENTS, ("deploy",), True, True, _WORKLOAD_SCALE, all=True),
    _Row(kinds.REPLICA_SETS, ("rs",), True, True, _WORKLOAD_SCALE, ("status.replicas",), True),
    _Row(kinds.STATEFUL_SETS, ("sts",), True, True, _WORKLOAD_SCALE, all=True),
    _Row(kinds.DAEMON_SETS, ("ds",), status=True, generation=True, all=True),
    _Row(kinds.CONTROLLER_REVISIONS),
    _Row(kinds.BATCH_JOBS, status=True, generation=True, selectable=("status.successful",), all=True),
    _Row(kinds.BATCH_CRON_JOBS, ("cj",), status=True, generation=True, all=True),
    _Row(kinds.PRIORITY_CLASSES, ("pc",), generation=True),
    _Row(kinds.POD_DISRUPTION_BUDGETS, ("pdb",), status=True, generation=True),
    _Row(kinds.NETWORK_POLICIES, ("netpol",), generation=True),
    _Row(_INGRESSES, ("ing",), status=True, generation=True),
    _Row(_INGRESS_CLASSES, generation=True),
    _Row(_AUTOSCALERS, ("hpa",), status=True, all=True),
    _Row(_ENDPOINT_SLICES),
    _Row(_RUNTIME_CLASSES),
    _Row(kinds.LEASES),
    _Row(kinds.STORAGE_CLASSES, ("sc",)),
    _Row(kinds.CSI_NODES),
    _Row(kinds.CSI_DRIVERS),
    _Row(kinds.CSI_STORAGE_CAPACITIES),
    _Row(kinds.VOLUME_ATTACHMENTS, status=True),
    _Row(kinds.RESOURCE_CLAIMS, status=True, model="ResourceV1ResourceClaim"),
    _Row(kinds.RESOURCE_CLAIM_TEMPLATES),
    _Row(kinds.RESOURCE_SLICES, generation=True, selectable=("spec.driver", "spec.nodeName")),
    _Row(kinds.DEVICE_CLASSES, generation=True),
    _Row(kinds.ROLES),
    _Row(kinds.ROLE_BINDINGS),
    _Row(kinds.CLUSTER_ROLES),
    _Row(kinds.CLUSTER_ROLE_BINDINGS),
    _Row(kinds.CUSTOM_RESOURCE_DEFINITIONS, ("crd", "crds"), status=True, generation=True),
    _Row(kinds.MUTATING_WEBHOOKS, generation=True),
    _Row(kinds.VALIDATING_WEBHOOKS, generation=True),
)


def built_in_kinds(schema_of: Callable[[Kind, str], Schema], strategies: Mapping[Kind, Strategy]) -> list[ServedKind]:
    """The built-in table. ``schema_of(kind, model name)`` is called on first need of a kind's schema."""
    return [_built_in(row, schema_of, strategies.get(row.kind)) for row in _ROWS]


def _built_in(row: _Row, schema_of: Callable[[Kind, str], Schema], strategy: Strategy | None) -> ServedKind:
    kind = row.kind
    model = row.model or f"{kind.version.capitalize()}{kind.kind}"
    return ServedKind(
        kind=kind,
        names=Names(kind.kind.lower(), row.short, ("all",) if row.all else ()),
        load_schema=lambda: schema_of(kind, model),
        has_status=row.status,
        has_generation=row.generation,
        scale=row.scale,
        selectable=row.selectable,
        strategy=strategy,
    )


class Catalog:
    """All kinds that are served at the moment, in the order discovery shows them."""

    def __init__(self, served: Iterable[ServedKind] = ()) -> None:
        self._served: dict[tuple[str, str, str], ServedKind] = {}
        self.generation = 0
        """Changes whenever the set of kinds does (caches of discovery and OpenAPI documents go by it)."""
        for one in served:
            self.add(one)

    def add(self, served: ServedKind) -> None:
        """Serve a kind, or serve it anew after a change."""
        kind = served.kind
        self._served[kind.group, kind.version, kind.plural] = served
        self.generation += 1

    def remove(self, kind: Kind) -> None:
        """Serve a kind no longer; unknown kinds are ignored."""
        if self._served.pop((kind.group, kind.version, kind.plural), None):
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """The kind behind a path, or None."""
        return self._served.get((group, version, plural))

    def of(self, kind: Kind) -> ServedKind | None:
        """What is served for ``kind``, or None."""
        return self.find(kind.group, kind.version, kind.plural)

    def by_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind of a manifest's ``apiVersion`` and ``kind``, or None."""
        for served in self:
            if served.kind.kind == kind and served.kind.api_version == api_version:
                return served
        return None

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(list(self._served.values()))

    def groups(self) -> dict[str, dict[str, list[ServedKind]]]:
        """Kinds by group and version; the core group (``""``) comes first."""
        found: dict[str, dict[str, list[ServedKind]]] = {"": {}}
        for served in self:
            found.setdefault(served.kind.group, {}).setdefault(served.kind.version, []).append(served)
        return found


def dig(obj: Object, path: str) -> object:
    """The value at a dotted path, or None; a leading dot is allowed."""
    value: object = obj
    for part in path.lstrip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value
