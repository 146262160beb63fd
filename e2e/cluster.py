"""What a test says to a cluster: apply, wait for a condition, look. Waits poll a condition up to a deadline."""

from __future__ import annotations

import asyncio
import copy
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from stromboli.api.kinds import (
    BATCH_JOBS,
    COMMANDS,
    CRON_JOBS,
    DEPLOYMENTS,
    EVENTS,
    JOB_FLOWS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    QUEUES,
    REPLICA_SETS,
    STATEFUL_SETS,
    Kind,
)
from stromboli.kube.client import Client, PatchType
from stromboli.kube.errors import ApiError, NotFound

T = TypeVar("T")
Json = dict[str, Any]
WAIT_SECONDS = 40.0
OWNERS = (CRON_JOBS, JOB_FLOWS, DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, BATCH_JOBS)
"""Kinds whose objects make others anew for as long as they are there."""
POLL_SECONDS = 0.1


class NotInTime(AssertionError):
    """A condition did not hold within the deadline; shows what was seen last."""


async def eventually(
    look: Callable[[], Awaitable[T]], holds: Callable[[T], object], *, within: float = WAIT_SECONDS, what: str = ""
) -> T:
    """Look until ``holds``; answers what was seen. Raises NotInTime with the last sight."""
    deadline = time.monotonic() + within
    while True:
        seen = await look()
        if holds(seen):
            return seen
        if time.monotonic() > deadline:
            what = what or inspect.getsource(holds).strip() if callable(holds) else what
            raise NotInTime(f"{what} did not hold within {within:.0f} s; last seen: {_legible(seen)}")
        await asyncio.sleep(POLL_SECONDS)


def _legible(seen: object) -> object:
    """What was seen, without the bookkeeping of the API server that nobody reads."""
    if isinstance(seen, dict):
        return {key: _legible(value) for key, value in seen.items() if key != "managedFields"}
    return [_legible(item) for item in seen] if isinstance(seen, list | tuple) else seen


