"""Pods on simulated nodes, through the registry."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.nodes.heartbeats import NOT_READY
from stromboli.localcluster.nodes.kubelets import UNMANAGED, Addresses
from stromboli.localcluster.nodes.lifecycles import PREFIX, Settings
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.storage import Object
from stromboli.localcluster.subresources.binding import bind
from tests.localcluster.sim.simulation import Simulation, pod, simulation


def phase(cluster: Simulation, name: str) -> str:
    found = cluster.find(kinds.PODS, name)
    return found["status"]["phase"] if found else ""


def ready(node: Object | None) -> str:
    conditions = (node or {}).get("status", {}).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == "Ready"), "")


async def test_a_bound_pod_runs_and_ends() -> None:
    async with simulation(nodes=1, pods=Settings(run_seconds=0.05)) as cluster:
        await cluster.create(pod("p", restartPolicy="Never"))
        await cluster.settled()
        assert phase(cluster, "p") == "Pending"
        await bind(cluster.registry, "default", "p", "node-0")
        await cluster.until(lambda: phase(cluster, "p") == "Succeeded")


async def test_a_pod_on_an_unknown_or_unmanaged_node_stays_pending() -> None:
    async with simulation(nodes=1) as cluster:
        metadata = {"name": "real", "annotations": {UNMANAGED: "true"}}
        await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        for name, node in (("a", "nowhere"), ("b", "real")):
            await cluster.create(pod(name))
            await bind(cluster.registry, "default", name, node)
        await cluster.settled()
        assert (phase(cluster, "a"), phase(cluster, "b")) == ("Pending", "Pending")


async def test_pods_have_addresses_of_their_own() -> None:
    async with simulation(nodes=1) as cluster:
        for number in range(20):
            await cluster.create(pod(f"p{number}"))
            await bind(cluster.registry, "default", f"p{number}", "node-0")
        await cluster.until(lambda: all(one["status"]["phase"] == "Running" for one in cluster.all(kinds.PODS)))
        assert len({one["status"]["podIP"] for one in cluster.all(kinds.PODS)}) == 20


async def test_a_deleted_pod_goes_after_it_has_stopped() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.create(pod("p", annotations={PREFIX + "stop-seconds": "3600"}))
        await bind(cluster.registry, "default", "p", "node-0")
        await cluster.until(lambda: phase(cluster, "p") == "Running")
        await cluster.registry.delete(kinds.PODS, "default", "p", DeleteOptions(grace_period=7200))
        await cluster.settled()
        assert cluster.find(kinds.PODS, "p") is not None
        await cluster.registry.delete(kinds.PODS, "default", "p", DeleteOptions(grace_period=1))
        await cluster.until(lambda: cluster.find(kinds.PODS, "p") is None)


async def test_an_annotation_put_on_a_running_pod_ends_it() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.create(pod("p", restartPolicy="Never", annotations={PREFIX + "run-seconds": "3600"}))
        await bind(cluster.registry, "default", "p", "node-0")
        await cluster.until(lambda: phase(cluster, "p") == "Running")
        found = cluster.find(kinds.PODS, "p")
        assert found is not None
        annotations = {PREFIX + "run-seconds": "0", PREFIX + "exit-code": "3"}
        await cluster.registry.update(
            kinds.PODS, {**found, "metadata": {**found["metadata"], "annotations": annotations}}
        )
        await cluster.until(lambda: phase(cluster, "p") == "Failed")


async def test_a_pod_that_cannot_be_simulated_does_not_stop_the_others() -> None:
    async with simulation(nodes=1) as cluster:
        broken = await cluster.create(pod("broken"))
        key = ("default", "broken")
        await cluster.create(pod("fine"))
        stored = cluster.store.list(kinds.PODS, "default")[0]
        status = {"phase": "Pending", "startTime": "yesterday"}
        cluster.store.replace(
            stored.key, {**broken, "spec": {**broken["spec"], "nodeName": "node-0"}, "status": status}
        )
        await bind(cluster.registry, "default", "fine", "node-0")
        await cluster.until(lambda: phase(cluster, "fine") == "Running")
        assert phase(cluster, key[1]) == "Pending"


async def test_kubelets_that_fall_behind_list_again() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.settled()
        await cluster.create(pod("p"))
        await bind(cluster.registry, "default", "p", "node-0")
        cluster.store.compact()
        await cluster.until(lambda: phase(cluster, "p") == "Running")
        await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}})
        cluster.store.compact()
        await cluster.until(lambda: ready(cluster.find(kinds.NODES, "late", "")) == "True")


async def test_addresses_go_on_behind_those_in_use() -> None:
    addresses = Addresses()
    addresses.seen({"status": {"podIP": "10.64.1.9"}})
    addresses.seen({"status": {"podIP": "192.168.0.1"}})
    addresses.seen({"status": {}})
    assert addresses.pod_ip({"status": {}}) == "10.64.1.10"
    assert addresses.pod_ip({"status": {"podIP": "10.64.0.3"}}) == "10.64.0.3"


async def test_nodes_are_ready_and_have_leases() -> None:
    async with simulation(nodes=2) as cluster:
        await cluster.until(lambda: all(ready(node) == "True" for node in cluster.all(kinds.NODES)))
        await cluster.until(lambda: len(cluster.all(kinds.LEASES, "kube-node-lease")) == 2)
        lease = cluster.find(kinds.LEASES, "node-1", "kube-node-lease")
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "node-1"
        node = cluster.find(kinds.NODES, "node-1", "")
        assert node is not None
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.0"


async def test_a_node_can_be_made_to_look_broken_and_whole_again() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.until(lambda: ready(cluster.find(kinds.NODES, "node-0", "")) == "True")
        node = cluster.find(kinds.NODES, "node-0", "")
        assert node is not None
        metadata = {**node["metadata"], "annotations": {NOT_READY: "true"}}
        await cluster.registry.update(kinds.NODES, {**node, "metadata": metadata})
        await cluster.until(lambda: ready(cluster.find(kinds.NODES, "node-0", "")) == "Unknown")
        node = cluster.find(kinds.NODES, "node-0", "")
        assert node is not None
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]
        metadata = {key: value for key, value in node["metadata"].items() if key != "annotations"}
        await cluster.registry.update(kinds.NODES, {**node, "metadata": metadata})
        await cluster.until(lambda: ready(cluster.find(kinds.NODES, "node-0", "")) == "True")
        node = cluster.find(kinds.NODES, "node-0", "")
        assert node is not None
        assert not node["spec"].get("taints")


async def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    async with simulation(nodes=1) as cluster:
        own = {"key": "gpu", "effect": "NoSchedule"}
        for cordoned, want in ((True, ["gpu", "node.kubernetes.io/unschedulable"]), (False, ["gpu"])):
            node = cluster.find(kinds.NODES, "node-0", "")
            assert node is not None
            taints = [own] if cordoned else node["spec"]["taints"]
            changed = {**node, "spec": {**node["spec"], "taints": taints, "unschedulable": cordoned}}
            await cluster.registry.update(
                kinds.NODES, {key: value for key, value in changed.items() if key != "status"}
            )

            def keys() -> list[str]:
                found = cluster.find(kinds.NODES, "node-0", "")
                return [taint["key"] for taint in (found or {})["spec"].get("taints") or ()]

            await cluster.until(lambda want=want: keys() == want)  # type: ignore[misc]


async def test_the_lease_goes_with_the_node() -> None:
    async with simulation(nodes=1) as cluster:
        await cluster.until(lambda: cluster.all(kinds.LEASES, "kube-node-lease"))
        await cluster.registry.delete(kinds.NODES, None, "node-0")
        await cluster.until(lambda: not cluster.all(kinds.LEASES, "kube-node-lease"))
