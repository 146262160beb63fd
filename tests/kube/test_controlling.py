from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.core import UndecodableObject
from stromboli.api.modelling import InvalidObject
from stromboli.api.quantities import BadQuantity
from stromboli.api.unreadable import Unreadable
from stromboli.kube.controlling import (
    LONGEST_CONFLICT,
    LONGEST_OUTAGE,
    REMEMBERED_FAILURES,
    Controller,
    Outcome,
    Result,
    Terminal,
)
from stromboli.kube.errors import Conflict, Forbidden, ServerError, SeveralFailed, Unreachable
from stromboli.testing.clocks import FakeClock


class Ledger:
    """A reconciler that does as it is told, and an observer that writes down how it ended."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.script: dict[str, list[Exception | Result | None]] = {}
        self.outcomes: list[Outcome] = []

    async def reconcile(self, key: str) -> Result | None:
        self.calls.append(key)
        planned = self.script.get(key)
        step = planned.pop(0) if planned else None
        if isinstance(step, Exception):
            raise step
        return step

    def reconciled(self, controller: str, outcome: Outcome, seconds: float, depth: int) -> None:
        self.outcomes.append(outcome)


@asynccontextmanager
async def running(controller: Controller[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(controller.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_failing_key_is_tried_again_and_does_not_stop_the_others() -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["bad"] = [RuntimeError("boom"), RuntimeError("boom"), None]
    controller = Controller("test", ledger.reconcile, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("bad")
        controller.enqueue("good")
        await clock.advance(0)
        assert ledger.calls == ["bad", "good"]
        await clock.advance(0.005)
        assert ledger.calls == ["bad", "good", "bad"]
        await clock.advance(0.01)
        assert ledger.calls == ["bad", "good", "bad", "bad"]
    assert ledger.outcomes == [Outcome.ERROR, Outcome.SUCCESS, Outcome.ERROR, Outcome.SUCCESS]
    assert controller.queue.failures("bad") == 0


async def test_a_result_asks_to_come_back_later() -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["a"] = [Result(requeue_after=30)]
    controller = Controller("test", ledger.reconcile, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(29)
        assert ledger.calls == ["a"]
        await clock.advance(1)
    assert ledger.calls == ["a", "a"]
    assert ledger.outcomes == [Outcome.REQUEUE_AFTER, Outcome.SUCCESS]


async def test_a_terminal_error_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["a"] = [Terminal("spec.minAvailable must not be negative")]
    controller = Controller("test", ledger.reconcile, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(2000)
        assert ledger.calls == ["a"]
        controller.enqueue("a")
        await clock.advance(0)
        assert ledger.calls == ["a", "a"], "a change makes it worth another look"
    assert "spec.minAvailable must not be negative" in caplog.text


async def test_a_key_is_given_up_after_its_last_retry() -> None:
    clock, ledger, given_up = FakeClock(), Ledger(), list[tuple[str, str]]()

    async def give_up(key: str, error: Exception) -> None:
        given_up.append((key, str(error)))

    ledger.script["a"] = [RuntimeError(str(number)) for number in range(5)]
    controller = Controller("test", ledger.reconcile, max_retries=3, give_up=give_up, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(60)
    assert given_up == [("a", "3")]
    assert ledger.outcomes == [Outcome.ERROR] * 3 + [Outcome.GIVEN_UP]


async def test_giving_up_may_fail_too() -> None:
    clock, ledger = FakeClock(), Ledger()

    async def give_up(key: str, error: Exception) -> None:
        raise RuntimeError("no")

    ledger.script["a"] = [RuntimeError("boom")]
    controller = Controller("test", ledger.reconcile, max_retries=0, give_up=give_up, clock=clock)
    async with running(controller):
        controller.enqueue("a")
        controller.enqueue("b")
        await clock.advance(60)
    assert ledger.calls == ["a", "b"]


async def test_a_call_that_hangs_ends_at_its_deadline() -> None:
    clock, calls = FakeClock(), list[str]()

    async def hang(key: str) -> None:
        calls.append(key)
        await asyncio.Event().wait()

    ledger = Ledger()
    controller = Controller("test", hang, timeout=10, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(10)
        assert ledger.outcomes == [Outcome.ERROR]
        await clock.advance(0.005)
    assert calls == ["a", "a"]


async def test_workers_work_side_by_side_but_never_on_one_key() -> None:
    busy, most, gate = set[str](), 0, asyncio.Event()

    async def work(key: str) -> None:
        nonlocal most
        assert key not in busy
        busy.add(key)
        most = max(most, len(busy))
        await gate.wait()
        busy.discard(key)

    clock = FakeClock()
    controller = Controller("test", work, workers=3, clock=clock)
    async with running(controller):
        for key in ("a", "b", "c", "a", "d"):
            controller.enqueue(key)
        await clock.settle()
        controller.enqueue("a")
        gate.set()
        await clock.settle()
    assert most == 3


PASSING: dict[str, tuple[Exception, float]] = {
    "a conflict": (Conflict(409), LONGEST_CONFLICT),
    "a server that fails": (ServerError(500), LONGEST_OUTAGE),
    "a server that does not answer": (Unreachable("no answer in time"), LONGEST_OUTAGE),
    "many conflicts": (SeveralFailed("2 of 9", [Conflict(409), Conflict(409)]), LONGEST_CONFLICT),
    "a conflict and an outage": (SeveralFailed("2 of 9", [Conflict(409), ServerError(503)]), LONGEST_OUTAGE),
    "what somebody has to mend": (Forbidden(403), 1000.0),
    "what somebody has to mend, among others": (SeveralFailed("2 of 9", [Forbidden(403), Conflict(409)]), 1000.0),
}


@pytest.mark.parametrize(("error", "want"), PASSING.values(), ids=PASSING.keys())
async def test_what_passes_by_itself_is_tried_again_before_long(error: Exception, want: float) -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["a"] = [error] * 30
    controller = Controller("test", ledger.reconcile, clock=clock, observer=ledger)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(5000)
        calls = len(ledger.calls)
        await clock.advance(want)
        assert len(ledger.calls) == min(calls + 1, 31)


def begun(passes: list[tuple[float, str]], key: str, since: float, until: float) -> bool:
    return any(one == key and since <= moment <= until + 1e-9 for moment, one in passes)


WISHES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.sampled_from([0.0, 0.1, 0.4, 2.0])),
    max_size=25,
)


@given(wishes=WISHES, works=st.lists(st.sampled_from([0.0, 0.3, 1.5]), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_every_wish_is_met_in_time_however_the_others_come(
    wishes: list[tuple[str, float, float]], works: list[float]
) -> None:
    """Each is a key, a delay, and the time until the next. With a worker for each key nothing but the key's own work,
    which may have begun already, stands in the way."""

    async def main() -> None:
        clock, passes = FakeClock(), list[tuple[float, str]]()

        async def work(key: str) -> None:
            passes.append((clock.monotonic(), key))
            await clock.sleep(works[len(passes) % len(works)])

        controller = Controller("test", work, workers=2, clock=clock)
        asked: list[tuple[float, str, float]] = []
        async with running(controller):
            await clock.settle()
            for key, delay, pause in wishes:
                asked.append((clock.monotonic(), key, delay))
                controller.queue.add_after(key, delay)
                await clock.advance(pause)
            await clock.advance(10)
        for moment, key, delay in asked:
            assert begun(passes, key, moment, moment + delay + max(works)), (key, moment, delay, passes)

    asyncio.run(main())


async def test_a_conflict_is_everyday_and_stays_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["a"] = [Conflict(409)]
    controller = Controller("test", ledger.reconcile, clock=clock)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(1)
    assert ledger.calls == ["a", "a"]
    assert caplog.text == ""


async def test_it_ends_when_its_queue_is_shut_down() -> None:
    ledger = Ledger()
    controller = Controller("test", ledger.reconcile, workers=2)
    controller.enqueue("a")
    controller.queue.shut_down()
    await asyncio.wait_for(controller.run(), 1)
    assert ledger.calls == ["a"]


class Papers:
    """The objects behind keys, and what their owners were told."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.told: list[tuple[str, str]] = []

    def version(self, key: str) -> int:
        return self.versions.get(key, 0)

    def unreadable(self, key: str, message: str) -> None:
        self.told.append((key, message))


