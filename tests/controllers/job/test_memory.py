"""What a controller remembers between passes: reports, own writes, pods that the cache does not show yet."""

from __future__ import annotations

import pytest

from stromboli.api import kinds
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job.inbox import MOST_PER_JOB, Inbox
from stromboli.controllers.job.ledger import Created, Ledger
from stromboli.controllers.job.observing import Observer
from stromboli.controllers.job.policies import Occurrence
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from tests.controllers.building import UID, job, member
from tests.controllers.stage import stage

KEY = ("default", "job1")


def report(number: int) -> Occurrence:
    return Occurrence(event="PodEvicted", pod=f"p{number}")


def test_a_report_waits_until_it_is_settled() -> None:
    inbox = Inbox()
    for number in (1, 2, 1):
        inbox.report(KEY, report(number))
    seen = inbox.waiting(KEY)
    assert seen == (report(1), report(2))
    inbox.report(KEY, report(3))
    inbox.settle(KEY, seen, remembered=[report(2)])
    assert inbox.waiting(KEY) == (report(2), report(3))
    inbox.forget(KEY)
    assert inbox.waiting(KEY) == ()


def test_reports_do_not_fill_the_memory() -> None:
    inbox = Inbox()
    for number in range(MOST_PER_JOB + 5):
        inbox.report(KEY, report(number))
    assert len(inbox.waiting(KEY)) == MOST_PER_JOB
    assert inbox.waiting(KEY)[0] == report(5)


def at_version(version: int) -> JsonObject:
    return {"metadata": {"name": "job1", "uid": UID, "resourceVersion": str(version)}}


def test_the_newer_of_cache_and_own_write_counts() -> None:
    ledger = Ledger()
    assert ledger.freshest(at_version(3)) == at_version(3)
    ledger.of(UID).wrote(at_version(10))
    assert ledger.freshest(at_version(9)) == at_version(10)
    assert ledger.freshest(at_version(11)) == at_version(11)


@pytest.mark.parametrize("shown_first", [True, False])
def test_an_own_write_is_forgotten_once_the_cache_shows_it_whichever_comes_first(shown_first: bool) -> None:
    ledger = Ledger()
    memory = ledger.of(UID)
    if shown_first:
        ledger.show(at_version(10))
        memory.wrote(at_version(10))
    else:
        memory.wrote(at_version(10))
        ledger.show(at_version(9))
        assert memory.written == at_version(10)
        ledger.show(at_version(10))
    assert memory.written is None


def test_what_the_cache_shows_of_unknown_jobs_is_not_remembered() -> None:
    ledger = Ledger()
    ledger.show(at_version(1))
    assert len(ledger) == 0
    ledger.forget(UID)
    assert len(ledger) == 0


async def test_a_created_pod_is_believed_in_for_a_while() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        model = job().task("worker", 1).model()
        observer, memory = Observer(SharedInformers(client)), Ledger().of(UID)
        memory.created["job1-worker-0"] = Created(member("worker", 0, uid="new"), until=100.0)
        assert [one.uid for one in observer.observe(model, memory, 99.0).members] == ["new"]
        assert observer.observe(model, memory, 100.0).members == ()
        assert memory.created == {}


async def test_a_group_of_the_old_name_counts_if_it_is_the_jobs() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: scene.group())
        await scene.stop()
        uid = json.uid_of(scene.job())
        scene.server.remove(kinds.POD_GROUPS, f"job1-{uid}", "default")
        owner = {"apiVersion": kinds.JOBS.api_version, "kind": "Job", "name": "job1", "uid": uid, "controller": True}
        meta = {"name": "job1", "namespace": "default", "ownerReferences": [owner]}
        legacy = {"metadata": meta, "spec": {"minMember": 1}, "status": {"phase": "Inqueue"}}
        scene.server.put(kinds.POD_GROUPS, legacy)
        await scene.start()
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")
        assert scene.names_of(kinds.POD_GROUPS) == ["job1"]


async def test_a_name_that_somebody_else_has_taken_is_reported() -> None:
    async with stage(max_requeue=-1) as scene:
        scene.server.put(kinds.PODS, {"metadata": {"name": "job1-worker-0", "namespace": "default", "annotations": {}}})
        scene.submit(job().task("worker", 1))
        await scene.admit()
        await scene.until(lambda: "FailedCreate" in scene.events.reasons("job1"))
        await scene.until(lambda: "job1-worker-0" in scene.status().get("state", {}).get("message", ""))
        scene.server.remove(kinds.PODS, "job1-worker-0", "default")
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")


async def test_a_creation_whose_answer_is_lost_makes_no_second_pod() -> None:
    async with stage() as scene:
        scene.server.faults.disconnect(verb="create", kind=kinds.PODS, executed=True)
        scene.submit(job().task("worker", 1))
        await scene.admit()
        await scene.run_pods(1)
        await scene.until(lambda: scene.phase() == "Running")
        assert len(scene.pods()) == 1
