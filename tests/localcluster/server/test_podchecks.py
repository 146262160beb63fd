"""Checks and defaults of pod specs, in the words of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.requests import WriteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.strategies import podchecks, podspecs


def spec(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i"}], **more}


def one(**container: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "c", "image": "i", **container}])


def node_affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "k", **requirement}]}]
    return spec(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    )


TERM = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all is well": (spec(), []),
    "no containers": ({}, ["containers: Required value"]),
    "no image": (spec(containers=[{"name": "c"}]), ["containers[0].image: Required value"]),
    "an image in blanks": (
        one(image=" i"),
        ['containers[0].image: Invalid value: " i": must not have leading or trailing whitespace'],
    ),
    "an init container named like a container": (
        spec(initContainers=[{"name": "c", "image": "i"}]),
        ['initContainers[0].name: Duplicate value: "c"'],
    ),
    "a port without number": (one(ports=[{}]), ["containers[0].ports[0].containerPort: Required value"]),
    "a port out of range and one of another protocol": (
        one(ports=[{"containerPort": 70000}, {"containerPort": 1, "protocol": "ICMP"}]),
        [
            "containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            'containers[0].ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    "two ports of one name": (
        one(ports=[{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]),
        ['containers[0].ports[1].name: Duplicate value: "a"'],
    ),
    "a variable with two sources": (
        one(env=[{"name": "X", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
        ['containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ),
    "a mount of nothing and two at one place": (
        one(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]),
        [
            'containers[0].volumeMounts[0].name: Not found: "v"',
            'containers[0].volumeMounts[1].name: Not found: "v"',
            'containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
        ],
    ),
    "a probe that does nothing": (
        one(livenessProbe={}),
        ["containers[0].livenessProbe: Required value: must specify a handler type"],
    ),
    "a sleep beyond the grace": (
        {**one(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), "terminationGracePeriodSeconds": 30},
        [
            "containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
            "terminationGracePeriodSeconds (30)"
        ],
    ),
    "a claim of nothing": (
        one(resources={"claims": [{"name": "c"}]}),
        [
            'containers[0].resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims '
            "which is empty"
        ],
    ),
    "a resource of no kind": (
        one(resources={"limits": {"foo": "1"}}),
        [
            'containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully '
            "qualified",
            'containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource for containers',
        ],
    ),
    "half a device": (
        one(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        ['containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'],
    ),
    "fewer devices asked for than allowed": (
        one(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}}),
        ['containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    "less than nothing": (
        one(resources={"requests": {"cpu": "-1"}}),
        ['containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "huge pages alone": (
        one(resources={"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"hugepages-2Mi": "2Mi"}}),
        ["containers[0].resources: Forbidden: HugePages require cpu or memory"],
    ),
    "a restart policy of a container": (
        one(restartPolicy="Always"),
        ["containers[0].restartPolicy: Forbidden: may not be set for non-init containers"],
    ),
    "a restart policy of an init container": (
        spec(initContainers=[{"name": "i", "image": "i", "restartPolicy": "OnFailure"}]),
        ['initContainers[0].restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
    ),
    "two sources of a volume": (
        spec(volumes=[{"name": "v", "emptyDir": {}, "configMap": {"name": "x"}}]),
        ["volumes[0].configMap: Forbidden: may not specify more than 1 volume type"],
    ),
    "two volumes of one name": (
        spec(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
        ['volumes[1].name: Duplicate value: "v"'],
    ),
    "no settings for a custom DNS": (
        spec(dnsPolicy="None"),
        ["dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    "the host's network without its users": (
        spec(hostUsers=False, hostNetwork=True),
        ["hostNetwork: Forbidden: when `hostUsers` is false"],
    ),
    "names of another form": (
        spec(nodeName="Bad_Node", priorityClassName="Bad_PC"),
        [
            f'nodeName: Invalid value: "Bad_Node": {SUBDOMAIN}',
            f'priorityClassName: Invalid value: "Bad_PC": {SUBDOMAIN}',
        ],
    ),
    "no time at all": (
        spec(activeDeadlineSeconds=0),
        ["activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "an unknown preemption policy": (
        spec(preemptionPolicy="Maybe"),
        ['preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"'],
    ),
    "a negative user": (
        spec(securityContext={"runAsUser": -1}),
        ["securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
    ),
    "a pod with less than its containers": (
        {**one(resources={"requests": {"cpu": "4"}}), "resources": {"requests": {"cpu": "2"}}},
        [
            'resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate container '
            "requests of 4"
        ],
    ),
    "a toleration of time for what does not evict": (
        spec(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]),
        [
            "tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` "
            "is set"
        ],
    ),
    "a value beside Exists": (
        spec(tolerations=[{"key": "k", "operator": "Exists", "value": "x"}]),
        ["tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"],
    ),
    "no skew": (
        spec(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]),
        ["topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
    ),
    "In without values": (
        node_affinity(operator="In"),
        [f"{TERM}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
    ),
    "Exists with values": (
        node_affinity(operator="Exists", values=["x"]),
        [f"{TERM}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
    ),
    "Gt of two values": (
        node_affinity(operator="Gt", values=["1", "2"]),
        [f"{TERM}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"],
    ),
    "an operator of no kind": (
        node_affinity(operator="Like", values=["x"]),
        [f'{TERM}.operator: Invalid value: "Like": not a valid selector operator'],
    ),
    "a weight out of range": (
        spec(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]}}),
        [
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be "
            "in the range 1-100"
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pod_specs(name: str) -> None:
    given, want = CASES[name]
    assert [str(cause).removeprefix("spec.") for cause in podchecks.check(given, "spec")] == want


def test_ephemeral_containers_are_for_running_pods() -> None:
    given = spec(ephemeralContainers=[{"name": "e", "image": "i"}])
    assert list(podchecks.check(given, "spec")) == []
    (cause,) = podchecks.check(given, "spec", is_template=True)
    assert str(cause) == "spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"


async def test_a_dry_run_of_a_pod_template_checks_a_template_without_making_anything() -> None:
    registry = new_registry()
    given = {
        "metadata": {"name": "t", "namespace": "default"},
        "template": {"metadata": {"labels": {"a": "bad value!"}}, "spec": {"containers": [{"name": "c"}]}},
    }
    with pytest.raises(StatusError) as refused:
        await registry.create(kinds.POD_TEMPLATES, given, options=WriteOptions(dry_run=True))
    fields = [cause["field"] for cause in refused.value.details["causes"]]
    assert fields == ["template.labels", "template.spec.containers[0].image"]


def test_defaults_of_a_pod() -> None:
    given = spec(
        containers=[
            {
                "name": "c",
                "image": "registry:5000/i",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "readinessProbe": {"httpGet": {"port": 80}},
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            }
        ],
        volumes=[{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}}, {"name": "h", "hostPath": {"path": "/"}}],
        hostNetwork=True,
    )
    podspecs.default(given)
    container = given["containers"][0]
    assert container["imagePullPolicy"] == "Always"
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert container["readinessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert container["readinessProbe"]["periodSeconds"] == 10
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert given["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 0o644}},
        {"name": "h", "hostPath": {"path": "/", "type": ""}},
    ]
    assert (given["restartPolicy"], given["dnsPolicy"], given["schedulerName"]) == (
        "Always",
        "ClusterFirst",
        "default-scheduler",
    )
    again = {**given}
    podspecs.default(again)
    assert again == given


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ("i", "Always"),
        ("i:latest", "Always"),
        ("i:1", "IfNotPresent"),
        ("host:5000/i", "Always"),
        ("host:5000/i:1", "IfNotPresent"),
        ("i@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, want: str) -> None:
    given = one(image=image)
    podspecs.default(given)
    assert given["containers"][0]["imagePullPolicy"] == want


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1"}, "requests": {"cpu": "1000m", "memory": "1"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], want: str) -> None:
    assert podspecs.qos_class(one(resources=resources)) == want
