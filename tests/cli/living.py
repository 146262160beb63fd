"""A scheduler that runs one cycle at a time over a fake API server, and a world that does what it decides.

What a rehearsal takes for granted happens here on the server: bound pods run, evicted pods are gone and those of vcjobs
come back, and pods of a vcjob appear once its PodGroup is admitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from stromboli.api import core, kinds, names
from stromboli.kube.client import Client
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.options import Options
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.running import Scheduler
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.scheduler.shell.stage import REGISTRY


class Stepped(Scheduler):
    """Waits after each cycle until it is told to go on."""

    def __init__(self, client: Client, policies: Policies) -> None:
        super().__init__(client, Options(), REGISTRY, policies, SchedulerMetrics(Metrics()))
        self.results: list[CycleResult] = []
        self._steps = asyncio.Semaphore(0)

    def step(self) -> None:
        """One more cycle may run."""
        self._steps.release()

    async def _pause(self, result: CycleResult) -> None:
        self.results.append(result)
        await self._steps.acquire()


class Living:
    """The world around the scheduler. Use as ``async with``."""

    def __init__(self, server: FakeApiServer, client: Client, policy: Policy) -> None:
        policies = Policies("", REGISTRY.known)
        policies.current = policy
        self.scheduler = Stepped(client, policies)
        self.awaited: dict[str, list[core.Pod]] = {}
        """Pods to make when the PodGroup ``namespace/name`` is admitted."""
        self._server = server
        self._running: asyncio.Task[None] | None = None
        self._cycles = 0

    async def __aenter__(self) -> Living:
        self._running = asyncio.create_task(self.scheduler.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    def put(self, objects: Iterable[core.Object], kind: kinds.Kind) -> None:
        """Put objects on the server."""
        for obj in objects:
            self._server.put(kind, dict(core.to_builtins(obj, kind)))

    async def cycle(self) -> CycleResult:
        """Let one cycle run and what it leads to happen; returns when the scheduler has seen all of it."""
        self._cycles += 1
        before = self._pods()
        if self._cycles > 1:
            self.scheduler.step()
        await self._until(lambda: len(self.scheduler.results) >= self._cycles, "a cycle")
        result = self.scheduler.results[-1]
        await self._until(lambda: self._carried_out(result), "decisions carried out")
        self._happen(result, before)
        await self._until(self._seen, "everything seen")
        return result

    async def _until(self, holds: object, what: str) -> None:
        assert self._running is not None

        def checked() -> object:
            if self._running is not None and self._running.done():
                self._running.result()
            return holds()  # type: ignore[operator]

        await eventually(checked, what=what)

    def _pods(self) -> dict[str, JsonObject]:
        return {pod["metadata"]["uid"]: pod for pod in self._server.objects(kinds.PODS)}

    def _carried_out(self, result: CycleResult) -> bool:
        pods = self._pods()
        bound = all(pods[bind.task.uid]["spec"].get("nodeName") == bind.node for bind in result.binds)
        gone = not any(eviction.task.uid in pods for eviction in result.evictions)
        return bound and gone and self._written(result)

    def _written(self, result: CycleResult) -> bool:
        """Whether PodGroups have the phases of the cycle."""
        phases = {
            f"{group['metadata']['namespace']}/{group['metadata']['name']}": group.get("status", {}).get("phase", "")
            for group in self._server.objects(kinds.POD_GROUPS)
        }
        return all(phases.get(update.job_id) == update.status.phase for update in result.pod_groups)

    def _happen(self, result: CycleResult, before: dict[str, JsonObject]) -> None:
        for eviction in result.evictions:
            self._come_back(before[eviction.task.uid])
        for bind in result.binds:
            pod = self._server.get(kinds.PODS, bind.task.name, bind.task.namespace)
            self._server.put(kinds.PODS, {**pod, "status": {**pod.get("status", {}), "phase": "Running"}})
        for update in result.pod_groups:
            if update.status.phase != "Pending":
                self.put(self.awaited.pop(update.job_id, ()), kinds.PODS)

    def _come_back(self, pod: JsonObject) -> None:
        """The job controller's answer to an eviction: the same pod anew."""
        meta, spec = pod["metadata"], {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        if names.JOB_NAME in meta.get("labels", {}):
            again = {**meta, "uid": f"{meta['uid']}+", "resourceVersion": ""}
            self._server.put(kinds.PODS, {**pod, "metadata": again, "spec": spec, "status": {"phase": "Pending"}})

    def _groups_seen(self) -> bool:
        """A status that is written over an older version than the server's is refused until the next cycle."""
        known = {
            (job.pod_group.uid, job.pod_group.metadata.resource_version)
            for job in self.scheduler.mirror.jobs.values()
            if job.pod_group is not None
        }
        metas = (group["metadata"] for group in self._server.objects(kinds.POD_GROUPS))
        return known == {(meta["uid"], meta["resourceVersion"]) for meta in metas}

    def _seen(self) -> bool:
        """Whether the scheduler's mirror shows the pods and PodGroups of the server as they are."""
        tasks = {task.uid: task for task in self.scheduler.mirror.tasks.values()}
        pods = self._pods()
        if self.scheduler.feed.depth or set(tasks) != set(pods) or not self._groups_seen():
            return False
        return all(
            (tasks[uid].status == TaskStatus.RUNNING) == (pod.get("status", {}).get("phase") == "Running")
            for uid, pod in pods.items()
        )
