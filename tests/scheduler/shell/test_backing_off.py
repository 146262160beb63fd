"""Gangs that are refused again and again stand back; others and first-time failures are not punished."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stromboli.scheduler.backing_off import GangBackoff, Hold

JOB = ("ns", "job")


def test_first_refusal_is_tried_again_in_the_next_cycle() -> None:
    backoff = GangBackoff[tuple[str, str]]()
    backoff.refused(JOB, "p1", cycle=1, now=10)
    assert backoff.held(now=10) == {}


def test_later_refusals_hold_the_gang_longer_each_time_up_to_a_maximum() -> None:
    backoff = GangBackoff[tuple[str, str]](first=2, maximum=10)
    held = [backoff.refused(JOB, "p1", cycle=cycle, now=0) for cycle in range(1, 8)]
    assert held == [0, 2, 4, 8, 10, 10, 10]


def test_ten_pods_refused_in_one_cycle_count_once() -> None:
    backoff = GangBackoff[tuple[str, str]]()
    for number in range(10):
        backoff.refused(JOB, f"p{number}", cycle=7, now=number / 10)
    assert not backoff.held(now=1)


def test_record_ends_when_every_refused_pod_is_bound_or_gone() -> None:
    backoff = GangBackoff[tuple[str, str]]()
    for cycle in (1, 2):
        backoff.refused(JOB, "p1", cycle=cycle, now=0)
        backoff.refused(JOB, "p2", cycle=cycle, now=0)
    assert backoff.held(now=1) == {JOB: Hold(2)}
    backoff.settled(JOB, "p1")
    assert backoff.held(now=1) == {JOB: Hold(2)}
    backoff.settled(JOB, "p2")
    assert backoff.held(now=1) == {}
    assert len(backoff) == 0


def test_a_held_gang_tells_what_was_said_first_when_it_was_refused_last() -> None:
    backoff = GangBackoff[tuple[str, str]]()
    for cycle, error in ((1, "no room"), (2, "denied"), (2, "conflict")):
        backoff.refused(JOB, "p1", cycle=cycle, now=0, error=error)
    assert backoff.held(now=1) == {JOB: Hold(2, "denied")}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=60))
def test_no_gang_is_held_without_refused_pods_or_beyond_the_maximum(steps: list[tuple[int, int, bool]]) -> None:
    backoff = GangBackoff[int](first=1, maximum=8)
    open_refusals: dict[int, set[int]] = {}
    for now, (job, pod, refused) in enumerate(steps):
        if refused:
            assert backoff.refused(job, str(pod), cycle=now, now=now) <= now + 8
            open_refusals.setdefault(job, set()).add(pod)
        else:
            backoff.settled(job, str(pod))
            open_refusals.get(job, set()).discard(pod)
        assert set(backoff.held(now)) <= {job for job, pods in open_refusals.items() if pods}
