"""Changes wait while a cycle runs, keep their order, and fail alone."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.scheduler.feeding import SLICE, Feed


async def test_changes_are_applied_at_once_between_cycles() -> None:
    feed, seen = Feed(), list[int]()
    feed.submit(seen.append, 1)
    assert seen == [1]


async def test_changes_during_a_cycle_are_applied_in_order_when_it_ends() -> None:
    feed, seen = Feed(), list[int]()
    async with feed.frozen():
        for number in range(3):
            feed.submit(seen.append, number)
        assert seen == []
        assert feed.depth == 3
    assert seen == [0, 1, 2]
    assert feed.depth == 0


async def test_changes_that_arrive_while_the_buffer_is_drained_stay_behind_it() -> None:
    feed, seen = Feed(), list[int]()
    total = SLICE * 2

    def first() -> None:
        feed.submit(seen.append, total)
        seen.append(0)

    async with feed.frozen():
        feed.submit(first)
        for number in range(1, total):
            feed.submit(seen.append, number)
    assert seen == [*range(total), total]


async def test_change_that_fails_does_not_cost_the_others(caplog: pytest.LogCaptureFixture) -> None:
    feed, seen = Feed(), list[int]()

    def broken() -> None:
        raise ValueError("bad object")

    async with feed.frozen():
        feed.submit(broken)
        feed.submit(seen.append, 1)
    assert seen == [1]
    assert "bad object" in caplog.text


async def test_cycle_that_fails_leaves_nothing_waiting() -> None:
    feed, seen = Feed(), list[int]()
    with pytest.raises(RuntimeError):
        async with feed.frozen():
            feed.submit(seen.append, 1)
            raise RuntimeError("cycle failed")
    assert seen == [1]


async def test_two_cycles_cannot_run_at_once() -> None:
    feed = Feed()
    async with feed.frozen():
        with pytest.raises(RuntimeError, match="running already"):
            async with feed.frozen():
                pass


async def test_only_what_is_urgent_wakes_whoever_waits() -> None:
    feed = Feed()
    async with feed.frozen():
        pass
    waiter = asyncio.create_task(feed.wait_urgent())
    feed.submit(lambda: None)
    await asyncio.sleep(0)
    assert not waiter.done()
    feed.submit(feed.hurry)
    async with asyncio.timeout(5):
        await waiter
