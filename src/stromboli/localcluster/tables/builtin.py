"""The columns of built-in kinds other than pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster import clock
from stromboli.localcluster.catalog import dig
from stromboli.localcluster.scaling import selector_text
from stromboli.localcluster.storage import Object
from stromboli.localcluster.tables import pods
from stromboli.localcluster.tables.columns import Cell, Show, TableColumn, age_column, columns
from stromboli.localcluster.tables.times import age, duration

NONE = "<none>"


def _at(path: str, missing: Cell = "") -> Show:
    def show(obj: Object, now: datetime) -> Cell:
        value = dig(obj, path)
        return value if isinstance(value, str | int | float) and value != "" else missing

    return show


def _column(name: str, path: str, missing: Cell = "", *, wide: bool = False, kind: str = "string") -> TableColumn:
    return TableColumn(name, _at(path, missing), kind, wide=wide)


def _shown(name: str, show: Callable[[Object], Cell], *, wide: bool = False) -> TableColumn:
    return TableColumn(name, lambda obj, now: show(obj), wide=wide)


def _count(name: str, field: str) -> TableColumn:
    return TableColumn(name, lambda obj, now: len(obj.get(field) or ()), "integer")


def _joined(items: Any) -> str:
    return ",".join(str(item) for item in items or ()) or NONE


def _containers(obj: Object, field: str) -> str:
    spec = (obj["spec"].get("template") or {}).get("spec") or {}
    return _joined(one.get(field) for one in spec.get("containers") or ())


_WORKLOAD_WIDE = (
    _shown("Containers", lambda obj: _containers(obj, "name"), wide=True),
    _shown("Images", lambda obj: _containers(obj, "image"), wide=True),
    _shown("Selector", lambda obj: selector_text(obj["spec"].get("selector")) or NONE, wide=True),
)


def _node_status(obj: Object) -> Cell:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), None)
    parts = [{"True": "Ready", None: "Unknown"}.get(ready, "NotReady")]
    if (obj.get("spec") or {}).get("unschedulable"):
        parts.append("SchedulingDisabled")
    return ",".join(parts)


_ROLE = "node-role.kubernetes.io/"


def _node_roles(obj: Object) -> Cell:
    labels = obj["metadata"].get("labels") or {}
    return _joined(sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)))


def _node_address(kind: str) -> Callable[[Object], Cell]:
    def show(obj: Object) -> Cell:
        addresses = (obj.get("status") or {}).get("addresses") or ()
        return next((one.get("address") for one in addresses if one.get("type") == kind), NONE)

    return show


_NODES = columns(
    _shown("Status", _node_status),
    _shown("Roles", _node_roles),
    age_column(),
    _column("Version", "status.nodeInfo.kubeletVersion"),
    _shown("Internal-IP", _node_address("InternalIP"), wide=True),
    _shown("External-IP", _node_address("ExternalIP"), wide=True),
    _column("OS-Image", "status.nodeInfo.osImage", "<unknown>", wide=True),
    _column("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>", wide=True),
    _column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>", wide=True),
    aged=False,
)


def _service_ports(obj: Object) -> Cell:
    def one(port: dict[str, Any]) -> str:
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"

    return _joined(one(port) for port in obj["spec"].get("ports") or ())


def _external_address(obj: Object) -> Cell:
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    ingress = (dig(obj, "status.loadBalancer") or {}).get("ingress") or ()  # type: ignore[attr-defined]
    found = [*(one.get("ip") or one.get("hostname") for one in ingress), *(spec.get("externalIPs") or ())]
    if not found and spec.get("type") == "LoadBalancer":
        return "<pending>"
    return _joined(found)


_SERVICES = columns(
    _column("Type", "spec.type"),
    _column("Cluster-IP", "spec.clusterIP", NONE),
    _shown("External-IP", _external_address),
    _shown("Port(s)", _service_ports),
    last=(_shown("Selector", lambda obj: selector_text(obj["spec"].get("selector")) or NONE, wide=True),),
)


def _endpoints(obj: Object) -> Cell:
    pairs = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ({"port": ""},)
        for address in subset.get("addresses") or ()
    ]
    shown = ",".join(pairs[:3])
    return f"{shown} + {len(pairs) - 3} more..." if len(pairs) > 3 else shown or NONE


def _replicas_ready(obj: Object) -> Cell:
    return f"{dig(obj, 'status.readyReplicas') or 0}/{dig(obj, 'spec.replicas') or 0}"


_DEPLOYMENTS = columns(
    _shown("Ready", _replicas_ready),
    _column("Up-to-date", "status.updatedReplicas", 0, kind="integer"),
    _column("Available", "status.availableReplicas", 0, kind="integer"),
    last=_WORKLOAD_WIDE,
)
_REPLICA_SETS = columns(
    _column("Desired", "spec.replicas", 0, kind="integer"),
    _column("Current", "status.replicas", 0, kind="integer"),
    _column("Ready", "status.readyReplicas", 0, kind="integer"),
    last=_WORKLOAD_WIDE,
)
_DAEMON_SETS = columns(
    _column("Desired", "status.desiredNumberScheduled", 0, kind="integer"),
    _column("Current", "status.currentNumberScheduled", 0, kind="integer"),
    _column("Ready", "status.numberReady", 0, kind="integer"),
    _column("Up-to-date", "status.updatedNumberScheduled", 0, kind="integer"),
    _column("Available", "status.numberAvailable", 0, kind="integer"),
    _shown("Node Selector", lambda obj: selector_text(dig(obj, "spec.template.spec.nodeSelector")) or NONE),
    last=_WORKLOAD_WIDE,
)


def _job_status(obj: Object) -> Cell:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    if "Complete" in true or "Failed" in true:
        return "Complete" if "Complete" in true else "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Suspended" if "Suspended" in true else "Running"


def _completions(obj: Object) -> Cell:
    succeeded = dig(obj, "status.succeeded") or 0
    wanted = dig(obj, "spec.completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = dig(obj, "spec.parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if isinstance(parallelism, int) and parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Object, now: datetime) -> Cell:
    start, end = dig(obj, "status.startTime"), dig(obj, "status.completionTime")
    begun = clock.parse(start) if isinstance(start, str) else None
    if begun is None:
        return ""
    finished = clock.parse(end) if isinstance(end, str) else None
    return duration(((finished or now) - begun).total_seconds())


_JOBS = columns(
    _shown("Status", _job_status),
    _shown("Completions", _completions),
    TableColumn("Duration", _job_duration),
    last=_WORKLOAD_WIDE,
)
_CRON_JOBS = columns(
    _column("Schedule", "spec.schedule"),
    _column("Timezone", "spec.timeZone", NONE),
    _shown("Suspend", lambda obj: str(bool(dig(obj, "spec.suspend")))),
    _shown("Active", lambda obj: len(dig(obj, "status.active") or ())),  # type: ignore[arg-type]
    TableColumn(
        "Last Schedule",
        lambda obj, now: age(last, now) if (last := dig(obj, "status.lastScheduleTime")) else NONE,
    ),
)


def _event_age(first: bool) -> Show:
    def show(obj: Object, now: datetime) -> Cell:
        fields = ("firstTimestamp", "eventTime") if first else ("lastTimestamp", "eventTime", "firstTimestamp")
        series = dig(obj, "series.lastObservedTime")
        moment = series if series and not first else next((obj[name] for name in fields if obj.get(name)), None)
        count = obj.get("count") or 1
        if first or count <= 1:
            return age(moment, now)
        return f"{age(moment, now)} (x{count} over {age(obj.get('firstTimestamp'), now)})"

    return show


def _event_object(obj: Object) -> Cell:
    involved = obj.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


_EVENTS = (
    TableColumn("Last Seen", _event_age(first=False)),
    _column("Type", "type"),
    _column("Reason", "reason"),
    _shown("Object", _event_object),
    _column("Subobject", "involvedObject.fieldPath", wide=True),
    _shown(
        "Source", lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent"), wide=True
    ),
    _shown("Message", lambda obj: str(obj.get("message", "")).strip()),
    TableColumn("First Seen", _event_age(first=True), wide=True),
    _column("Count", "count", 1, wide=True),
    TableColumn("Name", lambda obj, now: obj["metadata"]["name"], format="name", wide=True),
)
_ACCESS = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access(obj: Object, path: str) -> Cell:
    modes = dig(obj, path)
    return ",".join(_ACCESS.get(str(mode), str(mode)) for mode in modes) if isinstance(modes, list) else ""


def _claim(obj: Object) -> Cell:
    reference = dig(obj, "spec.claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if isinstance(reference, dict) else ""


_VOLUMES = columns(
    _column("Capacity", "spec.capacity.storage"),
    _shown("Access Modes", lambda obj: _access(obj, "spec.accessModes")),
    _column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
    _column("Status", "status.phase"),
    _shown("Claim", _claim),
    _column("StorageClass", "spec.storageClassName"),
    _column("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    _column("Reason", "status.reason"),
    last=(_column("VolumeMode", "spec.volumeMode", wide=True),),
)
_CLAIMS = columns(
    _shown(
        "Status",
        lambda obj: "Terminating" if obj["metadata"].get("deletionTimestamp") else str(dig(obj, "status.phase") or ""),
    ),
    _column("Volume", "spec.volumeName"),
    _column("Capacity", "status.capacity.storage"),
    _shown("Access Modes", lambda obj: _access(obj, "status.accessModes")),
    _column("StorageClass", "spec.storageClassName"),
    _column("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    last=(_column("VolumeMode", "spec.volumeMode", wide=True),),
)


def _quota(field: str) -> Callable[[Object], Cell]:
    def show(obj: Object) -> Cell:
        hard = dig(obj, "status.hard") or dig(obj, "spec.hard") or {}
        used = dig(obj, "status.used") or {}
        assert isinstance(hard, dict) and isinstance(used, dict)
        mine = {name: most for name, most in sorted(hard.items()) if name.startswith("limits.") == (field == "limits")}
        return ", ".join(f"{name}: {used.get(name, '0')}/{most}" for name, most in mine.items())

    return show


def _rbac_role(obj: Object) -> Cell:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind')}/{reference.get('name')}"


_BINDINGS = columns(_shown("Role", _rbac_role))
_CREATED = columns(_column("Created At", "metadata.creationTimestamp"), aged=False)

BUILT_IN: dict[Kind, tuple[TableColumn, ...]] = {
    kinds.PODS: pods.COLUMNS,
    kinds.NODES: _NODES,
    kinds.NAMESPACES: columns(_column("Status", "status.phase")),
    kinds.SERVICES: _SERVICES,
    kinds.ENDPOINTS: columns(_shown("Endpoints", _endpoints)),
    kinds.CONFIG_MAPS: columns(
        TableColumn("Data", lambda obj, now: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), "integer")
    ),
    kinds.SECRETS: columns(_column("Type", "type"), _count("Data", "data")),
    kinds.SERVICE_ACCOUNTS: columns(_count("Secrets", "secrets")),
    kinds.EVENTS: _EVENTS,
    kinds.REPLICATION_CONTROLLERS: _REPLICA_SETS,
    kinds.RESOURCE_QUOTAS: columns(_shown("Request", _quota("requests")), _shown("Limit", _quota("limits"))),
    kinds.LIMIT_RANGES: _CREATED,
    kinds.PERSISTENT_VOLUMES: _VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS: _CLAIMS,
    kinds.DEPLOYMENTS: _DEPLOYMENTS,
    kinds.REPLICA_SETS: _REPLICA_SETS,
    kinds.STATEFUL_SETS: columns(_shown("Ready", _replicas_ready), last=_WORKLOAD_WIDE[:2]),
    kinds.DAEMON_SETS: _DAEMON_SETS,
    kinds.BATCH_JOBS: _JOBS,
    kinds.BATCH_CRON_JOBS: _CRON_JOBS,
    kinds.PRIORITY_CLASSES: columns(
        _column("Value", "value", 0, kind="integer"),
        _shown("Global-Default", lambda obj: str(bool(obj.get("globalDefault"))).lower()),
    ),
    kinds.POD_DISRUPTION_BUDGETS: columns(
        _column("Min Available", "spec.minAvailable", "N/A"),
        _column("Max Unavailable", "spec.maxUnavailable", "N/A"),
        _column("Allowed Disruptions", "status.disruptionsAllowed", 0, kind="integer"),
    ),
    kinds.NETWORK_POLICIES: columns(
        _shown("Pod-Selector", lambda obj: selector_text(dig(obj, "spec.podSelector")) or NONE)
    ),
    kinds.LEASES: columns(_column("Holder", "spec.holderIdentity")),
    kinds.STORAGE_CLASSES: columns(
        _column("Provisioner", "provisioner"),
        _column("ReclaimPolicy", "reclaimPolicy"),
        _column("VolumeBindingMode", "volumeBindingMode"),
        _shown("AllowVolumeExpansion", lambda obj: str(bool(obj.get("allowVolumeExpansion"))).lower()),
    ),
    kinds.ROLES: _CREATED,
    kinds.CLUSTER_ROLES: _CREATED,
    kinds.ROLE_BINDINGS: _BINDINGS,
    kinds.CLUSTER_ROLE_BINDINGS: _BINDINGS,
    kinds.CUSTOM_RESOURCE_DEFINITIONS: _CREATED,
    kinds.MUTATING_WEBHOOKS: columns(_count("Webhooks", "webhooks")),
    kinds.VALIDATING_WEBHOOKS: columns(_count("Webhooks", "webhooks")),
}
