"""How a process begins."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.process import flags
from stromboli.process.entering import enter
from stromboli.process.options import LoggingOptions
from stromboli.process.running import StartupError


@dataclass(kw_only=True)
class Options(LoggingOptions):
    """What the process takes."""

    port: int = flags.integer(80, "where to listen")

    def check(self) -> None:
        """Refuse what cannot work."""
        self.check_logging()
        if self.port < 1:
            raise flags.FlagError(f"--port is {self.port}: expected 1 or more")


class Process:
    """Notes with what it was started."""

    def __init__(self) -> None:
        self.started: list[Options] = []

    async def serve(self, options: Options) -> None:
        self.started.append(options)
        if options.port == 81:
            raise StartupError("port 81 is taken")


def test_a_process_gets_what_the_command_line_says() -> None:
    process = Process()
    assert enter("p", Options, process.serve, ["--port=8080", "-v=2"]) == 0
    assert process.started == [Options(port=8080, verbosity=2)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--prot=1"], "p: error: unknown flag: --prot"),
        (["--port=x"], 'p: error: invalid argument "x"'),
        (["--port=0"], "p: error: --port is 0: expected 1 or more\n"),
        (["--log-format=xml"], 'p: error: invalid argument "xml" for --log-format: expected text or json\n'),
    ],
)
def test_a_flag_that_cannot_be_used_ends_it_before_it_has_begun(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    process = Process()
    assert enter("p", Options, process.serve, arguments) == 1
    assert process.started == []
    error = capsys.readouterr().err
    assert error.startswith(says)
    assert error.count("\n") == 1


def test_what_keeps_it_from_starting_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert enter("p", Options, Process().serve, ["--port=81"]) == 1
    assert "p: error: port 81 is taken\n" in capsys.readouterr().err


def test_the_time_to_stop_may_depend_on_the_flags() -> None:
    asked: list[int] = []

    def seconds(options: Options) -> float:
        asked.append(options.port)
        return 1.0

    assert enter("p", Options, Process().serve, ["--port=7"], stop_seconds=seconds) == 0
    assert asked == [7]
