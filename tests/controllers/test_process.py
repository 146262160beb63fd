"""The controller manager as a whole process would run it, inside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from stromboli.api import kinds
from stromboli.controllers.__main__ import serve
from stromboli.controllers.options import PROGRAM, Options
from stromboli.kube import json
from stromboli.process import flags
from stromboli.process.ports import free_port
from tests.controllers.building import job
from tests.controllers.stage import Stage, stage


@asynccontextmanager
async def process(scene: Stage, *arguments: str) -> AsyncIterator[tuple[int, int]]:
    """The process on the stage's server; gives its health and metrics ports."""
    health, metrics = free_port(), free_port()
    options = flags.parse(
        Options,
        [
            f"--master={scene.server.url}",
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{health}",
            "--enable-metrics",
            f"--listen-address=127.0.0.1:{metrics}",
            *arguments,
        ],
        program=PROGRAM,
    )
    options.check()
    running = asyncio.create_task(serve(options))
    try:
        yield health, metrics
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def is_open(scene: Stage, queue: str) -> bool:
    return bool((scene.server.get(kinds.QUEUES, queue).get("status") or {}).get("state") == "Open")


async def fetch(port: int, path: str) -> tuple[int, str]:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()
    except aiohttp.ClientConnectionError:
        return 0, ""


async def answers(port: int, path: str, *wanted: str, without: str | None = None) -> str:
    """Wait until the endpoint answers 200 with every wanted text, and without the unwanted one."""
    async with asyncio.timeout(20):
        while True:
            status, text = await fetch(port, path)
            if status == 200 and all(one in text for one in wanted) and (without is None or without not in text):
                return text
            await asyncio.sleep(0.01)


async def test_it_becomes_ready_and_counts_what_it_does() -> None:
    async with stage(start=False) as scene, process(scene, "--leader-elect=false") as (health, metrics):
        await answers(health, "/readyz", "ok")
        await scene.until(lambda: is_open(scene, "root"))
        await scene.running(job().task("worker", 1), 1)
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        text = await answers(
            metrics,
            "/metrics",
            'volcano_job_completed_phase_count{job_name="default/job1",queue_name="default"} 1.0',
            "volcano_controller_job_to_pod_creation_latency_milliseconds_count 1.0",
            'volcano_queue_pod_group_running_count{queue_name="default"}',
        )
        assert 'le="60000.0"' in text
        scene.server.remove(kinds.JOBS, "job1", "default")
        await answers(metrics, "/metrics", without='job_name="default/job1"')


async def test_it_works_only_under_its_lease() -> None:
    async with stage(start=False) as scene:
        async with process(scene):
            lease = kinds.LEASES
            await scene.until(lambda: scene.server.get(lease, "vc-controller-manager", "volcano-system"))
            await scene.until(lambda: scene.server.get(kinds.QUEUES, "root"))
        released = scene.server.get(lease, "vc-controller-manager", "volcano-system")
        assert released["spec"]["holderIdentity"] == ""


async def test_events_come_from_the_known_component() -> None:
    async with stage(start=False) as scene, process(scene, "--leader-elect=false"):
        scene.submit(job().task("worker", 1).spec(queue="nowhere"))
        await scene.until(lambda: scene.server.objects(kinds.EVENTS))
        [event] = scene.server.objects(kinds.EVENTS)
        assert event["source"]["component"] == "vc-controller-manager"
        assert (event["reason"], event["involvedObject"]["name"]) == ("QueueNotFound", "job1")
        assert "queue nowhere not found" in event["message"]


async def test_a_missing_kind_holds_up_only_who_needs_it() -> None:
    async with stage(start=False) as scene:
        scene.server.faults.fail(404, verb="list", kind=kinds.STATEFUL_SETS, times=None)
        scene.server.faults.fail(404, verb="watch", kind=kinds.STATEFUL_SETS, times=None)
        async with process(scene, "--leader-elect=false") as (health, _):
            await scene.running(job().task("worker", 1), 1)
            status, text = await fetch(health, "/readyz?verbose")
            assert status == 500
            assert "not listed yet: statefulsets.apps" in text


async def test_only_the_selected_controllers_run() -> None:
    async with stage(start=False) as scene, process(scene, "--leader-elect=false", "--controllers=queue-controller"):
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: is_open(scene, "root"))
        assert scene.server.count("list", kinds.PODS) == scene.server.count("watch", kinds.PODS) == 0
        assert json.metadata(scene.job()) and not scene.status()
