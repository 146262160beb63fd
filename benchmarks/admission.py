"""Admission under load: the real process over TLS on loopback, reviews from a process of their own.

``admission`` is a mix of what a busy cluster sends, ``admission-queues`` validations of queues in a tree of 2,000
queues on five levels. Reviews are due at fixed times, whether or not earlier ones are answered, and at most 64 are
under way; a review's time counts from when it was due, so that a server that falls behind cannot hide it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.cli.stack import ADMISSIONS, answers
from stromboli.process.ports import free_port
from stromboli.testing.apiserver import FakeApiServer

Json = dict[str, Any]
PER_SECOND = 500
IN_FLIGHT = 64
SECONDS = float(os.environ.get("ADMISSION_SECONDS", "60"))
VALIDATIONS = int(os.environ.get("ADMISSION_VALIDATIONS", "10000"))
REAL_TIME = os.environ.get("ADMISSION_REAL_TIME") == "1"
"""Whether the processes go before all others: on a machine that is shared, times are else those of the neighbours."""
READY_SECONDS = 30.0
ANSWER_SECONDS = 10.0
LEVELS = ((4, 400_000), (16, 100_000), (80, 20_000), (380, 4_000), (1520, 1_000))
"""Queues on each level below root, and cpus of each."""


@dataclass(frozen=True, slots=True)
class Review:
    """What is sent where."""

    path: str
    body: bytes


@dataclass(slots=True)
class Seen:
    """What the load process saw."""

    milliseconds: list[float] = field(default_factory=list)
    denied: int = 0
    failed: list[str] = field(default_factory=list)
    most_in_flight: int = 0
    seconds: float = 0.0

    def percentile(self, share: float) -> float:
        """The time within which ``share`` of the reviews were answered."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


# What is reviewed


def review(path: str, kind: Kind, obj: Json, old: Json | None = None) -> Review:
    """A review as the API server would send it."""
    metadata = obj["metadata"]
    request = {
        "uid": f"{path}-{metadata['name']}",
        "operation": "UPDATE" if old else "CREATE",
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "object": obj,
        "oldObject": old,
    }
    content = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return Review(path, orjson.dumps(content))


