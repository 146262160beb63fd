"""A job that no scheduler looks at is told so, after a while, and no longer than that is true."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.core import ObjectMeta, PodGroup, PodGroupCondition, PodGroupStatus, timestamp
from stromboli.controllers.job import attention
from stromboli.controllers.job.attention import GROUPS, PATIENCE, PATIENCE_WITH_ONE_AT_WORK
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.observed import Observed
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from tests.controllers.building import CREATED, JobBuilder, job, member
from tests.controllers.job.test_quiet import time_goes_on
from tests.controllers.stage import Stage

MADE = timestamp(CREATED)


def group(phase: str = "", *conditions: PodGroupCondition, created: str | None = CREATED) -> PodGroup:
    meta = ObjectMeta(name="job1-uid", namespace="default", creation_timestamp=created)
    return PodGroup(metadata=meta, status=PodGroupStatus(phase=phase, conditions=conditions))


def unheeded(index: int = 0, *, task: str = "worker", scheduler: str = "nobody", **fields: Any) -> Member:
    return member(task, index, "Pending", **{"scheduler": scheduler, "unheeded_since": MADE, **fields})


@dataclass(frozen=True, slots=True)
class Case:
    """What is seen, and what it leads to when ``after`` seconds have passed since everything was made."""

    after: float
    builder: JobBuilder = field(default_factory=lambda: job().task("worker", 2).spec(schedulerName="nobody"))
    group: PodGroup | None = field(default_factory=group)
    members: tuple[Member, ...] = ()
    seen: Mapping[str, float] = field(default_factory=dict)
    want: tuple[str, ...] = ()
    """Words of the complaint; none at all when there is to be no complaint."""
    again: float | None = None


TOUCHED = group("Inqueue")
ASKS = "asks for nobody (spec.schedulerName)"
POD = "pods that are pending, which ask for nobody (spec.schedulerName)"
OWN = {"spec": {"schedulerName": "other", "containers": [{"name": "main"}]}}

CASES: dict[str, Case] = {
    "a group that was just made": Case(1, again=PATIENCE - 1),
    "a group that nobody has touched": Case(PATIENCE, want=("PodGroup job1-uid", ASKS, "Start it, or submit")),
    "a group with a phase": Case(PATIENCE, group=group("Pending")),
    "a group with a condition": Case(PATIENCE, group=group("", PodGroupCondition(type="Unschedulable", status="True"))),
    "a group that is not known to be old": Case(PATIENCE, group=group(created=None)),
    "no group": Case(PATIENCE, group=None),
    "somebody has looked at other groups": Case(
        PATIENCE, seen={GROUPS: MADE + 40}, again=40 + PATIENCE_WITH_ONE_AT_WORK - PATIENCE
    ),
    "somebody has stopped looking at groups": Case(
        40 + PATIENCE_WITH_ONE_AT_WORK, seen={GROUPS: MADE + 40}, want=("PodGroup job1-uid",)
    ),
    "pods that were just made": Case(5, group=TOUCHED, members=(unheeded(),), again=PATIENCE - 5),
    "pods that nobody has touched": Case(
        PATIENCE, group=TOUCHED, members=(unheeded(0), unheeded(1)), want=(POD, "is one of that name running")
    ),
    "pods of which one was made later": Case(
        PATIENCE, group=TOUCHED, members=(unheeded(0, unheeded_since=MADE + 30), unheeded(1)), want=(POD,)
    ),
    "pods that somebody has looked at": Case(PATIENCE, group=TOUCHED, members=(unheeded(unheeded_since=None),)),
    "pods on their way out": Case(PATIENCE, group=TOUCHED, members=(unheeded(terminating=True),)),
    "a scheduler that was at work long before": Case(
        PATIENCE,
        group=TOUCHED,
        members=(unheeded(),),
        seen={"nobody": MADE - 1000},
        again=PATIENCE_WITH_ONE_AT_WORK - PATIENCE,
    ),
    "another scheduler at work": Case(
        PATIENCE, group=TOUCHED, members=(unheeded(),), seen={"volcano": MADE + 59}, want=(POD,)
    ),
    "a task with a scheduler of its own": Case(
        PATIENCE,
        job().task("chief", 1).task("worker", 1, template=OWN).spec(schedulerName="volcano"),
        TOUCHED,
        (unheeded(task="chief", scheduler="volcano", unheeded_since=None), unheeded(scheduler="other")),
        want=("other (spec.tasks[1].template.spec.schedulerName)",),
    ),
    "no name at all": Case(PATIENCE, job().task("worker", 1), want=("default-scheduler (spec.schedulerName)",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_told_and_when_to_look_again(case: Case) -> None:
    view = Observed(job=case.builder.model(), group=case.group, members=case.members, attention=case.seen)
    told = attention.complaint(view, MADE + case.after)
    assert bool(told) == bool(case.want), told
    for words in case.want:
        assert words in told
    assert attention.look_again_in(view, MADE + case.after) == case.again


def test_the_words_do_not_change_with_time_or_with_the_number_of_pods() -> None:
    view = Observed(job=CASES["no group"].builder.model(), group=TOUCHED, members=(unheeded(0), unheeded(1)))
    later = replace(view, members=(unheeded(1),))
    assert attention.complaint(view, MADE + 100) == attention.complaint(later, MADE + 5000) != ""


# -- on a stage --------------------------------------------------------------------------------------------------------


async def test_the_owner_is_told_once_and_relieved_when_a_scheduler_comes() -> None:
    clock = FakeClock(start=time.time())  # what the server writes as times of creation must make sense on it
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        await scene.run(lambda informers: JobController(client, informers, scene.events, scene.numbers, clock=clock))
        try:
            async with time_goes_on(clock, 0.5):
                scene.submit(job().task("worker", 1).spec(schedulerName="nobody"))
                await scene.until(lambda: reason(scene) == "NoScheduler", "a complaint about the group")
                assert "no scheduler has looked at PodGroup" in scene.status()["state"]["message"]
                await scene.admit()
                await scene.until(lambda: scene.pods())
                await scene.until(lambda: reason(scene) == "", "relief")
                await scene.until(lambda: reason(scene) == "NoScheduler", "a complaint about the pod")
                pod = scene.pods()["job1-worker-0"]
                pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
                server.put(kinds.PODS, pod)
                await scene.until(lambda: reason(scene) == "", "relief again")
        finally:
            await scene.stop()
        told = scene.events.messages("job1", "NoScheduler")
        assert len(told) == 2
        assert "nobody (spec.schedulerName)" in told[1]


def reason(scene: Stage) -> str:
    return str(scene.status().get("state", {}).get("reason", ""))


async def test_what_a_scheduler_does_to_others_counts_as_work_under_its_name() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        made: list[JobController] = []

        def make(informers: Any) -> JobController:
            made.append(JobController(client, informers, scene.events, scene.numbers, clock=clock))
            return made[0]

        bound = {"metadata": {"name": "a", "namespace": "x"}, "spec": {"schedulerName": "known", "nodeName": "n1"}}
        waits = {"metadata": {"name": "b", "namespace": "x"}, "spec": {"schedulerName": "late"}}
        server.put(kinds.PODS, bound)
        server.put(kinds.PODS, waits)
        await scene.run(make)
        try:
            seen = made[0]._attention.seen
            assert set(seen) == {"known"}
            server.put(kinds.PODS, {**waits, "spec": {**waits["spec"], "nodeName": "n1"}})
            server.put(kinds.POD_GROUPS, {"metadata": {"name": "g", "namespace": "x"}, "status": {"phase": "Inqueue"}})
            await scene.until(lambda: set(seen) == {"known", "late", GROUPS})
            for number in range(attention.MOST_NAMES):
                spec = {"schedulerName": f"s{number}", "nodeName": "n1"}
                server.put(kinds.PODS, {"metadata": {"name": f"p{number}", "namespace": "x"}, "spec": spec})
            await scene.until(lambda: f"s{attention.MOST_NAMES - 1}" in seen)
            assert len(seen) == attention.MOST_NAMES
        finally:
            await scene.stop()
