"""From a command line to an exit code: choose, parse, run, and say on stderr what went wrong (spec 08 section 1).

Exit codes: 0 done, 1 the command line makes no sense, 255 the command failed, 130 interrupted. Failures are told on
stderr (Volcano's go to stdout, where they end up in what is piped on).
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from stromboli.cli.commanding.commands import Arguments, Chosen, Command, choose, parse
from stromboli.cli.commanding.errors import FAILURE_EXIT, INTERRUPTED_EXIT, USAGE_EXIT, CommandError, UsageError
from stromboli.cli.commanding.screens import help_screen, usage

if TYPE_CHECKING:
    from stromboli.cli.commanding.api import Api
    from stromboli.cli.commanding.kubeconfig import Target


UNKNOWN_KIND = "the server could not find the requested resource"
"""What API servers say of a kind that they do not serve."""


def _open_for_all(stream: TextIO | None) -> TextIO:
    """The stream, where letters that its encoding lacks are spelled out; nowhere, when it was closed (``>&-``)."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


@dataclass(frozen=True)
class Terminal:
    """What a command sees of the world; tests give their own."""

    out: TextIO = field(default_factory=lambda: _open_for_all(sys.stdout))
    err: TextIO = field(default_factory=lambda: _open_for_all(sys.stderr))
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], float] = time.time
    """Seconds since the epoch."""


@dataclass(frozen=True)
class Invocation:
    """One run of a command."""

    arguments: Arguments
    terminal: Terminal
    root: Command

    def say(self, line: str = "") -> None:
        """One line on standard output."""
        self.terminal.out.write(line + "\n")
        self.terminal.out.flush()

    def warn(self, line: str) -> None:
        """One line on standard error."""
        self.terminal.err.write(line + "\n")

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.terminal.now()

    def namespace(self, api: Api) -> str:
        """The namespace asked for; else, under kubectl's name, that of the context as kubectl users expect."""
        asked = self.arguments.text("namespace")
        if "namespace" not in self.arguments.given and self.root.name.startswith("kubectl"):
            return api.target.namespace or asked or "default"
        return asked

    def target(self) -> Target:
        """The cluster that flags, environment and files name. Raises ConfigurationError."""
        from stromboli.cli.commanding.kubeconfig import find

        arguments = self.arguments
        return find(arguments.text("kubeconfig"), arguments.text("master"), self.terminal.environment)

    def connect(self) -> Api:
        """A client for that cluster. Raises ConfigurationError."""
        from stromboli.cli.commanding.api import Api

        return Api(self.target())


def run(root: Command, line: Sequence[str], terminal: Terminal | None = None) -> int:
    """Run a command line; answers the exit code."""
    terminal = terminal or Terminal()
    try:
        code = _run(root, line, terminal)
        terminal.out.flush()
        return code
    except UsageError as error:
        terminal.err.write(f"{usage(error.path or (root,))}\nError: {error}\n")
        return USAGE_EXIT
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    except BrokenPipeError:
        _drop_output()  # the reader has seen enough
        return 0
    except OSError as error:
        _drop_output()
        where = "the output cannot be written" if error.filename is None else str(error.filename)
        terminal.err.write(f"error: {where}: {error.strerror or error}\n")
        return FAILURE_EXIT


def _drop_output() -> None:
    """Python would complain once more when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(root: Command, line: Sequence[str], terminal: Terminal) -> int:
    words = [*line[1:], "--help"] if list(line[:1]) == ["help"] and root.children else list(line)
    chosen = choose(root, words)
    arguments = _parsed(chosen)
    if arguments.on("help") or not chosen.command.run:
        terminal.out.write(help_screen(chosen.path))
        return 0
    return _execute(chosen, Invocation(arguments, terminal, root))


def _parsed(chosen: Chosen) -> Arguments:
    if "--help" in chosen.rest or "-h" in chosen.rest[: _end_of_flags(chosen.rest)]:
        return Arguments({"help": True})
    try:
        return parse(chosen.command, chosen.rest)
    except UsageError as error:
        raise UsageError(str(error), chosen.path) from error


def _end_of_flags(words: Sequence[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _execute(chosen: Chosen, invocation: Invocation) -> int:
    from stromboli.kube.errors import KubeError

    try:
        load(chosen.command)(invocation)
    except (CommandError, KubeError, RecursionError) as error:
        told = _told(error)
        if chosen.command.kubectl_style:
            invocation.warn(f"error: {told}")
            return USAGE_EXIT
        names = " ".join(command.name for command in reversed(chosen.path[1:]))
        what = f"Failed to {names}" if names else "Failed to"
        invocation.warn(f"{what}: {told}")
        return FAILURE_EXIT
    return 0


def _told(error: Exception) -> str:
    """The error in one line: verbatim what the server said, and what to look at where that does not say it."""
    from stromboli.kube.errors import ApiError, MalformedAnswer, NotFound

    if isinstance(error, RecursionError):
        return "what was given is nested too deep to be read"
    if isinstance(error, MalformedAnswer):
        return f"{error}; is the address that of an API server?"
    if isinstance(error, NotFound) and error.message == UNKNOWN_KIND:
        return f"{error.message}; are the definitions of Job, Queue and the like installed in this cluster?"
    return error.message if isinstance(error, ApiError) else str(error)


def load(command: Command) -> Callable[[Invocation], None]:
    """The code of a leaf command."""
    module, _, function = command.run.partition(":")
    found: Callable[[Invocation], None] = getattr(import_module(module), function)
    return found