@dataclass
class Cluster:
    """A client, and a namespace of the test's own."""

    client: Client
    namespace: str

    async def create(self, kind: Kind, obj: Json) -> Json:
        """Create in the test's namespace."""
        return await self.client.create(kind, obj, self.namespace if kind.namespaced else None)

    async def job(self, name: str) -> Json:
        """The vcjob; an empty object when it is not there."""
        return await self._get(JOBS, name)

    async def queue(self, name: str) -> Json:
        """The queue; an empty object when it is not there."""
        return await self._get(QUEUES, name)

    async def pods(self, job: str | None = None) -> list[Json]:
        """The namespace's pods, of one vcjob or all."""
        selector = f"volcano.sh/job-name={job}" if job else None
        return await self.client.list(PODS, self.namespace, label_selector=selector)

    async def pod_group(self, job: str) -> Json:
        """The PodGroup that the vcjob owns; an empty object when there is none."""
        groups = await self.client.list(POD_GROUPS, self.namespace)
        return next((group for group in groups if group["metadata"]["name"].startswith(f"{job}-")), {})

    async def events(self, name: str) -> list[Json]:
        """Events about the object of that name."""
        return await self.client.list(EVENTS, self.namespace, field_selector=f"involvedObject.name={name}")

    async def phase_is(self, job: str, *phases: str, within: float = WAIT_SECONDS) -> Json:
        """Wait until the vcjob is in one of the phases."""
        return await eventually(
            lambda: self.job(job), lambda seen: phase(seen) in phases, within=within, what=f"{job} in {phases}"
        )

    async def gone(self, kind: Kind, name: str, within: float = WAIT_SECONDS) -> None:
        """Wait until the object is not there."""
        await eventually(lambda: self._get(kind, name), lambda seen: not seen, within=within, what=f"{name} gone")

    async def delete(self, kind: Kind, name: str, **options: Any) -> None:
        """Delete, whether or not it is there."""
        try:
            await self.client.delete(kind, name, self.namespace if kind.namespaced else None, **options)
        except NotFound:
            pass

    async def clear(self, within: float = WAIT_SECONDS) -> None:
        """Take the namespace's work away and wait for it: a real cluster ends namespaces at leisure, and what is left
        in them would hold room that the next test counts on.
        """
        for kind in (*OWNERS, JOBS, POD_GROUPS, PODS):
            for item in await self.client.list(kind, self.namespace):
                await self.delete(kind, item["metadata"]["name"])

        async def left() -> list[str]:
            found = [(kind, await self.client.list(kind, self.namespace)) for kind in (JOBS, POD_GROUPS, PODS)]
            return [f"{kind.kind} {item['metadata']['name']}" for kind, items in found for item in items]

        await eventually(left, lambda seen: not seen, within=within, what=f"an empty namespace {self.namespace}")

    async def patch(self, kind: Kind, name: str, patch: Json, subresource: str | None = None) -> Json:
        """Merge-patch an object."""
        namespace = self.namespace if kind.namespaced else None
        return await self.client.patch(kind, name, patch, namespace, type=PatchType.MERGE, subresource=subresource)

    async def command(self, action: str, kind: Kind, name: str) -> None:
        """Send a Command to the vcjob or queue of that name, as ``vcctl`` does."""
        target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
        target["uid"] = (await self._get(kind, name))["metadata"]["uid"]
        wire = {
            "apiVersion": COMMANDS.api_version,
            "kind": COMMANDS.kind,
            "metadata": {"generateName": f"{name}-{action.lower()}-"},
            "action": action,
            "target": target,
        }
        await self.create(COMMANDS, wire)

    async def open_queue(self, name: str, **spec: Any) -> str:
        """Create a queue and wait until it takes jobs; answers its name."""
        await self.create(QUEUES, queue(name, **spec))
        await self.queue_is(name, "Open")
        return name

    async def queue_is(self, name: str, state: str) -> Json:
        """Wait until the queue is in that state."""
        return await eventually(
            lambda: self.queue(name),
            lambda seen: seen.get("status", {}).get("state") == state,
            what=f"queue {name} {state}",
        )

    async def running(self, job: str, number: int) -> dict[str, str]:
        """Wait until exactly so many of the vcjob's pods run; answers the UIDs of the running ones by name."""
        seen = await eventually(
            lambda: self.pods(job),
            lambda pods: len([one for one in pods if is_running(one)]) == number,
            what=f"{number} running pods of {job}",
        )
        return uids(pod for pod in seen if is_running(pod))

    async def _get(self, kind: Kind, name: str) -> Json:
        try:
            return await self.client.get(kind, name, self.namespace if kind.namespaced else None)
        except NotFound:
            return {}


def phase(job: Json) -> str:
    """Phase of a vcjob, empty while it has none."""
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def is_running(pod: Json) -> bool:
    """Whether a pod runs and is to go on running."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def uids(objects: Iterable[Json]) -> dict[str, str]:
    """UID by name."""
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in objects}


def vcjob(
    name: str,
    *,
    replicas: int = 2,
    min_available: int | None = None,
    cpu: str = "100m",
    command: str = "sleep 1",
    queue: str = "default",
    policies: list[Json] | None = None,
    task_policies: list[Json] | None = None,
    pod_annotations: Json | None = None,
    **spec: Any,
) -> Json:
    """A vcjob of one task ``worker`` whose containers run ``command``."""
    container = {
        "name": "worker",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {
        "metadata": {"annotations": pod_annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0},
    }
    task = {"name": "worker", "replicas": replicas, "template": template, "policies": task_policies or []}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": replicas if min_available is None else min_available,
            "policies": policies or [],
            "tasks": [task],
            **copy.deepcopy(spec),
        },
    }


def queue(name: str, **spec: Any) -> Json:
    """A queue."""
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


COMPLETE = {"event": "TaskCompleted", "action": "CompleteJob"}


async def fresh_namespace(client: Client, name: str) -> None:
    """Create a namespace and wait until pods may be created in it (its default ServiceAccount is there)."""
    from stromboli.api.kinds import SERVICE_ACCOUNTS

    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def accounts() -> list[Json]:
        try:
            return await client.list(SERVICE_ACCOUNTS, name)
        except ApiError:
            return []

    await eventually(accounts, lambda seen: any(item["metadata"]["name"] == "default" for item in seen))
