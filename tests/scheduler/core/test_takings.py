"""Who took from whom is remembered for as long as it matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.takings import FIRST_PAUSE_SECONDS, Taking, Takings
from stromboli.testing.builders import node, pod_group, queue
from tests.scheduler.core.worlds import NOW, feed, world

QUEUES = ("a", "b", "c", "d")


@pytest.fixture
def mirror() -> Mirror:
    """Two jobs in each queue, ``a1`` and ``a2`` in ``a``."""
    groups = [pod_group(f"{name}{number}").queue(name).build() for name in QUEUES for number in (1, 2)]
    return world([queue(name).build() for name in QUEUES], groups, [node(name).build() for name in ("n", "m")])


class Story:
    """Takings as cycle after cycle decides them, a second each."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.now = NOW

    def takings(self) -> Takings:
        return Takings.kept_in(self._mirror.memory, self.now)

    def cycle(self, *takings: tuple[str, str], binds: Iterable[tuple[str, str]] = ()) -> None:
        """Pairs of jobs, the taker first, all on node ``n``; and binds of jobs to nodes."""
        jobs, nodes = self._mirror.jobs, self._mirror.nodes_by_name
        made = [Taking(jobs[f"ns/{taker}"], jobs[f"ns/{victim}"], nodes["n"]) for taker, victim in takings]
        self.takings().note(made, [(jobs[f"ns/{job}"], nodes[where]) for job, where in binds], jobs)
        self.now += 1

    def contested(self, taker: str) -> str:
        return "".join(sorted(self.takings().contested(self._mirror.jobs[f"ns/{taker}"], QUEUES)))

    def barred(self, taker: str) -> str:
        return "".join(sorted(self.takings().barred(self._mirror.jobs[f"ns/{taker}"], QUEUES)))


CONTESTED: dict[str, tuple[Sequence[tuple[str, str]], dict[str, str]]] = {
    "nothing was taken": ([], {"a1": "", "b1": ""}),
    "from whoever took, by any job of the queue": ([("a1", "b1")], {"a1": "", "b1": "a", "b2": "a", "c1": ""}),
    "from whoever took through others": ([("a1", "b1"), ("b1", "c1")], {"a1": "", "b1": "a", "c1": "ab"}),
    "around": ([("a1", "b1"), ("b1", "c1"), ("c1", "a1")], {"a1": "bc", "b1": "ac", "c1": "ab", "d1": ""}),
    "not inside a queue": ([("a1", "a2")], {"a1": "", "a2": ""}),
}


@pytest.mark.parametrize("case", CONTESTED)
def test_what_needs_the_consent_of_all_tiers(mirror: Mirror, case: str) -> None:
    takings, want = CONTESTED[case]
    story = Story(mirror)
    for taking in takings:
        story.cycle(taking)
    assert {job: story.contested(job) for job in want} == want


def test_whoever_is_bound_where_room_was_made_for_another_has_got_it(mirror: Mirror) -> None:
    story = Story(mirror)
    story.cycle(("a1", "b1"))
    story.cycle(binds=[("c1", "m")])
    assert story.contested("b1") == "a"
    story.cycle(binds=[("c1", "n")])
    assert story.contested("b1") == "ac"
    story.cycle(binds=[("a1", "n")])
    story.cycle(binds=[("d1", "n")])
    assert story.contested("b1") == "ac", "the room was used by whom it was made for"


def test_who_has_taken_in_vain_waits_twice_as_long_each_time(mirror: Mirror) -> None:
    story = Story(mirror)
    pause = FIRST_PAUSE_SECONDS
    for _ in range(4):
        assert story.barred("a1") == ""
        taken = story.now
        story.cycle(("a1", "b1"))
        story.now = taken + pause - 1
        assert (story.barred("a1"), story.barred("a2")) == ("b", "")
        story.now = taken + pause
        pause *= 2


def test_who_is_bound_need_not_wait(mirror: Mirror) -> None:
    story = Story(mirror)
    story.cycle(("a1", "b1"), ("a2", "c1"))
    story.cycle(binds=[("a1", "m")])
    assert (story.barred("a1"), story.barred("a2")) == ("", "c")


def test_inside_its_queue_nobody_waits(mirror: Mirror) -> None:
    story = Story(mirror)
    story.cycle(("a1", "a2"))
    assert story.barred("a1") == ""


def test_a_job_that_is_made_anew_need_not_wait(mirror: Mirror) -> None:
    story = Story(mirror)
    story.cycle(("a1", "b1"))
    mirror.delete_pod_group("ns/a1")
    feed(mirror, replace(pod_group("a1"), uid="another").queue("a").build())
    story.cycle()
    assert story.barred("a1") == ""
