"""Command lines are read as Go's flag library reads them, and help screens look as Cobra's do."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from stromboli.cli.commanding.commands import Command, Flag, choose, parse
from stromboli.cli.commanding.errors import UsageError
from stromboli.cli.commanding.running import Terminal, load, run
from stromboli.cli.vc import trees
from tests.cli.driving import TREES

GOLDEN = Path(__file__).parent / "golden"

LEAF = Command(
    "leaf",
    "a leaf",
    "x:y",
    (
        Flag("name", "", "n"),
        Flag("min", "", "m", 1),
        Flag("all-namespaces", "", "a", default=False),
        Flag("set", "", default=()),
    ),
    argument="NAME",
)

READINGS: dict[str, tuple[str, dict[str, object]]] = {
    "nothing gives the defaults": ("", {"name": "", "min": 1, "all-namespaces": False}),
    "a long flag and a word": ("--name x", {"name": "x"}),
    "a long flag with an equals sign": ("--name=x=y", {"name": "x=y"}),
    "an empty value": ("--name=", {"name": ""}),
    "a short flag and a word": ("-n x", {"name": "x"}),
    "a short flag glued to its value": ("-nx", {"name": "x"}),
    "a short flag with an equals sign": ("-n=x", {"name": "x"}),
    "a number": ("-m 3", {"min": 3}),
    "a switch": ("--all-namespaces", {"all-namespaces": True}),
    "a switch that is turned off": ("--all-namespaces=false", {"all-namespaces": False}),
    "a switch before a short flag in one word": ("-anx", {"all-namespaces": True, "name": "x"}),
    "underscores for dashes": ("--all_namespaces", {"all-namespaces": True}),
    "the last value wins": ("-n a -n b", {"name": "b"}),
    "a repeatable flag collects": ("--set a --set=b", {"set": ("a", "b")}),
    "log flags of every tool are taken": ("-v 4 --vmodule=a=1 --log-flush-frequency 3s", {"v": "4"}),
}


@pytest.mark.parametrize("name", READINGS)
def test_flags_are_read(name: str) -> None:
    line, want = READINGS[name]
    found = parse(LEAF, line.split()).values
    assert {key: found[key] for key in want} == want


def test_what_follows_two_dashes_is_words() -> None:
    assert parse(trees.CREATE_VCJOB, ["a", "--", "sleep", "-n"]).words == ("a", "sleep", "-n")


REFUSALS = {
    "an unknown flag, with the nearest one": ("--nam x", "unknown flag: --nam; did you mean --name?"),
    "an unknown shorthand": ("-z", "unknown shorthand flag: 'z' in -z"),
    "a flag at the end": ("--name", "flag needs an argument: --name"),
    "a word for a number": ("-m two", 'invalid argument "two" for "-m, --min" flag: expected a whole number'),
    "a word for a switch": (
        "--all-namespaces=maybe",
        'invalid argument "maybe" for "-a, --all-namespaces" flag: expected true or false',
    ),
    "a second word": ("a b", 'unexpected argument "b"'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_lines_that_make_no_sense_are_refused(name: str) -> None:
    line, want = REFUSALS[name]
    with pytest.raises(UsageError) as raised:
        parse(LEAF, line.split())
    assert str(raised.value) == want


def test_vsub_says_where_the_words_of_a_command_belong() -> None:
    with pytest.raises(UsageError) as raised:
        parse(trees.VSUB, ["-n", "train", "--", "sleep", "100"])
    assert str(raised.value) == 'unexpected argument "sleep"; the command to run is the one word after -c, --command'


def test_flags_may_stand_before_the_sub_command() -> None:
    chosen = choose(trees.vcctl(), ["-v", "3", "job", "--namespace=x", "list"])
    assert [command.name for command in chosen.path] == ["vcctl", "job", "list"]
    assert chosen.rest == ("-v", "3", "--namespace=x")


def _leaves(command: Command) -> Iterator[Command]:
    if command.run:
        yield command
    for child in command.children:
        yield from _leaves(child)


@pytest.mark.parametrize("tool", TREES)
def test_every_leaf_has_code_and_flags_without_clashes(tool: str) -> None:
    for command in _leaves(TREES[tool]):
        assert callable(load(command))
        names = [flag.name for flag in command.all_flags]
        shorts = [flag.short for flag in command.all_flags if flag.short]
        assert len(set(names)) == len(names), command.name
        assert len(set(shorts)) == len(shorts), command.name


def _run(*words: str) -> tuple[int, str, str]:
    terminal = Terminal(out=io.StringIO(), err=io.StringIO(), environment={})
    code = run(trees.vcctl(), words, terminal)
    return code, terminal.out.getvalue(), terminal.err.getvalue()  # type: ignore[attr-defined]


def test_an_unknown_command_prints_usage_and_exits_with_one() -> None:
    code, out, err = _run("job", "lst")
    assert (code, out) == (1, "")
    assert err.endswith('Error: unknown command "lst" for "vcctl job"; did you mean \'list\'?\n')
    assert "Usage:\n  vcctl job [command]" in err


def test_a_flag_that_is_a_command_is_told() -> None:
    code, out, err = _run("--version")
    assert (code, out) == (1, "")
    assert err.endswith("Error: unknown flag: --version; did you mean the command 'version'?\n")


@pytest.mark.parametrize("words", [(), ("job",), ("--help",), ("help", "job"), ("job", "list", "-h")])
def test_help_goes_to_standard_output_with_exit_code_zero(words: tuple[str, ...]) -> None:
    code, out, err = _run(*words)
    assert (code, err) == (0, "")
    assert "Usage:" in out


SCREENS = sorted(path.stem for path in GOLDEN.glob("*.txt"))


def test_there_are_golden_screens() -> None:
    assert {"vcctl", "vcctl-job", "vcctl-job-list", "vcctl-job-run", "vcctl-job-suspend"} <= set(SCREENS)


@pytest.mark.parametrize("name", SCREENS)
def test_help_screens(name: str) -> None:
    """Names of files are command lines with dashes for blanks. Scripts read these screens: change them knowingly."""
    tool = next(tool for tool in sorted(TREES, key=len, reverse=True) if name == tool or name.startswith(f"{tool}-"))
    words = name.removeprefix(tool).strip("-").split("-")
    terminal = Terminal(out=io.StringIO(), err=io.StringIO(), environment={})
    assert run(TREES[tool], [*filter(None, words), "--help"], terminal) == 0
    assert terminal.out.getvalue() == (GOLDEN / f"{name}.txt").read_text()  # type: ignore[attr-defined]
