"""Running a process's main coroutine: event loop, signals, exit codes.

SIGINT and SIGTERM cancel the main coroutine, which then has :data:`STOP_SECONDS` to clean up; a second signal exits
at once with 1. A :class:`StartupError` (or another error that is meant for the user) ends the process with one line
and exit code 1; anything unexpected ends it with a traceback in the log and exit code 1. Source: spec 08 section 14.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from stromboli.kube.errors import ConfigurationError, LeadershipLost
from stromboli.process.flags import FlagError
from stromboli.telemetry.listening import ListenError
from stromboli.telemetry.traces import TracesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

log = logging.getLogger(__name__)

STOP_SECONDS = 30.0


class StartupError(Exception):
    """The process cannot start or go on; the text is one line that names the offender and the next step."""


USER_ERRORS: tuple[type[BaseException], ...] = (
    StartupError,
    FlagError,
    ListenError,
    TracesError,
    ConfigurationError,
    LeadershipLost,
)
"""Errors whose text is for the user: printed as one line, without a traceback."""


def run(
    program: str, main: Callable[[], Coroutine[object, object, None]], *, stop_seconds: float = STOP_SECONDS
) -> int:
    """Run ``main`` to its end or to a signal, after which it has ``stop_seconds`` to clean up; answers the exit code.

    Errors in ``USER_ERRORS`` and any exception class with a true ``for_user`` attribute are printed as one line.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_supervised(main, stop_seconds))
    except asyncio.CancelledError:
        return 0
    except Exception as error:
        return _report(program, error)
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


async def _supervised(main: Callable[[], Awaitable[None]], stop_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    stopping = False

    def stop(name: str) -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        log.info("stopping on %s", name)
        task.cancel()
        loop.call_later(stop_seconds, os._exit, 1)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number.name)
    try:
        await task
    except asyncio.CancelledError:
        if not stopping:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The single errors inside a (nested) group, in order."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def _report(program: str, failure: BaseException) -> int:
    for error in leaves(failure):
        if isinstance(error, USER_ERRORS) or getattr(error, "for_user", False):
            print(f"{program}: error: {error}", file=sys.stderr)
        else:
            log.critical("%s ends on an unexpected error", program, exc_info=error)
    return 1
