"""A stage for scenarios: a fake API server with controllers on it; the test plays scheduler and kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from stromboli.api import kinds, names
from stromboli.api.batch import Job
from stromboli.api.kinds import Kind
from stromboli.controllers.assembling import Runnable
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job.controller import JobController
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import NotFound
from stromboli.kube.events import EventType, Reference
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.faults import Fault
from tests.controllers.building import JobBuilder

PATIENCE = 30.0


@dataclass
class RecordedEvents:
    """Events as they were recorded."""

    recorded: list[tuple[str, str, str, str]] = field(default_factory=list)

    def event(self, regarding: Reference, type: EventType, reason: str, message: str) -> None:
        self.recorded.append((regarding.name, str(type), reason, message))

    def reasons(self, name: str) -> list[str]:
        return [reason for about, _, reason, _ in self.recorded if about == name]

    def messages(self, name: str, reason: str) -> list[str]:
        return [message for about, _, found, message in self.recorded if (about, found) == (name, reason)]


@dataclass
class RecordedNumbers:
    """What would become metrics."""

    created: list[float] = field(default_factory=list)
    entered: list[tuple[str, str]] = field(default_factory=list)
    counted: dict[str, dict[str, int]] = field(default_factory=dict)

    def pod_created(self, seconds: float) -> None:
        self.created.append(seconds)

    def phase_entered(self, job: Job, phase: str) -> None:
        self.entered.append((job.name, phase))

    def job_gone(self, namespace: str, name: str, queue: str) -> None:
        pass

    def groups_counted(self, queue: str, by_phase: dict[str, int]) -> None:
        self.counted[queue] = by_phase

    def queue_gone(self, queue: str) -> None:
        self.counted.pop(queue, None)


class Stage:
    """The server, the running controller, and what a test does and sees."""

    def __init__(self, server: FakeApiServer, client: Client, clock: Clock = SYSTEM_CLOCK) -> None:
        self.server, self.client, self.clock = server, client, clock
        self.events, self.numbers = RecordedEvents(), RecordedNumbers()
        self.trouble: Fault | None = None
        """What goes wrong on this stage, for whoever has to make up for it."""
        self.outstanding = False
        """Whether somebody waits for a Command to be obeyed."""
        self._running: asyncio.Task[None] | None = None
        server.put(kinds.QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}})

    # -- the controller ------------------------------------------------------------------------------------------------

    async def start(self, **options: Any) -> None:
        """Start a job controller, as a new process would. Counters wait less than usual, which no life depends on."""
        options = {"counters_wait": 0.05, **options}
        await self.run(
            lambda informers: JobController(
                self.client, informers, self.events, self.numbers, clock=self.clock, **options
            )
        )

    async def run(self, *make: Callable[[SharedInformers], Runnable]) -> None:
        """Start controllers over caches of their own."""
        informers = SharedInformers(self.client)
        controllers = [one(informers) for one in make]

        async def run() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(informers.run())
                for controller in controllers:
                    tasks.create_task(controller.run())

        self._running = asyncio.create_task(run())
        await self.until(lambda: not informers.unsynced)

    async def stop(self) -> None:
        """Stop the controller, wherever it is."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Return when ``condition`` holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(NotFound):
                        if condition():
                            return
                    if self._running is not None and self._running.done():
                        await self._running
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"waited in vain{': ' + what if what else ''}; {self.describe()}") from None

    def describe(self) -> str:
        jobs = {json.key_of(one)[1]: one.get("status") for one in self.server.objects(kinds.JOBS)}
        pods = {json.key_of(one)[1]: one.get("status", {}).get("phase") for one in self.server.objects(kinds.PODS)}
        return f"jobs {jobs}; pods {pods}; events {self.events.recorded[-5:]}"

    # -- looking -------------------------------------------------------------------------------------------------------

    def job(self, name: str = "job1") -> JsonObject:
        return self.server.get(kinds.JOBS, name, "default")

    def status(self, name: str = "job1") -> JsonObject:
        status: JsonObject = self.job(name).get("status") or {}
        return status

    def phase(self, name: str = "job1") -> str:
        return str(self.status(name).get("state", {}).get("phase", ""))

    def pods(self, job: str = "job1") -> dict[str, JsonObject]:
        found = self.server.objects(kinds.PODS, "default")
        return {json.key_of(pod)[1]: pod for pod in found if pod["metadata"]["annotations"].get(names.JOB_NAME) == job}

    def uids(self, job: str = "job1") -> dict[str, str]:
        return {name: json.uid_of(pod) for name, pod in self.pods(job).items()}

    def pod_phases(self, job: str = "job1") -> dict[str, str]:
        return {name: pod["status"].get("phase", "Pending") for name, pod in self.pods(job).items()}

    def group(self, name: str = "job1") -> JsonObject:
        return self.server.get(kinds.POD_GROUPS, f"{name}-{json.uid_of(self.job(name))}", "default")

    def names_of(self, kind: Kind) -> list[str]:
        return [json.key_of(one)[1] for one in self.server.objects(kind, "default")]

    # -- acting --------------------------------------------------------------------------------------------------------

    def submit(self, builder: JobBuilder) -> None:
        self.server.put(kinds.JOBS, builder.obj())

    async def admit(self, name: str = "job1", phase: str = "Inqueue") -> None:
        """As the scheduler: let the job's PodGroup in."""
        await self.until(lambda: self.group(name), "a PodGroup")
        self.server.put(kinds.POD_GROUPS, {**self.group(name), "status": {"phase": phase}})

    def set_pod(
        self, name: str, phase: str, exit_code: int | None = None, restarts: int = 0, ready: bool = True
    ) -> None:
        """As the kubelet: report a pod's state."""
        pod = self.server.get(kinds.PODS, name, "default")
        state = {"terminated": {"exitCode": exit_code}} if exit_code is not None else {}
        container = {"name": "main", "ready": ready, "restartCount": restarts, "state": state}
        pod["status"] = {"phase": phase, "containerStatuses": [container]}
        self.server.put(kinds.PODS, pod)

    async def run_pods(self, count: int, job: str = "job1") -> None:
        """Wait for ``count`` pods, and let all that are pending run."""
        await self.until(lambda: len(self.pods(job)) == count, f"{count} pods of {job}")
        for name, pod in self.pods(job).items():
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                self.set_pod(name, "Running")

    async def running(self, builder: JobBuilder, pods: int) -> None:
        """Bring a job to Running with all its pods."""
        name = builder.wire["metadata"]["name"]
        self.submit(builder)
        await self.admit(name)
        await self.run_pods(pods, name)
        await self.until(lambda: self.phase(name) == "Running", "Running")
        await self.until(lambda: self.status(name).get("running") == pods, "all pods counted")

    async def retried(self, times: int, job: str = "job1") -> None:
        """Wait until the job has been restarted so often."""
        await self.until(lambda: self.status(job).get("retryCount") == times, f"{times} retries")

    def command(self, action: str, job: str = "job1", uid: str | None = None) -> None:
        target = {
            "apiVersion": kinds.JOBS.api_version,
            "kind": "Job",
            "name": job,
            "uid": uid or json.uid_of(self.job(job)),
        }
        name = f"{job}-{action.lower()}"
        self.server.put(
            kinds.COMMANDS, {"metadata": {"name": name, "namespace": "default"}, "action": action, "target": target}
        )

    def delete_pod(self, name: str) -> None:
        """As a drained node: the pod is gone."""
        self.server.remove(kinds.PODS, name, "default")


@asynccontextmanager
async def stage(*, start: bool = True, **options: Any) -> AsyncIterator[Stage]:
    """A stage with a running controller."""
    async with FakeApiServer(bookmark_interval=5.0) as server, await server.client() as client:
        scene = Stage(server, client)
        try:
            if start:
                await scene.start(**options)
            yield scene
        finally:
            await scene.stop()
