"""Which occurrences a job's state shows, and delayed actions: spec 02 sections 3.2 and 8."""

from __future__ import annotations

from dataclasses import replace

from stromboli.api.phases import JobAction as Action
from stromboli.controllers.job.deciding import decide, present
from stromboli.controllers.job.policies import Occurrence
from tests.controllers.building import UID, job, member
from tests.controllers.job.test_planning import NOW, running, view


def shown(builder: object, *members: object, group: str | None = "Running") -> list[tuple[str, str]]:
    seen = view(builder, *members, group=group)  # type: ignore[arg-type]
    return [(str(one.event), one.pod) for one in present(seen)]


def test_states_and_the_occurrences_they_show() -> None:
    two = running(2)
    assert shown(two, member("worker", 0, "Failed"), member("worker", 1)) == [("PodFailed", "job1-worker-0")]
    assert shown(two, member("worker", 0, "Pending")) == [("PodPending", "job1-worker-0")]
    assert shown(two, member("worker", 0, "Failed", marked=True)) == []
    assert shown(two, member("worker", 0), group="Unknown") == [("Unknown", "")]


def test_a_task_is_complete_when_all_its_replicas_have_succeeded() -> None:
    one, other = (member("worker", index, "Succeeded") for index in (0, 1))
    assert shown(running(2), one) == []
    assert [event for event, _ in shown(running(2), one, other)] == ["TaskCompleted"]
    recorded = running(2).status(controlledResources={"succeeded-worker": "1"})
    assert [event for event, _ in shown(recorded, one)] == ["TaskCompleted"]
    assert shown(running(0)) == []


def test_a_task_fails_by_the_restarts_of_its_live_pods() -> None:
    assert shown(running(2, maxRetry=3), member("worker", 0, restarts=4)) == [("TaskFailed", "job1-worker-0")]
    assert shown(running(2, maxRetry=3), member("worker", 0, restarts=1), member("worker", 1, restarts=2)) == [
        ("TaskFailed", "job1-worker-1")
    ]
    assert shown(running(2, maxRetry=5), member("worker", 0, restarts=4)) == []
    assert shown(running(2), member("worker", 0, restarts=3)) == [("TaskFailed", "job1-worker-0")]
    assert [event for event, _ in shown(running(2), member("worker", 0, "Failed", restarts=9))] == ["PodFailed"]


def test_a_delayed_action_waits_is_announced_once_and_comes_due() -> None:
    seen = view(running(1).policy("PodPending", "RestartPod", timeout="10s"), member("worker", 0, "Pending"))
    first = decide(seen, NOW)
    assert (first.action, first.announced, first.again_at) == (Action.SYNC_JOB, (("RestartPod", 10.0),), NOW + 10)
    waiting = replace(seen, timers=first.timers)
    second = decide(waiting, NOW + 9.9)
    assert (second.action, second.announced, second.timers) == (Action.SYNC_JOB, (), first.timers)
    due = decide(waiting, NOW + 10)
    assert (due.action, due.target.pod, due.timers) == (Action.RESTART_POD, "job1-worker-0", {})


def test_a_delay_ends_with_its_condition() -> None:
    builder = running(1).policy("PodPending", "RestartPod", timeout="10s")
    armed = decide(view(builder, member("worker", 0, "Pending")), NOW).timers
    assert decide(view(builder, member("worker", 0), timers=armed), NOW + 20).timers == {}


def test_a_new_pod_of_the_name_has_a_delay_of_its_own() -> None:
    builder = running(1).policy("PodPending", "RestartPod", timeout="10s")
    armed = decide(view(builder, member("worker", 0, "Pending")), NOW).timers
    replaced = view(builder, member("worker", 0, "Pending", uid="another"), timers=armed)
    assert decide(replaced, NOW + 10).again_at == NOW + 20


def eviction(**fields: object) -> Occurrence:
    known: dict[str, object] = {
        "job_uid": UID,
        "task": "worker",
        "pod": "job1-worker-0",
        "pod_uid": "old",
        "version": 0,
    }
    return Occurrence(event="PodEvicted", **{**known, **fields})  # type: ignore[arg-type]


def test_a_delayed_eviction_is_remembered_until_the_pod_runs_again() -> None:
    builder = running(1).policy("PodEvicted", "TerminateJob", timeout="5m")
    decision = decide(view(builder, reported=(eviction(),)), NOW)
    assert decision.remembered == (eviction(),)
    assert decision.again_at == NOW + 300
    back = view(builder, member("worker", 0), reported=(eviction(),), timers=decision.timers)
    assert decide(back, NOW + 300).action is Action.SYNC_JOB


def test_restarting_a_pod_does_not_cancel_the_end_of_the_job() -> None:
    builder = running(2).policy("PodFailed", "RestartPod").policy("PodEvicted", "TerminateJob", timeout="5m")
    gone = eviction(pod="job1-worker-1")
    decision = decide(view(builder, member("worker", 0, "Failed"), reported=(gone,)), NOW)
    assert decision.action is Action.RESTART_POD
    assert decision.remembered == (gone,)
    assert len(decision.timers) == 1


def test_an_action_on_the_job_cancels_delayed_ones_of_the_job() -> None:
    builder = running(2).policy("PodFailed", "RestartJob").policy("PodEvicted", "TerminateJob", timeout="5m")
    decision = decide(view(builder, member("worker", 0, "Failed"), reported=(eviction(),)), NOW)
    assert (decision.action, decision.remembered, decision.timers) == (Action.RESTART_JOB, (), {})


def test_commands_come_before_everything_else_and_the_rest_is_not_lost() -> None:
    builder = running(2).policy("PodEvicted", "RestartPod")
    abort = Occurrence(event="CommandIssued", job_uid=UID, action="AbortJob")
    decision = decide(view(builder, reported=(eviction(), abort)), NOW)
    assert (decision.action, decision.remembered, decision.again_at) == (Action.ABORT_JOB, (eviction(),), NOW)


def test_a_finished_job_listens_to_nobody() -> None:
    builder = job().task("worker", 1).policy("*", "RestartJob").phase("Completed")
    abort = Occurrence(event="CommandIssued", job_uid=UID, action="AbortJob")
    decision = decide(view(builder, member("worker", 0, "Failed"), reported=(abort,)), NOW)
    assert (decision.action, decision.remembered) == (Action.SYNC_JOB, ())
