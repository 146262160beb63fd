"""L1 and L2: the job controller under load, the real process against a real API over TLS.

``L1`` is 200 jobs of 50 pods: how fast pods come once their groups are admitted, beside a plain loop that posts the
same bodies over as many connections to an equal server. ``L2`` is 10,000 jobs of one pod that run to their ends on
simulated nodes, placed by the scheduler. Both run on the embedded server; ``L1-real`` and ``L2-real`` on etcd,
kube-apiserver, kube-controller-manager and kwok. Times by the clock tell something about a machine that does nothing
else; CPU times always do.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson
import uvloop

from benchmarks import calibrating
from stromboli.api import kinds, names
from stromboli.api.batch import Job
from stromboli.api.crds import custom_resource_definitions
from stromboli.cli.stack import CONTROLLERS, SCHEDULER, Stack, StackOptions
from stromboli.controllers.job import pods
from stromboli.kube import connecting, json
from stromboli.kube.client import Client

T = TypeVar("T")
Json = dict[str, Any]
NAMESPACE = "load"
JOBS, PODS_OF_A_JOB = int(os.environ.get("JOB_LOAD_JOBS", "200")), 50
SMALL_JOBS = int(os.environ.get("JOB_LOAD_SMALL_JOBS", "10000"))
CONNECTIONS = 96
"""Requests that a controller has under way at most: three workers, 32 pods each."""
SUBMITTERS = 32
NODES = 50
PATIENCE = 3600.0
CLIENT_LIMITS = ["--kube-api-qps=5000", "--kube-api-burst=5000"]
QUEUE: Json = {"metadata": {"name": names.DEFAULT_QUEUE}, "spec": {"weight": 1}}


# What is submitted


def job(name: str, replicas: int) -> Json:
    """A job of one task whose containers end at once."""
    container = {
        "name": "worker",
        "image": "registry.example.com/team/train:1",
        "command": ["sh", "-c", "exit 0"],
        "env": [{"name": f"VARIABLE_{number}", "value": "value"} for number in range(6)],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    template = {"metadata": {"labels": {"app": "train"}}, "spec": spec}
    task = {"name": "worker", "replicas": replicas, "minAvailable": replicas, "template": template}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": names.DEFAULT_SCHEDULER,
            "queue": names.DEFAULT_QUEUE,
            "minAvailable": replicas,
            "maxRetry": 3,
            "tasks": [task],
        },
    }


# Where it is submitted


@dataclass(slots=True)
class Server:
    """An API server with CRDs and simulated nodes, and its administrator's client."""

    directory: Path
    kubeconfig: Path
    client: Client
    pids: dict[str, int] = field(default_factory=dict)


@asynccontextmanager
async def embedded() -> AsyncIterator[Server]:
    """The embedded server."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        options = StackOptions(
            directory=Path(name), nodes=NODES, with_processes=False, cluster_arguments=["--pod-run-seconds=0"]
        )
        async with Stack(options) as stack, await Client.connect(kubeconfig=str(stack.kubeconfig), qps=0) as client:
            server = Server(Path(name), stack.kubeconfig, client)
            server.pids = {part.name: part.process.pid for part in stack.parts.values()}
            await furnish(client)
            yield server


@asynccontextmanager
async def real() -> AsyncIterator[Server]:
    """The control plane of the end-to-end suite; without webhooks and roles, which are not what is measured."""
    from e2e.realcluster import binaries
    from e2e.realcluster.cluster import NEEDED, RealCluster
    from e2e.realcluster.installing import create_definitions

    found = await binaries.provide(NEEDED, lambda _: None)
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(RealCluster(Path(name), found, nodes=NODES))
            client = await stack.enter_async_context(await Client.connect(kubeconfig=str(cluster.kubeconfig), qps=0))
            await create_definitions(client, custom_resource_definitions())
            server = Server(Path(name), cluster.kubeconfig, client)
            server.pids = {program: int((Path(name) / f"{program}.pid").read_text()) for program in NEEDED}
            await furnish(client)
            yield server


Place = Callable[[], Any]


async def furnish(client: Client) -> None:
    """A queue, a namespace, and the account without which no pod is taken."""
    await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
    known = {json.key_of(one)[1] for one in await client.list(kinds.QUEUES)}
    if names.DEFAULT_QUEUE not in known:
        await client.create(kinds.QUEUES, QUEUE)
    await _until(lambda: _accounts(client))


async def _accounts(client: Client) -> bool:
    return bool(await client.list(kinds.SERVICE_ACCOUNTS, NAMESPACE))


async def _until(condition: Callable[[], Any], pause: float = 0.1) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - the other process can only be asked
            await asyncio.sleep(pause)


@asynccontextmanager
async def processes(server: Server, *which: str) -> AsyncIterator[dict[str, int]]:
    """Our processes on that server, ready; gives their ids."""
    options = StackOptions(
        directory=server.directory / "processes",
        with_cluster=False,
        with_processes=False,
        kubeconfig=server.kubeconfig,
        process_arguments={name: ["--leader-elect=false", *CLIENT_LIMITS] for name in which},
    )
    async with Stack(options) as stack:
        for name in which:
            await stack.start(name)
        yield {name: stack.parts[name].process.pid for name in which}


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def largest_mib(pid: int) -> int:
    """The most memory that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


