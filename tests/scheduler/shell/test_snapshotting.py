"""The snapshot endpoint: what it answers can be simulated, and one bad object or kind does not spoil it."""

from __future__ import annotations

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stromboli.api import core, kinds
from stromboli.scheduler.cache import plain_kinds
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.core.snapshots import STRUCTS, Snapshot, decode
from stromboli.scheduler.options import FEATURE_GATES, Options
from stromboli.scheduler.snapshotting import Snapshots, kinds_of
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.plugins.dra.building import DRIVER, claim, device, device_class, given, request, resource_slice
from tests.scheduler.shell.stage import REGISTRY, Stage


def furnished(stage: Stage) -> Snapshots:
    stage.put(node("n1").offer(cpu=4), queue("default"), pod_group("j").members(2).phase("Inqueue"))
    stage.put(*(pod(f"j-{at}").group("j").request(cpu=1) for at in range(2)))
    return Snapshots(stage.client, lambda: DEFAULT_POLICY, stage.options)


async def fetch(snapshots: Snapshots) -> tuple[int, bytes]:
    application = web.Application()
    application.add_routes(snapshots.routes())
    async with TestClient(TestServer(application)) as client:
        answer = await client.get("/debug/snapshot")
        return answer.status, await answer.read()


def binds(snapshot: Snapshot) -> list[str]:
    return sorted(places(snapshot))


def places(snapshot: Snapshot) -> dict[str, str]:
    """Nodes of pods after a cycle over the snapshot."""
    found = run(
        snapshot.mirror(),
        DEFAULT_POLICY,
        snapshot.taken,
        session_id="s",
        plugins=REGISTRY.plugins,
        actions=REGISTRY.actions,
        shard=snapshot.shard,
        shard_mode=snapshot.shard_mode,
    )
    return {bind.task.name: bind.node for bind in found.binds}


async def test_a_snapshot_holds_what_the_next_cycle_decides_over(stage: Stage) -> None:
    status, body = await fetch(furnished(stage))
    snapshot = decode(body)
    assert status == 200
    assert binds(snapshot) == ["j-0", "j-1"]
    assert snapshot.policy.startswith("actions: enqueue, allocate, backfill\n")
    assert snapshot.missing == ()


def claiming(name: str, *claims: str) -> core.Pod:
    """A pod of gang ``j`` that names its claims."""
    made = pod(name).group("j").request(cpu=1).build()
    named = tuple(core.PodResourceClaim(name=claim, resource_claim_name=claim) for claim in claims)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, resource_claims=named))


def put_all(stage: Stage, *objects: core.Object) -> None:
    of = {struct: kind for kind, struct in STRUCTS.items()}
    for obj in objects:
        stage.server.put(of[type(obj)], dict(core.to_builtins(obj, of[type(obj)])))


async def test_a_snapshot_with_device_claims_decides_what_the_live_session_decides(stage: Stage) -> None:
    """Three nodes with room; of their four devices one is taken and one is too small, so one claim stays open."""
    put_all(
        stage,
        *(node(f"n{at}").offer(cpu=4).build() for at in range(3)),
        queue("default").build(),
        pod_group("j").members(1).phase("Inqueue").build(),
        device_class("gpu", f'device.driver == "{DRIVER}"'),
        resource_slice("s1", device("a", size=80), device("b", size=80), node="n1"),
        resource_slice("s2", device("c", size=40), device("d", size=80), node="n2"),
        claim("old", allocation=given("a", pool="n1", node="n1"), reserved=("ns-old",)),
        *(claim(f"c{at}", request("r", 1, f'device.attributes["{DRIVER}"].size > 40')) for at in range(3)),
        *(claiming(f"j-{at}", f"c{at}") for at in range(3)),
    )
    snapshot = decode((await Snapshots(stage.client, lambda: DEFAULT_POLICY, stage.options).take()).encode())
    replayed = places(snapshot)
    assert len(replayed) == 2
    await stage.start()
    await stage.until(lambda: len(stage.binds()) == 2, "binds")
    await stage.cycles(3)
    assert stage.binds() == replayed


def test_a_snapshot_has_all_that_a_session_reads() -> None:
    everything = Options(
        feature_gates=dict.fromkeys(FEATURE_GATES, True), csi_storage=True, scheduler_sharding_mode="hard"
    )
    read = {kind for kind, _ in plain_kinds(everything)}
    assert read <= set(STRUCTS)


