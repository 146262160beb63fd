"""Single passes over a CronJob: the cases of spec 03 section 7.7."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from stromboli.api import kinds, names
from stromboli.kube.controlling import Terminal
from stromboli.kube.errors import Forbidden, ServerError
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Failure
from tests.controllers.cronjob.stand import KEY, active, child, cron_job, seconds, stand

M, H = 60.0, 3600.0


def name_at(time: str) -> str:
    return f"cj-{int(seconds(time)) // 60}"


class Case(NamedTuple):
    cron_job: JsonObject
    now: str
    started: str = ""
    wait: float | None = None
    reasons: tuple[str, ...] = ()
    others: tuple[JsonObject, ...] = ()
    left: tuple[str, ...] | None = None
    status: dict[str, Any] = {}


def last(time: str, *running: str) -> JsonObject:
    return {"lastScheduleTime": f"2025-03-11T{time}:00Z", "active": active(*running)}


HONOLULU: dict[str, Any] = {"timeZone": "Pacific/Honolulu"}
MADE = ("SuccessfulCreate",)
RUNNING = (child(name_at("10:05")),)
OLD = name_at("10:05")

CASES: dict[str, Case] = {
    "not yet": Case(cron_job(), "10:03", wait=2 * M),
    "on time": Case(cron_job(), "10:05", "10:05", 5 * M, MADE),
    "on time with a deadline": Case(cron_job(startingDeadlineSeconds=60), "10:05", "10:05", 5 * M, MADE),
    "late": Case(cron_job(), "10:07", "10:05", 3 * M, MADE),
    "late within the deadline": Case(cron_job(startingDeadlineSeconds=180), "10:07", "10:05", 3 * M, MADE),
    "too late": Case(cron_job(startingDeadlineSeconds=60), "10:07", wait=3 * M),
    "120 missed": Case(cron_job(), "20:00", "20:00", 5 * M, ("TooManyMissedTimes", *MADE)),
    "a day of minutes missed": Case(
        cron_job("* * * * *", startingDeadlineSeconds=60060), "12T10:00", "12T10:00", M, ("TooManyMissedTimes", *MADE)
    ),
    "ten in Honolulu is far": Case(cron_job("0 10 * * *", **HONOLULU), "10:00", wait=10 * H),
    "ten in Honolulu": Case(cron_job("0 10 * * *", **HONOLULU), "20:00", "20:00", 24 * H, MADE),
    "zone in the schedule": Case(
        cron_job("TZ=UTC 0 20 * * *", **HONOLULU), "20:00", "20:00", 24 * H, ("UnsupportedSchedule", *MADE)
    ),
    "suspended": Case(cron_job(suspend=True), "10:05"),
    "every hour, not yet": Case(cron_job("@every 1h"), "10:05", wait=55 * M),
    "every hour": Case(cron_job("@every 1h"), "11:00", "11:00", H, MADE),
    "every hour, too late": Case(cron_job("@every 1h", startingDeadlineSeconds=60), "11:30", wait=30 * M),
    "every hour, late": Case(cron_job("@every 1h", startingDeadlineSeconds=60060), "11:30", "11:00", 30 * M, MADE),
    "a reference to nothing": Case(
        cron_job(status={"active": active("lost")}), "10:05", "10:05", 5 * M, ("StaleReference", *MADE)
    ),
    "a job that ended": Case(
        cron_job(status={"active": active("done")}),
        "10:03",
        wait=2 * M,
        reasons=("SawCompletedJob",),
        others=(child("done", "Completed", ended="2025-03-11T10:02:00Z"),),
        left=("done",),
        status={"lastSuccessfulTime": "2025-03-11T10:02:00Z"},
    ),
    "suspended, a job that ended": Case(
        cron_job(suspend=True, status={"active": active("done")}),
        "10:03",
        reasons=("SawCompletedJob",),
        others=(child("done", "Completed", ended="2025-03-11T10:02:00Z"),),
        left=("done",),
        status={"lastSuccessfulTime": "2025-03-11T10:02:00Z"},
    ),
    "a failed job": Case(
        cron_job(), "10:03", wait=2 * M, others=(child("bad", "Failed", ended=""),), left=("bad",), status={}
    ),
    "allowed beside another": Case(
        cron_job(status=last("10:05", OLD)), "10:10", "10:10", 5 * M, MADE, RUNNING, left=(OLD, name_at("10:10"))
    ),
    "forbidden beside another": Case(
        cron_job(status=last("10:05", OLD), concurrencyPolicy="Forbid"),
        "10:10",
        wait=5 * M,
        reasons=("ForbidConcurrent",),
        others=RUNNING,
        left=(OLD,),
        status=last("10:05", OLD),
    ),
    "in the place of another": Case(
        cron_job(status=last("10:05", OLD), concurrencyPolicy="Replace"),
        "10:10",
        "10:10",
        5 * M,
        ("ReplaceConcurrent", "SuccessfulDelete", *MADE),
        RUNNING,
    ),
    "no history wanted": Case(
        cron_job(successfulJobsHistoryLimit=0),
        "10:03",
        wait=2 * M,
        reasons=("SuccessfulDelete",),
        others=(child("done", "Completed"),),
        left=(),
    ),
    "enough history": Case(
        cron_job(successfulJobsHistoryLimit=5),
        "10:03",
        wait=2 * M,
        others=tuple(child(f"done{n}", "Completed") for n in range(4)),
        left=("done0", "done1", "done2", "done3"),
    ),
    "the oldest go first": Case(
        cron_job(successfulJobsHistoryLimit=1),
        "10:03",
        wait=2 * M,
        reasons=("SuccessfulDelete", "SuccessfulDelete"),
        others=(
            child("b", "Completed", creationTimestamp="2025-03-11T09:02:00Z"),
            child("a", "Completed", creationTimestamp="2025-03-11T09:01:00Z"),
            child("c", "Completed", creationTimestamp="2025-03-11T09:03:00Z"),
        ),
        left=("c",),
    ),
    "terminated jobs are kept": Case(
        cron_job(failedJobsHistoryLimit=0, successfulJobsHistoryLimit=0),
        "10:03",
        wait=2 * M,
        others=(child("t", "Terminated"),),
        left=("t",),
    ),
    "weekly, three days ago, controller comes back": Case(
        cron_job("0 12 * * 0", status=last("10:00"), concurrencyPolicy="Forbid"), "14T10:00", wait=50 * H
    ),
    "a clock that went back": Case(cron_job(status=last("20:00")), "10:05", wait=10 * H),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_pass(case: Case) -> None:
    async with stand(case.cron_job, *case.others) as scene:
        assert await scene.at(case.now) == case.wait
        made = [name_at(case.started)] if case.started else []
        assert scene.jobs == (list(case.left) if case.left is not None else made)
        assert scene.reasons == list(case.reasons)
        if case.started:
            assert seconds(scene.status["lastScheduleTime"]) == seconds(case.started)
            assert made[0] in [one["name"] for one in scene.status["active"]]
        else:
            before = case.cron_job["status"]
            untouched = {key: before[key] for key in before if key != "active" or "SawCompletedJob" not in case.reasons}
            assert scene.status == {**untouched, **case.status}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_second_pass_at_the_same_time_writes_nothing(case: Case) -> None:
    async with stand(case.cron_job, *case.others) as scene:
        await scene.at(case.now)
        before = scene.writes()
        await scene.at(case.now)
        assert scene.writes() == before


async def test_what_a_job_looks_like() -> None:
    async with stand(cron_job(**HONOLULU)) as scene:
        await scene.at("10:05")
        job = scene.server.get(kinds.JOBS, name_at("10:05"), "default")
        meta = job["metadata"]
        assert name_at("10:05") == "cj-29028125"
        assert meta["labels"] == {"app": "x"}
        assert meta["annotations"] == {"note": "y", names.CRON_JOB_SCHEDULED_TIMESTAMP: "2025-03-11T00:05:00-10:00"}
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "CronJob",
                "name": "cj",
                "uid": "cj-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert "finalizers" not in meta
        assert job["spec"] == cron_job()["spec"]["jobTemplate"]["spec"]


async def test_without_the_gate_no_time_is_noted_and_without_a_zone_it_is_utc() -> None:
    async with stand(cron_job(), note_times=False) as scene:
        await scene.at("10:05")
        assert scene.server.get(kinds.JOBS, name_at("10:05"), "default")["metadata"]["annotations"] == {"note": "y"}
    async with stand(cron_job()) as scene:
        await scene.at("10:05")
        notes = scene.server.get(kinds.JOBS, name_at("10:05"), "default")["metadata"]["annotations"]
        assert notes[names.CRON_JOB_SCHEDULED_TIMESTAMP] == "2025-03-11T10:05:00Z"


UNUSABLE = {
    "words": (cron_job("wrong format schedule"), ()),
    "zone": (cron_job(timeZone="error TZ"), ("InvalidTimeZone",)),
    "a zone and nothing else": (cron_job("TZ=UTC"), ()),
    "an unknown zone in the schedule": (cron_job("TZ=No/Where * * * * *"), ()),
    "never": (cron_job("59 23 31 2 *"), ("InvalidSchedule",)),
    "no number": (cron_job(startingDeadlineSeconds="soon"), ()),
}


@pytest.mark.parametrize(("given", "reasons"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_what_makes_no_sense_is_told_and_not_tried_for_ever(given: JsonObject, reasons: tuple[str, ...]) -> None:
    """Defect 17 among them: ``TZ=...`` without a blank."""
    async with stand(given) as scene:
        with pytest.raises(Terminal):
            await scene.at("11:00")
        assert (scene.jobs, scene.reasons) == ([], list(reasons))


async def test_jobs_that_ended_are_accounted_for_although_the_zone_makes_no_sense() -> None:
    given = cron_job(timeZone="error TZ", status={"active": active("done")})
    async with stand(given, child("done", "Completed", ended="2025-03-11T10:02:00Z")) as scene:
        with pytest.raises(Terminal):
            await scene.at("10:03")
        assert scene.status == {"lastSuccessfulTime": "2025-03-11T10:02:00Z"}


# -- what the server says to a new job -------------------------------------------------------------------------------


async def test_a_job_of_that_name_that_somebody_else_owns() -> None:
    async with stand(cron_job(), child(name_at("10:05"), owner="")) as scene:
        assert await scene.at("10:05") == 5 * M
        assert (scene.reasons, scene.status) == (["ForeignJob"], {})


async def test_a_job_of_an_earlier_cron_job_of_that_name_is_somebody_elses() -> None:
    async with stand(cron_job(), child(name_at("10:05"), owner="earlier-uid")) as scene:
        await scene.at("10:05")
        assert scene.reasons == ["ForeignJob"]


async def test_a_namespace_that_goes() -> None:
    async with stand(cron_job()) as scene:
        refusal = Failure(verb="create", kind=kinds.JOBS, code=403, reason="Forbidden")
        scene.server.faults.add(refusal)
        with pytest.raises(Forbidden):
            await scene.at("10:05")
        assert scene.reasons == ["FailedCreate"]


async def test_a_job_that_cannot_be_made_is_told_and_made_later() -> None:
    async with stand(cron_job()) as scene:
        scene.server.faults.fail(500, verb="create", kind=kinds.JOBS)
        with pytest.raises(ServerError):
            await scene.at("10:05")
        assert await scene.at("10:06") == 4 * M
        assert (scene.reasons, scene.jobs) == (["FailedCreate", *MADE], [name_at("10:05")])


async def test_replacing_stops_when_the_running_job_cannot_be_read() -> None:
    given = cron_job(status=last("10:05", OLD), concurrencyPolicy="Replace")
    async with stand(given, *RUNNING) as scene:
        scene.server.faults.fail(500, verb="get", kind=kinds.JOBS, times=None)
        with pytest.raises(ServerError):
            await scene.at("10:10")
        assert scene.reasons == ["ReplaceConcurrent", "FailedGet"]
        assert (scene.jobs, scene.status) == ([OLD], given["status"])


async def test_replacing_ends_every_active_job_once() -> None:
    """Defect 16 of spec 03 section 13: with three the list was walked while it shrank."""
    others = [child(f"old{number}") for number in range(4)]
    given = cron_job(status=last("10:05", "old0", "old1", "old2", "old3", "gone"), concurrencyPolicy="Replace")
    async with stand(given, *others) as scene:
        await scene.at("10:10")
        assert scene.jobs == [name_at("10:10")]
        assert [one.name for one in scene.server.called("delete", kinds.JOBS)] == ["old0", "old1", "old2", "old3"]
        assert [one["name"] for one in scene.status["active"]] == [name_at("10:10")]


# -- what must not get lost ------------------------------------------------------------------------------------------


async def test_a_status_that_was_not_written_is_written_in_the_end_and_nothing_starts_twice() -> None:
    """Defect 16 of spec 03 section 13: a failed write of the status was swallowed."""
    async with stand(cron_job()) as scene:
        scene.server.faults.fail(409, verb="patch", kind=kinds.CRON_JOBS, reason="Conflict")
        with pytest.raises(Exception, match="409"):
            await scene.at("10:05")
        assert scene.status == {}
        await scene.at("10:06")
        assert scene.jobs == [name_at("10:05")]
        assert [one["name"] for one in scene.status["active"]] == [name_at("10:05")]
        assert scene.status["lastScheduleTime"] == "2025-03-11T10:05:00Z"
        assert "OrphanedJob" not in scene.reasons


async def test_a_start_whose_record_was_lost_still_counts_for_concurrency() -> None:
    given = cron_job(concurrencyPolicy="Forbid", status=last("10:00"))
    async with stand(given, child(name_at("10:05"))) as scene:
        await scene.at("10:10")
        assert scene.jobs == [name_at("10:05")]
        assert scene.status["lastScheduleTime"] == "2025-03-11T10:05:00Z"
        assert scene.reasons == ["ForbidConcurrent"]


async def test_a_running_job_on_no_record_is_reported_and_left_alone() -> None:
    async with stand(cron_job(), child("by-hand")) as scene:
        await scene.at("10:03")
        assert (scene.reasons, scene.status, scene.jobs) == (["OrphanedJob"], {}, ["by-hand"])


async def test_an_orphan_that_another_pass_has_recorded_is_none_and_changes_go_to_the_fresh_copy() -> None:
    """Defect 16 of spec 03 section 13: what was found after reading again got lost."""
    async with stand(cron_job(status={"active": active("done")}), child("new"), child("done", "Completed")) as scene:
        stale = scene.server.get(kinds.CRON_JOBS, "cj", "default")
        await scene.caught_up()
        scene.server.put(kinds.CRON_JOBS, {**stale, "status": {"active": active("done", "new")}})
        scene.behind(stale)
        await scene.controller.reconcile(KEY)
        assert scene.reasons == ["SawCompletedJob"]
        assert scene.status["active"] == active("new")


async def test_a_job_that_the_cache_does_not_show_yet_is_not_stale() -> None:
    async with stand(cron_job(status={**last("10:05", OLD)})) as scene:
        await scene.caught_up()
        scene.clock.jump(seconds("10:06") - scene.clock.time())
        scene.server.put(kinds.JOBS, child(OLD))
        await scene.controller.reconcile(KEY)
        assert "StaleReference" not in scene.reasons
        assert scene.status["active"] == active(OLD)


async def test_a_reference_to_another_job_of_that_name() -> None:
    given = cron_job(status={"active": active("twin")})
    async with stand(given, child("twin", owner="", uid="another")) as scene:
        await scene.at("10:03")
        assert scene.reasons == ["StaleReference"]
        assert "expected: uid-twin, actual: another" in scene.events.messages("cj", "StaleReference")[0]


# -- while it runs -----------------------------------------------------------------------------------------------------


async def test_a_new_schedule_holds_from_now_on() -> None:
    """Starts that it would have had are not made up for, whatever else makes the controller look."""
    async with stand(cron_job("0 0 1 1 *")) as scene:
        assert await scene.at("10:12") == pytest.approx(seconds("2026-01-01T00:00:00Z") - seconds("10:12"))
        scene.server.put(kinds.CRON_JOBS, cron_job("*/5 * * * *"))
        assert await scene.at("10:12") == 3 * M
        assert scene.jobs == []
        await scene.at("10:15")
        assert scene.jobs == [name_at("10:15")]


async def test_a_new_schedule_that_makes_no_sense_is_told() -> None:
    async with stand(cron_job()) as scene:
        await scene.at("10:03")
        scene.server.put(kinds.CRON_JOBS, cron_job("", timeZone="Europe/Berlin"))
        await scene.caught_up()
        assert scene.events.messages("cj", "UnParseableCronJobSchedule") == ["unparseable schedule for cronjob: "]


async def test_a_cron_job_that_is_going_starts_nothing() -> None:
    given = cron_job()
    given["metadata"]["deletionTimestamp"] = "2025-03-11T10:04:00Z"
    async with stand(given) as scene:
        assert await scene.at("10:05") is None
        assert scene.jobs == []


async def test_every_missed_start_of_a_night_is_one_start_in_the_morning() -> None:
    """P28: a controller that was away makes up for one start at most."""
    async with stand(cron_job("*/30 * * * *", status=last("10:00"))) as scene:
        await scene.at("12T08:10")
        await scene.at("12T08:11")
        assert scene.jobs == [name_at("12T08:00")]


async def test_a_day_with_23_hours_and_one_with_25() -> None:
    given = cron_job("30 2 * * *", timeZone="Europe/Berlin")
    given["metadata"]["creationTimestamp"] = "2025-03-29T12:00:00Z"
    async with stand(given) as scene:
        assert await scene.at("2025-03-30T05:00:00Z") == 19 * H + 30 * M, "02:30 does not exist that day"
        assert scene.jobs == []
    given["metadata"]["creationTimestamp"] = "2025-10-25T12:00:00Z"
    async with stand(given) as scene:
        await scene.at("2025-10-26T00:30:00Z")
        await scene.at("2025-10-26T01:30:00Z")
        assert len(scene.jobs) == 2, "02:30 comes twice that day"
