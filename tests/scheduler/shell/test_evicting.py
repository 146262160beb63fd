"""Evictions: the pod is told, then always deleted; what fails is looked into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from stromboli.api import core, kinds
from stromboli.kube.client import Client
from stromboli.kube.errors import NotFound
from stromboli.kube.events import Recorder
from stromboli.scheduler.conditions import PodConditions
from stromboli.scheduler.core.results import Evict, TaskRef
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.evicting import Evictor
from stromboli.scheduler.resyncing import Resync
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually

TASK = TaskRef("ns", "p", "uid-p", "ns/j")


class Learned:
    """What became known about pods."""

    def __init__(self) -> None:
        self.present: list[core.Pod] = []
        self.gone: list[TaskRef] = []

    def pod_is(self, task: TaskRef, pod: core.Pod, *, undo: bool) -> None:
        assert undo
        self.present.append(pod)

    def pod_is_gone(self, task: TaskRef) -> None:
        self.gone.append(task)


class Site:
    """A server with one running pod, and an evictor."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server, self.learned = server, Learned()
        self.put("uid-p")
        recorder = Recorder(client, "volcano")
        self.resync = Resync(client, self.learned)
        events, conditions = PodEvents(recorder), PodConditions(client)
        self.evictor = Evictor(client, self.resync, conditions, events, scheduler_name="volcano")
        self.parts = (recorder.run, self.resync.run, self.evictor.run)

    def put(self, uid: str) -> None:
        pod = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": {"nodeName": "n1"}}
        self.server.put(kinds.PODS, {**pod, "status": {"phase": "Running"}})

    async def evict(self, evictions: Sequence[Evict] = (Evict(TASK, "preempt", "uid-j"),)) -> None:
        await self.evictor.submit(evictions)

    def pod_exists(self) -> bool:
        try:
            self.server.get(kinds.PODS, "p", "ns")
        except NotFound:
            return False
        return True


@asynccontextmanager
async def _site() -> AsyncIterator[Site]:
    async with FakeApiServer() as server, await server.client() as client:
        site = Site(server, client)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(part()) for part in site.parts]
            yield site
            for task in running:
                task.cancel()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with _site() as site:
        yield site


async def test_pod_is_deleted_and_both_objects_say_why(site: Site) -> None:
    held = site.server.faults.hold(verb="delete", kind=kinds.PODS)
    await site.evict()
    await eventually(lambda: held.hits == 1)
    conditions = {item["type"]: item for item in site.server.get(kinds.PODS, "p", "ns")["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["message"] == "Pod is evicted, because of preempt"
    assert conditions["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    assert conditions["DisruptionTarget"]["message"] == "volcano: preempting to accommodate a higher priority pod"
    held.release()
    await eventually(lambda: not site.pod_exists())
    await eventually(lambda: len(site.server.objects(kinds.EVENTS)) == 2)
    told = {event["involvedObject"]["kind"]: event for event in site.server.objects(kinds.EVENTS)}
    assert (told["PodGroup"]["type"], told["PodGroup"]["reason"], told["PodGroup"]["message"]) == (
        "Normal", "Evict", "preempt",
    )  # fmt: skip
    assert (told["Pod"]["type"], told["Pod"]["message"]) == ("Warning", "Pod is evicted, because of preempt")


async def test_conditions_that_cannot_be_written_do_not_save_the_pod(site: Site) -> None:
    site.server.faults.fail(403, verb="patch", kind=kinds.PODS, times=None)
    await site.evict()
    await eventually(lambda: not site.pod_exists())


async def test_refused_deletion_is_looked_into(site: Site) -> None:
    site.server.faults.fail(403, verb="delete", kind=kinds.PODS)
    await site.evict()
    await eventually(lambda: site.learned.present)
    assert site.learned.present[0].uid == "uid-p"
    assert site.pod_exists()


async def test_pod_that_is_gone_already_is_reported_gone(site: Site) -> None:
    site.server.remove(kinds.PODS, "p", "ns")
    await site.evict()
    await eventually(lambda: site.learned.gone)
    assert site.learned.gone == [TASK]


async def test_another_pod_of_the_same_name_is_left_alone(site: Site) -> None:
    site.server.remove(kinds.PODS, "p", "ns")
    site.put("uid-other")
    await site.evict()
    await eventually(lambda: site.learned.gone)
    assert site.server.get(kinds.PODS, "p", "ns")["metadata"]["uid"] == "uid-other"
    assert "conditions" not in site.server.get(kinds.PODS, "p", "ns")["status"]


async def test_truth_is_asked_for_until_the_server_answers(site: Site) -> None:
    site.server.remove(kinds.PODS, "p", "ns")
    fault = site.server.faults.fail(403, verb="get", kind=kinds.PODS, times=3)
    site.resync.enqueue(TASK)
    await eventually(lambda: site.learned.gone)
    assert fault.hits == 3
