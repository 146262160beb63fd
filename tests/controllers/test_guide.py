"""Runs the code of ``docs/guide/writing-a-controller.md`` as it is printed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.core import Namespace, Queue, from_builtins

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "writing-a-controller.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def namespace(name: str, **labels: str) -> Namespace:
    return from_builtins(Namespace, {"metadata": {"name": name, "labels": labels}})


def queue(name: str) -> Queue:
    return from_builtins(Queue, {"metadata": {"name": name}})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    """Everything that the guide's code defines, in one module's namespace."""
    defined: dict[str, Any] = {"namespace": namespace, "queue": queue, "until": until, "__name__": "guide"}
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"{GUIDE.name} block {number}", "exec", dont_inherit=True), defined)
    return defined


def test_the_guide_has_code(printed: dict[str, Any]) -> None:
    assert len(BLOCKS) == 4
    assert {"plan", "TeamQueues"} <= printed.keys()


def test_the_guides_plan(printed: dict[str, Any]) -> None:
    printed["test_a_labelled_namespace_gets_a_queue"]()


async def test_the_guides_controller(printed: dict[str, Any]) -> None:
    await printed["test_a_refused_write_is_tried_again"]()
