"""The controller manager over a large cluster: a cold start is quick and small, and quiet when nothing changes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import pytest

from stromboli.api import kinds, names
from stromboli.controllers.colocation.controller import ColocationController
from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.controllers.garbagecollector.controller import GarbageCollector
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.controllers.jobtemplate.controller import JobTemplateController
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.controllers.queue.controller import QueueController
from stromboli.controllers.sharding.configuration import parse_flags
from stromboli.controllers.sharding.controller import ShardingController
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually
from tests.controllers.jobflow.flows import flow, step, template
from tests.controllers.jobflow.test_scenarios import Ended
from tests.controllers.stage import Stage

pytestmark = pytest.mark.slow

GROUPS, QUEUES_OF_A_LEVEL, HYPER_NODES, NODES = 5000, (20, 80, 400), 1000, 1000
COLD_START_SECONDS, COLD_START_MIB = 10.0, 300
WRITES = ("create", "update", "patch", "delete")


def writes(server: FakeApiServer) -> int:
    """Writes to what users see; leases and events are the process's own."""
    calls = (call for verb in WRITES for call in server.called(verb))
    return sum(call.kind not in ("leases", "events") for call in calls)


def queue(name: str, parent: str) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}, "status": {"state": "Open"}}


def queues() -> list[JsonObject]:
    """Three levels, all open."""
    found = [queue(names.ROOT_QUEUE, ""), queue(names.DEFAULT_QUEUE, names.ROOT_QUEUE)]
    above = [names.ROOT_QUEUE]
    for level, count in enumerate(QUEUES_OF_A_LEVEL):
        made = [queue(f"q{level}-{number}", above[number % len(above)]) for number in range(count)]
        found += made
        above = [one["metadata"]["name"] for one in made]
    return found


def fill(server: FakeApiServer) -> None:
    """A cluster in which everything is as it should be."""
    for one in queues():
        server.put(kinds.QUEUES, one)
    for number in range(NODES):
        meta = {"name": f"n{number}", "labels": {"rack": f"r{number // 10}"}}
        server.put(kinds.NODES, {"metadata": meta, "status": {"capacity": {"cpu": "8", "memory": "32Gi"}}})
    for number in range(HYPER_NODES):
        server.put(kinds.HYPER_NODES, hyper_node(number))
    for number in range(GROUPS):
        put_pod_with_group(server, number)


def hyper_node(number: int) -> JsonObject:
    if number % 2:
        selector: JsonObject = {"regexMatch": {"pattern": f"^n{number}$"}}
    else:
        selector = {"exactMatch": {"name": f"n{number}"}}
    return {
        "metadata": {"name": f"h{number}"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]},
        "status": {"nodeCount": 1},
    }


def put_pod_with_group(server: FakeApiServer, number: int) -> None:
    uid = f"uid-{number}"
    name = names.bare_pod_group_name(uid)
    meta = {"name": f"p{number}", "namespace": "load", "uid": uid, "annotations": {names.GROUP_NAME: name}}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"schedulerName": "volcano", "nodeName": f"n{number % NODES}", "containers": containers}
    server.put(kinds.PODS, {"metadata": meta, "spec": spec, "status": {"phase": "Running"}})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": uid, "controller": True}
    server.put(
        kinds.POD_GROUPS,
        {
            "metadata": {"name": name, "namespace": "load", "ownerReferences": [owner]},
            "spec": {"minMember": 1, "queue": f"q2-{number % QUEUES_OF_A_LEVEL[2]}"},
            "status": {"phase": "Running"},
        },
    )


@asynccontextmanager
async def process(server: FakeApiServer, log: Path) -> AsyncIterator[int]:
    """The controller manager as a process of its own; gives its id."""
    with log.open("wb") as file:
        running = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "stromboli.controllers", f"--master={server.url}", "--leader-elect=false",
            stdout=file, stderr=file,
        )  # fmt: skip
        try:
            yield running.pid
        finally:
            running.terminate()
            await running.wait()


def mebibytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used: unlike time on the wall, it does not tell how busy the machine is."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_settled(server: FakeApiServer, mark: str) -> bool:
    """Whether the controllers have come to what was put in last: a queue, a pod and a HyperNode."""
    pods = {one["metadata"]["name"]: one for one in server.objects(kinds.PODS, "marks")}
    return (
        (server.get(kinds.QUEUES, mark).get("status") or {}).get("state") == "Open"
        and names.GROUP_NAME in pods[mark]["metadata"].get("annotations", {})
        and (server.get(kinds.HYPER_NODES, mark).get("status") or {}).get("nodeCount") == 1
    )


