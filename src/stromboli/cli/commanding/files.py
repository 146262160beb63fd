"""Files that a command line names."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path

from stromboli.cli.commanding.errors import CommandError


def text_of(name: str, what: str = "") -> str:
    """The text of a file, ``-`` for standard input. Raises CommandError in one line, ``what`` before the name."""
    where = "standard input" if name == "-" else name
    try:
        return bytes_of(name).decode()
    except OSError as error:
        raise CommandError(f"{what}{where}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{what}{where}: cannot be read: it is no UTF-8 text ({error.reason})") from error


def bytes_of(name: str) -> bytes:
    """What is in a file, ``-`` for standard input, which may have been closed (``<&-``). Raises OSError."""
    if name != "-":
        return Path(name).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer.read()


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
