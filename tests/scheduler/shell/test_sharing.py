"""Two schedulers share a cluster by hashing, on the embedded control plane: what queues hold is the same to both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from stromboli.api import core, kinds, names
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject
from stromboli.localcluster.nodes.inventories import NodeGroup
from stromboli.localcluster.server import LocalCluster
from stromboli.scheduler import registering
from stromboli.scheduler.accepting import Share
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.options import Environment, Options, Partition
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.running import Scheduler
from stromboli.scheduler.writing import JobWrites
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.builders import PodBuilder, PodGroupBuilder, node, pod, pod_group, queue
from stromboli.testing.waiting import eventually
from tests.scheduler.shell.stage import Stage

MEMBERS = ("s-0", "s-1")
PERIOD = 0.05
REGISTRY = registering.load()


def name_of(member: str, prefix: str) -> str:
    """A name that the ring gives to this member."""
    share = Share.of(Partition(member, MEMBERS))
    return next(f"{prefix}-{number}" for number in range(1000) if share.holds(f"{prefix}-{number}"))


class Site:
    """The cluster, and the schedulers on it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.schedulers: dict[str, Scheduler] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, member: str, policy: str = "") -> None:
        """Start one member, as a new process would."""
        metrics = SchedulerMetrics(Metrics())
        environment = Environment(partition=Partition(member, MEMBERS))
        options, policies = Options(schedule_period=PERIOD), Policies(policy, REGISTRY.known)
        policies.load()
        made = Scheduler(self.client, options, REGISTRY, policies, metrics, environment=environment)
        self.schedulers[member] = made
        self._running[member] = asyncio.create_task(made.run())

    async def kill(self, *members: str) -> None:
        """End members wherever they are."""
        for member in members or tuple(self._running):
            task = self._running.pop(member)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            del self.schedulers[member]

    async def queue(self, name: str, **spec: object) -> None:
        """An open queue."""
        await self.client.create(kinds.QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
        await self.client.patch(kinds.QUEUES, name, {"status": {"state": "Open"}}, subresource="status")

    async def job(self, member: str, prefix: str, pods: int, queue: str = "team") -> str:
        """A gang of one-core pods that is this member's business."""
        name = name_of(member, prefix)
        spec = {"minMember": pods, "queue": queue, "minResources": {"cpu": str(pods)}}
        group = await self.client.create(kinds.POD_GROUPS, {"metadata": {"name": name}, "spec": spec}, "default")
        owner = {
            "apiVersion": kinds.POD_GROUPS.api_version,
            "kind": "PodGroup",
            "name": name,
            "uid": group["metadata"]["uid"],
        }
        container = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1"}}}
        for number in range(pods):
            metadata = {
                "name": f"{name}-{number}",
                "annotations": {names.GROUP_NAME: name, "simulation.stromboli.dev/run-seconds": "3600"},
                "ownerReferences": [owner],
            }
            spec = {"schedulerName": "volcano", "containers": [container]}
            await self.client.create(kinds.PODS, {"metadata": metadata, "spec": spec}, "default")
        return name

    async def end(self, job: str) -> None:
        """The pods of a job are gone."""
        for one in await self._pods():
            if one["metadata"]["annotations"][names.GROUP_NAME] == job:
                await self.client.delete(kinds.PODS, one["metadata"]["name"], "default", grace_period_seconds=0)

    async def bound(self, job: str) -> int:
        """How many pods of a job have a node."""
        return sum(
            bool(pod["spec"].get("nodeName"))
            for pod in await self._pods()
            if pod["metadata"]["annotations"][names.GROUP_NAME] == job
        )

    async def allocated(self, queue: str = "team") -> str:
        """Cores, as the queue's status says."""
        known = await self.client.get(kinds.QUEUES, queue)
        return str((known.get("status") or {}).get("allocated", {}).get("cpu", ""))

    async def _pods(self) -> list[JsonObject]:
        return await self.client.list(kinds.PODS, "default")

    async def phase(self, job: str) -> str:
        """The phase of a job's PodGroup."""
        return str((await self.client.get(kinds.POD_GROUPS, job, "default")).get("status", {}).get("phase", ""))

    async def versions(self) -> dict[str, str]:
        """Resource versions of all queues."""
        queues = await self.client.list(kinds.QUEUES)
        return {known["metadata"]["name"]: known["metadata"]["resourceVersion"] for known in queues}

    async def believe(self, want: list[float]) -> None:
        """Return when each scheduler thinks that the queue holds so many cores."""
        await eventually(lambda: self.believed() == want, what=f"{want} are held")

    def believed(self, queue: str = "team") -> list[float]:
        """Cores that each scheduler thinks the queue holds."""
        known = [scheduler.mirror.queues[queue] for scheduler in self.schedulers.values()]
        return [float((each.allocated + each.elsewhere)[0]) / 1000 for each in known]

    async def cycles(self, number: int) -> None:
        """Every scheduler has begun so many more cycles."""
        ends = {member: scheduler.cycles + number for member, scheduler in self.schedulers.items()}
        await eventually(lambda: all(self.schedulers[member].cycles >= end for member, end in ends.items()))


async def until(ask: Callable[[], Awaitable[object]], want: object, what: str) -> None:
    """Return when the answer is what is wanted."""
    last: object = None
    for _ in range(400):
        last = await ask()
        if last == want:
            return
        await asyncio.sleep(PERIOD / 2)
    raise AssertionError(f"{what}: {last!r} instead of {want!r}")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A cluster with a node of ten cores for each member."""
    size = {"cpu": "10", "memory": "10Gi", "pods": "100"}
    nodes = [*chain.from_iterable(NodeGroup(1, name_of(member, "node"), size).nodes() for member in MEMBERS)]
    async with (
        LocalCluster(nodes=nodes) as cluster,
        await Client.connect(kubeconfig=str(cluster.kubeconfig), qps=1000, burst=1000) as client,
    ):
        made = Site(client)
        try:
            yield made
        finally:
            await made.kill()


CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""


@pytest.mark.parametrize("policy", ["", CAPACITY], ids=["proportion", "capacity"])
async def test_both_say_the_same_of_a_queue_and_together_keep_to_its_capability(
    site: Site, policy: str, tmp_path: Path
) -> None:
    await site.queue("team", capability={"cpu": 4})
    path = tmp_path / "policy.yaml"
    path.write_text(policy)
    for member in MEMBERS:
        await site.start(member, str(path) if policy else "")
    first = await site.job("s-0", "first", 3)
    await until(site.allocated, "3", "allocated")
    await site.believe([3.0, 3.0])

    second = await site.job("s-1", "second", 2)
    await site.cycles(10)
    assert await site.bound(second) == 0, "five of four"
    assert await site.phase(second) == "Pending"
    third = await site.job("s-1", "third", 1)
    await until(site.allocated, "4", "allocated")
    assert await site.bound(third) == 1
    await site.believe([4.0, 4.0])

    await until(lambda: site.allocated("root"), "4", "allocated in all")
    quiet = await site.versions()
    await site.cycles(20)
    assert await site.versions() == quiet, "nothing happens, nothing is written"

    await site.end(first)
    await until(lambda: site.bound(second), 2, "bound when there is room")
    await until(site.allocated, "3", "allocated")
    await site.believe([3.0, 3.0])


async def test_a_restarted_scheduler_counts_what_another_has_bound_meanwhile(site: Site) -> None:
    await site.queue("team", capability={"cpu": 4})
    for member in MEMBERS:
        await site.start(member)
    await site.job("s-0", "first", 1)
    await until(site.allocated, "1", "allocated")
    await site.kill("s-0")
    second = await site.job("s-1", "second", 2)
    await until(lambda: site.bound(second), 2, "bound by the other")
    third = await site.job("s-0", "third", 2)
    await site.start("s-0")
    await until(site.allocated, "3", "allocated")
    await site.believe([3.0, 3.0])
    await site.cycles(10)
    assert await site.bound(third) == 0, "five of four"


async def test_what_is_below_counts_above_whoever_has_it(site: Site) -> None:
    await site.queue("team")
    for name in ("a", "b"):
        await site.queue(name, parent="team")
    for member in MEMBERS:
        await site.start(member)
    await site.job("s-0", "first", 1, "a")
    await site.job("s-1", "second", 2, "b")
    for name, cores in {"a": "1", "b": "2", "team": "3", "root": "3"}.items():
        await until(lambda name=name: site.allocated(name), cores, name)  # type: ignore[misc]
    quiet = await site.versions()
    await site.cycles(20)
    assert await site.versions() == quiet


class Overtaken(Scheduler):
    """Hears of what others have bound just when its own first binds are decided."""

    overtake: Callable[[], object]
    overtaken = 0

    async def _decide(self) -> CycleResult:
        result = await super()._decide()
        if result.binds and not self.overtaken:
            self.overtaken = len(result.binds)
            self.overtake()
            await eventually(lambda: self.feed.depth)
        return result


def owned(builder: PodBuilder | PodGroupBuilder, owner: str) -> core.Object:
    """Made by a job of that name, by which it is somebody's business."""
    built = builder.build()
    references = (core.OwnerReference(name=owner),)
    meta = msgspec.structs.replace(built.metadata, owner_references=references)
    return msgspec.structs.replace(built, metadata=meta)


class Briefly(Overtaken):
    """The room that others have taken is there again at once."""

    leave: Callable[[], None]
    cycles_since = 0

    def _take_back(self, result: CycleResult, writes: dict[str, JobWrites]) -> None:
        super()._take_back(result, writes)
        if self.overtaken and not self.cycles_since:
            self.leave()
        self.cycles_since += bool(self.overtaken)


def putting(stage: Stage) -> Callable[[kinds.Kind, core.Object], object]:
    """Stores objects as they are."""
    return lambda kind, obj: stage.server.put(kind, dict(core.to_builtins(obj, kind)))


S = TypeVar("S", bound=Scheduler)


def first_member(stage: Stage, kind: type[S]) -> S:
    """A scheduler of the stage that shares the cluster with another."""
    partition = Partition("s-0", MEMBERS)
    return kind(
        stage.client,
        stage.options,
        REGISTRY,
        stage.policies,
        stage.metrics,
        environment=Environment(partition=partition),
    )


async def test_a_pod_is_told_why_it_waits_although_the_binds_of_its_group_were_taken_back(stage: Stage) -> None:
    mine, theirs = (name_of(member, "job") for member in MEMBERS)

    put = putting(stage)
    stage.put(queue("team").cap(cpu=3), node(name_of("s-0", "node")).offer(cpu=10, memory="10Gi", pods=50))
    put(kinds.POD_GROUPS, owned(pod_group("far").queue("team").phase("Running"), theirs))
    put(kinds.POD_GROUPS, owned(pod_group("near").queue("team").members(2).phase("Inqueue"), mine))
    for number in range(2):
        put(kinds.PODS, owned(pod(f"near-{number}").group("near").request(cpu=1), mine))
    put(kinds.PODS, owned(pod("near-nowhere").group("near").request(memory="1Ti"), mine))
    far = owned(pod("far-0").group("far").request(cpu=2).on(name_of("s-1", "node")), theirs)
    scheduler = first_member(stage, Briefly)
    scheduler.overtake = lambda: put(kinds.PODS, far)
    scheduler.leave = lambda: stage.server.remove(kinds.PODS, "far-0", "ns")
    await stage.run(scheduler)
    await stage.until(lambda: stage.bound("near") == 2, "room again")
    assert scheduler.overtaken == 2
    await stage.until(lambda: stage.condition("near-nowhere"), "what the third pod is told")


async def test_room_that_another_has_taken_meanwhile_is_not_given_out_again(stage: Stage) -> None:
    mine, theirs = (name_of(member, "job") for member in MEMBERS)

    put = putting(stage)
    stage.put(
        queue("team").cap(cpu=3), queue("free"), node(name_of("s-0", "node")).offer(cpu=10, memory="10Gi", pods=50)
    )
    put(kinds.POD_GROUPS, owned(pod_group("far").queue("team").phase("Running"), theirs))
    for name, among in (("near", "team"), ("other", "free")):
        put(kinds.POD_GROUPS, owned(pod_group(name).queue(among).members(2).phase("Inqueue"), mine))
        for number in range(2):
            put(kinds.PODS, owned(pod(f"{name}-{number}").group(name).request(cpu=1), mine))
    far = owned(pod("far-0").group("far").request(cpu=2).on(name_of("s-1", "node")), theirs)
    scheduler = first_member(stage, Overtaken)
    scheduler.overtake = lambda: put(kinds.PODS, far)
    await stage.run(scheduler)
    await stage.until(lambda: stage.bound("other") == 2, "a queue with room")
    assert scheduler.overtaken == 4
    await stage.cycles(5)
    assert stage.bound("near") == 0
    assert stage.phase("near") != "Running"
    assert not stage.events("Scheduled", "near")
    stage.server.remove(kinds.PODS, "far-0", "ns")
    await stage.until(lambda: stage.bound("near") == 2, "room again")
    await stage.until(lambda: (stage.queue("team").get("status") or {}).get("allocated", {}).get("cpu") == "2")
