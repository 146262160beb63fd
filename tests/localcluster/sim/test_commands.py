"""What can be read off a container's command."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.localcluster.nodes.commands import Outcome, outcome


@dataclass(frozen=True)
class Case:
    argv: list[str]
    want: Outcome | None


CASES = {
    "sleep takes its seconds": Case(["sleep", "3"], Outcome(3, 0)),
    "a path does not matter": Case(["/bin/sleep", "0.5"], Outcome(0.5, 0)),
    "units of sleep": Case(["sleep", "1m", "2s"], Outcome(62, 0)),
    "sleep without end": Case(["sleep", "infinity"], Outcome(math.inf, 0)),
    "sleep of nonsense is unknown": Case(["sleep", "soon"], None),
    "true ends well": Case(["true"], Outcome(0, 0)),
    "false ends badly": Case(["false"], Outcome(0, 1)),
    "no command is unknown": Case([], None),
    "any program is unknown": Case(["nginx", "-g", "daemon off;"], None),
    "a shell with sleep and exit": Case(["sh", "-c", "sleep 2; exit 3"], Outcome(2, 3)),
    "exit codes wrap at 256": Case(["sh", "-c", "exit 257"], Outcome(0, 1)),
    "nothing runs after exit": Case(["sh", "-c", "exit 1; sleep 9"], Outcome(0, 1)),
    "and stops at a failure": Case(["bash", "-c", "false && sleep 9"], Outcome(0, 1)),
    "or runs after a failure": Case(["sh", "-c", "false || sleep 2"], Outcome(2, 0)),
    "or is skipped after success": Case(["sh", "-c", "true || exit 4"], Outcome(0, 0)),
    "echo is output": Case(["sh", "-c", 'echo "hello world"; sleep 1'], Outcome(1, 0, ("hello world",))),
    "lines are commands": Case(["sh", "-c", "sleep 1\nexit 2\n"], Outcome(1, 2)),
    "an unknown part makes all unknown": Case(["sh", "-c", "sleep 1; make install"], None),
    "a pipe is unknown": Case(["sh", "-c", "echo a | wc"], None),
    "a redirection is unknown": Case(["sh", "-c", "echo a > file"], None),
    "a loop is unknown": Case(["sh", "-c", "while true; do sleep 1; done"], None),
    "a variable in exit is unknown": Case(["sh", "-c", "exit $CODE"], None),
    "an open quote is unknown": Case(["sh", "-c", 'echo "a'], None),
    "a shell without -c is unknown": Case(["sh", "script.sh"], None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_outcome(case: Case) -> None:
    assert outcome(case.argv) == case.want


@given(st.text(max_size=200))
def test_no_script_breaks_the_reader(script: str) -> None:
    known = outcome(["sh", "-c", script])
    assert known is None or (known.seconds >= 0 and 0 <= known.exit_code < 256)
