"""Running pytest, and the tool around it, so that a signal lets both clean up."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

SUITE = Path(__file__).parents[1]
STOP_SECONDS = 60.0


async def run_pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the suite, or what the arguments say; a cancelled run is interrupted in a way that lets fixtures clean up."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", *chosen("", arguments), env=dict(environment), start_new_session=True
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.send_signal(signal.SIGINT)
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
        raise


def chosen(expression: str, arguments: Sequence[str], suite: Path = SUITE) -> list[str]:
    """pytest's arguments for the tests of a marker expression: of the whole suite, or of the files that are named.

    The user's own come last, so that they win.
    """
    named = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    return [*(["-m", expression] if expression else []), *([] if named else [str(suite)]), *arguments]


async def until_signalled(work: Coroutine[object, object, int]) -> int:
    """The exit code of ``work``, which SIGINT and SIGTERM cancel."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 130


def exit_code(program: str, work: Coroutine[object, object, int]) -> int:
    """Run to the end. An error that is meant for the user is one line, any other a traceback."""
    try:
        return asyncio.run(work)
    except Exception as error:
        if not getattr(error, "for_user", False):
            raise
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1