def as_terminal(error: Exception) -> Exception:
    """As reconcilers hand it on that know that nothing else will mend it."""
    terminal = Terminal(f"the object: {error}")
    terminal.__cause__ = error
    return terminal


class TestWhatCannotBeRead:
    BAD = Unreadable("Expected `int`, got `str` - at `$.spec.tier`")
    WAYS: ClassVar[dict[str, Exception]] = {"as it is": BAD, "as terminal": as_terminal(BAD)}

    def lines(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]

    @pytest.mark.parametrize("way", WAYS)
    async def test_is_said_once_for_each_version(self, way: str, caplog: pytest.LogCaptureFixture) -> None:
        clock, ledger, papers = FakeClock(), Ledger(), Papers()
        ledger.script["a"] = [self.WAYS[way]] * 100
        controller = Controller("test", ledger.reconcile, objects=papers, clock=clock, observer=ledger)
        async with running(controller):
            for _ in range(10):
                controller.enqueue("a")  # something that belongs to the object has changed
                await clock.advance(600)
            assert papers.told == [("a", str(self.BAD))]
            assert len(self.lines(caplog)) == 1
            assert "$.spec.tier" in self.lines(caplog)[0]
            assert all(record.exc_info is None for record in caplog.records)
            papers.versions["a"] = 1
            controller.enqueue("a")
            await clock.advance(600)
            assert papers.told == [("a", str(self.BAD))] * 2, "changed, and no better"
            assert len(self.lines(caplog)) == 2

    async def test_is_said_again_when_it_is_so_once_more(self) -> None:
        clock, ledger, papers = FakeClock(), Ledger(), Papers()
        ledger.script["a"] = [self.BAD, None, self.BAD]
        controller = Controller("test", ledger.reconcile, objects=papers, clock=clock)
        async with running(controller):
            await clock.advance(0)
            for _ in range(3):
                controller.enqueue("a")
                await clock.advance(0)
        assert len(papers.told) == 2

    async def test_is_tried_again_later_each_time(self) -> None:
        """What cannot be read may be something that the object refers to, of which nobody hears when it changes."""
        clock, ledger = FakeClock(), Ledger()
        ledger.script["a"] = [self.BAD] * 1000
        controller = Controller("test", ledger.reconcile, clock=clock)
        async with running(controller):
            controller.enqueue("a")
            await clock.advance(3600)
            assert 18 < len(ledger.calls) < 25
            ledger.script["a"] = []
            await clock.advance(1000)
            calls = len(ledger.calls)
            await clock.advance(5000)
        assert len(ledger.calls) == calls, "and not any more when it could be read"

    async def test_another_fault_is_news(self) -> None:
        clock, ledger, papers = FakeClock(), Ledger(), Papers()
        ledger.script["a"] = [Unreadable("one"), Unreadable("two"), Unreadable("two")]
        controller = Controller("test", ledger.reconcile, objects=papers, clock=clock)
        async with running(controller):
            controller.enqueue("a")
            await clock.advance(1)
        assert papers.told == [("a", "one"), ("a", "two")]


async def test_an_unexpected_error_is_traced_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.script["a"] = [*[RuntimeError("boom")] * 5, KeyError("x"), *[RuntimeError("boom")] * 5]
    controller = Controller("test", ledger.reconcile, clock=clock)
    async with running(controller):
        controller.enqueue("a")
        await clock.advance(3600)
    assert len(ledger.calls) == 12
    traced = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert traced == [RuntimeError, KeyError, RuntimeError]


async def test_what_was_said_is_not_remembered_for_ever() -> None:
    clock = FakeClock()

    async def fail(key: str) -> None:
        raise Terminal("no")

    controller = Controller("test", fail, clock=clock)
    async with running(controller):
        for number in range(REMEMBERED_FAILURES + 50):
            controller.enqueue(str(number))
        await clock.advance(0)
    assert len(controller._said) == REMEMBERED_FAILURES


def test_all_ways_of_not_being_readable_are_one() -> None:
    for error in (UndecodableObject, InvalidObject, BadQuantity):
        assert issubclass(error, Unreadable)
        assert issubclass(error, ValueError)
