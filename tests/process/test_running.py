import asyncio
import os
import signal
import subprocess
import sys

import pytest

from stromboli.process.running import StartupError, run


async def returns() -> None:
    return


async def refuses() -> None:
    raise StartupError("no kubeconfig at /x; give --kubeconfig")


async def refuses_inside_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(refuses())


def test_a_main_that_returns_exits_with_zero() -> None:
    assert run("p", returns) == 0


@pytest.mark.parametrize("main", [refuses, refuses_inside_a_group])
def test_an_error_for_the_user_is_one_line(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("p", main) == 1  # type: ignore[arg-type]
    assert capsys.readouterr().err == "p: error: no kubeconfig at /x; give --kubeconfig\n"


SLEEPER = """
import asyncio, sys
from stromboli.process.running import run

async def main():
    try:
        print("up", flush=True)
        await asyncio.Event().wait()
    finally:
        print("cleaned", flush=True)

sys.exit(run("p", main))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_main_clean_up_and_exits_with_zero(number: signal.Signals) -> None:
    child = subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True, env=os.environ)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        child.send_signal(number)
        assert child.stdout.readline() == "cleaned\n"
        assert child.wait(timeout=30) == 0
