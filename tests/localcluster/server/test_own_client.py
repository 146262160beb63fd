"""Our own client and informers against this server: errors by class, pages, watches that outlive a compaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.kube import errors, json
from stromboli.kube.client import Client, PatchType
from stromboli.kube.informers import Informer
from stromboli.localcluster.registry import Registry
from tests.localcluster.server.measure import serving
from tests.localcluster.server.objects import WIDGETS, pod, registry_with_widgets, widget


@pytest.fixture
async def registry() -> Registry:
    return await registry_with_widgets()


@pytest.fixture
async def client(registry: Registry, tmp_path: Path) -> AsyncIterator[Client]:
    config = tmp_path / "kubeconfig"
    async with serving(registry) as address:
        config.write_text(
            json.encode(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": address}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            ).decode()
        )
        async with await Client.connect(kubeconfig=str(config), qps=1000, burst=1000) as client:
            yield client


async def test_refusals_become_our_errors(client: Client) -> None:
    with pytest.raises(errors.NotFound):
        await client.get(kinds.PODS, "p", "default")
    created = await client.create(kinds.PODS, pod())
    with pytest.raises(errors.AlreadyExists):
        await client.create(kinds.PODS, pod())
    with pytest.raises(errors.Invalid):
        await client.create(kinds.PODS, pod("x", containers=[]))
    await client.patch(kinds.PODS, "p", {"metadata": {"labels": {"a": "b"}}}, "default")
    with pytest.raises(errors.Conflict):
        await client.update(kinds.PODS, {**created, "metadata": {**created["metadata"], "labels": {"c": "d"}}})
    with pytest.raises(errors.Conflict):
        await client.delete(kinds.PODS, "p", "default", uid="another")


async def test_apply_and_conflict_of_managers(client: Client) -> None:
    wanted: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", **widget(color="green")}
    apply = PatchType.APPLY
    first = await client.patch(WIDGETS, "w", wanted, "default", type=apply, field_manager="a")
    assert first["spec"]["color"] == "green"
    wanted["spec"]["color"] = "red"
    with pytest.raises(errors.Conflict):
        await client.patch(WIDGETS, "w", wanted, "default", type=apply, field_manager="b")
    forced = await client.patch(WIDGETS, "w", wanted, "default", type=apply, field_manager="b", force=True)
    assert forced["spec"]["color"] == "red"


async def test_an_informer_follows_and_survives_a_compaction(client: Client, registry: Registry) -> None:
    for index in range(3):
        await registry.create(kinds.PODS, pod(f"p{index}"))
    informer = Informer(client, kinds.PODS, json.decode_object)
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    informer.add_handler(
        on_add=lambda found: told.put_nowait(("added", found["metadata"]["name"])),
        on_delete=lambda found: told.put_nowait(("deleted", found["metadata"]["name"])),
    )
    running = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(20):
            assert {await told.get() for _ in range(3)} == {("added", f"p{index}") for index in range(3)}
            await registry.create(kinds.PODS, pod("late"))
            assert await told.get() == ("added", "late")
            registry.store.compact()
            await registry.delete(kinds.PODS, "default", "p0")
            assert await told.get() == ("deleted", "p0")
        assert len(informer.store.list()) == 3
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
