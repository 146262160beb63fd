from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stromboli.kube.queues import LEAST_SWEPT, ShutDown, WorkQueue
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually

KEYS = st.sampled_from("abcde")


async def test_a_key_added_often_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5):
        queue.add("a")
    assert len(queue) == 1
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_comes_back_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert len(queue) == 1


async def test_keys_come_in_the_order_of_their_first_adding() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in "cabac":
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_a_delayed_key_comes_at_its_time() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("late", 10)
    queue.add_after("soon", 1)
    await clock.advance(0.9)
    assert (len(queue), queue.delayed) == (0, 2)
    await clock.advance(0.1)
    assert await queue.get() == "soon"
    await clock.advance(9)
    assert await queue.get() == "late"
    assert clock.sleepers == 0


async def test_of_several_delays_the_earliest_counts() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for seconds in (5, 2, 9):
        queue.add_after("a", seconds)
    await clock.advance(2)
    assert len(queue) == 1
    await queue.get()
    queue.done("a")
    await clock.advance(100)
    assert len(queue) == 0, "the later wishes were met by the earlier one"


async def test_a_key_that_is_added_now_does_not_wait_for_its_time() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    await clock.advance(10)
    assert len(queue) == 1, "what was asked for later is still due"


async def test_a_key_that_is_added_with_a_delay_over_and_over_is_not_pushed_back() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for _ in range(9):
        queue.add_after("a", 1)
        await clock.advance(0.1)
    assert not len(queue)
    queue.add_after("a", 1)
    await clock.advance(0.1)
    assert len(queue) == 1


async def test_a_time_that_comes_while_the_key_is_worked_on_brings_it_back() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    await clock.advance(5)
    assert not len(queue)
    queue.done("a")
    assert len(queue) == 1


async def test_no_order_of_wishes_work_and_time_loses_a_wish() -> None:
    for steps in itertools.permutations(["at once", "later", "later", "begin", "end", "time"]):
        await live_through(steps)


async def live_through(steps: tuple[str, ...]) -> None:
    """Whatever is asked for after work has begun leads to work again, and no later than it was asked for."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    wishes = [clock.monotonic()]  # moments by which work has to begin that has not begun since
    at_work = False
    for step in (*steps, "end", "time", "begin", "end", "time", "begin", "end"):
        now = clock.monotonic()
        match step:
            case "begin" if not at_work:
                assert len(queue) == (min(wishes, default=now + 1) <= now), steps
                if len(queue):
                    await queue.get()
                    wishes, at_work = [moment for moment in wishes if moment > now], True
            case "end" if at_work:
                queue.done("a")
                at_work = False
            case "time":
                await clock.advance(1)
            case "at once" | "later":
                queue.add_after("a", wait := 0.0 if step == "at once" else 1.0)
                wishes.append(now + wait)
    assert not queue.unfinished, steps


async def test_far_times_that_nearer_ones_replace_do_not_fill_the_memory() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for _ in range(3 * LEAST_SWEPT):
        queue.add_after("a", 86400)
        queue.add_after("a", 1)
        await clock.advance(1)
        queue.done(await queue.get())
    assert len(queue._delayed) <= LEAST_SWEPT + 3
    assert queue.delayed == 0


async def test_a_failure_that_passes_by_itself_has_a_shorter_longest_back_off() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    delays = [queue.add_rate_limited("a", at_most=1.0) for _ in range(12)]
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[-1] == 1.0
    assert queue.add_rate_limited("a") == pytest.approx(0.005 * 2**12), "the next failure of another kind is not spared"


async def test_back_off_doubles_from_5_ms_to_1000_s_until_it_is_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    delays = [queue.add_rate_limited("a") for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-2:] == [1000.0, 1000.0]
    assert queue.failures("a") == 20
    queue.forget("a")
    assert queue.add_rate_limited("a") == 0.005


async def test_a_thousand_failures_do_not_overflow() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    assert [queue.add_rate_limited("a") for _ in range(2000)][-1] == 1000.0


async def test_shut_down_hands_out_what_is_ready_and_then_ends() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    queue.add_after("later", 1)
    queue.shut_down()
    queue.add("too late")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()
    assert (queue.delayed, clock.sleepers) == (0, 0)


async def test_shut_down_wakes_everybody() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [ShutDown] * 3


async def test_a_worker_cancelled_at_the_moment_of_waking_passes_the_key_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")  # wakes the first
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"


class QueueMachine(RuleBasedStateMachine):
    """Any order of operations keeps the queue's promises."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.clock)
        self.wanted: set[str] = set()  # added since it was last handed out
        self.due: dict[str, float] = {}
        self.working: set[str] = set()

    def teardown(self) -> None:
        self.loop.close()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=KEYS, seconds=st.integers(0, 5))
    def add_after(self, key: str, seconds: int) -> None:
        self.queue.add_after(key, seconds)
        if seconds == 0:
            self.wanted.add(key)
        else:
            self.due[key] = min(self.due.get(key, float("inf")), self.clock.monotonic() + seconds)

    @rule(seconds=st.integers(1, 3))
    def advance(self, seconds: int) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))
        for key, moment in list(self.due.items()):
            if moment <= self.clock.monotonic():
                self.wanted.add(key)
                del self.due[key]

    @precondition(lambda self: self.wanted - self.working)
    @rule()
    def get(self) -> None:
        key = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 1))
        assert key in self.wanted, "nothing is handed out that nobody asked for"
        assert key not in self.working, "no key is worked on twice at a time"
        self.wanted.discard(key)
        self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key)
        self.working.discard(key)

    @invariant()
    def what_is_ready_is_what_is_wanted_and_not_worked_on(self) -> None:
        assert len(self.queue) == len(self.wanted - self.working)
        assert self.queue.delayed == len(self.due)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(keys=st.lists(KEYS, max_size=60), workers=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_concurrent_workers_see_every_last_addition_and_never_the_same_key(keys: list[str], workers: int) -> None:
    added, at_work, seen_at = Counter[str](), set[str](), dict[str, int]()

    async def work(queue: WorkQueue[str]) -> None:
        while True:
            try:
                key = await queue.get()
            except ShutDown:
                return
            assert key not in at_work
            at_work.add(key)
            seen_at[key] = added[key]
            await asyncio.sleep(0)
            at_work.discard(key)
            queue.done(key)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(work(queue))
            for key in keys:
                added[key] += 1
                queue.add(key)
                if added[key] % 2:
                    await asyncio.sleep(0)
            await eventually(lambda: not queue.unfinished)
            queue.shut_down()

    asyncio.run(main())
    assert seen_at == dict(added), "each key was looked at after its last addition"
