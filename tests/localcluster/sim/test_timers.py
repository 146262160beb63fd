"""The heap of due times."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from stromboli.localcluster.nodes.timers import Timers


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_keys_come_due_in_order() -> None:
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    timers.set("late", 3)
    timers.set("early", 1)
    assert timers.pop_due() == []
    clock.time = 3
    assert timers.pop_due() == ["early", "late"]
    assert len(timers) == 0


def test_setting_again_replaces() -> None:
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    timers.set("a", 1)
    timers.set("a", 5)
    clock.time = 2
    assert timers.pop_due() == []
    assert timers.next_due() == 5


def test_a_cancelled_key_never_comes() -> None:
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    timers.set("a", 1)
    timers.cancel("a")
    clock.time = 9
    assert timers.pop_due() == []
    assert timers.next_due() is None


def test_a_batch_leaves_the_rest() -> None:
    timers: Timers[int] = Timers(Clock())
    for number in range(5):
        timers.set(number, 0)
    assert timers.pop_due(2) == [0, 1]
    assert len(timers) == 3


async def test_an_earlier_time_wakes_the_waiter() -> None:
    clock = Clock()
    timers: Timers[str] = Timers(clock)
    timers.set("later", 3600)
    waiter = asyncio.create_task(timers.wait_due())
    await asyncio.sleep(0)
    assert not waiter.done()
    timers.set("now", 0)
    async with asyncio.timeout(5):
        await waiter
    assert timers.pop_due() == ["now"]


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 20))), max_size=60))
def test_only_the_last_word_about_a_key_counts(words: list[tuple[int, int | None]]) -> None:
    clock = Clock()
    timers: Timers[int] = Timers(clock)
    expected: dict[int, int] = {}
    for key, when in words:
        if when is None:
            timers.cancel(key)
            expected.pop(key, None)
        else:
            timers.set(key, when)
            expected[key] = when
    assert timers.next_due() == min(expected.values(), default=None)
    clock.time = 100
    due = timers.pop_due()
    assert sorted(due) == sorted(expected)
    assert [expected[key] for key in due] == sorted(expected.values())
