"""Which events about waiting jobs are said, and how often."""

from __future__ import annotations

import pytest

from stromboli.scheduler.core.repeating import FIRST_REPEAT_SECONDS, LAST_REPEAT_SECONDS, Repeats, words_of
from stromboli.scheduler.core.view import JobEvent
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, feed, policy, run_cycle, world


def event(message: str, *, reason: str = "Unschedulable", uid: str = "u", job: str = "ns/g") -> JobEvent:
    return JobEvent(job, uid, "Warning", reason, message)


def said(repeats: Repeats, message: str, at: float, **how: str) -> bool:
    return bool(repeats.fresh([event(message, **how)], at))


def test_the_same_text_is_said_less_and_less_often() -> None:
    repeats = Repeats()
    moments = [at for at in range(0, 20_000, 10) if said(repeats, "no room", at)]
    gaps = [later - earlier for earlier, later in zip(moments, moments[1:], strict=False)]
    assert gaps[0] == FIRST_REPEAT_SECONDS
    assert gaps == sorted(gaps)
    assert max(gaps) == LAST_REPEAT_SECONDS
    assert len(moments) < 10


def test_another_text_is_said_at_once() -> None:
    repeats = Repeats()
    assert [said(repeats, text, 0) for text in ("no room", "no node", "no room")] == [True, True, False]


def test_a_text_with_other_numbers_is_said_a_while_later() -> None:
    repeats = Repeats()
    moments = [at for at in range(0, 100, 10) if said(repeats, f"{at}/200 nodes are full", at)]
    assert moments == [0, 30, 60, 90]


def test_texts_that_take_turns_are_not_said_at_every_turn() -> None:
    repeats = Repeats()
    assert sum(said(repeats, "no room" if at % 2 else "no node", at) for at in range(200)) == 2


def test_a_group_made_again_is_another_one() -> None:
    repeats = Repeats()
    assert said(repeats, "no room", 0, uid="old")
    assert said(repeats, "no room", 1, uid="new")


def test_what_has_happened_is_always_said() -> None:
    repeats = Repeats()
    assert all(said(repeats, "pod group is ready", at, reason="Scheduled") for at in range(3))


def test_what_is_kept_is_bounded() -> None:
    repeats = Repeats()
    for job in range(50):
        for text in "abcdefgh":
            said(repeats, text, 0, job=f"ns/{job}")
    for job in range(50):
        repeats.forget(f"ns/{job}")
    assert len(repeats) == 0


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("1/3 tasks", "2/3 tasks", True),
        ("cpu 500m of 4Gi", "cpu 1 of 12", True),
        ("queue q1 is full", "queue q2 is full", False),
        ("n-1 comes closest", "n-2 comes closest", False),
        ("no room", "no node", False),
    ],
)
def test_numbers_do_not_make_another_text(text: str, other: str, same: bool) -> None:
    assert (words_of(text) == words_of(other)) is same


def test_a_waiting_gang_warns_once_and_again_when_its_reason_changes() -> None:
    mirror = world(
        node("n").offer(cpu=1).build(),
        queue().build(),
        pod_group("g").members(1).build(),
        pod("p").group("g").request(cpu=2).build(),
    )
    [first] = run_cycle(mirror, policy("gang", "predicates")).events
    assert "Insufficient cpu" in first.message
    assert all(run_cycle(mirror, policy("gang", "predicates"), now=NOW + at).events == [] for at in range(1, 60))
    feed(mirror, node("n").offer(cpu=9).taint("gone").build())
    [second] = run_cycle(mirror, policy("gang", "predicates"), now=NOW + 60).events
    assert "untolerated taint" in second.message
    [third] = run_cycle(mirror, policy("gang", "predicates"), now=NOW + 60 + FIRST_REPEAT_SECONDS).events
    assert third.message == second.message


def test_a_new_process_does_not_repeat_what_the_condition_says() -> None:
    objects = [
        node("n").offer(cpu=1).build(),
        queue().build(),
        pod_group("g").members(1).build(),
        pod("p").group("g").request(cpu=2).build(),
    ]
    before = run_cycle(world(objects), policy("gang", "predicates"))
    [update] = before.pod_groups
    after = world(objects)
    group = after.jobs["ns/g"].pod_group
    assert group is not None and before.events
    feed(after, type(group)(metadata=group.metadata, spec=group.spec, status=update.status))
    assert run_cycle(after, policy("gang", "predicates")).events == []


def test_a_group_without_pods_is_no_gang_of_nothing() -> None:
    mirror = world(node("n").offer(cpu=1).build(), queue().build(), pod_group("g").members(1).phase("Pending").build())
    assert run_cycle(mirror, policy("gang", "predicates", actions="allocate")).events == []


def test_a_group_without_pods_that_is_not_admitted_says_why() -> None:
    mirror = world(
        node("n").offer(cpu=1).build(),
        queue().state("Closed").build(),
        pod_group("g").members(1).reserve(cpu=1).phase("Pending").build(),
    )
    [told] = run_cycle(mirror, policy("gang", "capacity")).events
    assert (told.type, told.reason) == ("Warning", "Unschedulable")
    assert told.message.startswith("queue default is Closed: it takes no work until it is Open; open it with")
