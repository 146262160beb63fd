"""Reading files that a command line names."""

from __future__ import annotations

from pathlib import Path

from stromboli.cli.commanding.errors import CommandError


def text_of(name: str, what: str = "") -> str:
    """The text of a file. Raises CommandError in one line; ``what`` stands before the name there."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{what}{name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{what}{name}: cannot be read: it is no UTF-8 text ({error.reason})") from error
