"""A stand for single passes: a fake server, filled caches, a clock that stands still, and one controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stromboli.api import kinds
from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.controllers.informers import SharedInformers
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.controlling import Result
from stromboli.kube.informers import identity_of
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually
from tests.controllers.stage import RecordedEvents

CREATED = "2025-03-11T10:00:00Z"
KEY = ("default", "cj")


def seconds(text: str) -> float:
    """``10:05`` on the day of the cases, ``12T20:00`` on another of that month, or a whole RFC 3339 time."""
    day, _, hour = text.rpartition("T") if text.count("T") and "Z" not in text else ("11", "", text)
    whole = text if text.endswith("Z") else f"2025-03-{day}T{hour}:00Z"
    return datetime.fromisoformat(whole).timestamp()


def cron_job(schedule: str = "*/5 * * * *", *, status: JsonObject | None = None, **spec: Any) -> JsonObject:
    template = {"metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}, "finalizers": ["f"]}, "spec": JOB}
    return {
        "metadata": {"name": "cj", "namespace": "default", "uid": "cj-uid", "creationTimestamp": CREATED},
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": "Allow",
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": template,
            **spec,
        },
        "status": status or {},
    }


JOB: JsonObject = {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}]}


def child(name: str, phase: str = "Running", *, owner: str = "cj-uid", ended: str = "", **meta: Any) -> JsonObject:
    reference = {
        "apiVersion": kinds.CRON_JOBS.api_version, "kind": "CronJob", "name": "cj", "uid": owner, "controller": True
    }  # fmt: skip
    head = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": CREATED}
    state = {"phase": phase, **({"lastTransitionTime": ended} if ended else {})}
    return {
        "metadata": {**head, "ownerReferences": [reference] if owner else [], **meta},
        "spec": JOB,
        "status": {"state": state},
    }


def active(*names: str) -> list[JsonObject]:
    return [
        {
            "apiVersion": kinds.JOBS.api_version,
            "kind": "Job",
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
        }
        for name in names
    ]


@dataclass
class Stand:
    """One controller, called by hand."""

    server: FakeApiServer
    client: Client
    informers: SharedInformers
    clock: FakeClock
    controller: CronJobController
    events: RecordedEvents = field(default_factory=RecordedEvents)

    async def at(self, time: str) -> float | None:
        """One pass at that time; answers the seconds until the next, without the tenth that is added to them."""
        self.clock.jump(seconds(time) - self.clock.time())
        await self.caught_up()
        result: Result | None = await self.controller.reconcile(KEY)
        return None if result is None else round(result.requeue_after - 0.1, 3)

    async def caught_up(self) -> None:
        """Wait until the caches show what the server has."""
        for kind in (kinds.CRON_JOBS, kinds.JOBS):
            store = self.informers.plain(kind).store

            def same(kind: kinds.Kind = kind) -> bool:
                have = {json.key_of(one): json.resource_version_of(one) for one in self.informers.plain(kind).store}
                want = {json.key_of(one): json.resource_version_of(one) for one in self.server.objects(kind)}
                return have == want

            await eventually(same, what=f"{kind.kind} cache of {len(store)}")

    def replace_controller(self) -> None:
        """Have a new process take over, which remembers nothing."""
        self.controller = CronJobController(
            self.client, self.informers, self.events, clock=self.clock, zone=UTC, longest_wait=float("inf")
        )

    def behind(self, earlier: JsonObject) -> None:
        """Have the cache show an earlier state of the CronJob."""
        self.informers.plain(kinds.CRON_JOBS).store.put(identity_of(earlier), earlier)

    @property
    def status(self) -> JsonObject:
        found: JsonObject = self.server.get(kinds.CRON_JOBS, "cj", "default").get("status") or {}
        return found

    @property
    def jobs(self) -> list[str]:
        return sorted(json.key_of(one)[1] for one in self.server.objects(kinds.JOBS))

    @property
    def reasons(self) -> list[str]:
        return self.events.reasons("cj")

    def writes(self) -> int:
        return sum(self.server.count(verb) for verb in ("create", "update", "patch", "delete"))


@asynccontextmanager
async def stand(*objects: JsonObject, **options: Any) -> AsyncIterator[Stand]:
    """A stand with a CronJob (the first object) and jobs."""
    async with FakeApiServer(bookmark_interval=5.0) as server, await server.client() as client:
        for number, obj in enumerate(objects):
            server.put(kinds.JOBS if number else kinds.CRON_JOBS, obj)
        clock, informers, events = FakeClock(), SharedInformers(client), RecordedEvents()
        controller = CronJobController(
            client, informers, events, clock=clock, zone=UTC, longest_wait=float("inf"), **options
        )
        running = asyncio.create_task(informers.run())
        await eventually(lambda: not informers.unsynced)
        try:
            yield Stand(server, client, informers, clock, controller, events)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
