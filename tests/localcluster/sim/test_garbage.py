"""Garbage collection: background, foreground, orphan, and owners that never were."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster.requests import DeleteOptions, Propagation
from stromboli.localcluster.storage import Object
from tests.localcluster.sim.simulation import Simulation, config_map, owner, pod, simulation


def names(cluster: Simulation) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.all(kinds.CONFIG_MAPS)} - {"kube-root-ca.crt"}


async def family(cluster: Simulation, *, blocks: bool = False) -> tuple[Object, Object, Object]:
    """A grandparent, a parent and a child."""
    top = await cluster.create(config_map("top"))
    middle = await cluster.create(config_map("middle", owner(top, blocks=blocks)))
    bottom = await cluster.create(config_map("bottom", owner(middle, blocks=blocks)))
    return top, middle, bottom


async def delete(cluster: Simulation, name: str, propagation: Propagation | None = None) -> None:
    options = DeleteOptions(propagation=propagation)
    await cluster.registry.delete(kinds.CONFIG_MAPS, "default", name, options)


async def test_background_deletes_all_descendants() -> None:
    async with simulation(garbage=True) as cluster:
        await family(cluster)
        await delete(cluster, "top", "Background")
        assert "top" not in names(cluster)
        await cluster.until(lambda: not names(cluster))


async def test_foreground_deletes_the_owner_last() -> None:
    async with simulation(garbage=True) as cluster:
        await family(cluster, blocks=True)
        order: list[str] = []
        watch = cluster.store.watch(kinds.CONFIG_MAPS, "default")
        await delete(cluster, "top", "Foreground")
        assert "top" in names(cluster)
        await cluster.until(lambda: not names(cluster))
        order = [event.stored.key.name for event in await watch.batch() if event.type == "DELETED"]
        assert order == ["bottom", "middle", "top"]


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_owners_in_a_circle_do_not_wait_for_each_other_for_ever(length: int) -> None:
    async with simulation(garbage=True) as cluster:
        ring = [await cluster.create(config_map(f"ring-{place}")) for place in range(length)]
        for place, obj in enumerate(ring):
            present = cluster.find(kinds.CONFIG_MAPS, f"ring-{place}")
            assert present is not None
            metadata = {**present["metadata"], "ownerReferences": [owner(ring[place - 1], blocks=True)]}
            await cluster.registry.update(kinds.CONFIG_MAPS, {**obj, "metadata": metadata})
        await delete(cluster, "ring-0", "Foreground")
        await cluster.until(lambda: not names(cluster))


async def test_foreground_waits_for_what_blocks_only() -> None:
    async with simulation(garbage=True) as cluster:
        top = await cluster.create(config_map("top"))
        await cluster.create(config_map("held", owner(top), finalizers=["example.com/held"]))
        await delete(cluster, "top", "Foreground")
        await cluster.until(lambda: "top" not in names(cluster))
        assert names(cluster) == {"held"}


async def test_foreground_waits_for_finalizers_of_what_blocks() -> None:
    async with simulation(garbage=True) as cluster:
        top = await cluster.create(config_map("top"))
        held = config_map("held", owner(top, blocks=True), finalizers=["example.com/held"])
        await cluster.create(held)
        await delete(cluster, "top", "Foreground")
        await cluster.until(
            lambda: (cluster.find(kinds.CONFIG_MAPS, "held") or {})["metadata"].get("deletionTimestamp")
        )
        await cluster.settled()
        assert names(cluster) == {"top", "held"}
        present = cluster.find(kinds.CONFIG_MAPS, "held")
        assert present is not None
        freed = {key: value for key, value in present["metadata"].items() if key != "finalizers"}
        await cluster.registry.update(kinds.CONFIG_MAPS, {**present, "metadata": freed})
        await cluster.until(lambda: not names(cluster))


async def test_orphan_leaves_the_children() -> None:
    async with simulation(garbage=True) as cluster:
        await family(cluster)
        await delete(cluster, "top", "Orphan")
        await cluster.until(lambda: "top" not in names(cluster))
        middle = cluster.find(kinds.CONFIG_MAPS, "middle")
        assert middle is not None
        assert not middle["metadata"].get("ownerReferences")
        assert names(cluster) == {"middle", "bottom"}


async def test_one_living_owner_is_enough() -> None:
    async with simulation(garbage=True) as cluster:
        first, second = await cluster.create(config_map("first")), await cluster.create(config_map("second"))
        await cluster.create(config_map("child", owner(first), owner(second)))
        await delete(cluster, "first", "Background")

        def references() -> list[str]:
            child = cluster.find(kinds.CONFIG_MAPS, "child")
            assert child is not None
            return [one["name"] for one in child["metadata"].get("ownerReferences", [])]

        await cluster.until(lambda: references() == ["second"])
        await delete(cluster, "second", "Background")
        await cluster.until(lambda: not names(cluster))


@pytest.mark.parametrize("change", [{"uid": "another"}, {"name": "nobody"}], ids=["another UID", "another name"])
async def test_an_owner_that_never_was(change: dict[str, Any]) -> None:
    async with simulation(garbage=True) as cluster:
        top = await cluster.create(config_map("top"))
        await cluster.create(config_map("child", {**owner(top), **change}))
        await cluster.until(lambda: names(cluster) == {"top"})


async def test_an_owner_of_a_kind_that_is_not_served_is_left_alone() -> None:
    async with simulation(garbage=True) as cluster:
        reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "1"}
        await cluster.create(config_map("child", reference))
        await cluster.settled()
        assert names(cluster) == {"child"}


async def test_a_new_owner_of_the_same_name_does_not_keep_them() -> None:
    async with simulation(garbage=True) as cluster:
        await family(cluster)
        await delete(cluster, "top", "Background")
        await cluster.create(config_map("top"))
        await cluster.until(lambda: names(cluster) == {"top"})


@settings(max_examples=25, deadline=None)
@given(st.data())
async def test_what_lives_has_a_living_owner(data: st.DataObject) -> None:
    """Whatever the owners and whatever is deleted: only that stays which never had owners, or still has one."""
    size = data.draw(st.integers(1, 8))
    owners = {
        number: data.draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        for number in range(size)
    }
    doomed = data.draw(st.sets(st.integers(0, size - 1)))
    alive: dict[int, bool] = {}
    for number in range(size):
        alive[number] = number not in doomed and (not owners[number] or any(alive[one] for one in owners[number]))
    async with simulation(garbage=True) as cluster:
        made: list[Object] = []
        for number in range(size):
            references = [owner(made[one]) for one in owners[number]]
            made.append(await cluster.create(config_map(f"c{number}", *references)))
        for number in doomed:
            if cluster.find(kinds.CONFIG_MAPS, f"c{number}") is not None:
                await delete(cluster, f"c{number}", "Background")
        want = {f"c{number}" for number in range(size) if alive[number]}
        await cluster.until(lambda: names(cluster) == want)
        await cluster.settled()
        assert names(cluster) == want


async def test_cluster_scoped_owners() -> None:
    async with simulation(garbage=True) as cluster:
        metadata = {"name": "queue"}
        node = await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        await cluster.create(pod("p", owners=[owner(node)]))
        await cluster.registry.delete(kinds.NODES, None, "queue")
        await cluster.until(lambda: not cluster.all(kinds.PODS))


async def test_custom_resources_are_followed_as_soon_as_they_are_served() -> None:
    async with simulation(garbage=True) as cluster:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec = {
            "group": "example.com",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        }
        await cluster.create(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "things.example.com"},
                "spec": spec,
            }
        )
        await cluster.until(lambda: cluster.registry.kinds.by_kind("example.com/v1", "Thing"))
        thing = await cluster.create({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
        await cluster.create(config_map("child", owner(thing)))
        served = cluster.registry.kinds.by_kind("example.com/v1", "Thing")
        assert served is not None
        await cluster.registry.delete(served.kind, "default", "t")
        await cluster.until(lambda: not names(cluster))
