"""What is written about device claims, as the embedded API server takes it: schemas, subresources, conflicts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stromboli.api import core, kinds
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.device_binding import FINALIZER, DeviceBinder
from tests.localcluster.server.measure import serving
from tests.localcluster.server.objects import registry_with_widgets
from tests.scheduler.plugins.dra.building import DRIVER, claim, device_class, devices, request, resource_slice
from tests.scheduler.plugins.dra.test_claiming import cluster, pod, scheduled


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    config = tmp_path / "kubeconfig"
    async with serving(await registry_with_widgets()) as address:
        entries = {
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        config.write_text(
            json.encode({"apiVersion": "v1", "kind": "Config", **entries, "current-context": "x"}).decode()
        )
        async with await Client.connect(kubeconfig=str(config), qps=1000, burst=1000) as client:
            await client.create(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
            yield client


async def test_an_allocation_is_accepted_whole(client: Client) -> None:
    async def created(kind: kinds.Kind, obj: core.Object, struct: type[core.Object]) -> core.Object:
        wire = core.to_builtins(obj, kind) | {"metadata": {"name": obj.name, "namespace": obj.namespace or None}}
        return core.from_builtins(struct, await client.create(kind, wire))

    opaque = core.OpaqueDeviceConfiguration(driver=DRIVER, parameters={"mode": "slow"})
    wanted = claim(
        "c", request("r", 2), request("watch", admin=True), config=(core.DeviceConfiguration(opaque=opaque),)
    )
    offered = resource_slice("s", *devices(3, numa=1, model="x", healthy=True, firmware="v1.2.3"), node="n0")
    objects = [
        await created(kinds.RESOURCE_CLAIMS, wanted, core.ResourceClaim),
        await created(kinds.RESOURCE_SLICES, offered, core.ResourceSlice),
        await created(kinds.DEVICE_CLASSES, device_class(parameters={"mode": "fast"}), core.DeviceClass),
    ]
    (bind,) = scheduled(cluster([pod("p", "c")], *objects)).binds
    binder = DeviceBinder(client)
    await binder.pre_bind(bind)
    written = await client.get(kinds.RESOURCE_CLAIMS, "c", "ns")
    assert bind.extension is not None
    (grant,) = bind.extension.devices
    assert core.from_builtins(core.ResourceClaim, written).status.allocation == grant.allocation
    assert [consumer["uid"] for consumer in written["status"]["reservedFor"]] == [bind.task.uid]
    assert written["metadata"]["finalizers"] == [FINALIZER]

    await binder.pre_bind(bind)
    assert (await client.get(kinds.RESOURCE_CLAIMS, "c", "ns"))["metadata"]["resourceVersion"] == (
        written["metadata"]["resourceVersion"]
    ), "nothing to do is not written"

    await binder.roll_back(bind)
    left = await client.get(kinds.RESOURCE_CLAIMS, "c", "ns")
    assert not left["status"].get("reservedFor")
    assert "allocation" not in left["status"]

    await client.delete(kinds.RESOURCE_CLAIMS, "c", "ns")
    with pytest.raises(PreBindError, match="claim ns/c: it is being deleted"):
        await binder.pre_bind(bind)
