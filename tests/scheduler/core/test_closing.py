"""The end of a cycle: phases, conditions, pods, queues (spec 04 sections 29, 30 and 32)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pytest

from stromboli.api import core
from stromboli.scheduler.core import closing
from stromboli.scheduler.core.closing import PATIENCE_SECONDS
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Phase
from stromboli.scheduler.core.view import Condition
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, feed, policy, run_cycle, world

UNSCHEDULABLE = core.PodGroupCondition(type="Unschedulable", status="True", transition_id="session-1")
EARLIER = core.PodGroupCondition(type="Unschedulable", status="True", transition_id="session-0")


@dataclass(frozen=True)
class PhaseCase:
    phases: list[str]
    minimum: int
    was: str
    want: Phase
    conditions: tuple[core.PodGroupCondition, ...] = ()


PHASES = {
    "running pods while the gang is short in this cycle": PhaseCase(
        ["Running"], 3, "Running", Phase.UNKNOWN, (UNSCHEDULABLE,)
    ),
    "a shortage of an earlier cycle does not count": PhaseCase(["Running"], 1, "Running", Phase.RUNNING, (EARLIER,)),
    "enough pods with a node": PhaseCase(["Running", "Bound"], 2, "Inqueue", Phase.RUNNING),
    "finished pods count": PhaseCase(["Running", "Succeeded"], 2, "Running", Phase.RUNNING),
    "all of them finished": PhaseCase(["Succeeded", "Failed"], 2, "Running", Phase.COMPLETED),
    "nothing wanted and nothing there": PhaseCase([], 0, "Pending", Phase.COMPLETED),
    "admitted and waiting": PhaseCase(["Pending"], 1, "Inqueue", Phase.INQUEUE),
    "not admitted": PhaseCase(["Pending"], 1, "Pending", Phase.PENDING),
    "fallen below its minimum": PhaseCase(["Running"], 2, "Running", Phase.PENDING),
    "unknown without running pods": PhaseCase([], 1, "Unknown", Phase.PENDING),
}


def job_with(phases: list[str], minimum: int, was: str) -> Mirror:
    pods = []
    for index, phase in enumerate(phases):
        one = pod(f"p{index}").group("g").request(cpu=1)
        pods.append(one.build() if phase == "Pending" else one.on("n", {"Bound": "Pending"}.get(phase, phase)).build())
    return world(queue().build(), pod_group("g").members(minimum).phase(was).build(), pods)


@pytest.mark.parametrize("case", PHASES.values(), ids=PHASES.keys())
def test_phase(case: PhaseCase) -> None:
    job = job_with(case.phases, case.minimum, case.was).jobs["ns/g"]
    assert closing.phase_of(job, case.conditions, "session-1") == case.want


class TestConditions:
    def test_one_of_the_same_type_is_replaced_in_place(self) -> None:
        other = core.PodGroupCondition(type="Scheduled", status="True")
        merged = closing.merge_conditions([EARLIER, other], [Condition("Unschedulable", "why", "text")], "s2", NOW)
        assert [item.type for item in merged] == ["Unschedulable", "Scheduled"]
        assert merged[0].transition_id == "s2"
        assert merged[0].last_transition_time == "2026-01-02T00:00:00Z"
        assert (merged[0].reason, merged[0].message) == ("why", "text")

    def test_a_new_type_comes_last(self) -> None:
        merged = closing.merge_conditions([EARLIER], [Condition("Scheduled", "ok")], "s2", NOW)
        assert [item.type for item in merged] == ["Unschedulable", "Scheduled"]

    def test_time_and_session_alone_are_no_difference(self) -> None:
        one = core.PodGroupStatus(phase="Running", conditions=(UNSCHEDULABLE,))
        other = core.PodGroupStatus(phase="Running", conditions=(EARLIER,))
        assert closing.same_status(one, other)
        assert not closing.same_status(one, core.PodGroupStatus(phase="Running"))


class TestCycles:
    def test_counters_and_conditions_are_written_once(self) -> None:
        mirror = world(
            node("n1").offer(cpu=4).build(),
            queue().build(),
            pod_group("g").members(1).phase("Running").build(),
            pod("a").group("g").request(cpu=1).on("n1").build(),
            pod("b").group("g").request(cpu=1).on("n1", "Failed").build(),
        )
        (update,) = run_cycle(mirror, policy("gang")).pod_groups
        assert (update.status.phase, update.status.running, update.status.failed) == ("Running", 1, 1)
        assert [item.type for item in update.status.conditions] == ["Scheduled"]
        again = run_cycle(mirror, policy("gang"))
        assert again.pod_groups == []
        assert again.events == []
        assert mirror.unsettled == {}

    def test_a_job_that_waits_says_why_on_group_and_pods(self) -> None:
        mirror = world(
            node("n1").offer(cpu=1).build(),
            queue().build(),
            pod_group("g").members(2).build(),
            [pod(f"p-w-{index}").group("g").request(cpu=1).build() for index in range(2)],
        )
        result = run_cycle(mirror, policy("gang"))
        text = (
            "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, 1 Unschedulable. "
            "Origin reason is p-w-1: 0/1 nodes are unavailable: 1 Insufficient cpu."
        )
        assert [event.message for event in result.events] == [f"2/2 tasks in gang unschedulable: {text}"]
        (update,) = result.pod_groups
        assert update.status.conditions[0].message == f"1/2 tasks in gang unschedulable: {text}"
        assert {(told.task.name, told.reason, told.message) for told in result.pods} == {
            ("p-w-0", "Unschedulable", "Pod ns/p-w-0 can possibly be assigned to n1, once minAvailable is satisfied"),
            ("p-w-1", "Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu."),
        }
        (told,) = result.reports
        assert told.tasks == {"p-w-1": "0/1 nodes are unavailable: 1 Insufficient cpu."}

    def test_what_was_said_is_not_said_to_pods_again(self) -> None:
        mirror = world(
            node("n1").offer(cpu=1).build(),
            queue().build(),
            pod_group("g").members(1).build(),
            pod("p").group("g").request(cpu=2).build(),
        )
        assert len(run_cycle(mirror, policy("gang")).pods) == 1
        again = run_cycle(mirror, policy("gang"))
        assert again.pods == []
        assert again.events == []

    def test_gated_pods_are_told_nothing(self) -> None:
        mirror = world(queue().build(), pod_group("g").members(1).build(), pod("p").group("g").gated("wait").build())
        assert run_cycle(mirror, policy("gang")).pods == []


QUEUE_IN_USE = (
    queue("default").build(),
    pod_group("g").phase("Running").build(),
    pod("p").group("g").request(cpu=1).on("n").build(),
)


def _saying(allocated: Mapping[str, str]) -> core.Queue:
    """The queue as somebody has written it."""
    known = queue("default").build()
    return msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, allocated=dict(allocated)))


class TestQueues:
    def test_amounts_flow_up_to_the_root(self) -> None:
        mirror = world(
            queue("root").build(),
            queue("team").build(),
            queue("leaf").parent("team").build(),
            pod_group("g").queue("leaf").phase("Running").build(),
            pod("p").group("g").request(cpu=1, memory="1Gi", gpu=2).on("n").build(),
        )
        updates = {update.name: dict(update.allocated) for update in run_cycle(mirror, policy("gang")).queues}
        held = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2", "pods": "1"}
        assert updates == {"leaf": held, "team": held, "root": held}
        assert run_cycle(mirror, policy("gang")).queues == []

    def test_an_unknown_parent_is_skipped(self) -> None:
        mirror = world(queue("root").build(), queue("leaf").parent("lost").build())
        assert {update.name for update in run_cycle(mirror, policy("gang")).queues} == {"root", "leaf"}

    def test_parents_in_a_circle_end(self) -> None:
        mirror = world(queue("root").build(), queue("a").parent("b").build(), queue("b").parent("a").build())
        assert len(run_cycle(mirror, policy("gang")).queues) == 3

    def test_another_schedulers_word_is_not_answered_at_once(self) -> None:
        mirror = world(*QUEUE_IN_USE)
        run_cycle(mirror, policy("gang"))
        feed(mirror, _saying({"cpu": "7", "memory": "0"}))
        spoken = [at for at in range(30) if run_cycle(mirror, policy("gang"), now=NOW + at).queues]
        assert spoken == [PATIENCE_SECONDS]

    def test_two_schedulers_that_hear_of_binds_at_different_times_do_not_correct_each_other(self) -> None:
        """Both count all bound pods: who has not heard of a bind yet hears of it later."""
        first, second = world(*QUEUE_IN_USE), world(*QUEUE_IN_USE)
        writes = 0
        for at in range(20):
            if at == 5:
                feed(first, pod("q").group("g").request(cpu=2).on("n").build())
            if at == 9:
                feed(second, pod("q").group("g").request(cpu=2).on("n").build())
            for speaker, listener in ((first, second), (second, first)):
                for update in run_cycle(speaker, policy("gang"), now=NOW + at).queues:
                    feed(listener, _saying(update.allocated))
                    writes += 1
        assert writes == 2, "the pod at the beginning, and the one bound later"

    def test_what_changes_here_is_said_at_once_whoever_spoke_last(self) -> None:
        mirror = world(*QUEUE_IN_USE)
        run_cycle(mirror, policy("gang"))
        feed(mirror, _saying({"cpu": "7", "memory": "0"}))
        assert run_cycle(mirror, policy("gang"), now=NOW + 1).queues == []
        feed(mirror, pod("q").group("g").request(cpu=2).on("n").build())
        (update,) = run_cycle(mirror, policy("gang"), now=NOW + 2).queues
        assert update.allocated["cpu"] == "3"

    def test_of_those_that_share_a_cluster_one_speaks_for_a_queue(self) -> None:
        speaker, other, silent = world(*QUEUE_IN_USE), world(*QUEUE_IN_USE), lambda name: False
        written: list[tuple[int, str]] = []
        for at in range(60):
            if at % 4 == 0:
                for mirror in (speaker, other):
                    feed(mirror, pod(f"q-{at}").group("g").request(cpu=1).on("n").build())
            assert run_cycle(other, policy("gang"), now=NOW + at, speaks_for=silent).queues == []
            for update in run_cycle(speaker, policy("gang"), now=NOW + at).queues:
                written.append((at, update.allocated["cpu"]))
                for mirror in (speaker, other):
                    feed(mirror, _saying(update.allocated))
        assert written == [(at, str(2 + at // 4)) for at in range(0, 60, 4)], "each change once, and nothing else"

    def test_others_speak_for_a_queue_when_its_speaker_has_said_nothing_for_long(self) -> None:
        mirror, silent = world(*QUEUE_IN_USE), lambda name: False
        feed(mirror, _saying({"cpu": "7", "memory": "0"}))
        spoken = []
        for at in range(40):
            feed(mirror, pod(f"q-{at}").group("g").request(cpu=1).on("n").build())
            if run_cycle(mirror, policy("gang"), now=NOW + at, speaks_for=silent).queues:
                spoken.append(at)
        assert spoken == [PATIENCE_SECONDS, 2 * PATIENCE_SECONDS + 1]

    def test_what_could_not_be_written_is_said_again(self) -> None:
        mirror = world(*QUEUE_IN_USE)
        run_cycle(mirror, policy("gang"))
        feed(mirror, queue("default").build())
        mirror.unwritten(core.Queue, "default")
        assert [update.name for update in run_cycle(mirror, policy("gang"), now=NOW + 1).queues] == ["default"]

    def test_what_only_waits_is_not_allocated(self) -> None:
        mirror = world(
            node("n1").offer(cpu=1).build(),
            queue().build(),
            pod("leaving").request(cpu=1).on("n1").deleting().build(),
            pod_group("g").members(1).build(),
            pod("p").group("g").request(cpu=1).build(),
        )
        (update,) = run_cycle(mirror, policy("gang")).queues
        assert update.allocated == {"cpu": "0", "memory": "0"}
