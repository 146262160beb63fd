"""E1 and E2: gangs from submission to running pods on a real API server, and what every process computes for it.

``E1`` is 10 jobs of 100 pods, ``E2`` 20 of them: etcd without fsync, kube-apiserver, kube-controller-manager, kwok with
500 nodes, our scheduler with the chart's policy and our controllers, no webhooks, all on this machine. Pods stay
running. ``python -m benchmarks.end_to_end E1`` writes where our processes' time goes to ``profiles/``.

Rates by the clock tell something about a machine that does nothing else; CPU times nearly always do. They cover
everything from the first submission until every pod runs, every job has counted its pods and nothing is written any
more; the benchmark's own watch and writes are part of the API server's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import orjson
import uvloop

from benchmarks import calibrating, job_load, sampling
from benchmarks.job_load import NAMESPACE, Json, Server, Spent, largest_mib
from stromboli.api import kinds, names
from stromboli.api.crds import custom_resource_definitions
from stromboli.cli.stack import CONTROLLERS, SCHEDULER, Stack, StackOptions
from stromboli.kube.client import Client
from stromboli.process.ports import free_port
from stromboli.telemetry.metrics import PREFIX

NODES = 500
CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110"}
GANG = 100
GANGS = {"E1": 10, "E2": 20}
PATIENCE = 600.0
IDLE_SECONDS = 5.0
QUIET_SECONDS = 1.0
POLL_SECONDS = 0.25
ROOT = Path(__file__).parents[1]
SCHEDULED_EVENTS = os.environ.get("SCHEDULED_EVENTS", "auto")
"""The scheduler's flag of this name."""
POLICY = ROOT / "charts" / "stromboli" / "config" / "volcano-scheduler.conf"
PROFILES = Path(__file__).with_name("profiles")
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
NOT_OURS = ("leases", "nodes")
"""Written all the time by whoever is alive."""


