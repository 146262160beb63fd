"""Go-style command lines for the server processes, declared as dataclasses.

``--name=value`` and ``--name value``; booleans also bare (``--enable-metrics``); ``_`` may stand for ``-``;
durations as ``1m30s``; lists repeatable (:func:`repeated`, no splitting) or comma separated (:func:`separated`);
``--feature-gates=A=true,B=false`` as a map. Logging flags of klog that have no meaning here are accepted and named
in a warning. Source: spec 08 section 13.

A process declares::

    @dataclass
    class Options:
        schedule_period: float = duration("1s", "pause between cycles")
        enable_metrics: bool = boolean(False, "serve /metrics")

and calls ``parse(Options, sys.argv[1:], program="stromboli-scheduler")``.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from stromboli import __version__
from stromboli.api import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_IGNORED = (
    "vmodule", "logtostderr", "stderrthreshold", "alsologtostderr", "alsologtostderrthreshold", "log-dir", "log-file",
    "log-file-max-size", "add-dir-header", "skip-headers", "skip-log-headers", "one-output", "log-backtrace-at",
    "legacy-stderr-threshold-behavior", "log-flush-frequency",
)  # fmt: skip
_HARMLESS = frozenset({"logtostderr", "log-flush-frequency"})


class FlagError(Exception):
    """A command line that cannot be used; the text is one line naming the flag and what it takes."""


@dataclass(frozen=True, slots=True)
class _Spec:
    parse: Callable[[str], Any]
    help: str
    form: str  # value, boolean, repeated or separated
    short: str | None = None
    metavar: str = "VALUE"


def _flag(default: Any, spec: _Spec) -> Any:
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata={"flag": spec})
    return field(default=default, metadata={"flag": spec})


def text(default: str, help_text: str) -> Any:
    """A string flag."""
    return _flag(default, _Spec(str, help_text, "value", metavar="TEXT"))


def integer(default: int, help_text: str, *, short: str | None = None) -> Any:
    """A whole-number flag."""
    return _flag(default, _Spec(_integer, help_text, "value", short, "N"))


def number(default: float, help_text: str) -> Any:
    """A decimal flag."""
    return _flag(default, _Spec(_number, help_text, "value", metavar="NUMBER"))


def boolean(default: bool, help_text: str) -> Any:
    """A flag that may stand bare."""
    return _flag(default, _Spec(parse_boolean, help_text, "boolean", metavar="BOOL"))


def duration(default: str, help_text: str) -> Any:
    """A Go duration; the field holds seconds."""
    return _flag(_duration(default), _Spec(_duration, help_text, "value", metavar="DURATION"))


def repeated(default: list[str], help_text: str) -> Any:
    """A list given by repeating the flag; the first use replaces the default, commas do not split."""
    return _flag(default, _Spec(str, help_text, "repeated", metavar="TEXT"))


def separated(default: list[str], help_text: str) -> Any:
    """A list given by commas, by repeating the flag, or both; the first use replaces the default."""
    return _flag(default, _Spec(_split, help_text, "separated", metavar="A,B"))


def gates(help_text: str) -> Any:
    """A map of feature gates, ``Name=bool`` separated by commas."""
    return _flag({}, _Spec(_gates, help_text, "gates", metavar="NAME=BOOL,..."))


def parse_boolean(value: str) -> bool:
    """One of the twelve accepted spellings (spec 01 section 1.2).

    Raises:
        ValueError: any other text.
    """
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise ValueError("expected true or false")


def _integer(value: str) -> int:
    try:
        return int(value, 10)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError("expected a number") from None


def _duration(value: str) -> float:
    try:
        return durations.seconds(value)
    except ValueError:
        raise ValueError("expected a duration such as 1s, 500ms or 1m30s") from None


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _gates(value: str) -> dict[str, bool]:
    result: dict[str, bool] = {}
    for part in _split(value):
        name, equals, setting = part.partition("=")
        if not equals:
            raise ValueError(f'expected Name=bool, got "{part}"')
        result[name] = parse_boolean(setting)
    return result


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


def parse(options: type[T], arguments: Sequence[str], *, program: str) -> T:
    """Read ``arguments`` into an instance of the dataclass ``options``.

    ``--help`` and ``--version`` print and end the process with 0.

    Raises:
        FlagError: an unknown flag (with the nearest known one) or an unusable value.
    """
    parser = _parser(options, program)
    known = {action.option_strings[-1] for action in parser._actions if action.option_strings}  # noqa: SLF001
    namespace, unknown = parser.parse_known_args([_normal(argument) for argument in arguments])
    if unknown:
        raise FlagError(_unknown(unknown[0], known))
    ignored = [name for name in _IGNORED if getattr(namespace, name.replace("-", "_"), None) is not None]
    for name in ignored:
        if name not in _HARMLESS:
            print(f"{program}: warning: --{name} has no effect here", file=sys.stderr)
    given = {
        item.name: _merge(item, getattr(namespace, item.name))
        for item in dataclasses.fields(options)  # type: ignore[arg-type]
        if "flag" in item.metadata and getattr(namespace, item.name) is not None
    }
    return options(**given)


def _parser(options: type, program: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=program, allow_abbrev=False, formatter_class=argparse.HelpFormatter)
    parser.add_argument("--version", action="version", version=f"{program} {__version__}")
    mine: set[str] = set()
    for item in dataclasses.fields(options):
        spec = item.metadata.get("flag")
        if spec is not None:
            mine.add(item.name.replace("_", "-"))
            _add(parser, item.name, spec)
    for name in _IGNORED:
        if name not in mine:
            parser.add_argument(f"--{name}", nargs="?", const="", help=argparse.SUPPRESS)
    return parser


def _add(parser: argparse.ArgumentParser, name: str, spec: _Spec) -> None:
    flag = "--" + name.replace("_", "-")
    names = [flag] if spec.short is None else [f"-{spec.short}", f"--{spec.short}", flag]
    kwargs: dict[str, Any] = {
        "dest": name,
        "default": None,
        "help": spec.help.replace("%", "%%"),
        "metavar": spec.metavar,
    }
    kwargs["type"] = _checked(spec.parse, flag)
    if spec.form == "boolean":
        kwargs |= {"nargs": "?", "const": True}
    if spec.form in ("repeated", "separated", "gates"):
        kwargs["action"] = "append"
    parser.add_argument(*names, **kwargs)


def _checked(parse_value: Callable[[str], Any], flag: str) -> Callable[[str], Any]:
    def checked(value: str) -> Any:
        try:
            return parse_value(value)
        except ValueError as error:
            raise FlagError(f'invalid argument "{value}" for {flag}: {error}') from error

    return checked


def _merge(item: dataclasses.Field[Any], value: Any) -> Any:
    form = item.metadata["flag"].form
    if form == "separated":
        return [element for part in value for element in part]
    if form == "gates":
        return {name: setting for part in value for name, setting in part.items()}
    return value


def _normal(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value


def _unknown(argument: str, known: set[str]) -> str:
    name = argument.partition("=")[0]
    if not name.startswith("-"):
        return f'unexpected argument "{argument}": only flags are taken (see --help)'
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else " (see --help)"
    return f"unknown flag: {name}{hint}"
