"""How every process begins: flags, their checks, the log, the client of the API server (spec 08 sections 13 and 14)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TypeVar

from stromboli.kube.client import Client
from stromboli.process import flags, running
from stromboli.telemetry import logs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from stromboli.process.options import ClientOptions


class Settings(Protocol):
    """The options of a process, a dataclass of flags."""

    verbosity: int
    log_format: str

    def check(self) -> None:
        """Raises ``FlagError`` for the first setting that cannot work."""
        ...


S = TypeVar("S", bound=Settings)


def enter(
    program: str,
    options_type: type[S],
    serve: Callable[[S], Coroutine[object, object, None]],
    arguments: Sequence[str] | None = None,
    *,
    stop_seconds: Callable[[S], float] = lambda _: running.STOP_SECONDS,
) -> int:
    """Run ``serve`` with the options that the command line (or ``arguments``) gives; answers the exit code.

    A flag that cannot be used ends the process with one line and 1 before anything else happens.
    """
    try:
        options = flags.parse(options_type, sys.argv[1:] if arguments is None else arguments, program=program)
        options.check()
    except flags.FlagError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1
    logs.setup(options.verbosity, "json" if options.log_format == "json" else "text")
    return running.run(program, lambda: serve(options), stop_seconds=stop_seconds(options))


async def connect(options: ClientOptions, program: str) -> Client:
    """A client as the flags want it, to be closed by the caller. Raises ``ConfigurationError``."""
    return await Client.connect(
        kubeconfig=options.kubeconfig or None,
        master=options.master or None,
        qps=options.kube_api_qps,
        burst=options.kube_api_burst,
        user_agent=program,
    )
