"""Jobs that are in no cycle: who is told what, when, and how often."""

from __future__ import annotations

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.core.stranding import GRACE_SECONDS
from stromboli.testing.builders import PodBuilder, PodGroupBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, binds, feed, policy, run_cycle, world

NO_GROUP = "PodGroup ns/g does not exist; see the job's events for what its controller could not do"
NO_QUEUE = "queue ghost does not exist; create the queue with 'vcctl queue create -n QUEUE', or use another"
DAY = 86_400.0
"""From the birth of objects to now."""
PLACING = policy("gang", "predicates", "capacity")


def waiting(name: str = "p", age: float = 60.0) -> PodBuilder:
    """A pod of group g, created so many seconds ago."""
    return pod(name).group("g").request(cpu=1).born(DAY - age)


def group(name: str = "ghost", age: float = 60.0) -> PodGroupBuilder:
    return pod_group("g").members(1).queue(name).phase("Pending").born(DAY - age)


def cluster(*objects: PodBuilder | PodGroupBuilder) -> Mirror:
    return world(node("n").offer(cpu=4).build(), queue().build(), *(each.build() for each in objects))


def cycle(mirror: Mirror, later: float = 0.0) -> CycleResult:
    return run_cycle(mirror, PLACING, now=NOW + later)


def told(result: CycleResult) -> dict[str, str]:
    """Message by pod."""
    return {update.task.name: update.message for update in result.pods}


def admission(result: CycleResult) -> list[tuple[str, str, str]]:
    return [
        (condition.status, condition.reason, condition.message)
        for update in result.pod_groups
        for condition in update.status.conditions
        if condition.type == "Admitted"
    ]


def test_pods_of_a_group_that_does_not_exist_are_told() -> None:
    result = cycle(cluster(waiting("p"), waiting("q")))
    assert told(result) == {"p": NO_GROUP, "q": NO_GROUP}
    assert {update.reason for update in result.pods} == {"Unschedulable"}
    assert [(report.job_id, report.message) for report in result.reports] == [("ns/g", NO_GROUP)]


def test_pods_of_a_group_that_is_another_schedulers_are_told_so() -> None:
    mirror = cluster(waiting("p"))
    mirror.elsewhere.apply_pod_group(group("default").build(), ours=False)
    text = "PodGroup ns/g and these pods are shared out to different schedulers; give them the same first owner"
    assert told(cycle(mirror)) == {"p": text}


def test_a_group_of_a_queue_that_does_not_exist_is_told_with_its_pods() -> None:
    result = cycle(cluster(group(), waiting()))
    assert told(result) == {"p": NO_QUEUE}
    assert admission(result) == [("False", "QueueMissing", NO_QUEUE)]
    assert [(event.type, event.reason, event.message) for event in result.events] == [
        ("Warning", "Unschedulable", NO_QUEUE)
    ]


def test_nothing_is_said_twice() -> None:
    mirror = cluster(group(), waiting())
    cycle(mirror)
    again = cycle(mirror, 1.0)
    feed(mirror, waiting("late").build())
    late = cycle(mirror, 2.0)
    assert (again.pods, again.pod_groups, again.events) == ([], [], [])
    assert (told(late), late.pod_groups, late.events) == ({"late": NO_QUEUE}, [], [])


def test_what_belongs_together_is_given_time_to_arrive() -> None:
    mirror = cluster(waiting(age=1.0))
    assert cycle(mirror).pods == []
    assert cycle(mirror, GRACE_SECONDS - 2.0).pods == []
    assert told(cycle(mirror, GRACE_SECONDS)) == {"p": NO_GROUP}


def test_a_group_that_arrives_in_time_is_scheduled_without_a_word() -> None:
    mirror = cluster(waiting(age=1.0))
    cycle(mirror)
    feed(mirror, group("default").phase("Inqueue").build())
    result = cycle(mirror, GRACE_SECONDS)
    assert binds(result) == {"p": "n"}
    assert result.pods == []


