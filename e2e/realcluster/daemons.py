"""Running one program beside the tests: started with a log file, waited for, stopped by its own process id."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

POLL_SECONDS = 0.05
STOP_SECONDS = 20.0


class DaemonError(Exception):
    """A program could not be started, or has ended by itself; the text holds the end of its log and where it is."""

    for_user = True


class Daemon:
    """One running program. Make it with :meth:`start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name, self.log = name, log
        self._process = process

    @classmethod
    async def start(cls, name: str, argv: Sequence[str | Path], logs: Path) -> Daemon:
        """Start a program in a session of its own, so that a terminal's Ctrl-C reaches only who stops it in order."""
        path = logs / f"{name}.log"
        with path.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *map(str, argv), stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return cls(name, process, path)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def check(self) -> None:
        """Raises DaemonError when it has ended by itself."""
        if not self.alive:
            raise DaemonError(f"{self.name} ended with exit code {self._process.returncode}\n{self._tail()}")

    async def until(self, condition: Callable[[], Awaitable[bool]], *, within: float) -> None:
        """Wait for a condition.

        Raises:
            DaemonError: the program ended first, or the time was not enough.
        """
        deadline = time.monotonic() + within
        while not await condition():
            self.check()
            if time.monotonic() > deadline:
                raise DaemonError(f"{self.name} was not ready after {within:.0f} s\n{self._tail()}")
            await asyncio.sleep(POLL_SECONDS)

    async def wait(self) -> int:
        """Wait for the end; answers the exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """Stop it and wait for its end; what does not listen is killed."""
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    def _tail(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace")
        return "\n".join([*text.splitlines()[-lines:], f"log: {self.log}"])
