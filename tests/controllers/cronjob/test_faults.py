"""A CronJob's afternoon with something going wrong at every single write: the end is that of an undisturbed one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from stromboli.api import kinds
from stromboli.kube.controlling import Terminal
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Call, Disconnect, Failure, Fault
from tests.controllers.cronjob.stand import Stand, cron_job, stand

MOST_WRITES = 40
WRITES = ("create", "update", "patch", "delete")
TIMES = ("10:05", "10:07", "10:10", "10:12", "10:15")


class Refused(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class Unanswered(Disconnect):
    """Cuts the connection of one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused": lambda n: Refused(skip=n, code=500),
    "in conflict": lambda n: Refused(skip=n, code=409, reason="Conflict"),
    "carried out without an answer": lambda n: Unanswered(skip=n, executed=True),
    "lost without an answer": lambda n: Unanswered(skip=n),
}


async def passes(scene: Stand, time: str, *, replaced: bool) -> None:
    """Passes at one time until one succeeds; after a failure by a new process, if that is wanted."""
    for _ in range(5):
        try:
            await scene.at(time)
        except Terminal:
            raise
        except Exception:
            if replaced:
                scene.replace_controller()
        else:
            return
    raise AssertionError("it fails again and again")


def end_first(scene: Stand, ended: str) -> None:
    """Complete the oldest job that runs."""
    for job in scene.server.objects(kinds.JOBS):
        if (job.get("status") or {}).get("state", {}).get("phase") != "Completed":
            state = {"phase": "Completed", "lastTransitionTime": f"2025-03-11T{ended}:00Z"}
            scene.server.put(kinds.JOBS, {**job, "status": {"state": state}})
            return


async def afternoon(scene: Stand, *, replaced: bool) -> JsonObject:
    """Four starts; the first job ends in between. Answers what is left."""
    for time in TIMES:
        await passes(scene, time, replaced=replaced)
        if time == "10:07":
            end_first(scene, time)
    with suppress(KeyError):
        scene.status["active"].sort(key=lambda one: one["name"])
    found = scene.status
    return {
        "jobs": scene.jobs,
        "active": sorted(one["name"] for one in found.get("active", [])),
        "last": found.get("lastScheduleTime"),
        "successful": found.get("lastSuccessfulTime"),
    }


async def undisturbed(policy: str) -> JsonObject:
    async with stand(cron_job(concurrencyPolicy=policy)) as scene:
        return await afternoon(scene, replaced=False)


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
async def test_the_undisturbed_afternoon(policy: str) -> None:
    seen = await undisturbed(policy)
    want = {"Allow": (3, 2), "Forbid": (2, 1), "Replace": (2, 1)}[policy]
    assert (len(seen["jobs"]), len(seen["active"])) == want
    assert seen["successful"] == "2025-03-11T10:07:00Z"


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True], ids=["same process", "new process"])
@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
async def test_a_fault_at_any_write_changes_nothing_in_the_end(
    policy: str, make: Callable[[int], Fault], replaced: bool
) -> None:
    want = await undisturbed(policy)
    for n in range(MOST_WRITES):
        async with stand(cron_job(concurrencyPolicy=policy)) as scene:
            fault = make(n)
            scene.server.faults.add(fault)
            assert await afternoon(scene, replaced=replaced) == want, f"with the fault at write {n}"
        if not fault.hits:
            return
    raise AssertionError(f"more than {MOST_WRITES} writes in an afternoon")
