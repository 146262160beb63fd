"""Namespaces, volumes, Endpoints, disruption budgets, quota status, vanished nodes, and the minimal scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.localcluster.controllers.deployments import DeploymentController
from stromboli.localcluster.controllers.disruptions import DisruptionController, desired_healthy
from stromboli.localcluster.controllers.endpoints import EndpointsController
from stromboli.localcluster.controllers.quotas import QuotaController
from stromboli.localcluster.controllers.replicasets import ReplicaSetController
from stromboli.localcluster.controllers.scheduling import DefaultScheduler, admits, first_fit, free_amounts
from stromboli.localcluster.controllers.vanished import VanishedNodeController
from stromboli.localcluster.controllers.volumes import VolumeController
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.storage import Object
from stromboli.localcluster.subresources.binding import bind
from tests.localcluster.sim.simulation import Simulation, config_map, owner, phases, pod, simulation


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def test_a_new_namespace_is_furnished() -> None:
    async with simulation() as cluster:
        await cluster.create(namespace("ns"))
        await cluster.until(lambda: cluster.find(kinds.SERVICE_ACCOUNTS, "default", "ns"))
        await cluster.until(lambda: cluster.find(kinds.CONFIG_MAPS, "kube-root-ca.crt", "ns"))
        bundle = cluster.find(kinds.CONFIG_MAPS, "kube-root-ca.crt", "ns")
        assert bundle is not None
        assert bundle["data"] == {"ca.crt": "CA"}


async def test_a_deleted_namespace_empties_itself() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.create(namespace("ns"))
        await cluster.until(lambda: cluster.find(kinds.SERVICE_ACCOUNTS, "default", "ns"))
        await cluster.create(config_map("a", namespace="ns"))
        await cluster.create(pod("p", namespace="ns"))
        await bind(cluster.registry, "ns", "p", "node-0")
        await cluster.registry.delete(kinds.NAMESPACES, None, "ns")
        assert (cluster.find(kinds.NAMESPACES, "ns", "") or {})["status"]["phase"] == "Terminating"
        await cluster.until(lambda: cluster.find(kinds.NAMESPACES, "ns", "") is None)
        assert not cluster.all(kinds.PODS, "ns")
        assert not cluster.all(kinds.CONFIG_MAPS, "ns")


async def test_a_namespace_waits_for_finalizers() -> None:
    async with simulation() as cluster:
        await cluster.create(namespace("ns"))
        held = await cluster.create(config_map("held", namespace="ns", finalizers=["example.com/held"]))
        await cluster.registry.delete(kinds.NAMESPACES, None, "ns")
        await cluster.until(
            lambda: (cluster.find(kinds.CONFIG_MAPS, "held", "ns") or held)["metadata"].get("deletionTimestamp")
        )
        assert cluster.find(kinds.NAMESPACES, "ns", "") is not None
        present = cluster.find(kinds.CONFIG_MAPS, "held", "ns")
        assert present is not None
        freed = {key: value for key, value in present["metadata"].items() if key != "finalizers"}
        await cluster.registry.update(kinds.CONFIG_MAPS, {**present, "metadata": freed})
        await cluster.until(lambda: cluster.find(kinds.NAMESPACES, "ns", "") is None)


def claim(name: str = "data", **spec: Any) -> Object:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": body}


def claim_phase(cluster: Simulation, name: str = "data") -> str:
    found = cluster.find(kinds.PERSISTENT_VOLUME_CLAIMS, name) or {}
    return str((found.get("status") or {}).get("phase", ""))


async def test_a_claim_gets_a_volume_and_takes_it_along() -> None:
    async with simulation(VolumeController) as cluster:
        await cluster.create(claim())
        await cluster.until(lambda: claim_phase(cluster) == "Bound")
        (volume,) = cluster.all(kinds.PERSISTENT_VOLUMES)
        found = cluster.find(kinds.PERSISTENT_VOLUME_CLAIMS, "data")
        assert found is not None
        assert found["spec"]["volumeName"] == volume["metadata"]["name"]
        assert found["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == "standard"
        assert volume["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
        assert volume["status"]["phase"] == "Bound"
        await cluster.registry.delete(kinds.PERSISTENT_VOLUME_CLAIMS, "default", "data")
        await cluster.until(lambda: not cluster.all(kinds.PERSISTENT_VOLUMES))


def volume(name: str, size: str, **spec: Any) -> Object:
    body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/x"},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


async def test_a_claim_takes_the_smallest_volume_that_fits() -> None:
    async with simulation(VolumeController) as cluster:
        for name, size in (("small", "1Mi"), ("large", "9Gi"), ("right", "2Gi")):
            await cluster.create(volume(name, size))
        await cluster.create(claim(storageClassName=""))
        await cluster.until(lambda: claim_phase(cluster) == "Bound")
        found = cluster.find(kinds.PERSISTENT_VOLUME_CLAIMS, "data")
        assert found is not None
        assert found["spec"]["volumeName"] == "right"
        await cluster.registry.delete(kinds.PERSISTENT_VOLUME_CLAIMS, "default", "data")
        await cluster.until(
            lambda: (cluster.find(kinds.PERSISTENT_VOLUMES, "right", "") or {})["status"].get("phase") == "Released"
        )


async def test_a_claim_without_a_class_waits_for_a_volume() -> None:
    async with simulation(VolumeController) as cluster:
        await cluster.create(claim(storageClassName=""))
        await cluster.settled()
        assert claim_phase(cluster) == "Pending"
        await cluster.create(volume("late", "5Gi"))
        await cluster.until(lambda: claim_phase(cluster) == "Bound")


async def test_a_claim_that_waits_for_its_first_consumer() -> None:
    async with simulation(VolumeController, nodes=1) as cluster:
        await cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "local"},
                "provisioner": "example.com/local",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )
        await cluster.create(claim(storageClassName="local"))
        await cluster.settled()
        assert claim_phase(cluster) == "Pending"
        await cluster.create(pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
        await bind(cluster.registry, "default", "p", "node-0")
        await cluster.until(lambda: claim_phase(cluster) == "Bound")
        (made,) = cluster.all(kinds.PERSISTENT_VOLUMES)
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["node-0"]


async def test_endpoints_follow_the_pods() -> None:
    async with simulation(EndpointsController, nodes=1) as cluster:
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        spec = {"selector": {"app": "web"}, "ports": ports}
        await cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        await cluster.create(pod("p", labels={"app": "web"}))
        await bind(cluster.registry, "default", "p", "node-0")

        def addresses() -> list[str]:
            subsets = (cluster.find(kinds.ENDPOINTS, "web") or {}).get("subsets") or ()
            return [one["targetRef"]["name"] for subset in subsets for one in subset.get("addresses") or ()]

        await cluster.until(lambda: addresses() == ["p"])
        found = cluster.find(kinds.ENDPOINTS, "web")
        assert found is not None
        assert found["subsets"][0]["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        await cluster.registry.delete(kinds.PODS, "default", "p")
        await cluster.until(lambda: addresses() == [])
        await cluster.registry.delete(kinds.SERVICES, "default", "web")
        await cluster.until(lambda: cluster.find(kinds.ENDPOINTS, "web") is None)


async def test_endpoints_of_named_ports_and_unready_pods() -> None:
    async with simulation(EndpointsController) as cluster:
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}], "clusterIP": "None"}
        await cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        wanted = pod("p", labels={"app": "web"}, hostname="first", subdomain="web")
        wanted["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": 8080}]
        made = await cluster.create(wanted)
        status = {**made["status"], "phase": "Running", "podIP": "10.64.0.9"}
        await cluster.registry.update(kinds.PODS, {**made, "status": status}, subresource="status")
        await cluster.until(lambda: (cluster.find(kinds.ENDPOINTS, "web") or {}).get("subsets"))
        (subset,) = (cluster.find(kinds.ENDPOINTS, "web") or {})["subsets"]
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        assert [(one["ip"], one["hostname"]) for one in subset["notReadyAddresses"]] == [("10.64.0.9", "first")]
        service = cluster.find(kinds.SERVICES, "web")
        assert service is not None
        changed = {**service, "spec": {**service["spec"], "publishNotReadyAddresses": True}}
        await cluster.registry.update(kinds.SERVICES, changed)
        await cluster.until(lambda: (cluster.find(kinds.ENDPOINTS, "web") or {})["subsets"][0].get("addresses"))


async def test_controllers_that_fall_behind_list_again() -> None:
    """The log is cut while they wait: what happened before they look again is not lost on them."""
    async with simulation(DefaultScheduler, EndpointsController, nodes=1, garbage=True) as cluster:
        await cluster.settled()
        top = await cluster.create(config_map("top"))
        await cluster.create(config_map("child", owner(top)))
        await cluster.create(pod("p"))
        cluster.store.compact()
        await cluster.until(lambda: phases(cluster.all(kinds.PODS)) == {"p": "Running"})
        await cluster.registry.delete(kinds.CONFIG_MAPS, "default", "top")
        cluster.store.compact()
        await cluster.until(lambda: cluster.find(kinds.CONFIG_MAPS, "child") is None)
        await cluster.registry.delete(kinds.PODS, "default", "p")
        cluster.store.compact()
        await cluster.until(lambda: not cluster.all(kinds.PODS))
        await cluster.registry.delete(kinds.NODES, None, "node-0")
        cluster.store.compact()
        await cluster.settled()


async def test_an_object_that_makes_no_sense_does_not_stop_the_others() -> None:
    async with simulation(VolumeController) as cluster:
        made = await cluster.create(pod("odd"))
        odd = {**made, "spec": {**made["spec"], "volumes": [{"name": "v", "persistentVolumeClaim": {}}]}}
        cluster.store.replace(cluster.store.list(kinds.PODS, "default")[0].key, odd)
        await cluster.create(claim())
        await cluster.until(lambda: claim_phase(cluster) == "Bound")


async def test_a_budget_knows_what_may_go() -> None:
    async with simulation(DisruptionController, nodes=1) as cluster:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
        await cluster.create(budget)
        for name in ("p", "q"):
            await cluster.create(pod(name, labels={"app": "web"}))
            await bind(cluster.registry, "default", name, "node-0")

        def status() -> Object:
            return (cluster.find(kinds.POD_DISRUPTION_BUDGETS, "b") or {}).get("status") or {}

        await cluster.until(lambda: status().get("disruptionsAllowed") == 1)
        assert (status()["expectedPods"], status()["currentHealthy"], status()["desiredHealthy"]) == (2, 2, 1)


async def test_a_budget_counts_the_pods_there_should_be() -> None:
    """A pod that was just evicted is missing until it is replaced; its place does not count as given up."""
    async with simulation(
        DisruptionController, DeploymentController, ReplicaSetController, DefaultScheduler, nodes=1
    ) as cluster:
        labels = {"app": "web"}
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
        await cluster.create(budget)
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        await cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": body})

        def status() -> Object:
            return (cluster.find(kinds.POD_DISRUPTION_BUDGETS, "b") or {}).get("status") or {}

        await cluster.until(lambda: status().get("disruptionsAllowed") == 1)
        assert (status()["expectedPods"], status()["desiredHealthy"]) == (3, 2)
        for node in cluster.all(kinds.NODES):
            await cluster.registry.update(kinds.NODES, {**node, "spec": {**node["spec"], "unschedulable": True}})
        victim = cluster.all(kinds.PODS)[0]["metadata"]["name"]
        await cluster.registry.delete(kinds.PODS, "default", victim)
        await cluster.until(lambda: status().get("disruptionsAllowed") == 0)
        await cluster.settled()
        assert (status()["expectedPods"], status()["currentHealthy"]) == (3, 2)
        assert status()["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("spec", "count", "want"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": "50%"}, 5, 3),
        ({"minAvailable": 9}, 5, 5),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "50%"}, 5, 2),
        ({"maxUnavailable": 9}, 5, 0),
        ({"minAvailable": 1}, 0, 0),
    ],
)
def test_desired_healthy(spec: Object, count: int, want: int) -> None:
    assert desired_healthy(spec, count) == want


async def test_a_quota_shows_what_is_used() -> None:
    async with simulation(QuotaController) as cluster:
        spec = {"hard": {"pods": "3", "requests.memory": "4Gi"}}
        await cluster.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec})
        await cluster.create(pod("p", resources={"requests": {"memory": "1024Mi"}}))

        def used() -> Object:
            return ((cluster.find(kinds.RESOURCE_QUOTAS, "q") or {}).get("status") or {}).get("used") or {}

        await cluster.until(lambda: used() == {"pods": "1", "requests.memory": "1Gi"})
        await cluster.registry.delete(kinds.PODS, "default", "p")
        await cluster.until(lambda: used() == {"pods": "0", "requests.memory": "0"})


async def test_pods_go_with_their_node() -> None:
    async with simulation(VanishedNodeController, nodes=2) as cluster:
        for name, node in (("a", "node-0"), ("b", "node-1")):
            await cluster.create(pod(name))
            await bind(cluster.registry, "default", name, node)
        await cluster.until(lambda: set(phases(cluster.all(kinds.PODS)).values()) == {"Running"})
        await cluster.registry.delete(kinds.NODES, None, "node-0", DeleteOptions())
        await cluster.until(lambda: list(phases(cluster.all(kinds.PODS))) == ["b"])


async def test_the_scheduler_leaves_other_schedulers_pods_alone() -> None:
    async with simulation(DefaultScheduler, nodes=1) as cluster:
        await cluster.create(pod("theirs", schedulerName="volcano"))
        await cluster.create(pod("ours"))
        await cluster.until(lambda: phases(cluster.all(kinds.PODS))["ours"] == "Running")
        assert "nodeName" not in (cluster.find(kinds.PODS, "theirs") or {})["spec"]


async def test_a_pod_that_fits_nowhere_says_so_and_waits() -> None:
    async with simulation(DefaultScheduler, nodes=2) as cluster:
        big = {"requests": {"cpu": "6"}}
        for name in ("a", "b", "c"):
            await cluster.create(pod(name, resources=big))

        def waiting() -> list[str]:
            return [
                one["metadata"]["name"]
                for one in cluster.all(kinds.PODS)
                for condition in one["status"].get("conditions") or ()
                if condition["type"] == "PodScheduled" and condition["status"] == "False"
            ]

        await cluster.until(lambda: len(waiting()) == 1)
        bound = next(one for one in cluster.all(kinds.PODS) if one["spec"].get("nodeName"))
        await cluster.registry.delete(kinds.PODS, "default", bound["metadata"]["name"])
        await cluster.until(lambda: not waiting())


@dataclass(frozen=True)
class Fit:
    want: bool
    pod: Object = field(default_factory=dict)
    node: Object = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    ready: str = "True"


def required(*expressions: Object) -> Object:
    terms = [{"matchExpressions": list(expressions)}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


TAINTED = {"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]}
FITS = {
    "an ordinary node": Fit(True),
    "one that is not ready": Fit(False, ready="False"),
    "a cordoned one": Fit(False, node={"unschedulable": True}),
    "a label that is wanted": Fit(True, {"nodeSelector": {"zone": "a"}}, labels={"zone": "a"}),
    "a label that is missing": Fit(False, {"nodeSelector": {"zone": "a"}}),
    "a taint": Fit(False, node=TAINTED),
    "a taint that only asks": Fit(True, node={"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}),
    "a toleration of everything": Fit(True, {"tolerations": [{"operator": "Exists"}]}, TAINTED),
    "a toleration of the key": Fit(True, {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, TAINTED),
    "a toleration of the value": Fit(True, {"tolerations": [{"key": "gpu", "value": "a"}]}, TAINTED),
    "a toleration of another value": Fit(False, {"tolerations": [{"key": "gpu", "value": "b"}]}, TAINTED),
    "a toleration of another effect": Fit(
        False, {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}, TAINTED
    ),
    "affinity to a zone": Fit(
        True, required({"key": "zone", "operator": "In", "values": ["a", "b"]}), labels={"zone": "b"}
    ),
    "affinity to another zone": Fit(
        False, required({"key": "zone", "operator": "In", "values": ["a"]}), labels={"zone": "b"}
    ),
    "affinity away from a label": Fit(
        False, required({"key": "zone", "operator": "DoesNotExist"}), labels={"zone": ""}
    ),
    "affinity to a number": Fit(True, required({"key": "n", "operator": "Gt", "values": ["4"]}), labels={"n": "5"}),
    "affinity to what is no number": Fit(
        False, required({"key": "n", "operator": "Gt", "values": ["4"]}), labels={"n": "x"}
    ),
    "affinity without terms": Fit(False, required()),
}


@pytest.mark.parametrize("case", FITS.values(), ids=FITS.keys())
def test_what_a_node_takes(case: Fit) -> None:
    node = {
        "metadata": {"name": "n", "labels": case.labels},
        "spec": case.node,
        "status": {
            "conditions": [{"type": "Ready", "status": case.ready}],
            "allocatable": {"cpu": "1", "pods": "1"},
        },
    }
    wanted = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **case.pod}}
    assert admits(node, wanted) is case.want
    assert first_fit(wanted, [node], free_amounts([node], [])) == (0 if case.want else 1)


def test_what_is_used_is_not_free() -> None:
    node = {
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "pods": "5"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}
    running: Object = {"metadata": {}, "spec": spec, "status": {"phase": "Running"}}
    ended = {**running, "status": {"phase": "Succeeded"}}
    assert free_amounts([node], [running])["n"] == {"cpu": 500, "pods": 4000}
    assert free_amounts([node], [ended])["n"] == {"cpu": 2000, "pods": 5000}
