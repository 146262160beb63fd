"""Time to live of finished jobs: spec 03 section 9, spec 02 section 20."""

from __future__ import annotations

import pytest

from stromboli.api import kinds
from stromboli.api.core import timestamp
from stromboli.controllers.garbagecollector.controller import GarbageCollector
from stromboli.controllers.garbagecollector.expiry import NoFinishTime, expires_at, is_candidate
from stromboli.controllers.informers import SharedInformers
from stromboli.kube.informers import identity_of
from stromboli.testing.clocks import FakeClock
from tests.controllers.building import CREATED, JobBuilder, job
from tests.controllers.stage import stage


def finished(ttl: int | None = 3, phase: str = "Completed") -> JobBuilder:
    return job().task("t", 1).spec(ttlSecondsAfterFinished=ttl).phase(phase)


@pytest.mark.parametrize(
    ("phase", "want"),
    [
        ("Completed", True),
        ("Failed", True),
        ("Terminated", True),
        ("Aborted", True),
        ("Aborting", False),
        ("Running", False),
        ("", False),
    ],
)
def test_which_phases_are_collected(phase: str, want: bool) -> None:
    assert is_candidate(finished(phase=phase).model()) is want


def test_without_a_time_to_live_or_being_deleted_a_job_is_left_alone() -> None:
    assert not is_candidate(finished(None).model())
    assert not is_candidate(finished().meta(deletionTimestamp=CREATED).model())


@pytest.mark.parametrize("ttl", [0, 3])
def test_the_time_counts_from_the_last_transition(ttl: int) -> None:
    assert expires_at(finished(ttl).model()) == timestamp(CREATED) + ttl


def test_what_cannot_be_computed() -> None:
    with pytest.raises(ValueError, match="job default/job1 should not be cleaned up"):
        expires_at(finished(phase="").model())
    with pytest.raises(NoFinishTime, match="unable to find the time when the Job default/job1 finished"):
        expires_at(finished().phase("Completed", since="").model())


async def test_an_expired_job_is_deleted_and_the_others_stay() -> None:
    clock = FakeClock(start=timestamp(CREATED))
    async with stage(start=False) as scene:
        scene.submit(finished(5, "Aborted"))
        other = finished(3600)
        other.meta(name="other")
        scene.submit(other)
        await scene.run(lambda informers: GarbageCollector(scene.client, informers, clock=clock))
        await scene.until(lambda: clock.sleepers > 0)
        await clock.advance(4)
        assert scene.server.count("delete") == 0
        await clock.advance(2)
        await scene.until(lambda: [one["metadata"]["name"] for one in scene.server.objects(kinds.JOBS)] == ["other"])


async def test_the_live_object_decides() -> None:
    """The cache says expired; meanwhile the owner has taken the time to live away."""
    clock = FakeClock(start=timestamp(CREATED) + 60)
    async with stage(start=False) as scene:
        scene.submit(finished(None))
        informers = SharedInformers(scene.client)
        collector = GarbageCollector(scene.client, informers, clock=clock)
        stale = finished(5).obj()
        informers.plain(kinds.JOBS).store.put(identity_of(stale), stale)
        assert await collector.reconcile(("default", "job1")) is None
        assert (scene.server.count("get", kinds.JOBS), scene.server.count("delete")) == (1, 0)
