"""Running controllers side by side: one that cannot start yet is tried again, one that breaks ends them all."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.controllers.assembling import run_all
from stromboli.kube.errors import NotSynced


class Controller:
    """Fails as it is told to, then works until it is let go."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.working = asyncio.Event()

    async def run(self) -> None:
        if self._failures:
            raise self._failures.pop(0)
        self.working.set()
        await asyncio.Event().wait()


async def test_a_controller_whose_caches_do_not_fill_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    late = Controller(
        NotSynced("jobs: not listed"),
        ExceptionGroup("several", [ExceptionGroup("nested", [NotSynced("queues: not listed")])]),
    )
    ready = Controller()
    running = asyncio.create_task(run_all({"late-controller": late, "ready-controller": ready}))
    async with asyncio.timeout(5):
        await ready.working.wait()
        await late.working.wait()
    assert [record.getMessage() for record in caplog.records] == [
        "late-controller does not work yet: jobs: not listed",
        "late-controller does not work yet: queues: not listed",
    ]
    running.cancel()


@pytest.mark.parametrize(
    "failure", [RuntimeError("broken"), ExceptionGroup("several", [NotSynced("x"), RuntimeError("broken")])]
)
async def test_anything_else_ends_the_process(failure: Exception) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await run_all({"broken": Controller(failure), "ready": Controller()})
    assert caught.value.subgroup(RuntimeError) is not None
