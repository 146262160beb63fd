"""The local rules for pod templates (spec 07 section 9.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import container, template


def faults(obj: JsonObject, *, name: str = "worker", namespace: str = "team", level: bool = True) -> list[str]:
    return [fault.text for fault in LocalTemplates(level).faults(name, namespace, obj)]


def of_container(**members: Any) -> JsonObject:
    return template(containers=[container(**members)])


def node_affinity(**members: Any) -> JsonObject:
    return {"nodeAffinity": members}


def terms(*expressions: JsonObject) -> JsonObject:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


EXPRESSIONS = (
    "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    ".nodeSelectorTerms[0].matchExpressions"
)
C0 = "template.spec.containers[0]"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist"
MAIN = container()

REFUSED: dict[str, tuple[JsonObject, list[str]]] = {
    "no containers": (template(containers=[]), ["template.spec.containers: Required value"]),
    "no name": (template(containers=[{"image": "x"}]), [f"{C0}.name: Required value"]),
    "no image": (template(containers=[{"name": "x"}]), [f"{C0}.image: Required value"]),
    "a bad name": (of_container(name="Bad_"), [f'{C0}.name: Invalid value: "Bad_": a lowercase RFC 1123 label']),
    "a name twice": (
        template(containers=[MAIN, MAIN]),
        ['template.spec.containers[1].name: Duplicate value: "main"'],
    ),
    "a name shared with an init container": (
        template(initContainers=[MAIN]),
        ['template.spec.initContainers[0].name: Duplicate value: "main"'],
    ),
    "an unknown restart policy": (
        template(restartPolicy="x"),
        ['template.spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"'],
    ),
    "an unknown pull policy": (
        of_container(imagePullPolicy="x"),
        [f'{C0}.imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"'],
    ),
    "an unknown dns policy": (template(dnsPolicy="x"), ['template.spec.dnsPolicy: Unsupported value: "x"']),
    "no dns at all": (template(dnsPolicy="None"), ["template.spec.dnsConfig: Required value: must provide"]),
    "a negative amount": (
        of_container(resources={"requests": {"cpu": "-1"}}),
        [f'{C0}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "an amount that is none": (
        of_container(resources={"requests": {"cpu": "lots"}}),
        [f'{C0}.resources.requests[cpu]: Invalid value: "lots": quantities must match'],
    ),
    "half a device": (
        of_container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [f'{C0}.resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'],
    ),
    "more requested than allowed": (
        of_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [f'{C0}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    "a device without limit": (
        of_container(resources={"requests": {"nvidia.com/gpu": "1"}}),
        [f"{C0}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    "fewer devices requested than allowed": (
        of_container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
        [f'{C0}.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
    ),
    "huge pages alone": (
        of_container(resources={"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}),
        [f"{C0}.resources: Forbidden: HugePages require cpu or memory"],
    ),
    "a resource nobody knows": (
        of_container(resources={"limits": {"foo": "1"}}),
        [
            f'{C0}.resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
            f'{C0}.resources.limits[foo]: Invalid value: "foo": must be a standard resource for containers',
        ],
    ),
    "a claim that is not declared": (
        of_container(resources={"claims": [{"name": "c"}]}),
        [f'{C0}.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is'],
    ),
    "a port out of range": (
        of_container(ports=[{"containerPort": 70000}]),
        [f"{C0}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ),
    "an unknown protocol": (
        of_container(ports=[{"containerPort": 80, "protocol": "x"}]),
        [f'{C0}.ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"'],
    ),
    "a host port twice": (
        template(
            containers=[
                container("a", ports=[{"containerPort": 80, "hostPort": 80}]),
                container("b", ports=[{"containerPort": 81, "hostPort": 80}]),
            ]
        ),
        ['template.spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'],
    ),
    "another host port on the host's network": (
        template(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]),
        [f"{C0}.ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"],
    ),
    "a variable without name": (of_container(env=[{"value": "x"}]), [f"{C0}.env[0].name: Required value"]),
    "a variable with two values": (
        of_container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        [f'{C0}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ),
    "an undeclared volume": (
        of_container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
        [f'{C0}.volumeMounts[0].name: Not found: "v"'],
    ),
    "two mounts on one path": (
        template(volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x"}] * 2)]),
        [f'{C0}.volumeMounts[1].mountPath: Invalid value: "/x": must be unique'],
    ),
    "a volume twice": (
        template(volumes=[{"name": "v"}, {"name": "v"}]),
        ['template.spec.volumes[1].name: Duplicate value: "v"'],
    ),
    "a volume of two kinds": (
        template(volumes=[{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]),
        ["template.spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type"],
    ),
    "a probe that does nothing": (
        of_container(livenessProbe={"periodSeconds": 1}),
        [f"{C0}.livenessProbe: Required value: must specify a handler type"],
    ),
    "a probe of an init container": (
        template(initContainers=[container("i", readinessProbe={"exec": {"command": ["x"]}})]),
        [
            "template.spec.initContainers[0].readinessProbe: Forbidden: "
            "may not be set for init containers without restartPolicy=Always"
        ],
    ),
    "a label that is none": (
        {"metadata": {"labels": {"k": "bad value!"}}, **template()},
        ['template.labels: Invalid value: "bad value!": a valid label must be an empty string'],
    ),
    "an annotation key that is none": (
        {"metadata": {"annotations": {"a b": "x"}}, **template()},
        ['template.annotations: Invalid value: "a b": name part must consist'],
    ),
    "a toleration of Exists with a value": (
        template(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        ['template.spec.tolerations[0].operator: Invalid value: "x": value must be empty'],
    ),
    "a toleration that ends without NoExecute": (
        template(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        ["template.spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute'"],
    ),
    "a toleration with an unknown operator": (
        template(tolerations=[{"key": "a", "operator": "Foo"}]),
        ['template.spec.tolerations[0].operator: Unsupported value: "Foo": supported values: "Equal", "Exists"'],
    ),
    "a weight out of range": (
        template(
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
                    ]
                }
            }
        ),
        [
            "template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 101: must be in the range 1-100"
        ],
    ),
    "required node affinity of nothing": (
        template(affinity=node_affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": []})),
        [
            "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
            "Required value: must have at least one node selector term"
        ],
    ),
    "node expressions that say nothing": (
        template(
            affinity=node_affinity(
                requiredDuringSchedulingIgnoredDuringExecution=terms(
                    {"key": "a", "operator": "In"},
                    {"key": "a", "operator": "Exists", "values": ["x"]},
                    {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                    {"key": "a", "operator": "Like"},
                    {"key": "a b", "operator": "Exists"},
                )
            )
        ),
        [
            f"{EXPRESSIONS}[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            f"{EXPRESSIONS}[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            f"{EXPRESSIONS}[2].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
            f'{EXPRESSIONS}[3].operator: Invalid value: "Like": not a valid selector operator',
            f'{EXPRESSIONS}[4].key: Invalid value: "a b": name part must consist',
        ],
    ),
    "a preferred node without weight": (
        template(
            affinity=node_affinity(
                preferredDuringSchedulingIgnoredDuringExecution=[
                    {"preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                ]
            )
        ),
        [
            "template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 0: must be in the range 1-100"
        ],
    ),
    "pods nowhere": (
        template(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        [
            "template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
            "Required value: can not be empty"
        ],
    ),
    "a toleration of any key that is not Exists": (
        template(tolerations=[{"operator": "Equal", "value": "x"}]),
        ['template.spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty'],
    ),
    "a toleration of a value that is none": (
        template(tolerations=[{"key": "a", "value": "bad value!", "effect": "Sometimes"}]),
        [
            'template.spec.tolerations[0].operator: Invalid value: "bad value!": a valid label must be an empty string',
            'template.spec.tolerations[0].effect: Unsupported value: "Sometimes": supported values: ',
        ],
    ),
    "a spread over nothing, in an unknown way": (
        template(topologySpreadConstraints=[{"maxSkew": 1, "whenUnsatisfiable": "Hope"}]),
        [
            "template.spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            'template.spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Hope"',
        ],
    ),
    "a port name twice and a host port out of range": (
        of_container(
            ports=[
                {"name": "p", "containerPort": 1},
                {"name": "p", "containerPort": 2, "hostPort": 99999},
            ]
        ),
        [
            f'{C0}.ports[1].name: Duplicate value: "p"',
            f"{C0}.ports[1].hostPort: Invalid value: 99999: must be between 1 and 65535, inclusive",
        ],
    ),
    "a mount of no volume, nowhere": (
        of_container(volumeMounts=[{}]),
        [f"{C0}.volumeMounts[0].name: Required value", f"{C0}.volumeMounts[0].mountPath: Required value"],
    ),
    "an init container that restarts on failure": (
        template(initContainers=[container("i", restartPolicy="OnFailure")]),
        ['template.spec.initContainers[0].restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
    ),
    "an unknown preemption policy": (
        template(preemptionPolicy="Maybe"),
        [
            'template.spec.preemptionPolicy: Unsupported value: "Maybe": supported values: '
            '"PreemptLowerPriority", "Never"'
        ],
    ),
    "a variable with an equals sign": (
        of_container(env=[{"name": "A=B"}]),
        [f'{C0}.env[0].name: Invalid value: "A=B": a valid environment variable name'],
    ),
    "the host's network without the host's users": (
        template(hostNetwork=True, hostUsers=False),
        ["template.spec.hostNetwork: Forbidden: when `hostUsers` is false"],
    ),
    "a spread without skew": (
        template(topologySpreadConstraints=[{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        ["template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
    ),
    "a gate twice": (
        template(schedulingGates=[{"name": "x/y"}, {"name": "x/y"}]),
        ['template.spec.schedulingGates[1]: Duplicate value: "x/y"'],
    ),
    "names that are none": (
        template(serviceAccountName="A_", nodeName="B_", hostname="C.d", priorityClassName="D_", runtimeClassName="E_"),
        [
            f'template.spec.serviceAccountName: Invalid value: "A_": {SUBDOMAIN}',
            f'template.spec.nodeName: Invalid value: "B_": {SUBDOMAIN}',
            'template.spec.hostname: Invalid value: "C.d": a lowercase RFC 1123 label',
            f'template.spec.priorityClassName: Invalid value: "D_": {SUBDOMAIN}',
            f'template.spec.runtimeClassName: Invalid value: "E_": {SUBDOMAIN}',
        ],
    ),
    "a deadline of no time": (
        template(activeDeadlineSeconds=0),
        ["template.spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "a negative user": (
        of_container(securityContext={"runAsUser": -1}),
        [f"{C0}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
    ),
    "an ephemeral container": (
        template(ephemeralContainers=[{"name": "e"}]),
        ["template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
    ),
    "containers that are no list": (
        template(containers="x"),
        ["template.spec.containers: Invalid type: expected `array`, got `str`"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_is_refused(name: str) -> None:
    obj, want = REFUSED[name]
    found = faults(obj)
    assert len(found) == len(want), found
    for text, start in zip(found, want, strict=True):
        assert text.startswith(start)


ACCEPTED = {
    "the least there is": template(),
    "privileged": of_container(securityContext={"privileged": True}),
    "unknown members": of_container(noSuchField=1),
    "limits only": of_container(resources={"limits": {"cpu": "1", "nvidia.com/gpu": 1}}),
    "a volume without source": template(
        volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]
    ),
    "a sidecar with a probe": template(
        initContainers=[container("s", restartPolicy="Always", startupProbe={"tcpSocket": {"port": 1}})]
    ),
    "a negative grace period": template(terminationGracePeriodSeconds=-1),
    "a toleration of everything": template(tolerations=[{"operator": "Exists"}]),
    # What newer API servers accept is theirs to judge (spec 07 section 9.4).
    "a restart policy of a container": of_container(restartPolicy="OnFailure"),
    "a variable that begins with a digit": of_container(env=[{"name": "1A"}]),
    "a hook that sleeps no time": of_container(lifecycle={"preStop": {"sleep": {"seconds": 0}}}),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_template_is_accepted(name: str) -> None:
    assert faults(ACCEPTED[name]) == []


def test_the_task_and_namespace_are_judged_with_the_template() -> None:
    assert faults(template(), name="Bad_")[0].startswith(f'metadata.name: Invalid value: "Bad_": {SUBDOMAIN}')
    assert faults(template(), name="") == ["metadata.name: Required value: name or generateName is required"]
    assert faults(template(), namespace="") == ["metadata.namespace: Required value"]


# Pod level

ASKS: Callable[[str], JsonObject] = lambda cpu: {"resources": {"requests": {"cpu": cpu}}}  # noqa: E731
POD_LEVEL: dict[str, tuple[JsonObject, list[str]]] = {
    "less than the containers together": (
        template(containers=[container("a", **ASKS("2")), container("b", **ASKS("2"))], **ASKS("2")),
        ['template.spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate '
         "container requests of 4"],
    ),
    "as much as the largest init container": (
        template(initContainers=[container("i", **ASKS("4")), container("j", **ASKS("3"))], **ASKS("4")),
        [],
    ),
    "a sidecar counts beside what comes after it": (
        template(
            initContainers=[container("s", restartPolicy="Always", **ASKS("1")), container("i", **ASKS("4"))],
            **ASKS("4"),
        ),
        ['template.spec.resources.requests[cpu]: Invalid value: "4": must be greater than or equal to aggregate '
         "container requests of 5"],
    ),
    "more requested than allowed": (
        template(resources={"requests": {"cpu": "6"}, "limits": {"cpu": "4"}}),
        ['template.spec.resources.requests: Invalid value: "6": must be less than or equal to cpu limit of 4'],
    ),
    "a resource that pods have not": (
        template(resources={"requests": {"nvidia.com/gpu": "1"}}),
        ['template.spec.resources.requests[nvidia.com/gpu]: Unsupported value: "nvidia.com/gpu": supported values: '
         '"cpu", "hugepages-", "memory"'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POD_LEVEL)
def test_resources_of_the_pod(name: str) -> None:
    obj, want = POD_LEVEL[name]
    assert faults(obj) == want
    assert faults(obj, level=False) == []
