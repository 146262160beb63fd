from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from stromboli.kube.controlling import Controller, Outcome, Result, Terminal
from stromboli.kube.errors import Conflict
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
