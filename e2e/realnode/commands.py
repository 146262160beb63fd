"""Running one command to its end."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path

SECONDS = 600.0


class CommandError(Exception):
    """A command failed; the text is its command line and the end of what it said."""

    for_user = True


async def run(*command: str | Path, stdin: str = "", seconds: float = SECONDS) -> str:
    """Standard output of a command.

    Raises:
        CommandError: it is not there, failed, or did not end in time.
    """
    line = " ".join(map(str, command))
    try:
        process = await asyncio.create_subprocess_exec(*map(str, command), stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except FileNotFoundError as error:
        raise CommandError(f"{line}: {command[0]} is not there") from error
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), seconds)
    except TimeoutError as error:
        raise CommandError(f"{line}: no end after {seconds:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = (err or out).decode(errors="replace").strip().splitlines()
        raise CommandError(f"{line}: exit code {process.returncode}: {' / '.join(said[-5:])}")
    return out.decode(errors="replace")