def put_mark(server: FakeApiServer, mark: str) -> None:
    server.put(kinds.QUEUES, {"metadata": {"name": mark}, "spec": {"weight": 1, "parent": "root"}})
    spec = {"schedulerName": "volcano", "containers": []}
    server.put(kinds.PODS, {"metadata": {"name": mark, "namespace": "marks"}, "spec": spec})
    server.put(kinds.HYPER_NODES, {**hyper_node(0), "metadata": {"name": mark}, "status": {}})


MARK_WRITES = 4
"""A queue's state, a PodGroup, its name on the pod, and a node count."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
async def test_a_cold_start_over_a_large_cluster(tmp_path: Path) -> None:
    async with FakeApiServer(bookmark_interval=60.0) as server:
        fill(server)
        put_mark(server, "first")
        async with process(server, tmp_path / "log") as pid:
            await eventually(lambda: is_settled(server, "first"), timeout=50, what="the first pass")
            took, used = cpu_seconds(pid), mebibytes(pid)
            assert writes(server) == MARK_WRITES, "nothing else was to be written"
            put_mark(server, "second")
            await eventually(lambda: is_settled(server, "second"))
            assert writes(server) == 2 * MARK_WRITES
        print(f"cold start {took:.1f} s of a processor, {used:.0f} MiB")
        assert took < COLD_START_SECONDS
        assert used < COLD_START_MIB


async def test_a_quiet_minute_has_no_writes() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        for one in queues()[:50]:
            server.put(kinds.QUEUES, one)
        for number in range(10):
            server.put(kinds.NODES, {"metadata": {"name": f"n{number}"}, "status": {"capacity": {"cpu": "8"}}})
            server.put(kinds.HYPER_NODES, hyper_node(number))
            put_pod_with_group(server, number)
        server.put(kinds.JOB_TEMPLATES, template("a"))
        server.put(kinds.JOB_FLOWS, flow(step("a")))
        configuration = {"metadata": {"name": "c", "namespace": "load"}, "spec": {"selector": {}, "memoryQos": {}}}
        server.put(kinds.COLOCATION_CONFIGURATIONS, configuration)
        cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": template("a")["spec"]}}
        server.put(kinds.CRON_JOBS, {"metadata": {"name": "cj", "namespace": "load"}, "spec": cron})
        await scene.run(
            lambda i: QueueController(client, i, scene.events, scene.numbers, clock=clock),
            lambda i: PodGroupController(client, i, clock=clock),
            lambda i: HyperNodeController(client, i, scene.events, clock=clock),
            lambda i: CronJobController(client, i, scene.events, clock=clock, zone=UTC),
            lambda i: JobFlowController(client, i, scene.events, Ended(), clock=clock),
            lambda i: JobTemplateController(client, i, scene.events, clock=clock),
            lambda i: GarbageCollector(client, i, clock=clock),
            lambda i: ColocationController(client, i, clock=clock),
            lambda i: ShardingController(client, i, parse_flags(["volcano:v:0:1:false:0:0"]), clock=clock),
        )
        try:
            await clock.advance(5)
            await scene.until(lambda: _all_done(server))
            for _ in range(3):  # what these writes bring about is none of the quiet
                await clock.advance(5)
                put_mark(server, "loud")
                await scene.until(lambda: is_settled(server, "loud"))
            before = writes(server)
            for _ in range(12):
                await clock.advance(5)
            put_mark(server, "end")
            await scene.until(lambda: is_settled(server, "end"))
            assert writes(server) == before + MARK_WRITES, server.calls[-12:]
        finally:
            await scene.stop()


def _all_done(server: FakeApiServer) -> bool:
    pods = server.objects(kinds.PODS, "load")
    flows = server.objects(kinds.JOB_FLOWS)
    return (
        all(names.COLOCATION_CONFIG in pod["metadata"]["annotations"] for pod in pods)
        and bool(flows[0].get("status", {}).get("jobStatusList"))
        and len(server.objects(kinds.NODE_SHARDS)) == 1
        and server.get(kinds.JOB_TEMPLATES, "a", "default").get("status", {}).get("jobDependsOnList") == ["f-a"]
    )
