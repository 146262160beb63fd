"""Files that a command line names."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from stromboli.cli.commanding.errors import CommandError


def text_of(name: str, what: str = "") -> str:
    """The text of a file, ``-`` for standard input. Raises CommandError in one line, ``what`` before the name."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{what}{name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{what}{name}: cannot be read: it is no UTF-8 text ({error.reason})") from error


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner reads: whole or not at all, so that an older one is never lost half-way.

    Pipes and devices are written to as they are. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # a link stays one
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
