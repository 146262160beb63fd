"""A job's life with something going wrong at every single write: the end must be that of the undisturbed run.

Every test takes each fourth write of a life, from the first, second, third or fourth on, and lives those lives side by
side, so that none takes long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from stromboli.kube.json import JsonObject
from stromboli.testing.faults import CutWatch, Duplicate, ExpireWatch, Fault, Reorder
from tests.controllers.job.lives import LIVES, Life, WriteHeld, WriteRefused, WriteUnanswered, begin, replace_controller
from tests.controllers.stage import Stage, stage

STRIDE = 4
SIDE_BY_SIDE = 4
NEVER = 1_000_000
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
lives = pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
slices = pytest.mark.parametrize("first", range(1, STRIDE + 1))


@asynccontextmanager
async def troubled(trouble: Fault) -> AsyncIterator[Stage]:
    """A stage on which something is to go wrong."""
    async with stage(start=False) as scene:
        scene.server.faults.add(trouble)
        scene.trouble = trouble
        await begin(scene)
        yield scene


async def undisturbed(life: Life) -> tuple[JsonObject, int]:
    """How the life ends when all goes well, and how many writes it takes."""
    counting = WriteRefused(skip=NEVER)
    async with troubled(counting) as scene:
        return await life(scene), counting.seen


async def same_end(life: Life, first: int, trial: Callable[[int], Awaitable[tuple[JsonObject, int]]]) -> None:
    """Have ``trial`` live the life once for every write of the slice; it answers the end and how often it struck."""
    want, writes = await undisturbed(life)
    turns, seats = range(first, writes + 1, STRIDE), asyncio.Semaphore(SIDE_BY_SIDE)

    async def seated(n: int) -> tuple[JsonObject, int]:
        async with seats:
            return await trial(n)

    found = await asyncio.gather(*map(seated, turns))
    assert [end for end, _ in found] == [want] * len(turns)
    assert sum(hits for _, hits in found) >= len(turns) - 1, "lives differ a little in their writes, not more"


@lives
async def test_the_undisturbed_life(life: Life) -> None:
    want, _ = await undisturbed(life)
    assert want.get("phase", "Completed") in ("Completed", "Running")
    assert not want.get("left to no owner")
    assert set(want.get("pods", {}).values()) <= {"Succeeded", "Running"}


def refused(n: int) -> Fault:
    """An error of the server's, or a conflict, by turns."""
    conflict = n // STRIDE % 2
    return WriteRefused(skip=n - 1, code=409 if conflict else 500, reason="Conflict" if conflict else "")


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused for a moment": refused,
    "carried out without an answer": lambda n: WriteUnanswered(skip=n - 1, executed=True),
    "lost without an answer": lambda n: WriteUnanswered(skip=n - 1),
}


@slices
@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
@lives
async def test_a_fault_at_any_write_changes_nothing_in_the_end(
    life: Life, make: Callable[[int], Fault], first: int
) -> None:
    async def trial(n: int) -> tuple[JsonObject, int]:
        fault = make(n)
        async with troubled(fault) as scene:
            return await life(scene), fault.hits

    await same_end(life, first, trial)


@slices
@lives
async def test_a_controller_that_dies_at_any_write_is_replaced_without_harm(life: Life, first: int) -> None:
    async def trial(n: int) -> tuple[JsonObject, int]:
        held = WriteHeld(skip=n - 1)
        async with troubled(held) as scene, asyncio.TaskGroup() as tasks:
            killer = tasks.create_task(replace_controller(scene, held))
            end = await life(scene)
            killer.cancel()
            return end, held.hits

    await same_end(life, first, trial)


WATCH_FAULTS: dict[str, Callable[[], Fault]] = {
    "events twice": lambda: Duplicate(verb="watch", times=None),
    "events out of order": lambda: Reorder(verb="watch", times=None),
    "watches that are cut": lambda: CutWatch(verb="watch", times=6, after=3),
    "watches that expire": lambda: ExpireWatch(verb="watch", times=6, after=4),
}


@pytest.mark.parametrize("make", WATCH_FAULTS.values(), ids=WATCH_FAULTS.keys())
@lives
async def test_what_goes_wrong_on_a_watch_changes_nothing_in_the_end(life: Life, make: Callable[[], Fault]) -> None:
    want, _ = await undisturbed(life)
    async with troubled(make()) as scene:
        assert await life(scene) == want