class Spent:
    """CPU seconds by process since the object was made."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._before = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def per(self, count: int) -> dict[str, float]:
        """Milliseconds for each of ``count`` pods."""
        return {
            f"{name} cpu ms": round((cpu_seconds(pid) - self._before[name]) / count * 1000, 3)
            for name, pid in self._pids.items()
        }


# Many at a time


async def each(items: Iterable[T], work: Callable[[T], Any], at_once: int) -> None:
    """Do ``work`` for every item, ``at_once`` under way."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())


async def submit(client: Client, jobs: Iterable[Json]) -> None:
    """Create the jobs."""
    await each(jobs, lambda one: client.create(kinds.JOBS, one), SUBMITTERS)


async def count(client: Client, path: str) -> int:
    """How many objects a collection has, told by a page of one."""
    page = orjson.loads(await client.request("GET", path, query={"limit": 1}))
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


async def counted(client: Client, kind: kinds.Kind, wanted: int) -> None:
    """Return when there are so many objects of the kind."""
    path = kind.path(NAMESPACE)

    async def enough() -> bool:
        return await count(client, path) >= wanted

    await _until(enough)


# L1


async def bare_loop(server: Server, bodies: Sequence[bytes]) -> float:
    """Post the bodies, nothing else; seconds."""
    connection = await connecting.connect(kubeconfig=str(server.kubeconfig))
    headers = {"Content-Type": "application/json", "Authorization": await connection.credentials.header() or ""}
    url = str(connection.base).rstrip("/") + kinds.PODS.path(NAMESPACE)

    async def post(body: bytes) -> None:
        async with connection.session.post(url, data=body, headers=headers) as answer:
            if answer.status != 201:
                raise SystemExit(f"L1: the plain loop was answered {answer.status}: {await answer.text()}")
            await answer.read()

    try:
        started = time.perf_counter()
        await each(bodies, post, CONNECTIONS)
        return time.perf_counter() - started
    finally:
        await connection.close()


async def _bodies(client: Client) -> list[bytes]:
    """What the controller would send, for jobs that are there: pods without an owner are collected."""
    made = []
    for number in range(JOBS):
        wire = await client.create(kinds.JOBS, job(f"job-{number}", PODS_OF_A_JOB))
        one = Job.from_wire(wire)
        maker = pods.PodMaker(one, one.spec.tasks[0])
        made += [json.encode(maker.make(index)) for index in range(PODS_OF_A_JOB)]
    return made


async def admit_all(client: Client) -> None:
    """As the scheduler: let every group in."""
    groups = [json.key_of(one)[1] for one in await client.list(kinds.POD_GROUPS, NAMESPACE)]
    patch = {"status": {"phase": "Inqueue"}}
    await each(
        groups,
        lambda name: client.patch(kinds.POD_GROUPS, name, patch, NAMESPACE),
        SUBMITTERS,
    )


