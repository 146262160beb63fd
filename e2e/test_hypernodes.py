"""HyperNodes: counts, and discovery from the labels of 200 nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yaml

from e2e.cluster import Cluster, Json, eventually
from stromboli.api.kinds import CONFIG_MAPS, HYPER_NODES, NAMESPACES, NODES
from stromboli.kube.client import PatchType
from stromboli.kube.errors import AlreadyExists

pytestmark = pytest.mark.simulated_nodes

SYSTEM, CONFIG_MAP, KEY = "volcano-system", "volcano-controller-configmap", "volcano-controller.conf"
SOURCE = "volcano.sh/network-topology-source"
NODES_OF_A_RACK, RACKS_OF_A_ROW, MANY = 10, 5, 200


def node(name: str, **labels: str) -> Json:
    """A node that nothing is placed on."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True},
    }


def hyper_node(name: str, *members: Json) -> Json:
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": HYPER_NODES.kind,
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": one} for one in members]},
    }


async def count(cluster: Cluster, name: str) -> int | None:
    found: int | None = ((await cluster.client.get(HYPER_NODES, name)).get("status") or {}).get("nodeCount")
    return found


async def discovered(cluster: Cluster) -> list[Json]:
    return await cluster.client.list(HYPER_NODES, label_selector=f"{SOURCE}=label")


async def deleted(cluster: Cluster) -> list[Json]:
    """Delete what was discovered; answers what was there. A source that is being stopped may make some once more."""
    found = await discovered(cluster)
    for one in found:
        await cluster.delete(HYPER_NODES, one["metadata"]["name"])
    return found


@asynccontextmanager
async def nodes(cluster: Cluster, *given: Json) -> AsyncIterator[None]:
    """The nodes, for a while."""
    await asyncio.gather(*(cluster.create(NODES, one) for one in given))
    try:
        yield
    finally:
        await asyncio.gather(*(cluster.delete(NODES, one["metadata"]["name"]) for one in given))


async def configure(cluster: Cluster, enabled: bool) -> None:
    """Say how HyperNodes are discovered."""
    types = {"e2e": [{"nodeLabel": key} for key in ("e2e.row", "e2e.rack", "kubernetes.io/hostname")]}
    entry = {"source": "label", "enabled": enabled, "config": {"networkTopologyTypes": types}}
    text = yaml.safe_dump({"networkTopologyDiscovery": [entry]})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}, "data": {KEY: text}}
    try:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": SYSTEM}})
    except AlreadyExists:
        pass
    await cluster.client.patch(
        CONFIG_MAPS, CONFIG_MAP, body, SYSTEM, type=PatchType.APPLY, field_manager="e2e", force=True
    )


async def test_nodes_are_counted_as_they_come_and_go(cluster: Cluster) -> None:
    name = cluster.namespace
    label = {"labelMatch": {"matchLabels": {"counted-by": name}}}
    await cluster.create(HYPER_NODES, hyper_node(name, label, {"regexMatch": {"pattern": f"^{name}-x"}}))
    try:
        await eventually(lambda: count(cluster, name), lambda found: found == 0)
        labelled = node(f"{name}-1", **{"counted-by": name})
        async with nodes(cluster, labelled, node(f"{name}-x1"), node(f"{name}-x2"), node(f"{name}-y")):
            await eventually(lambda: count(cluster, name), lambda found: found == 3)
        await eventually(lambda: count(cluster, name), lambda found: found == 0)
    finally:
        await cluster.delete(HYPER_NODES, name)


async def test_the_labels_of_200_nodes_become_racks_and_rows(cluster: Cluster) -> None:
    prefix = cluster.namespace[:20]
    racks = MANY // NODES_OF_A_RACK
    given = [
        node(
            f"{prefix}-n{number}",
            **{
                "e2e.rack": f"rack-{number // NODES_OF_A_RACK}",
                "e2e.row": f"row-{number // NODES_OF_A_RACK // RACKS_OF_A_ROW}",
            },
        )
        for number in range(MANY)
    ]
    rows = racks // RACKS_OF_A_ROW
    async with nodes(cluster, *given):
        await configure(cluster, enabled=True)
        try:
            found = await eventually(
                lambda: discovered(cluster),
                lambda seen: (
                    sorted(one.get("status", {}).get("nodeCount", 0) for one in seen)
                    == [RACKS_OF_A_ROW] * rows + [NODES_OF_A_RACK] * racks
                ),
            )
            assert {one["spec"]["tierName"] for one in found if one["spec"]["tier"] == 2} == {"e2e.row"}
            names = {one["metadata"]["name"] for one in found}
            first = next(one for one in found if one["metadata"]["labels"].get("e2e.rack") == "rack-0")
            await cluster.client.delete(HYPER_NODES, first["metadata"]["name"])
            again = await eventually(lambda: discovered(cluster), lambda seen: len(seen) == racks + rows)
            assert len(names & {one["metadata"]["name"] for one in again}) >= racks + rows - 1
        finally:
            await configure(cluster, enabled=False)
            await eventually(lambda: deleted(cluster), lambda left: not left)
