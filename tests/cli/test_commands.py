"""Command lines are read as Go's flag library reads them, and help screens look as Cobra's do."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from stromboli.cli.commanding.commands import Command, Flag, choose, parse
from stromboli.cli.commanding.errors import UsageError
from stromboli.cli.commanding.running import Terminal, load, run
from stromboli.cli.vc import trees
from tests.cli.driving import TREES

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


@pytest.mark.parametrize("words", [(), ("job",), ("--help",), ("help", "job"), ("job", "list", "-h")])
def test_help_goes_to_standard_output_with_exit_code_zero(words: tuple[str, ...]) -> None:
    code, out, err = _run(*words)
    assert (code, err) == (0, "")
    assert "Usage:" in out


def test_the_help_screen_of_job_run() -> None:
    code, out, _ = _run("job", "run", "--help")
    assert code == 0
    assert out == JOB_RUN_HELP


JOB_RUN_HELP = """\
run job by parameters from the command line

Usage:
  vcctl job run [NAME] [flags]

Flags:
      --dry-run string      only "server": have the API server judge the request without carrying it out
  -f, --filename string     the yaml file of job
  -h, --help                help for run
  -i, --image string        the container image of job (default "busybox")
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -L, --limits string       the resource limit of the task (default "cpu=1000m,memory=100Mi")
  -s, --master string       the address of apiserver
  -m, --min int             the minimal available tasks of job (default 1)
  -N, --name string         the name of job
  -n, --namespace string    the namespace of job (default "default")
  -o, --output string       output format: json, yaml or name
  -r, --replicas int        the total tasks of job (default 1)
  -R, --requests string     the resource request of the task (default "cpu=1000m,memory=100Mi")
  -S, --scheduler string    the scheduler for this job (default "volcano")

Global Flags:
      --log-flush-frequency duration   Maximum number of seconds between log flushes (default 5s)
  -v, --v Level                        number for the log level verbosity
      --vmodule moduleSpec             comma-separated list of pattern=N settings for file-filtered logging
"""
