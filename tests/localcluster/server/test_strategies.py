"""What the server fills in for single built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.patching.patches import MergePatch
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from tests.localcluster.server.objects import deployment, pod


def service(name: str = "s", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}


async def create(kind: Kind, **fields: Any) -> Object:
    return await new_registry().create(kind, {"metadata": {"name": "x", "namespace": "default"}, **fields})


async def test_services_get_free_addresses_and_ports() -> None:
    registry = new_registry()
    first = await registry.create(kinds.SERVICES, service("a", type="NodePort"))
    second = await registry.create(kinds.SERVICES, service("b", type="NodePort"))
    assert first["spec"]["clusterIP"] == "10.96.0.2" and second["spec"]["clusterIP"] == "10.96.0.3"
    assert first["spec"]["clusterIPs"] == ["10.96.0.2"]
    ports = [one["spec"]["ports"][0] for one in (first, second)]
    assert [port["nodePort"] for port in ports] == [30000, 30001]
    assert ports[0]["targetPort"] == 80 and ports[0]["protocol"] == "TCP"
    await registry.delete(kinds.SERVICES, "default", "a")
    assert (await registry.create(kinds.SERVICES, service("c")))["spec"]["clusterIP"] == "10.96.0.2"


async def test_services_keep_their_address_when_a_manifest_leaves_it_out() -> None:
    registry = new_registry()
    created = await registry.create(kinds.SERVICES, service(type="NodePort"))
    given = service(type="NodePort")
    given["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    updated = await registry.update(kinds.SERVICES, given)
    assert updated["spec"] == created["spec"]
    with pytest.raises(StatusError, match="may not change once set"):
        await registry.patch(kinds.SERVICES, "default", "s", MergePatch({"spec": {"clusterIP": "10.96.9.9"}}))


async def test_headless_and_external_services_get_no_address() -> None:
    assert (await create(kinds.SERVICES, spec={"clusterIP": "None"}))["spec"]["clusterIP"] == "None"
    external = await create(kinds.SERVICES, spec={"type": "ExternalName", "externalName": "example.com"})
    assert "clusterIP" not in external["spec"]


BAD_SERVICES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown type": ({"type": "Magic"}, "spec.type: Unsupported value"),
    "several ports without names": ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
    "a port out of range": ({"ports": [{"port": 0}]}, "must be between 1 and 65535, inclusive"),
    "two ports of one name": (
        {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]},
        "Duplicate value",
    ),
}


@pytest.mark.parametrize("name", BAD_SERVICES)
async def test_bad_services(name: str) -> None:
    spec, want = BAD_SERVICES[name]
    with pytest.raises(StatusError) as refused:
        await new_registry().create(kinds.SERVICES, service(**spec))
    assert want in refused.value.message


async def test_pods_start_pending_and_gated_ones_say_so() -> None:
    registry = new_registry()
    given = {**pod(schedulingGates=[{"name": "g"}]), "status": {"phase": "Running"}}
    status = (await registry.create(kinds.PODS, given))["status"]
    assert (status["phase"], status["qosClass"]) == ("Pending", "BestEffort")
    assert status["conditions"][0]["reason"] == "SchedulingGated"


DEFAULTS: dict[str, tuple[Kind, dict[str, Any], dict[str, Any]]] = {
    "a deployment rolls": (
        kinds.DEPLOYMENTS,
        {"spec": deployment()["spec"]},
        {
            "spec.replicas": 1,
            "spec.strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            "spec.template.spec.restartPolicy": "Always",
            "metadata.generation": 1,
        },
    ),
    "a stateful set is ordered": (
        kinds.STATEFUL_SETS,
        {"spec": {**deployment()["spec"], "serviceName": "s"}},
        {"spec.podManagementPolicy": "OrderedReady", "spec.updateStrategy.rollingUpdate": {"partition": 0}},
    ),
    "a daemon set updates one by one": (
        kinds.DAEMON_SETS,
        {"spec": deployment()["spec"]},
        {"spec.updateStrategy.rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
    "a replica set has one pod": (kinds.REPLICA_SETS, {"spec": deployment()["spec"]}, {"spec.replicas": 1}),
    "a cron job keeps some history": (
        kinds.BATCH_CRON_JOBS,
        {
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": pod(restartPolicy="Never")["spec"]}}},
            }
        },
        {"spec.concurrencyPolicy": "Allow", "spec.successfulJobsHistoryLimit": 3, "spec.suspend": False},
    ),
    "a secret encodes what is written plainly": (
        kinds.SECRETS,
        {"stringData": {"a": "b"}},
        {"type": "Opaque", "data": {"a": "Yg=="}, "stringData": None},
    ),
    "a claim starts pending": (
        kinds.PERSISTENT_VOLUME_CLAIMS,
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}},
        {"spec.volumeMode": "Filesystem", "status.phase": "Pending", "spec.resources.requests": {"storage": "1Gi"}},
    ),
    "a volume is retained": (
        kinds.PERSISTENT_VOLUMES,
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}},
        {"spec.persistentVolumeReclaimPolicy": "Retain", "status.phase": "Pending"},
    ),
    "a storage class binds at once": (
        kinds.STORAGE_CLASSES,
        {"provisioner": "p"},
        {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
    "a priority class preempts": (
        kinds.PRIORITY_CLASSES,
        {"value": 1},
        {"preemptionPolicy": "PreemptLowerPriority", "metadata.generation": 1},
    ),
    "a binding names the group of users": (
        kinds.ROLE_BINDINGS,
        {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]},
        {
            "roleRef.apiGroup": "rbac.authorization.k8s.io",
            "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ),
    "a network policy has types": (
        kinds.NETWORK_POLICIES,
        {"spec": {"podSelector": {}, "egress": [{}]}},
        {"spec.policyTypes": ["Ingress", "Egress"]},
    ),
    "endpoints speak TCP": (
        kinds.ENDPOINTS,
        {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}]}]},
        {"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1, "protocol": "TCP"}]}]},
    ),
    "a mutating webhook fails closed": (
        kinds.MUTATING_WEBHOOKS,
        {
            "webhooks": [
                {
                    "name": "a.b.c",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"namespace": "n", "name": "s"}},
                    "rules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                    ],
                }
            ]
        },
        {
            "webhooks.0.failurePolicy": "Fail",
            "webhooks.0.timeoutSeconds": 10,
            "webhooks.0.reinvocationPolicy": "Never",
            "webhooks.0.rules.0.scope": "*",
            "webhooks.0.clientConfig.service.port": 443,
        },
    ),
}


def at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj[int(part)] if isinstance(obj, list) else obj.get(part)
    return obj


@pytest.mark.parametrize("name", DEFAULTS)
async def test_defaults(name: str) -> None:
    kind, fields, want = DEFAULTS[name]
    obj = await create(kind, **fields)
    assert {path: at(obj, path) for path in want} == want


async def test_a_job_selects_its_own_pods() -> None:
    spec = {"template": {"spec": pod(restartPolicy="Never")["spec"]}}
    obj = await create(kinds.BATCH_JOBS, spec=spec)
    uid = obj["metadata"]["uid"]
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert obj["spec"]["template"]["metadata"]["labels"]["job-name"] == "x"
    assert (obj["spec"]["completions"], obj["spec"]["parallelism"], obj["spec"]["backoffLimit"]) == (1, 1, 6)


async def with_object(kind: Kind, **fields: Any) -> Registry:
    registry = new_registry()
    await registry.create(kind, {"metadata": {"name": "x", "namespace": "default"}, **fields})
    return registry


FIXED: dict[str, tuple[Kind, dict[str, Any], dict[str, Any], str]] = {
    "the selector of a deployment": (
        kinds.DEPLOYMENTS,
        {"spec": deployment()["spec"]},
        {
            "spec": {
                "selector": {"matchLabels": {"app": None, "b": "c"}},
                "template": {"metadata": {"labels": {"b": "c"}}},
            }
        },
        "spec.selector: Invalid value",
    ),
    "most of a stateful set": (
        kinds.STATEFUL_SETS,
        {"spec": {**deployment()["spec"], "serviceName": "s"}},
        {"spec": {"serviceName": "t"}},
        "spec: Forbidden: updates to statefulset spec for fields other than",
    ),
    "an immutable config map": (
        kinds.CONFIG_MAPS,
        {"data": {"a": "1"}, "immutable": True},
        {"data": {"a": "2"}},
        "data: Forbidden: field is immutable when `immutable` is set",
    ),
    "the type of a secret": (kinds.SECRETS, {}, {"type": "Other"}, "type: Invalid value"),
    "the role of a binding": (
        kinds.ROLE_BINDINGS,
        {"roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}},
        {"roleRef": {"name": "s"}},
        "roleRef: Invalid value",
    ),
    "the value of a priority class": (
        kinds.PRIORITY_CLASSES,
        {"value": 1},
        {"value": 2},
        "value: Forbidden: may not be changed in an update.",
    ),
}


@pytest.mark.parametrize("name", FIXED)
async def test_what_may_not_change(name: str) -> None:
    kind, fields, patch, want = FIXED[name]
    registry = await with_object(kind, **fields)
    with pytest.raises(StatusError) as refused:
        await registry.patch(kind, "default", "x", MergePatch(patch))
    assert refused.value.code == 422 and want in refused.value.message


BAD: dict[str, tuple[Kind, dict[str, Any], str]] = {
    "a secret that is not encoded": (kinds.SECRETS, {"data": {"a": "?"}}, "data[a]: Invalid value"),
    "a priority above all users'": (
        kinds.PRIORITY_CLASSES,
        {"value": 1_000_000_001},
        "maximum allowed value of a user defined priority is 1000000000",
    ),
    "a budget of two kinds": (
        kinds.POD_DISRUPTION_BUDGETS,
        {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "minAvailable and maxUnavailable cannot be both set",
    ),
    "a claim of nothing": (
        kinds.PERSISTENT_VOLUME_CLAIMS,
        {"spec": {}},
        "spec.accessModes: Required value: at least 1 access mode is required",
    ),
    "two controllers": (
        kinds.CONFIG_MAPS,
        {
            "metadata": {
                "name": "x",
                "namespace": "default",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"
                ],
            }
        },
        "Only one reference can have Controller set to true",
    ),
    "a finalizer of no form": (
        kinds.CONFIG_MAPS,
        {"metadata": {"name": "x", "namespace": "default", "finalizers": ["a b"]}},
        "metadata.finalizers: Invalid value",
    ),
    "a role named like a path": (
        kinds.ROLES,
        {"metadata": {"name": "a/b", "namespace": "default"}},
        "metadata.name: Invalid value: \"a/b\": may not contain '/'",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_objects(name: str) -> None:
    kind, fields, want = BAD[name]
    with pytest.raises(StatusError) as refused:
        await create(kind, **fields)
    assert refused.value.code == 422 and want in refused.value.message
