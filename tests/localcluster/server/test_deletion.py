"""Deletion: grace, finalizers, propagation, preconditions."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.patching.patches import MergePatch
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.statuses import StatusError
from tests.localcluster.server.objects import deployment, pod


async def with_pod(**spec: Any) -> Registry:
    registry = new_registry()
    await registry.create(kinds.PODS, pod(**spec))
    return registry


async def delete(registry: Registry, **options: Any) -> Any:
    return await registry.delete(kinds.PODS, "default", "p", DeleteOptions(**options))


async def test_a_pod_that_runs_nowhere_is_gone_at_once() -> None:
    registry = await with_pod()
    assert (await delete(registry)).gone
    assert registry.store.list(kinds.PODS) == []


async def test_a_bound_pod_gets_its_grace_and_goes_when_the_node_says_so() -> None:
    registry = await with_pod(nodeName="n", terminationGracePeriodSeconds=7)
    deleted = await delete(registry)
    assert not deleted.gone and deleted.obj["metadata"]["deletionGracePeriodSeconds"] == 7
    assert deleted.obj["metadata"]["deletionTimestamp"] > deleted.obj["metadata"]["creationTimestamp"]
    assert (await delete(registry, grace_period=0)).gone


async def test_a_second_deletion_can_only_shorten_the_grace() -> None:
    registry = await with_pod(nodeName="n")
    first = (await delete(registry, grace_period=20)).obj
    assert (await delete(registry, grace_period=100)).obj == first
    assert (await delete(registry, grace_period=5)).obj["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_pod_that_has_ended_needs_no_grace() -> None:
    registry = await with_pod(nodeName="n")
    await registry.patch(
        kinds.PODS, "default", "p", MergePatch({"status": {"phase": "Succeeded"}}), subresource="status"
    )
    assert (await delete(registry)).gone


async def test_finalizers_hold_an_object_until_the_last_is_removed() -> None:
    registry = new_registry()
    given = pod()
    given["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await registry.create(kinds.PODS, given)
    assert not (await delete(registry)).gone
    one_more = MergePatch({"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/new"]}})
    with pytest.raises(StatusError, match="no new finalizers can be added if the object is being deleted"):
        await registry.patch(kinds.PODS, "default", "p", one_more)
    one_less = MergePatch({"metadata": {"finalizers": ["example.com/b"]}})
    left = await registry.patch(kinds.PODS, "default", "p", one_less)
    assert left["metadata"]["finalizers"] == ["example.com/b"]
    watch = registry.watch(kinds.PODS)
    await registry.patch(kinds.PODS, "default", "p", MergePatch({"metadata": {"finalizers": None}}))
    assert registry.store.list(kinds.PODS) == []
    assert [event.type for event in await watch.batch(1)] == ["DELETED"]


PROPAGATION = {
    "background removes at once": ("Background", None),
    "foreground waits for dependents": ("Foreground", ["foregroundDeletion"]),
    "orphan waits for references to go": ("Orphan", ["orphan"]),
    "nothing said removes at once": (None, None),
}


@pytest.mark.parametrize("name", PROPAGATION)
async def test_propagation_sets_finalizers(name: str) -> None:
    policy, want = PROPAGATION[name]
    registry = new_registry()
    await registry.create(kinds.DEPLOYMENTS, deployment())
    options = DeleteOptions(propagation=policy)  # type: ignore[arg-type]
    deleted = await registry.delete(kinds.DEPLOYMENTS, "default", "d", options)
    assert deleted.gone is (want is None)
    assert deleted.obj["metadata"].get("finalizers") == want


async def test_a_later_policy_replaces_an_earlier_one() -> None:
    registry = new_registry()
    await registry.create(kinds.DEPLOYMENTS, deployment())
    await registry.delete(kinds.DEPLOYMENTS, "default", "d", DeleteOptions(propagation="Foreground"))
    repeated = await registry.delete(kinds.DEPLOYMENTS, "default", "d")
    assert repeated.obj["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (await registry.delete(kinds.DEPLOYMENTS, "default", "d", DeleteOptions(propagation="Background"))).gone


async def test_preconditions_protect_another_incarnation_and_revision() -> None:
    registry = await with_pod()
    for options in ({"uid": "other"}, {"resource_version": "1"}):
        with pytest.raises(StatusError, match="on Pod .p.: the (UID|ResourceVersion) in the") as refused:
            await delete(registry, **options)
        assert refused.value.code == 409
    assert len(registry.store.list(kinds.PODS)) == 1


async def test_dry_run_deletes_nothing() -> None:
    registry = await with_pod()
    assert (await delete(registry, dry_run=True)).gone
    assert len(registry.store.list(kinds.PODS)) == 1


async def test_what_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(StatusError, match='pods "p" not found'):
        await delete(new_registry())


async def test_a_namespace_terminates_and_goes_when_it_is_finalized() -> None:
    registry = new_registry()
    created = await registry.create(kinds.NAMESPACES, {"metadata": {"name": "n"}})
    assert (created["spec"], created["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    terminating = (await registry.delete(kinds.NAMESPACES, None, "n")).obj
    assert terminating["status"]["phase"] == "Terminating" and terminating["metadata"]["deletionTimestamp"]
    await registry.update(kinds.NAMESPACES, {**terminating, "spec": {"finalizers": []}}, subresource="finalize")
    assert registry.store.list(kinds.NAMESPACES) == []


async def test_a_collection_is_deleted_object_by_object() -> None:
    registry = await with_pod()
    await registry.create(kinds.PODS, pod("bound", nodeName="n"))
    listed = await registry.delete_collection(kinds.PODS, "default")
    assert len(listed.items) == 2
    assert [stored.key.name for stored in registry.store.list(kinds.PODS)] == ["bound"]
