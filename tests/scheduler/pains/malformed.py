"""Objects of every kind the scheduler reads, whole and damaged, to stand beside one healthy queue and job.

Whole ones are rich: they use what plugins read. ``damaged`` ones differ from them in one to four places, where they
have what breaks those who are not careful; what cannot be decoded is left out, as informers leave it out.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson

from stromboli.api import core, names

Json = dict[str, Any]
HEALTHY_NODE, HEALTHY_QUEUE = "healthy-node", "healthy-queue"
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, -(2**31), 2**63 - 1, -(2**63), 0.5, -0.0, 1e308, -1e308, "", " ", "0", "-1",
    "-5", "NaN", "nan", "inf", "Inf", "-inf", "1e400", "1e308", "-1e308", "9" * 60, "1Ki", "-1Ki", "1E", "1000E",
    "0.0000001n", "1m", ".", "a" * 300, "\x00", "Ω", "💣", "a/b/c", "//", "root", "default", "bad", "worse", "ghost",
    "bad-node", "bad-group", "w", "*", ".*", "[z-a]", "((((", "(?P<n>", "(a+)+$", "{", "[]", "{}", "null", "[1]",
    '{"a":', '{"cpu": {}}', '[{"id": null}]', '{"0": -1}', "1,2;3", ",", ";", ":", "a:b", "1:", "true", "False", "1h",
    "-1h", "1y", "100%", "101%", "-1%", "50", "2026-01-01T00:00:00Z", "soon", [], {}, [None], [{}], {"": ""},
    {"a": "b"}, {"w": 99}, {"w": -1}, {"cpu": "-1"}, {"cpu": "1e400"}, {"cpu": "9E"}, {"memory": "-1Gi"},
    {"pods": "-3"}, {"nvidia.com/gpu": "-8"}, {"nvidia.com/gpu": "1e30"},
)  # fmt: skip
"""Values that break those who are not careful, and names of what is there and what is not."""

_META = {"creationTimestamp": "2026-01-01T00:00:00Z"}


def _meta(name: str, *, namespace: str = "", uid: str = "", **more: Any) -> Json:
    found: Json = {"name": name, "uid": uid or f"uid-{namespace}-{name}", **_META, **more}
    return {**found, "namespace": namespace} if namespace else found


def _container(**more: Any) -> Json:
    amounts = {"cpu": "1", "memory": "1Gi"}
    return {"name": "main", "image": "a:1", "resources": {"requests": {**amounts}, "limits": {**amounts}}, **more}


def _node() -> Json:
    offered = {
        "cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4", "volcano.sh/gpu-memory": "32000",
        "volcano.sh/gpu-number": "2", "volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-memory": "32000",
        "attachable-volumes-csi-d": "3",
    }  # fmt: skip
    annotations = {
        names.NODE_VGPU_REGISTER: "GPU-0,10,16000,100,NVIDIA-V100,true:GPU-1,10,16000,100,NVIDIA-V100,true:",
        names.GPU_UNHEALTHY_IDS: "1",
        names.OVERSUBSCRIPTION_CPU: "2000",
        names.OVERSUBSCRIPTION_MEMORY: "1000000",
        names.OVERSUBSCRIPTION_TYPES: "cpu,memory",
        names.EVICTING_CPU_HIGH_WATERMARK: "80",
        "cpu_usage_avg.5m": "10",
        names.VGPU_TIME: "2026-01-01T00:00:00Z",
    }
    labels = {
        names.HOSTNAME: "bad-node",
        names.ZONE: "z1",
        names.REVOCABLE_ZONE: "rz1",
        names.NODE_GROUP_NAME: "group-a",
        names.OVERSUBSCRIPTION: "true",
    }
    taints = [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]
    return {
        "metadata": _meta("bad-node", labels=labels, annotations=annotations),
        "spec": {"taints": taints, "unschedulable": False},
        "status": {
            "allocatable": offered,
            "capacity": {**offered},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["a:1"], "sizeBytes": 100000000}],
        },
    }


def _queue() -> Json:
    return {
        "metadata": _meta("bad", annotations={names.HIERARCHY: "root/a/b", names.HIERARCHY_WEIGHTS: "1/2/3"}),
        "spec": {
            "weight": 2,
            "parent": "root",
            "reclaimable": True,
            "priority": 5,
            "capability": {"cpu": "30", "memory": "60Gi", "nvidia.com/gpu": "2"},
            "deserved": {"cpu": "20", "memory": "40Gi"},
            "guarantee": {"resource": {"cpu": "500m", "memory": "1Gi"}},
            "affinity": {"nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["group-a"]}},
        },
        "status": {"state": "Open", "allocated": {"cpu": "1"}},
    }


def _group(name: str, **spec: Any) -> Json:
    annotations = {
        names.SLA_WAITING_TIME: "1h",
        names.TASK_TOPOLOGY_AFFINITY: "w,v",
        names.TASK_TOPOLOGY_ANTI_AFFINITY: "w;v",
        names.TASK_TOPOLOGY_TASK_ORDER: "w,v",
        names.PREEMPTABLE: "true",
        names.JDB_MIN_AVAILABLE: "50%",
        names.JDB_MAX_UNAVAILABLE: "1",
        names.REVOCABLE_ZONE: "*",
        names.JOB_ALLOCATED_HYPERNODE: "s0",
        names.RESOURCE_STRATEGY_SCORING_TYPE: "MostAllocated",
        names.RESOURCE_STRATEGY_WEIGHT: '{"cpu": 2}',
        names.COOLDOWN_TIME: "10m",
    }
    return {
        "metadata": _meta(name, namespace="ns", annotations=annotations),
        "spec": {
            "minMember": 1,
            "minTaskMember": {"w": 1},
            "queue": "worse",
            "priorityClassName": "high",
            "minResources": {"cpu": "100m", "memory": "100Mi"},
            **spec,
        },
        "status": {"phase": "Inqueue", "conditions": [], "running": 0, "succeeded": 0, "failed": 0},
    }


def _spec_below() -> Json:
    affinity = {"nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["group-a"]}}
    return {"weight": 1, "parent": "bad", "deserved": {"cpu": "20", "memory": "40Gi"}, "affinity": affinity}


SUB_GROUPS: Json = {
    "networkTopology": {"mode": "hard", "highestTierAllowed": 2, "highestTierName": ""},
    "subGroupPolicy": [
        {
            "name": "part",
            "subGroupSize": 1,
            "minSubGroups": 1,
            "matchLabelKeys": ["part"],
            "labelSelector": {"matchLabels": {"app": "a"}},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        }
    ],
}


def _pod(name: str, group: str, role: str = "w", **spec: Any) -> Json:
    annotations = {
        names.GROUP_NAME: group,
        names.TASK_SPEC: role,
        names.TASK_PRIORITY: "3",
        names.TASK_INDEX: "0",
        names.PREEMPTABLE: "true",
        names.REVOCABLE_ZONE: "*",
        names.NUMA_TOPOLOGY_POLICY: "single-numa-node",
        names.TOPOLOGY_DECISION: '{"node": {"main": "0-1"}}',
        names.GPU_INDEX: "0",
        names.PREDICATE_TIME: "1700000000",
        names.VGPU_IDS: "GPU-0,NVIDIA,1000,10:;",
        names.VGPU_NODE: "bad-node",
        names.VGPU_TIME: "1700000000",
        names.DEVICES_TO_ALLOCATE: "GPU-0,NVIDIA,1000,10:;",
        names.COOLDOWN_TIME: "10m",
        names.SLA_WAITING_TIME: "1h",
    }
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": names.HOSTNAME}
    requirement = {"key": names.ZONE, "operator": "In", "values": ["z1"]}
    return {
        "metadata": _meta(name, namespace="ns", annotations=annotations, labels={"app": "a", "part": "p0"}),
        "spec": {
            "schedulerName": "volcano",
            "priority": 10,
            "priorityClassName": "high",
            "containers": [_container(ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}])],
            "initContainers": [_container(name="init", restartPolicy="Always")],
            "overhead": {"cpu": "10m"},
            "nodeSelector": {names.ZONE: "z1"},
            "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "preference": {"matchExpressions": [{**requirement, "operator": "Gt"}]}}
                    ],
                },
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": term}]
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term}]},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": names.ZONE,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "a"}},
                    "minDomains": 1,
                    "matchLabelKeys": ["part"],
                }
            ],
            "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "wait"}}}},
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "device"}],
            **spec,
        },
        "status": {"phase": "Pending", "conditions": []},
    }


def _plain_pod(name: str, group: str, role: str = "w", **more: Any) -> Json:
    """A pod that nothing stands in the way of, so that damage to it is not hidden by what it waits for."""
    found = _pod(name, group, role)
    kept = ("schedulerName", "priority", "containers", "tolerations")
    found["spec"] = {**{key: found["spec"][key] for key in kept}, **more}
    found["spec"]["containers"] = [_container()]
    if group != "bad-numa":
        del found["metadata"]["annotations"][names.NUMA_TOPOLOGY_POLICY]
    return found


def _device_pod(name: str, **limits: str) -> Json:
    found = _plain_pod(name, "bad-device")
    amounts = {"cpu": "100m", "memory": "100Mi", **limits}
    found["spec"]["containers"][0]["resources"] = {"requests": {**amounts}, "limits": {**amounts}}
    return found


def _pods() -> Iterator[Json]:
    affinity = _pod("", "")["spec"]
    picky = ("nodeSelector", "affinity", "topologySpreadConstraints", "initContainers", "overhead")
    yield _pod("bad-rich", "bad-rich")
    yield _plain_pod("bad-picky", "bad-rich", **{key: affinity[key] for key in picky})
    yield _plain_pod("bad-plain-w", "bad-group")
    yield _plain_pod("bad-plain-v", "bad-group", "v")
    yield {**_plain_pod("bad-running", "bad-group", nodeName="bad-node"), "status": {"phase": "Running"}}
    yield _plain_pod("bad-numa", "bad-numa")
    yield _plain_pod("bad-claims", "bad-claims", resourceClaims=affinity["resourceClaims"])
    yield _plain_pod("bad-volumes", "bad-volumes", volumes=affinity["volumes"][:1])
    yield _device_pod("bad-vgpu", **{"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"})
    yield _device_pod("bad-gpu", **{"volcano.sh/gpu-memory": "100"})
    yield _device_pod("bad-whole-gpu", **{"volcano.sh/gpu-number": "1"})
    for at in range(2):
        part = _plain_pod(f"bad-part-{at}", "bad-parts")
        part["metadata"]["labels"]["part"] = f"p{at}"
        yield part


def _hyper_node(name: str, tier: int, *members: Json) -> Json:
    return {"metadata": _meta(name), "spec": {"tier": tier, "tierName": f"t{tier}", "members": list(members)}}


def _member(kind: str, selector: Json) -> Json:
    return {"type": kind, "selector": selector}


def _claims() -> Iterator[tuple[type[core.Object], Json]]:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    expression = {"cel": {"expression": "device.driver == 'd'"}}
    device = {
        "name": "dev0",
        "attributes": {"model": {"string": "a100"}, "index": {"int": 0}},
        "capacity": {"memory": {"value": "40Gi"}},
    }
    yield (
        core.ResourceClaim,
        {
            "metadata": _meta("device", namespace="ns"),
            "spec": {"devices": {"requests": [request], "constraints": [], "config": []}},
            "status": {},
        },
    )
    yield core.DeviceClass, {"metadata": _meta("gpu"), "spec": {"selectors": [expression], "config": []}}
    yield (
        core.ResourceSlice,
        {
            "metadata": _meta("slice"),
            "spec": {
                "driver": "d",
                "nodeName": "bad-node",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [device],
            },
        },
    )


def _storage() -> Iterator[tuple[type[core.Object], Json]]:
    zone = {"matchExpressions": [{"key": names.ZONE, "operator": "In", "values": ["z1"]}]}
    yield (
        core.PersistentVolumeClaim,
        {
            "metadata": _meta("claim", namespace="ns", annotations={"pv.kubernetes.io/bind-completed": "yes"}),
            "spec": {
                "storageClassName": "wait",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "",
                "selector": {"matchLabels": {"a": "b"}},
            },
            "status": {"phase": "Pending"},
        },
    )
    yield (
        core.PersistentVolume,
        {
            "metadata": _meta("volume", labels={names.ZONE: "z1", "a": "b"}),
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "wait",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [zone]}},
                "csi": {"driver": "d", "volumeHandle": "h"},
            },
            "status": {"phase": "Available"},
        },
    )
    yield (
        core.StorageClass,
        {
            "metadata": _meta("wait"),
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": names.ZONE, "values": ["z1"]}]}],
        },
    )
    yield (
        core.CSINode,
        {
            "metadata": _meta("bad-node"),
            "spec": {"drivers": [{"name": "d", "nodeID": "bad-node", "allocatable": {"count": 2}}]},
        },
    )


def _others() -> Iterator[tuple[type[core.Object], Json]]:
    yield core.PriorityClass, {"metadata": _meta("high"), "value": 1000, "globalDefault": False}
    yield (
        core.ResourceQuota,
        {
            "metadata": _meta("quota", namespace="ns"),
            "spec": {"hard": {"cpu": "100", "requests.cpu": "100"}},
            "status": {"hard": {"cpu": "100"}, "used": {"cpu": "1"}},
        },
    )
    yield (
        core.PodDisruptionBudget,
        {
            "metadata": _meta("budget", namespace="ns"),
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"disruptionsAllowed": 1},
        },
    )
    yield core.Namespace, {"metadata": _meta("ns", labels={"team": "a"})}
    yield core.Service, {"metadata": _meta("svc", namespace="ns"), "spec": {"selector": {"app": "a"}}}
    details = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu // 2} for cpu in range(8)}
    yield (
        core.Numatopology,
        {
            "metadata": _meta("bad-node"),
            "spec": {
                "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"},
                "numares": {"cpu": {"allocatable": "0-7", "capacity": 8}},
                "cpuDetail": details,
                "resReserved": {"cpu": "1"},
            },
        },
    )


def whole() -> list[tuple[type[core.Object], Json]]:
    """Everything, undamaged."""
    node_member = _member("Node", {"exactMatch": {"name": "bad-node"}})
    pattern = _member("Node", {"regexMatch": {"pattern": "bad-.*"}})
    labels = _member("Node", {"labelMatch": {"matchLabels": {names.ZONE: "z1"}}})
    child = _member("HyperNode", {"exactMatch": {"name": "s0"}})
    return [
        (core.Queue, _queue()),
        (core.Queue, {"metadata": _meta("worse"), "spec": _spec_below(), "status": {"state": "Open"}}),
        (core.Node, _node()),
        (core.HyperNode, _hyper_node("s0", 1, node_member, pattern)),
        (core.HyperNode, _hyper_node("s1", 1, labels)),
        (core.HyperNode, _hyper_node("top", 2, child)),
        *_others(),
        *_storage(),
        *_claims(),
        (core.PodGroup, _group("bad-group", minTaskMember={"w": 1, "v": 1}, minMember=2)),
        (core.PodGroup, _group("bad-parts", **SUB_GROUPS)),
        *((core.PodGroup, _group(f"bad-{name}")) for name in ("rich", "numa", "claims", "volumes", "device")),
        *((core.Pod, one) for one in _pods()),
    ]


def damaged(value: Json, dice: random.Random) -> Json:
    """A copy with one to four injuries."""
    value = copy.deepcopy(value)
    for _ in range(dice.randint(1, 4)):
        _injure(value, dice)
    return value


def _injure(value: Json, dice: random.Random) -> None:
    found = list(_places(value))
    if not found:
        return
    container, key = dice.choice(found)
    match dice.randrange(8):
        case 0:
            del container[key]
        case 1 if isinstance(container, list):
            container.extend(copy.deepcopy(container[key]) for _ in range(dice.choice((1, 3, 40))))
        case 2 if isinstance(container, dict):
            container[dice.choice(list(container))] = copy.deepcopy(container[key])
        case 3 if isinstance(container, dict):
            container[str(dice.choice(ODD))] = container.pop(key)
        case 4 if isinstance(container[key], str) and container[key]:
            at = dice.randrange(len(container[key]))
            container[key] = (
                container[key][:at] + dice.choice(("", ",", "-", ":", "9", "\n")) + container[key][at + 1 :]
            )
        case _:
            container[key] = copy.deepcopy(dice.choice(ODD))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        container = waiting.pop()
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            yield container, key
            if isinstance(container[key], dict | list) and container[key]:
                waiting.append(container[key])


def objects(dice: random.Random) -> list[core.Object]:
    """Some of everything, some of that damaged, in any order."""
    found: list[core.Object] = []
    for struct, given in whole():
        if dice.random() < 0.15:
            continue
        is_damaged = dice.random() < 0.35
        obj = decoded(struct, damaged(given, dice) if is_damaged else given)
        if obj is not None:
            found.append(obj)
    dice.shuffle(found)
    return found


def decoded(struct: type[core.Object], given: Json) -> core.Object | None:
    """The object as an informer would hand it over; None for what it would leave out."""
    try:
        return core.decode(struct, orjson.dumps(given))
    except (core.UndecodableObject, orjson.JSONEncodeError):
        return None