def job(number: int) -> Json:
    """A job of three tasks as people write them."""
    container = {
        "name": "main",
        "image": f"registry.example.com/team/train:{number % 20}",
        "command": ["python", "train.py"],
        "env": [{"name": f"VARIABLE_{index}", "value": "value"} for index in range(12)],
        "ports": [{"name": "port", "containerPort": 2222}],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {"containers": [container], "restartPolicy": "Never", "volumes": [{"name": "data", "emptyDir": {}}]}
    tasks = [
        {"name": name, "replicas": count, "template": {"metadata": {"labels": {"app": "train"}}, "spec": pod}}
        for name, count in (("chief", 1), ("worker", 16), ("ps", 4))
    ]
    spec = {
        "minAvailable": 21,
        "queue": "default",
        "schedulerName": "volcano",
        "plugins": {"svc": [], "env": []},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": tasks,
    }
    return {"metadata": {"name": f"train-{number}", "namespace": "team"}, "spec": spec}


def mix() -> Iterator[Review]:
    """What a busy cluster sends: mostly jobs and their PodGroups."""
    for number in range(200):
        new = job(number)
        scaled = {**new, "spec": {**new["spec"], "minAvailable": 20}}
        group = {"metadata": {"name": f"g-{number}", "namespace": "team"}, "spec": {"queue": "default", "minMember": 2}}
        pod = {"metadata": {"name": f"p-{number}", "namespace": "team"}, "spec": {"schedulerName": "volcano"}}
        cron = {"metadata": {"name": f"c-{number}", "namespace": "team"}, "spec": {"schedule": "*/5 * * * *"}}
        yield review("/jobs/mutate", kinds.JOBS, new)
        yield review("/jobs/validate", kinds.JOBS, new)
        yield review("/podgroups/mutate", kinds.POD_GROUPS, group)
        yield review("/podgroups/validate", kinds.POD_GROUPS, group)
        yield review("/jobs/validate", kinds.JOBS, scaled, new)
        yield review("/pods/validate", kinds.PODS, pod)
        yield review("/cronjobs/validate", kinds.CRON_JOBS, cron)
        yield review("/queues/validate", kinds.QUEUES, _queue(f"new-{number}", "", 4))


def _queue(name: str, parent: str, cpus: int) -> Json:
    amounts = {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "nvidia.com/gpu": str(cpus // 8)}
    spec = {
        "weight": 1,
        "parent": parent or "root",
        "capability": amounts,
        "deserved": amounts,
        "guarantee": {"resource": {"cpu": str(cpus // 2), "memory": f"{2 * cpus}Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open", "allocated": {"pods": "0"}}}


def tree() -> list[Json]:
    """2,000 queues on five levels, each level within the shares of the one above."""
    queues, above = [], [""]
    for depth, (count, cpus) in enumerate(LEVELS):
        level = [_queue(f"level-{depth}-{number}", above[number % len(above)], cpus) for number in range(count)]
        queues += level
        above = [queue["metadata"]["name"] for queue in level]
    return queues


def tree_reviews(queues: Sequence[Json]) -> Iterator[Review]:
    """Changes of every queue's shares (all checks run), and a new leaf beside each leaf's siblings."""
    for queue in queues:
        yield review("/queues/validate", kinds.QUEUES, queue, _changed(queue))
    for number, queue in enumerate(queues[-sum(count for count, _ in LEVELS[4:]) :]):
        yield review("/queues/validate", kinds.QUEUES, _queue(f"new-{number}", queue["spec"]["parent"], 0))


def _changed(queue: Json) -> Json:
    spec = {**queue["spec"], "capability": {**queue["spec"]["capability"], "pods": "1000000"}}
    return {**queue, "spec": spec}


# The server


@dataclass(frozen=True, slots=True)
class Server:
    """The admission server, a process of its own."""

    process: asyncio.subprocess.Process
    url: str
    trust: ssl.SSLContext

    def cpu_seconds(self) -> float:
        """What the process has computed so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> int:
        """Memory that the process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


@asynccontextmanager
async def server(queues: Sequence[Json]) -> AsyncIterator[Server]:
    """The real process, ready, on one core; its API server knows ``queues``."""
    port, health = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as directory:
        async with FakeApiServer() as api:
            api.put(kinds.NAMESPACES, {"metadata": {"name": "team"}})
            for queue in queues:
                api.put(kinds.QUEUES, queue)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "stromboli.webhooks", f"--master={api.url}", "--listen-address=127.0.0.1",
                f"--port={port}", f"--webhook-url=https://127.0.0.1:{port}", f"--certificate-dir={directory}",
                f"--enabled-admission={ADMISSIONS}", "--enable-healthz", f"--healthz-address=127.0.0.1:{health}",
            )  # fmt: skip
            try:
                _one_core(process.pid)
                await _ready(f"https://127.0.0.1:{health}/readyz")
                trust = ssl.create_default_context(cafile=f"{directory}/ca.crt")
                yield Server(process, f"https://127.0.0.1:{port}", trust)
            finally:
                process.terminate()
                await process.wait()


async def _ready(url: str) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while not await answers(url):  # noqa: ASYNC110 - the other process can only be asked
            await asyncio.sleep(0.05)


def _one_core(pid: int) -> None:
    """Put the server on one core and the load on the others."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, cores[:1])
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[1:])
    for process in (pid, 0) if REAL_TIME else ():
        os.sched_setscheduler(process, os.SCHED_RR, os.sched_param(1))


# The load


@asynccontextmanager
async def connections(target: Server) -> AsyncIterator[aiohttp.ClientSession]:
    """As many connections as reviews may be under way, kept alive as an API server keeps them."""
    connector = aiohttp.TCPConnector(ssl=target.trust, limit=IN_FLIGHT, keepalive_timeout=300)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield session


async def warm_up(target: Server, session: aiohttp.ClientSession, reviews: Sequence[Review]) -> None:
    """Every review once, as fast as they are answered: connections are made, pod templates become known."""
    waiting, seen = iter(reviews), Seen()

    async def work() -> None:
        for sent in waiting:
            await _ask(session, target.url, sent, seen)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())


async def load(target: Server, session: aiohttp.ClientSession, reviews: Sequence[Review], count: int) -> Seen:
    """Send ``count`` reviews, :data:`PER_SECOND`, with at most :data:`IN_FLIGHT` under way."""
    seen, slots, in_flight = Seen(), asyncio.Semaphore(IN_FLIGHT), 0

    async def one(due: float, sent: Review) -> None:
        nonlocal in_flight
        in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, in_flight)
        try:
            await _ask(session, target.url, sent, seen)
        finally:
            in_flight -= 1
            slots.release()
        seen.milliseconds.append((time.perf_counter() - due) * 1000)

    async with asyncio.TaskGroup() as group:
        started = time.perf_counter()
        for number in range(count):
            due = started + number / PER_SECOND
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await slots.acquire()
            group.create_task(one(due, reviews[number % len(reviews)]))
    seen.seconds = time.perf_counter() - started
    return seen


async def _ask(session: aiohttp.ClientSession, url: str, sent: Review, seen: Seen) -> None:
    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(f"{url}{sent.path}?timeout=10s", data=sent.body, headers=headers) as answer:
            body = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.failed.append(f"{type(error).__name__}: {error}")
        return
    if answer.status != 200:
        seen.failed.append(f"{answer.status}: {body[:200]!r}")
    elif not orjson.loads(body)["response"]["allowed"]:
        seen.denied += 1


# Figures


async def _measured(name: str, queues: Sequence[Json], reviews: Sequence[Review], count: int) -> Json:
    async with server([_queue("default", "", 1000), *queues]) as target, connections(target) as session:
        await warm_up(target, session, reviews)
        spent = target.cpu_seconds()
        seen = await load(target, session, reviews, count)
        spent = target.cpu_seconds() - spent
        if seen.failed or seen.denied:
            raise SystemExit(f"{name}: {len(seen.failed)} failed, {seen.denied} denied: {seen.failed[:3]}")
        return {
            "scenario": name,
            "reviews": count,
            "per_second": round(count / seen.seconds, 1),
            "p50_ms": round(seen.percentile(0.5), 2),
            "p99_ms": round(seen.percentile(0.99), 2),
            "max_ms": round(max(seen.milliseconds), 2),
            "in_flight": seen.most_in_flight,
            "cpu_ms_per_review": round(spent / count * 1000, 3),
            "cpu_share": round(spent / seen.seconds, 2),
            "rss_mib": target.resident_mib(),
            "real_time": REAL_TIME,
        }


def measure_mix() -> Json:
    """500 reviews a second."""
    return uvloop.run(_measured("admission", [], list(mix()), int(PER_SECOND * SECONDS)))


def measure_queues() -> Json:
    """10,000 validations of queues in a tree."""
    queues = tree()
    return uvloop.run(_measured("admission-queues", queues, list(tree_reviews(queues)), VALIDATIONS))


MEASUREMENTS: dict[str, Callable[[], Json]] = {"admission": measure_mix, "admission-queues": measure_queues}
"""Scenarios of this module; they take a minute, so they run only when named."""
