"""A fake API server with a scheduler on it, and what a test does and sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.errors import NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler import registering
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.options import Options
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.running import Scheduler
from stromboli.telemetry.metrics import Metrics
from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.builders import NodeBuilder, PodBuilder, PodGroupBuilder, QueueBuilder
from stromboli.testing.waiting import eventually

Builder = NodeBuilder | QueueBuilder | PodGroupBuilder | PodBuilder

PERIOD = 0.02
REGISTRY = registering.load()


class Stage:
    """Puts objects on the server, runs schedulers, looks at what they did."""

    def __init__(self, server: FakeApiServer, client: Client, options: Options | None = None) -> None:
        self.server, self.client = server, client
        self.options = options or Options(schedule_period=PERIOD)
        self.policies = Policies("", REGISTRY.known)
        self.registry = Metrics()
        self.metrics = SchedulerMetrics(self.registry)
        self.scheduler: Scheduler | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> Scheduler:
        """Start a scheduler, as a new process would."""
        return await self.run(Scheduler(self.client, self.options, REGISTRY, self.policies, self.metrics))

    async def run(self, scheduler: Scheduler) -> Scheduler:
        """Start this scheduler."""
        self.scheduler = scheduler
        self._running = asyncio.create_task(scheduler.run())
        return scheduler

    async def kill(self) -> None:
        """End the scheduler wherever it is."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Return when ``condition`` holds; fails when the scheduler ends or time runs out."""

        def holds() -> object:
            if self._running is not None and self._running.done():
                self._running.result()
                raise AssertionError("the scheduler has ended")
            with suppress(NotFound):
                return condition()
            return False

        await eventually(holds, what=f"{what}; binds {self.binds()}")

    async def cycles(self, number: int) -> None:
        """Return after so many more cycles have begun."""
        assert self.scheduler is not None
        scheduler, end = self.scheduler, self.scheduler.cycles + number
        await self.until(lambda: scheduler.cycles >= end, "cycles")

    # -- doing ---------------------------------------------------------------------------------------------------------

    def put(self, *objects: Builder) -> None:
        """Put objects on the server."""
        for builder in objects:
            match builder:
                case NodeBuilder():
                    self._put(kinds.NODES, builder.build())
                case QueueBuilder():
                    self._put(kinds.QUEUES, builder.build())
                case PodGroupBuilder():
                    self._put(kinds.POD_GROUPS, builder.build())
                case PodBuilder():
                    self._put(kinds.PODS, builder.build())

    def _put(self, kind: Kind, obj: core.Object) -> None:
        self.server.put(kind, dict(core.to_builtins(obj, kind)))

    def run_pod(self, name: str, namespace: str = "ns") -> None:
        """What a kubelet does first."""
        pod = self.server.get(kinds.PODS, name, namespace)
        self.server.put(kinds.PODS, {**pod, "status": {**pod.get("status", {}), "phase": "Running"}})

    # -- looking -------------------------------------------------------------------------------------------------------

    def pod(self, name: str, namespace: str = "ns") -> JsonObject:
        return self.server.get(kinds.PODS, name, namespace)

    def condition(self, name: str, type_: str = "PodScheduled") -> JsonObject | None:
        conditions = self.pod(name).get("status", {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == type_), None)

    def binds(self) -> dict[str, str]:
        """Pod name to node."""
        pods = self.server.objects(kinds.PODS)
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    def bound(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in self.binds())

    def queue(self, name: str) -> JsonObject:
        return self.server.get(kinds.QUEUES, name)

    def phase(self, group: str, namespace: str = "ns") -> str:
        return str(self.server.get(kinds.POD_GROUPS, group, namespace).get("status", {}).get("phase", ""))

    def events(self, reason: str, name: str = "") -> list[JsonObject]:
        return [
            event
            for event in self.server.objects(kinds.EVENTS)
            if event["reason"] == reason and name in ("", event["involvedObject"]["name"])
        ]

    def bind_calls(self, name: str | None = None) -> int:
        return sum(call.subresource == "binding" for call in self.server.called("create", kinds.PODS, name))


def gang(name: str, size: int, *, cpu: str = "1", minimum: int | None = None, born: float = 1000.0) -> list[Builder]:
    """A PodGroup and its pods."""
    group = builders.pod_group(name).members(size if minimum is None else minimum).queue("default").born(born)
    pods = [builders.pod(f"{name}-{number}").group(name).request(cpu=cpu).born(born) for number in range(size)]
    return [group, *pods]