def test_only_what_this_scheduler_watches_is_listed() -> None:
    assert kinds.DEVICE_TAINT_RULES not in kinds_of(Options())
    assert kinds.DEVICE_TAINT_RULES in kinds_of(Options(feature_gates={"DRADeviceTaints": True}))
    assert kinds.PRIORITY_CLASSES not in kinds_of(Options(priority_class=False))


async def test_parameters_of_drivers_and_templates_of_workloads_are_left_out(stage: Stage) -> None:
    snapshots = furnished(stage)
    allocated = core.AllocatedConfiguration(
        source="FromClass", opaque=core.OpaqueDeviceConfiguration(driver=DRIVER, parameters={"key": "HIDDEN"})
    )
    allocation = core.DeviceAllocation(devices=core.DeviceResults(config=(allocated,)))
    own = core.DeviceConfiguration(opaque=core.OpaqueDeviceConfiguration(driver=DRIVER, parameters="HIDDEN"))
    put_all(stage, device_class("gpu", parameters="HIDDEN"), claim("c", config=(own,), allocation=allocation))
    spec = {"template": {"metadata": {"labels": {"a": "HIDDEN"}}}, "selector": {"matchLabels": {}}}
    stage.server.put(
        kinds.REPLICA_SETS,
        {
            "metadata": {"name": "rs", "namespace": "ns"},
            "spec": spec,
        },
    )
    _, body = await fetch(snapshots)
    snapshot = decode(body)
    assert [len(list(snapshot.of(each))) for each in (core.DeviceClass, core.ResourceClaim, core.ReplicaSet)] == [1] * 3
    assert b"HIDDEN" not in body


SHARDED: dict[str, tuple[Options, set[str]]] = {
    "sharding is off": (Options(), {"n1", "n2"}),
    "hard": (Options(scheduler_sharding_mode="hard"), {"n1"}),
    "soft, and the own nodes are enough": (Options(scheduler_sharding_mode="soft"), {"n1"}),
    "of another name": (Options(scheduler_sharding_mode="hard", scheduler_sharding_name="other"), {"n2"}),
    "there is no such shard": (Options(scheduler_sharding_mode="hard", scheduler_sharding_name="ghost"), set()),
    "of a mode that nobody knows": (Options(scheduler_sharding_mode="mild"), {"n1", "n2"}),
}


@pytest.mark.parametrize("name", SHARDED)
async def test_a_snapshot_keeps_to_the_nodes_of_the_scheduler(stage: Stage, name: str) -> None:
    options, want = SHARDED[name]
    stage.put(*(node(f"n{at}").offer(cpu=2) for at in (1, 2)), queue("default"))
    stage.put(pod_group("j").members(1).phase("Inqueue"), *(pod(f"j-{at}").group("j").request(cpu=1) for at in (0, 1)))
    for shard, nodes in (("volcano", ["n1"]), ("other", ["n2"])):
        stage.server.put(kinds.NODE_SHARDS, {"metadata": {"name": shard}, "spec": {"nodesDesired": nodes}})
    snapshot = decode((await Snapshots(stage.client, lambda: DEFAULT_POLICY, options).take()).encode())
    assert set(places(snapshot).values()) == want


async def test_a_snapshot_knows_the_queue_of_gangs_that_name_none(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4), queue("default").state("Closed"), queue("open"))
    stage.put(pod_group("j").queue("").members(1).phase("Inqueue"), pod("j-0").group("j").request(cpu=1))
    for options, want in ((Options(default_queue="open"), ["j-0"]), (Options(default_queue="ghost"), [])):
        snapshot = decode((await Snapshots(stage.client, lambda: DEFAULT_POLICY, options).take()).encode())
        assert binds(snapshot) == want


async def test_options_that_a_session_depends_on_are_in_a_snapshot(stage: Stage) -> None:
    options = Options(feature_gates={"DRADeviceTaints": True}, ignored_provisioners=["nfs"])
    snapshot = decode((await Snapshots(stage.client, lambda: DEFAULT_POLICY, options).take()).encode())
    assert snapshot.options == {
        "feature-gates": {"DRADeviceTaints": True},
        "csi-storage": False,
        "ignored-provisioners": ["nfs"],
        "default-queue": "default",
        "scheduler-sharding-mode": "none",
        "scheduler-sharding-name": "volcano",
    }


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
