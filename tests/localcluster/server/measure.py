"""Speed and memory of the API server with many objects: ``python -m tests.localcluster.server.measure [PODS] [NODES]``.

Not a test: prints one JSON object with seconds and MiB, for the guide and for comparison between versions.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from stromboli.api import kinds
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.http.app import create_app
from stromboli.localcluster.registry import Registry

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@asynccontextmanager
async def serving(registry: Registry) -> AsyncIterator[str]:
    """The address of a server on a free loopback port."""
    runner = web.AppRunner(create_app(registry), shutdown_timeout=2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def pod(number: int, node: int) -> dict[str, object]:
    """A pod of the size that gangs have."""
    name = f"pod-{number:06d}"
    container = {
        "name": "main",
        "image": "registry.example.com/training/worker:1.2.3",
        "command": ["python", "train.py", "--rank", str(number)],
        "env": [{"name": f"VARIABLE_{index}", "value": f"value-{index}"} for index in range(5)],
        "ports": [{"containerPort": 2222, "name": "ssh"}],
        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}},
    }
    labels = {"app": "training", "volcano.sh/job-name": f"job-{number // 8}", "volcano.sh/task-spec": "worker"}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"schedulerName": "volcano", "nodeName": f"node-{node}", "containers": [container]},
    }


async def timed(session: aiohttp.ClientSession, url: str, accept: str) -> tuple[float, int]:
    """Seconds and bytes of one GET."""
    start = time.perf_counter()
    async with session.get(url, headers={"Accept": accept, "Accept-Encoding": "gzip"}) as response:
        body = await response.read()
    return round(time.perf_counter() - start, 3), len(body)


async def main(pods: int, nodes: int) -> None:
    """Fill a server and read it."""
    registry = new_registry()
    for index in range(nodes):
        await registry.create(kinds.NODES, {"metadata": {"name": f"node-{index}"}})
    start = time.perf_counter()
    for index in range(pods):
        await registry.create(kinds.PODS, pod(index, index % nodes))
    figures: dict[str, object] = {"pods": pods, "nodes": nodes, "create_s": round(time.perf_counter() - start, 2)}
    async with serving(registry) as address, aiohttp.ClientSession() as session:
        url = f"{address}/api/v1/pods"
        for name, query, accept in (
            ("list_first", "", "application/json"),
            ("list_again", "", "application/json"),
            ("list_one_node", "?fieldSelector=spec.nodeName%3Dnode-7", "application/json"),
            ("list_one_job", "?labelSelector=volcano.sh/job-name%3Djob-7", "application/json"),
            ("table", "", TABLE),
        ):
            seconds, size = await timed(session, url + query, accept)
            figures |= {f"{name}_s": seconds, f"{name}_mib": round(size / 2**20, 2)}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(figures))


if __name__ == "__main__":
    counts = [int(text) for text in sys.argv[1:3]]
    asyncio.run(main(*(counts + [20_000, 1_000][len(counts) :])))