def test_a_queue_that_is_deleted_leaves_its_waiting_groups_told() -> None:
    mirror = cluster(group("short-lived"), waiting())
    feed(mirror, queue("short-lived").build())
    cycle(mirror)
    mirror.delete_queue("short-lived")
    result = cycle(mirror, 1.0)
    assert [reason for _, reason, _ in admission(result)] == ["QueueMissing"]


def test_a_queue_that_comes_back_admits_them() -> None:
    mirror = cluster(group(), waiting())
    cycle(mirror)
    feed(mirror, queue("ghost").build())
    result = cycle(mirror, 1.0)
    assert binds(result) == {"p": "n"}
    assert [status for status, _, _ in admission(result)] == ["True"]


def test_what_waits_for_nothing_is_told_nothing() -> None:
    mirror = cluster(group().phase("Running"), waiting().on("n"))
    gated = cluster(waiting().gated("example.com/wait"))
    assert all((result.pods, result.events) == ([], []) for result in (cycle(mirror), cycle(gated)))


def test_jobs_that_are_gone_are_forgotten() -> None:
    mirror = cluster(waiting(age=1.0))
    cycle(mirror)
    mirror.delete_pod("ns/p")
    assert not mirror.strays
    assert cycle(mirror, GRACE_SECONDS).pods == []


def test_pods_of_a_closed_queue_are_told_so_instead_of_how_many_wait() -> None:
    mirror = world(
        node("n").offer(cpu=4).build(),
        queue("shut").state("Closed").build(),
        [each.build() for each in (group("shut").reserve(cpu=1), waiting())],
    )
    result = cycle(mirror)
    assert told(result)["p"].startswith("queue shut is Closed: it takes no work until it is Open; open it with")
    assert [(status, reason) for status, reason, _ in admission(result)] == [("False", "QueueNotOpen")]


def test_pods_of_a_queue_closed_after_admission_are_told_too() -> None:
    mirror = world(
        node("n").offer(cpu=4).build(),
        queue("shut").state("Closing").build(),
        [each.build() for each in (group("shut").phase("Inqueue"), waiting())],
    )
    assert told(cycle(mirror))["p"].startswith("queue shut is Closing: it takes no work until it is Open; open it")


def test_pods_that_alone_are_more_than_their_queue_may_hold_are_not_told_to_wait() -> None:
    """What is in the way may end only where something is."""
    used: list[core.Object] = [
        pod_group("used").members(1).queue("small").reserve(cpu=2).build(),
        pod("used-0").group("used").request(cpu=2).on("n").build(),
    ]
    cases: list[tuple[int, list[core.Object], str]] = [
        (2, used, "wait for the queue's work to end, raise"),
        (1, [], "raise"),
    ]
    for cpu, others, want in cases:
        mirror = world(
            node("n").offer(cpu=9).build(),
            queue("small").cap(cpu=cpu).build(),
            others,
            [each.build() for each in (group("small").phase("Inqueue"), waiting().request(cpu="1500m"))],
        )
        message = told(cycle(mirror))["p"]
        assert f"for a pod that needs cpu 1500m; {want} spec.capability, use another queue, or ask for less" in message
        assert ("waiting does not help" in message) is (not others)


def test_pods_are_not_written_to_whenever_a_number_changes() -> None:
    def used(name: str) -> list[core.Object]:
        return [
            pod_group(name).members(1).queue("small").reserve(cpu=1).build(),
            pod(f"{name}-0").group(name).request(cpu=1).on("n").build(),
        ]

    mirror = world(
        node("n").offer(cpu=9).build(),
        queue("small").cap(cpu=2).build(),
        used("a"),
        [each.build() for each in (group("small").reserve(cpu=2), waiting())],
    )
    first = cycle(mirror)
    assert "queue small may hold cpu 2, of which cpu 1 is taken: short by cpu 1" in told(first)["p"]
    for obj in used("b"):
        feed(mirror, obj)
    second = cycle(mirror, 60.0)
    assert "p" not in told(second)
    assert "of which cpu 2 is taken: short by cpu 2" in admission(second)[0][2]
