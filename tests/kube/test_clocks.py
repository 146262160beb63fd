from __future__ import annotations

import asyncio
import time

import pytest

from stromboli.kube.clocks import SYSTEM_CLOCK, deadline
from stromboli.testing.clocks import FakeClock, SkippingClock
from stromboli.testing.waiting import eventually


async def test_sleepers_wake_in_the_order_of_their_moments() -> None:
    clock, woke = FakeClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woke.append((name, clock.monotonic()))

    started = clock.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("late", 10), ("early", 1), ("never mind", 0)):
            tasks.create_task(sleeper(name, seconds))
        await clock.advance(10)
    assert woke == [("never mind", started), ("early", started + 1), ("late", started + 10)]


async def test_consequences_of_a_moment_happen_at_that_moment() -> None:
    clock, ticks = FakeClock(), list[float]()

    async def ticker() -> None:
        while len(ticks) < 5:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    started = clock.monotonic()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ticker())
        await clock.advance(5)
    assert ticks == [started + number for number in range(1, 6)]


async def test_a_jump_moves_the_wall_clock_only() -> None:
    clock = FakeClock()
    wall, steady = clock.time(), clock.monotonic()
    clock.jump(-3600)
    assert (clock.time(), clock.monotonic()) == (wall - 3600, steady)


async def test_a_deadline_is_kept_on_the_clock_that_is_given() -> None:
    clock = FakeClock()

    async def hang() -> None:
        async with deadline(clock, 5):
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await clock.advance(4.9)
    assert not task.done()
    await clock.advance(0.1)
    with pytest.raises(TimeoutError):
        await task


@pytest.mark.parametrize("clock", [SYSTEM_CLOCK, FakeClock()])
async def test_a_deadline_that_is_met_leaves_no_timer(clock: FakeClock) -> None:
    async with deadline(clock, 0.01):
        pass
    if isinstance(clock, FakeClock):
        assert clock.sleepers == 0


async def test_the_system_clock_is_the_machines() -> None:
    called: list[float] = []
    assert abs(SYSTEM_CLOCK.time() - time.time()) < 5
    before = SYSTEM_CLOCK.monotonic()
    SYSTEM_CLOCK.call_later(0.01, lambda: called.append(SYSTEM_CLOCK.monotonic()))
    SYSTEM_CLOCK.call_later(0.005, lambda: called.append(0)).cancel()
    await SYSTEM_CLOCK.sleep(0.005)
    await eventually(lambda: called)
    assert called[0] - before >= 0.009


async def test_a_skipping_clock_takes_no_time() -> None:
    clock = SkippingClock()
    started, real = clock.monotonic(), time.monotonic()
    await clock.sleep(3600)
    assert clock.monotonic() - started == 3600
    assert time.monotonic() - real < 5
    assert clock.slept == [3600]


async def test_waiting_in_vain_says_for_what() -> None:
    with pytest.raises(AssertionError, match="the cows did not come true within"):
        await eventually(lambda: False, timeout=0.02, what="the cows")