def gang(name: str) -> Json:
    """A job of one gang whose pods run for ever."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {
        "name": "worker",
        "image": "registry.example.com/team/train:1",
        "command": ["sleep", "inf"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    # Always: kwok then plans no end for them.
    template = {"spec": {"restartPolicy": "Always", "containers": [container]}}
    task = {"name": "worker", "replicas": GANG, "minAvailable": GANG, "template": template}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": names.DEFAULT_SCHEDULER,
            "queue": names.DEFAULT_QUEUE,
            "minAvailable": GANG,
            "tasks": [task],
        },
    }


# Where


@asynccontextmanager
async def cluster() -> AsyncIterator[Server]:
    """The control plane of the end-to-end suite with 500 nodes."""
    from benchmarks.large_cluster import NEEDED, LargeCluster, binaries, create_definitions

    found = await binaries.provide(NEEDED, lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        directory = Path(name)
        async with AsyncExitStack() as stack:
            large = await stack.enter_async_context(LargeCluster(directory, found, nodes=NODES, capacity=CAPACITY))
            client = await stack.enter_async_context(await Client.connect(kubeconfig=str(large.kubeconfig), qps=0))
            await create_definitions(client, custom_resource_definitions())
            pids = {program: int((directory / f"{program}.pid").read_text()) for program in NEEDED}
            await job_load.furnish(client)
            yield Server(directory, large.kubeconfig, client, pids)


@dataclass(frozen=True, slots=True)
class Ours:
    """Our two processes."""

    pids: dict[str, int]
    metrics: dict[str, str]
    """Addresses of their series."""


@asynccontextmanager
async def processes(server: Server) -> AsyncIterator[Ours]:
    """The scheduler and the controllers, ready."""
    ports = {name: free_port() for name in (CONTROLLERS, SCHEDULER)}
    arguments = {
        name: [
            *("--leader-elect=false", "--kube-api-qps=2000", "--kube-api-burst=2000"),
            *("--enable-metrics", f"--listen-address=127.0.0.1:{port}"),
        ]
        for name, port in ports.items()
    }
    arguments[SCHEDULER] += [f"--scheduler-conf={POLICY}", f"--scheduled-events={SCHEDULED_EVENTS}"]
    options = StackOptions(
        directory=server.directory / "processes",
        with_cluster=False,
        with_processes=False,
        kubeconfig=server.kubeconfig,
        process_arguments=arguments,
    )
    async with Stack(options) as stack:
        for name in ports:
            await stack.start(name)
        pids = {name: stack.parts[name].process.pid for name in ports}
        yield Ours(pids, {name: f"http://127.0.0.1:{port}/metrics" for name, port in ports.items()})
        stack.check()


# What is seen


class _Status(msgspec.Struct):
    phase: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


@dataclass(slots=True)
class Seen:
    """When each pod was first seen created, bound and running."""

    wanted: int
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    events: int = 0

    def take(self, raw: bytes) -> str:
        """Note what is new about a pod; its resourceVersion."""
        now, pod = time.perf_counter(), _DECODER.decode(raw)
        name = pod.metadata.name
        self.events += 1
        self.created.setdefault(name, now)
        if pod.spec.node_name:
            self.bound.setdefault(name, now)
        if pod.status.phase == "Running":
            self.running.setdefault(name, now)
        return pod.metadata.resource_version

    @property
    def complete(self) -> bool:
        """Whether every pod runs."""
        return len(self.running) == self.wanted

    def rates(self, started: float) -> dict[str, float]:
        """Pods a second from the first submission to the last of each kind."""
        times = {"created": self.created, "bound": self.bound, "running": self.running}
        return {f"{what}/s": round(self.wanted / (max(at.values()) - started), 1) for what, at in times.items()}


_DECODER = msgspec.json.Decoder(_Pod)


async def follow(client: Client, version: str, seen: Seen) -> None:
    """Watch pods until all run."""
    while True:
        async with aclosing(client.watch(kinds.PODS, NAMESPACE, resource_version=version)) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    version = seen.take(event.object)
                if seen.complete:
                    return


async def settled(client: Client, ours: Ours, pods: int) -> None:
    """Return when every job has counted its pods, and our processes have written nothing for a second."""
    while not await _counted(client, pods):  # noqa: ASYNC110 - another process can only be asked
        await asyncio.sleep(POLL_SECONDS)
    before, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        now = sum([(await requests(url)).total() for url in ours.metrics.values()])
        if now != before:
            before, since = now, time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


async def _counted(client: Client, pods: int) -> bool:
    jobs = await client.list(kinds.JOBS, NAMESPACE)
    return sum((one.get("status") or {}).get("running") or 0 for one in jobs) == pods


# What is written

_SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    """The samples of one series."""
    return [
        (dict(_LABEL.findall(labels)), float(value)) for found, labels, value in _SAMPLE.findall(text) if found == name
    ]


async def requests(url: str) -> Counter[str]:
    """Writes of one of our processes so far, by method."""
    text = await _text(url)
    made = Counter[str]()
    for labels, value in samples(text, "rest_client_requests_total"):
        if labels["method"] in WRITES:
            made[labels["method"]] += int(value)
    return made


async def _text(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


async def written(client: Client) -> Counter[str]:
    """Writes to the API server so far, by whomever, by verb and resource."""
    text = (await client.request("GET", "/metrics")).decode()
    made = Counter[str]()
    for labels, value in samples(text, "apiserver_request_total"):
        resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
        if labels["verb"] in WRITES and labels["resource"] not in NOT_OURS:
            made[f"{labels['verb']} {resource}"] += int(value)
    return made


def per_pod(after: Counter[str], before: Counter[str], pods: int) -> dict[str, float]:
    """The difference, for each pod."""
    return {key: round(count / pods, 3) for key, count in sorted((after - before).items())}


async def cycles(url: str) -> tuple[int, float]:
    """Scheduling cycles so far, and their milliseconds."""
    text = await _text(url)
    name = f"{PREFIX}e2e_scheduling_latency_milliseconds"
    found = {key: float(value) for key, value in re.findall(rf"^{name}_(count|sum) (\S+)$", text, re.MULTILINE)}
    return int(found.get("count", 0)), found.get("sum", 0.0)


# The measurement


async def measure(name: str, *, watchers: Iterable[list[str]] = ()) -> Json:
    """The figures of one load; ``watchers`` are programs that run beside it, with ``{scheduler}`` and
    ``{controllers}`` for the process ids."""
    pods = GANGS[name] * GANG
    async with cluster() as server, processes(server) as ours:
        client, pids = server.client, {**ours.pids, **server.pids}
        idle = Spent(pids)
        await asyncio.sleep(IDLE_SECONDS)
        resting = _bare(idle.per(int(IDLE_SECONDS)))
        page = orjson.loads(await client.request("GET", kinds.PODS.path(NAMESPACE), query={"limit": 1}))
        before = await written(client)
        made = {one: await requests(url) for one, url in ours.metrics.items()}
        cycles_before = await cycles(ours.metrics[SCHEDULER])
        beside = [
            await asyncio.create_subprocess_exec(*(part.format(**ours.pids) for part in command))
            for command in watchers
        ]
        seen, spent, started = Seen(pods), Spent(pids), time.perf_counter()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            group.create_task(follow(client, page["metadata"]["resourceVersion"], seen))
            group.create_task(job_load.submit(client, (gang(f"gang-{number}") for number in range(GANGS[name]))))
        seconds = time.perf_counter() - started
        async with asyncio.timeout(PATIENCE):
            await settled(client, ours, pods)
        computed, window = _bare(spent.per(pods)), time.perf_counter() - started
        for process in beside:
            await process.wait()
        cycles_after = await cycles(ours.metrics[SCHEDULER])
        memory = {f"{one} rss mib": largest_mib(pid) for one, pid in pids.items()}
        return {
            "scenario": name,
            "seconds": round(seconds, 3),
            "rss_mib": largest_mib(pids[SCHEDULER]),
            "binds": len(seen.bound),
            "nodes": NODES,
            "tasks": pods,
            "calibration": calibrating.wall(),
            "detail": {
                "calibration cpu": calibrating.cpu(),
                **seen.rates(started),
                "cpu ms per pod": computed,
                "cpu ms per second idle": resting,
                "cpu ms per pod less idle": {
                    key: round(value - resting[key] * window / pods, 3) for key, value in computed.items()
                },
                "seconds of the window": round(window, 1),
                **{
                    f"{one} writes per pod": per_pod(await requests(url), made[one], pods)
                    for one, url in ours.metrics.items()
                },
                "all writes per pod": per_pod(await written(client), before, pods),
                "watch events per pod": round(seen.events / pods, 2),
                "cycles": cycles_after[0] - cycles_before[0],
                "cycle ms in all": round(cycles_after[1] - cycles_before[1], 1),
                **memory,
            },
        }


def _bare(figures: dict[str, float]) -> dict[str, float]:
    return {key.removesuffix(" cpu ms"): value for key, value in figures.items()}


MEASUREMENTS: dict[str, Callable[[], Json]] = {
    "E1": lambda: uvloop.run(measure("E1")),
    "E2": lambda: uvloop.run(measure("E2")),
}
"""Scenarios of this module; they need the binaries of the end-to-end suite, so they run only when named."""


def main() -> None:
    """Profiles our processes under a load with py-spy (``pip install py-spy``; no part of what is installed here)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=main.__doc__)
    parser.add_argument("scenario", choices=GANGS)
    parser.add_argument("--seconds", type=int, default=15, help="how long the processes are looked at")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        raw = {process: Path(name) / process for process in (SCHEDULER, CONTROLLERS)}
        sampler = ("py-spy", "record", "--format=raw", "--rate=200", f"--duration={options.seconds}")
        watchers = [[*sampler, f"--output={path}", "--pid", f"{{{process}}}"] for process, path in raw.items()]
        figures = uvloop.run(measure(options.scenario, watchers=watchers))
        PROFILES.mkdir(exist_ok=True)
        for process, path in raw.items():
            title = f"{options.scenario}: {process}"
            text = sampling.summary(path.read_text().splitlines(), title)
            (PROFILES / f"{options.scenario}-{process}.txt").write_text(text)
    sys.stdout.write(orjson.dumps(figures).decode() + "\n")


if __name__ == "__main__":
    main()
