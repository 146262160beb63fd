"""Columns: what the cells of each kind say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.catalog import Column
from stromboli.localcluster.tables.builtin import BUILT_IN
from stromboli.localcluster.tables.columns import TableColumn
from stromboli.localcluster.tables.custom import columns_of
from stromboli.localcluster.tables.jsonpaths import find
from stromboli.localcluster.tables.rendering import columns_for
from stromboli.localcluster.tables.times import age, duration

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
CREATED = "2026-01-02T11:59:00Z"


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (9 * 366 * 86400, "9y"),
    ],
)
def test_durations_read_like_kubectls(seconds: float, want: str) -> None:
    assert duration(seconds) == want


def test_ages_of_what_has_no_time_are_unknown() -> None:
    assert age(CREATED, NOW) == "60s"
    assert age(None, NOW) == age("soon", NOW) == "<unknown>"


def status_of(pod: dict[str, Any]) -> Any:
    cells = {column.name: column.show(pod, NOW) for column in BUILT_IN[kinds.PODS]}
    return cells["Status"]


def pod(status: dict[str, Any], *, deleted: bool = False, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "creationTimestamp": CREATED, **({"deletionTimestamp": CREATED} if deleted else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "a"}], **spec}, "status": status}


def container(**state: Any) -> dict[str, Any]:
    return {"name": "a", "ready": "running" in state, "restartCount": 0, "state": state}


POD_STATUS: dict[str, tuple[dict[str, Any], str]] = {
    "the phase": (pod({"phase": "Pending"}), "Pending"),
    "a reason of its own": (pod({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
    "a gate": (
        pod(
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            }
        ),
        "SchedulingGated",
    ),
    "a waiting container": (
        pod({"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ImagePullBackOff"})]}),
        "ImagePullBackOff",
    ),
    "a failed container": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"reason": "Error", "exitCode": 3})]}),
        "Error",
    ),
    "a failed container without reason": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 3})]}),
        "ExitCode:3",
    ),
    "a killed container": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 137, "signal": 9})]}),
        "Signal:9",
    ),
    "running": (pod({"phase": "Running", "containerStatuses": [container(running={})]}), "Running"),
    "completed beside one that runs": (
        pod(
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [container(terminated={"reason": "Completed"}), container(running={})],
            }
        ),
        "Running",
    ),
    "completed beside one that runs, not ready": (
        pod(
            {
                "phase": "Running",
                "containerStatuses": [container(terminated={"reason": "Completed"}), container(running={})],
            }
        ),
        "NotReady",
    ),
    "waiting for its first init container": (
        pod(
            {"phase": "Pending", "initContainerStatuses": [container(waiting={"reason": "PodInitializing"})]},
            initContainers=[{"name": "a"}, {"name": "b"}],
        ),
        "Init:0/2",
    ),
    "a failed init container": (
        pod(
            {"phase": "Pending", "initContainerStatuses": [container(terminated={"exitCode": 1})]},
            initContainers=[{"name": "a"}],
        ),
        "Init:ExitCode:1",
    ),
    "an init container that cannot start": (
        pod(
            {"phase": "Pending", "initContainerStatuses": [container(waiting={"reason": "ErrImagePull"})]},
            initContainers=[{"name": "a"}],
        ),
        "Init:ErrImagePull",
    ),
    "being deleted": (pod({"phase": "Running"}, deleted=True), "Terminating"),
    "lost with its node": (pod({"phase": "Running", "reason": "NodeLost"}, deleted=True), "Unknown"),
}


@pytest.mark.parametrize("name", POD_STATUS)
def test_status_of_pods(name: str) -> None:
    obj, want = POD_STATUS[name]
    assert status_of(obj) == want


def test_sidecars_count_as_ready_and_restarts_tell_when() -> None:
    ended = {"terminated": {"finishedAt": CREATED}}
    obj = pod(
        {
            "phase": "Running",
            "containerStatuses": [{**container(running={}), "restartCount": 2, "lastState": ended}],
            "initContainerStatuses": [{**container(running={}), "name": "side", "started": True}],
        },
        initContainers=[{"name": "side", "restartPolicy": "Always"}],
    )
    cells = {column.name: column.show(obj, NOW) for column in BUILT_IN[kinds.PODS]}
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("2/2", "Running", "2 (60s ago)")


def meta(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", "creationTimestamp": CREATED, **more}}


ROWS: dict[str, tuple[Kind, dict[str, Any], dict[str, Any]]] = {
    "a ready node that is cordoned": (
        kinds.NODES,
        {
            **meta(labels={"node-role.kubernetes.io/control-plane": ""}),
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.34.0"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            },
        },
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "control-plane",
            "Version": "v1.34.0",
            "Internal-IP": "10.0.0.1",
            "External-IP": "<none>",
        },
    ),
    "a node that nobody has heard of": (kinds.NODES, meta(), {"Status": "Unknown", "Roles": "<none>"}),
    "a service with a node port": (
        kinds.SERVICES,
        {
            **meta(),
            "spec": {
                "type": "NodePort",
                "clusterIP": "10.96.0.9",
                "selector": {"a": "b"},
                "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}],
            },
        },
        {
            "Type": "NodePort",
            "Cluster-IP": "10.96.0.9",
            "External-IP": "<none>",
            "Port(s)": "80:30001/TCP",
            "Selector": "a=b",
        },
    ),
    "a load balancer that waits": (
        kinds.SERVICES,
        {**meta(), "spec": {"type": "LoadBalancer"}},
        {"External-IP": "<pending>", "Port(s)": "<none>"},
    ),
    "a deployment": (
        kinds.DEPLOYMENTS,
        {
            **meta(),
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
            "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
        },
        {"Ready": "2/3", "Up-to-date": 3, "Available": 2, "Containers": "c", "Images": "i", "Selector": "a=b"},
    ),
    "a finished job": (
        kinds.BATCH_JOBS,
        {
            **meta(),
            "spec": {"completions": 2},
            "status": {
                "succeeded": 2,
                "conditions": [{"type": "Complete", "status": "True"}],
                "startTime": "2026-01-02T11:00:00Z",
                "completionTime": "2026-01-02T11:00:30Z",
            },
        },
        {"Status": "Complete", "Completions": "2/2", "Duration": "30s"},
    ),
    "a job of parallel workers": (
        kinds.BATCH_JOBS,
        {**meta(), "spec": {"parallelism": 3}, "status": {}},
        {"Status": "Running", "Completions": "0/1 of 3", "Duration": ""},
    ),
    "an event that repeats": (
        kinds.EVENTS,
        {
            **meta(),
            "involvedObject": {"kind": "Pod", "name": "p"},
            "reason": "R",
            "type": "Warning",
            "message": " m ",
            "count": 3,
            "firstTimestamp": "2026-01-02T11:00:00Z",
            "lastTimestamp": CREATED,
            "source": {"component": "c"},
        },
        {
            "Last Seen": "60s (x3 over 60m)",
            "Type": "Warning",
            "Reason": "R",
            "Object": "pod/p",
            "Message": "m",
            "Source": "c",
            "First Seen": "60m",
        },
    ),
    "a claim that waits": (
        kinds.PERSISTENT_VOLUME_CLAIMS,
        {**meta(), "spec": {"storageClassName": "s", "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
        {
            "Status": "Pending",
            "Volume": "",
            "Access Modes": "",
            "StorageClass": "s",
            "VolumeAttributesClass": "<unset>",
        },
    ),
    "a bound volume": (
        kinds.PERSISTENT_VOLUMES,
        {
            **meta(),
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "claimRef": {"namespace": "x", "name": "c"},
            },
            "status": {"phase": "Bound"},
        },
        {"Capacity": "1Gi", "Access Modes": "RWO,ROX", "Claim": "x/c", "Status": "Bound"},
    ),
    "a quota": (
        kinds.RESOURCE_QUOTAS,
        {**meta(), "status": {"hard": {"pods": "3", "limits.cpu": "2"}, "used": {"pods": "1"}}},
        {"Request": "pods: 1/3", "Limit": "limits.cpu: 0/2"},
    ),
    "endpoints of many": (
        kinds.ENDPOINTS,
        {**meta(), "subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}]},
        {"Endpoints": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."},
    ),
    "a lease": (kinds.LEASES, {**meta(), "spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
    "a priority class": (kinds.PRIORITY_CLASSES, {**meta(), "value": 7}, {"Value": 7, "Global-Default": "false"}),
    "a secret": (
        kinds.SECRETS,
        {**meta(), "type": "Opaque", "data": {"a": "", "b": ""}},
        {"Type": "Opaque", "Data": 2},
    ),
    "a config map": (kinds.CONFIG_MAPS, {**meta(), "data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2}),
    "a binding": (kinds.ROLE_BINDINGS, {**meta(), "roleRef": {"kind": "Role", "name": "r"}}, {"Role": "Role/r"}),
    "a definition": (kinds.CUSTOM_RESOURCE_DEFINITIONS, meta(), {"Created At": CREATED}),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    kind, obj, want = ROWS[name]
    cells = {column.name: column.show(obj, NOW) for column in BUILT_IN[kind]}
    assert {column: cells[column] for column in want} == want


def names(columns: tuple[TableColumn, ...]) -> list[str]:
    return [column.name for column in columns]


def test_every_table_begins_with_a_name_and_kinds_without_table_have_name_and_age() -> None:
    registry = new_registry()
    for served in registry.kinds:
        assert "Name" in names(columns_for(served))
        for column in columns_for(served):
            assert column.to_wire()["type"] in ("string", "integer")
    assert names(columns_for(registry.served(kinds.POD_TEMPLATES))) == ["Name", "Age"]


def test_columns_of_custom_resources_follow_their_paths() -> None:
    columns = columns_of(
        (
            Column("Size", "integer", ".spec.size"),
            Column("Parts", "string", ".spec.parts[*].name", priority=1),
            Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Age", "date", ".metadata.creationTimestamp"),
            Column("Free", "string", ".spec.free"),
            Column("Missing", "string", ".spec.missing"),
        )
    )
    obj = {
        **meta(),
        "spec": {"size": 3, "parts": [{"name": "a"}, {"name": "b"}], "free": {"x": 1}},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    assert [column.show(obj, NOW) for column in columns] == ["n", 3, "a b", "True", "60s", '{"x":1}', None]
    assert [column.wide for column in columns][:3] == [False, False, True]
    assert names(columns_of(())) == ["Name", "Age"]


PATHS: dict[str, list[Any]] = {
    ".a.b": [1],
    "a.b": [1],
    "$.a.b": [1],
    ".list[0]": [{"k": "x"}],
    ".list[-1].k": ["y"],
    ".list[*].k": ["x", "y"],
    ".list[?(@.k=='y')].k": ["y"],
    '.list[?(@.k!="y")].k': ["x"],
    ".a['b']": [1],
    r".dotted\.key": [2],
    ".nothing": [],
    ".list.k": [],
    ".a[0]": [],
    ".a[": [],
}


@pytest.mark.parametrize("path", PATHS)
def test_json_paths(path: str) -> None:
    assert find({"a": {"b": 1}, "list": [{"k": "x"}, {"k": "y"}], "dotted.key": 2}, path) == PATHS[path]
