"""Only the latest word is written, one write a key at a time, spaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stromboli.scheduler.coalescing import LatestWriter
from stromboli.testing.clocks import FakeClock


@asynccontextmanager
async def running(writer: LatestWriter[str, int]) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(writer.run())
        yield
        task.cancel()


async def test_latest_value_replaces_what_has_not_been_written() -> None:
    clock, written = FakeClock(), list[tuple[str, int]]()

    async def write(key: str, value: int) -> None:
        written.append((key, value))

    writer = LatestWriter("test", write, workers=2, clock=clock)
    for value in range(5):
        writer.put("a", value)
    writer.put("b", 9)
    async with running(writer):
        await clock.settle()
    assert sorted(written) == [("a", 4), ("b", 9)]


async def test_twenty_thousand_changes_in_ten_seconds_cost_one_write_a_second() -> None:
    """Pain P37."""
    clock, written = FakeClock(), list[float]()

    async def write(key: str, value: int) -> None:
        written.append(clock.monotonic())

    writer = LatestWriter("test", write, workers=4, spacing=1.0, clock=clock)
    async with running(writer):
        for _ in range(100):
            for value in range(200):
                writer.put("default", value)
            await clock.advance(0.1)
    assert 9 <= len(written) <= 11
    assert all(later - earlier >= 1.0 for earlier, later in zip(written, written[1:], strict=False))


async def test_last_change_is_written_even_if_nothing_follows() -> None:
    clock, written = FakeClock(), list[int]()

    async def write(key: str, value: int) -> None:
        written.append(value)

    writer = LatestWriter("test", write, workers=1, spacing=1.0, clock=clock)
    async with running(writer):
        writer.put("q", 1)
        await clock.settle()
        writer.put("q", 2)
        await clock.advance(0.5)
        writer.put("q", 3)
        await clock.advance(2)
    assert written == [1, 3]
    assert len(writer) == 0


async def test_change_during_a_write_is_written_after_it() -> None:
    clock, written, gate = FakeClock(), list[int](), asyncio.Event()

    async def write(key: str, value: int) -> None:
        await gate.wait()
        written.append(value)

    writer = LatestWriter("test", write, workers=3, clock=clock)
    async with running(writer):
        writer.put("k", 1)
        await clock.settle()
        writer.put("k", 2)
        await clock.settle()
        gate.set()
        await clock.settle()
    assert written == [1, 2]


async def test_merge_keeps_what_both_say() -> None:
    clock, written = FakeClock(), list[int]()

    async def write(key: str, value: int) -> None:
        written.append(value)

    writer = LatestWriter("test", write, workers=1, merge=lambda old, new: old + new, clock=clock)
    for value in (1, 10, 100):
        writer.put("k", value)
    async with running(writer):
        await clock.settle()
    assert written == [111]


async def test_write_that_fails_stops_neither_the_key_nor_others() -> None:
    clock, written = FakeClock(), list[tuple[str, int]]()

    async def write(key: str, value: int) -> None:
        if value == 0:
            raise RuntimeError("no luck")
        written.append((key, value))

    writer = LatestWriter("test", write, workers=1, clock=clock)
    async with running(writer):
        writer.put("k", 0)
        writer.put("other", 1)
        await clock.settle()
        writer.put("k", 2)
        await clock.settle()
    assert written == [("other", 1), ("k", 2)]


async def test_forgotten_key_is_not_written() -> None:
    clock, written = FakeClock(), list[int]()

    async def write(key: str, value: int) -> None:
        written.append(value)

    writer = LatestWriter("test", write, workers=1, clock=clock)
    writer.put("k", 1)
    writer.forget("k")
    async with running(writer):
        await clock.settle()
    assert written == []


async def test_a_value_waits_for_what_may_replace_it_or_make_it_needless() -> None:
    clock, written = FakeClock(), list[tuple[str, int]]()

    async def write(key: str, value: int) -> None:
        written.append((key, value))

    writer = LatestWriter("test", write, workers=1, delay=3.0, clock=clock)
    async with running(writer):
        for key in ("replaced", "needless", "urgent"):
            writer.put(key, 1)
        writer.put("urgent", 2, at_once=True)
        await clock.advance(2.9)
        assert written == [("urgent", 2)]
        writer.put("replaced", 2)
        assert writer.waiting("needless") == 1
        writer.forget("needless")
        assert writer.waiting("needless") is None
        await clock.advance(0.1)
    assert written == [("urgent", 2), ("replaced", 2)]
