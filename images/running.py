"""Runs the tools that the builder stands on, and says in one line what went wrong with them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from images import ImageError

DEADLINE_SECONDS = 1800.0


def run(
    command: Sequence[str | Path],
    *,
    failed: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = DEADLINE_SECONDS,
) -> bytes:
    """Standard output of a command.

    Raises:
        ImageError: ``failed`` and the end of what the command said.
    """
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True
        )
    except FileNotFoundError as error:
        raise ImageError(f"{failed}: {command[0]} is not there") from error
    except subprocess.TimeoutExpired as error:
        raise ImageError(f"{failed}: no end after {seconds:.0f} s") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).decode(errors="replace").strip().splitlines()
        raise ImageError(f"{failed}: {' / '.join(said[-3:]) or f'exit code {error.returncode}'}") from error
    return done.stdout
