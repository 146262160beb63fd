"""Errors of command lines, by the exit code they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.cli.commanding.commands import Command

USAGE_EXIT, FAILURE_EXIT, INTERRUPTED_EXIT = 1, 255, 130


class UsageError(Exception):
    """The command line makes no sense: usage and one line on stderr, exit code 1."""

    def __init__(self, message: str, path: Sequence[Command] = ()) -> None:
        super().__init__(message)
        self.path = tuple(path)


class CommandError(Exception):
    """The command cannot do what it was asked for: ``Failed to ...: <message>``, exit code 255."""