async def measure_creation(name: str, place: Place) -> Json:
    """Pods a second by the controller and by a plain loop."""
    total = JOBS * PODS_OF_A_JOB
    async with place() as server:
        bodies = await _bodies(server.client)
        spent = Spent(server.pids)
        bare = await bare_loop(server, bodies)
        bare_spent = spent.per(total)
    async with place() as server, processes(server, CONTROLLERS) as pids:
        client = server.client
        spent = Spent({**server.pids, **pids})
        await submit(client, (job(f"job-{number}", PODS_OF_A_JOB) for number in range(JOBS)))
        await counted(client, kinds.POD_GROUPS, JOBS)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            group.create_task(admit_all(client))
            group.create_task(counted(client, kinds.PODS, total))
        seconds = time.perf_counter() - started
        await _until(lambda: _all_recorded(client, "pending", total), 1.0)
        return {
            "scenario": name,
            "seconds": round(seconds, 3),
            "rss_mib": largest_mib(pids[CONTROLLERS]),
            "pods": total,
            "jobs": JOBS,
            "pods_per_second": round(total / seconds, 1),
            "plain_loop_per_second": round(total / bare, 1),
            "of_plain_loop": round(bare / seconds, 3),
            "calibration": calibrating.wall(),
            "detail": {
                "calibration cpu": calibrating.cpu(),
                **spent.per(total),
                **{f"plain loop: {key}": value for key, value in bare_spent.items()},
            },
        }


async def _all_recorded(client: Client, counter: str, wanted: int) -> bool:
    jobs = await client.list(kinds.JOBS, NAMESPACE)
    return sum((one.get("status") or {}).get(counter) or 0 for one in jobs) == wanted


# L2


async def completed(client: Client, version: str, wanted: int) -> Counter[str]:
    """Follow the jobs until so many have finished; their phases."""
    phases: dict[str, str] = {}
    ended = set[str]()
    while True:
        watch = client.watch(kinds.JOBS, NAMESPACE, resource_version=version)
        async with aclosing(watch) as events:
            async for event in events:
                one = orjson.loads(event.object)
                version = json.resource_version_of(one)
                if event.type == "BOOKMARK":
                    continue
                name = json.key_of(one)[1]
                phases[name] = ((one.get("status") or {}).get("state") or {}).get("phase", "")
                if phases[name] in FINISHED:
                    ended.add(name)
                if len(ended) == wanted:
                    return Counter(phases.values())


FINISHED = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
WAITS = frozenset({"Unschedulable", "FailedScheduling", "PodGroupPending"})
"""Reasons of Events that say that something waits its turn, which is no error."""


async def measure_lives(name: str, place: Place) -> Json:
    """Many small jobs from submission to their ends."""
    async with place() as server, processes(server, SCHEDULER, CONTROLLERS) as pids:
        client = server.client
        page = orjson.loads(await client.request("GET", kinds.JOBS.path(NAMESPACE), query={"limit": 1}))
        spent, started = Spent({**server.pids, **pids}), time.perf_counter()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            ends = group.create_task(completed(client, page["metadata"]["resourceVersion"], SMALL_JOBS))
            group.create_task(submit(client, (job(f"job-{number}", 1) for number in range(SMALL_JOBS))))
        seconds = time.perf_counter() - started
        events = await client.list(kinds.EVENTS, NAMESPACE)
        warnings = Counter(one["reason"] for one in events if one.get("type") == "Warning")
        errors = warnings.keys() - WAITS
        figures = {
            "scenario": name,
            "seconds": round(seconds, 1),
            "rss_mib": largest_mib(pids[CONTROLLERS]),
            "jobs": SMALL_JOBS,
            "jobs_per_second": round(SMALL_JOBS / seconds, 1),
            "phases": dict(ends.result()),
            "warnings": dict(warnings),
            "calibration": calibrating.wall(),
            "detail": {"calibration cpu": calibrating.cpu(), **spent.per(SMALL_JOBS)},
        }
    if ends.result()["Completed"] != SMALL_JOBS or errors:
        raise SystemExit(f"{name}: not every job ended well: {figures}")
    return figures


MEASUREMENTS: dict[str, Callable[[], Json]] = {
    "L1": lambda: uvloop.run(measure_creation("L1", embedded)),
    "L1-real": lambda: uvloop.run(measure_creation("L1-real", real)),
    "L2": lambda: uvloop.run(measure_lives("L2", embedded)),
    "L2-real": lambda: uvloop.run(measure_lives("L2-real", real)),
}
"""Scenarios of this module; they take minutes, so they run only when named."""
