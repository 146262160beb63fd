"""The snapshot endpoint: what it answers can be simulated, and one bad object or kind does not spoil it."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stromboli.api import core, kinds
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.core.snapshots import Snapshot, decode
from stromboli.scheduler.snapshotting import Snapshots
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.shell.stage import REGISTRY, Stage


def furnished(stage: Stage) -> Snapshots:
    stage.put(node("n1").offer(cpu=4), queue("default"), pod_group("j").members(2).phase("Inqueue"))
    stage.put(*(pod(f"j-{at}").group("j").request(cpu=1) for at in range(2)))
    return Snapshots(stage.client, lambda: DEFAULT_POLICY, ("volcano",))


async def fetch(snapshots: Snapshots) -> tuple[int, bytes]:
    application = web.Application()
    application.add_routes(snapshots.routes())
    async with TestClient(TestServer(application)) as client:
        answer = await client.get("/debug/snapshot")
        return answer.status, await answer.read()


def binds(snapshot: Snapshot) -> list[str]:
    found = run(
        snapshot.mirror(),
        DEFAULT_POLICY,
        snapshot.taken,
        session_id="s",
        plugins=REGISTRY.plugins,
        actions=REGISTRY.actions,
    )
    return sorted(bind.task.name for bind in found.binds)


async def test_a_snapshot_holds_what_the_next_cycle_decides_over(stage: Stage) -> None:
    status, body = await fetch(furnished(stage))
    snapshot = decode(body)
    assert status == 200
    assert binds(snapshot) == ["j-0", "j-1"]
    assert snapshot.policy.startswith("actions: enqueue, allocate, backfill\n")
    assert snapshot.missing == ()


async def test_what_cannot_be_read_is_named_and_left_out(stage: Stage) -> None:
    snapshots = furnished(stage)
    stage.server.put(kinds.QUEUES, {"metadata": {"name": "bad"}, "spec": {"weight": "heavy"}})
    stage.server.faults.fail(403, verb="list", kind=kinds.SERVICES, message="services is forbidden")
    _, body = await fetch(snapshots)
    snapshot = decode(body)
    assert [found.name for found in snapshot.of(core.Queue)] == ["default", "root"]
    bad, forbidden = snapshot.missing
    assert bad.startswith("queues.scheduling.volcano.sh /bad: Queue: ")
    assert forbidden == "services: services is forbidden"


async def test_annotations_that_repeat_manifests_are_left_out(stage: Stage) -> None:
    snapshots = furnished(stage)
    stage.put(pod("secretive").annotate(**{"kubectl.kubernetes.io/last-applied-configuration": "HIDDEN", "a": "b"}))
    _, body = await fetch(snapshots)
    assert b"secretive" in body
    assert b"HIDDEN" not in body


async def test_without_an_api_server_it_says_so(stage: Stage) -> None:
    snapshots = furnished(stage)
    await stage.server.stop()
    status, body = await fetch(snapshots)
    assert status == 503
    assert body.startswith(b"no snapshot could be taken: ")
