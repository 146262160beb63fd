from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube.throttles import TokenBucket
from stromboli.testing.clocks import FakeClock, SkippingClock


async def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    clock = SkippingClock()
    bucket = TokenBucket(10, 3, clock=clock)
    waits = [await bucket.acquire() for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.1, 0.1])


async def test_callers_pass_in_the_order_in_which_they_came() -> None:
    clock, passed = FakeClock(), list[int]()
    bucket = TokenBucket(1, 1, clock=clock)

    async def caller(number: int) -> None:
        await bucket.acquire()
        passed.append(number)

    tasks = [asyncio.create_task(caller(number)) for number in range(4)]
    await clock.advance(2)
    assert passed == [0, 1, 2]
    await clock.advance(1)
    assert passed == [0, 1, 2, 3]
    await asyncio.gather(*tasks)


async def test_a_cancelled_caller_gives_its_token_back() -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 1, clock=clock)
    await bucket.acquire()
    waiting = asyncio.create_task(bucket.acquire())
    await clock.settle()
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await clock.advance(1)
    assert bucket.try_acquire()


@pytest.mark.parametrize("qps", [0, -1])
async def test_no_rate_means_no_limit(qps: float) -> None:
    bucket = TokenBucket(qps, 1, clock=FakeClock())
    assert [await bucket.acquire() for _ in range(1000)] == [0.0] * 1000
    assert bucket.try_acquire()


@given(
    qps=st.floats(0.5, 100),
    burst=st.integers(1, 20),
    pauses=st.lists(st.floats(0, 3), max_size=60),
)
def test_no_window_lets_more_through_than_burst_and_rate(qps: float, burst: int, pauses: list[float]) -> None:
    async def main() -> None:
        clock = SkippingClock()
        bucket = TokenBucket(qps, burst, clock=clock)
        started = clock.monotonic()
        for passed, pause in enumerate(pauses, start=1):
            await clock.sleep(pause)
            await bucket.acquire()
            assert passed <= burst + (clock.monotonic() - started) * qps + 1e-6

    asyncio.run(main())
