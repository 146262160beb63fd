"""Commands as data: names, flags and where the code is. Nothing is imported before a command runs (spec 08, 1).

Flags are read the way Go's pflag reads them, as scripts rely on it: ``--name=x``, ``--name x``, ``-n x``, ``-n=x``,
``-nx``, ``--all-namespaces``, ``--all-namespaces=false``, ``--`` ends the flags, and ``_`` in a name means ``-``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.cli.commanding.errors import UsageError

FlagValue = str | int | bool | tuple[str, ...]


@dataclass(frozen=True)
class Flag:
    """One flag. The type of ``default`` is the type of its value; a tuple collects every occurrence."""

    name: str
    usage: str
    short: str = ""
    default: FlagValue = ""
    word: str = ""
    """What the help screen calls the value; by default the name of its type."""
    completes: str = ""
    """What shells offer as value: words with ``|`` between, or the plural of a resource whose names are asked for."""

    @property
    def takes_value(self) -> bool:
        """Whether a word follows the flag."""
        return not isinstance(self.default, bool)

    def read(self, text: str) -> FlagValue:
        """The value that a word stands for. Raises UsageError."""
        if isinstance(self.default, bool):
            return self._boolean(text)
        if isinstance(self.default, int):
            return self._number(text)
        return text

    def _boolean(self, text: str) -> bool:
        if text not in _BOOLEANS:
            raise UsageError(f'invalid argument "{text}" for "{self.label}" flag: expected true or false')
        return _BOOLEANS[text]

    def _number(self, text: str) -> int:
        try:
            number = int(text, 0)
        except ValueError as error:
            raise UsageError(f'invalid argument "{text}" for "{self.label}" flag: expected a whole number') from error
        if not -_LARGEST - 1 <= number <= _LARGEST:
            raise UsageError(f'invalid argument "{text}" for "{self.label}" flag: value out of range')
        return number

    @property
    def label(self) -> str:
        """``-n, --name``, as errors and help name it."""
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


_LARGEST = 2**63 - 1
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}

HELP = Flag("help", "", "h", default=False)
GLOBAL_FLAGS: tuple[Flag, ...] = (
    Flag(
        "log-flush-frequency", "Maximum number of seconds between log flushes (default 5s)", default="", word="duration"
    ),
    Flag("v", "number for the log level verbosity", "v", word="Level"),
    Flag("vmodule", "comma-separated list of pattern=N settings for file-filtered logging", word="moduleSpec"),
)
CONNECTION_FLAGS: tuple[Flag, ...] = (
    Flag("kubeconfig", "(optional) absolute path to the kubeconfig file", "k"),
    Flag("master", "the address of apiserver", "s"),
)


@dataclass(frozen=True)
class Command:
    """A command: either a group of ``children``, or a leaf whose code ``run`` names as ``module:function``."""

    name: str
    short: str
    run: str = ""
    flags: tuple[Flag, ...] = ()
    children: tuple[Command, ...] = ()
    argument: str = ""
    """A word that may follow without a flag, such as ``NAME``; with ``...`` in it any number of words."""
    long: str = ""
    example: str = ""
    completes: str = ""
    """What shells offer for ``argument``, as of a flag."""
    kubectl_style: bool = False
    """Whether failures are told as kubectl tells its own: ``error: ...``, exit code 1."""

    def child(self, name: str) -> Command | None:
        """The sub-command of that name."""
        return next((child for child in self.children if child.name == name), None)

    @property
    def all_flags(self) -> tuple[Flag, ...]:
        """Its own flags, help and the global ones."""
        return (*self.flags, HELP, *GLOBAL_FLAGS)


@dataclass(frozen=True)
class Arguments:
    """What was asked for: flag values (defaults filled in) and the words that are no flags."""

    values: Mapping[str, FlagValue] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    """Flags that were on the command line."""

    def text(self, flag: str) -> str:
        """The value of a text flag."""
        return str(self.values.get(flag, ""))

    def number(self, flag: str) -> int:
        """The value of a number flag."""
        value = self.values.get(flag, 0)
        return value if isinstance(value, int) else 0

    def on(self, flag: str) -> bool:
        """The value of a switch."""
        return self.values.get(flag) is True

    def all(self, flag: str) -> tuple[str, ...]:
        """Every occurrence of a repeatable flag."""
        value = self.values.get(flag, ())
        return value if isinstance(value, tuple) else (str(value),)

    @property
    def name(self) -> str:
        """``--name``, or else the first word."""
        return self.text("name") or (self.words[0] if self.words else "")


@dataclass(frozen=True)
class Chosen:
    """The command that a command line names, the path to it, and what is left of the line."""

    path: tuple[Command, ...]
    rest: tuple[str, ...]

    @property
    def command(self) -> Command:
        """The last command of the path."""
        return self.path[-1]


def choose(root: Command, line: Sequence[str]) -> Chosen:
    """Walk down the tree as far as the words go. Raises UsageError for a word that names no sub-command."""
    path, rest = [root], list(line)
    while path[-1].children:
        at = _next_word(path[-1], rest)
        if at is None:
            break
        child = path[-1].child(rest[at])
        if child is None:
            hint = _near(rest[at], path[-1]) or _elsewhere(rest[at], root)
            raise UsageError(f'unknown command "{rest[at]}" for "{spelled(path)}"{hint}', path)
        path.append(child)
        del rest[at]
    return Chosen(tuple(path), tuple(rest))


def spelled(path: Sequence[Command]) -> str:
    """``vcctl job list``."""
    return " ".join(command.name for command in path)


def _next_word(command: Command, words: Sequence[str]) -> int | None:
    """Index of the first word that is neither a flag nor a flag's value."""
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            return None
        elif word.startswith("-") and len(word) > 1:
            flag = _lookup(command.all_flags, word)
            skip = flag is not None and flag.takes_value and "=" not in word and (word[1] == "-" or len(word) == 2)
        else:
            return index
    return None


def _lookup(flags: Sequence[Flag], word: str) -> Flag | None:
    name = word.partition("=")[0]
    if name.startswith("--"):
        wanted = name[2:].replace("_", "-")
        return next((flag for flag in flags if flag.name == wanted), None)
    return next((flag for flag in flags if flag.short == name[1:2]), None)


def _near(word: str, command: Command) -> str:
    import difflib

    near = difflib.get_close_matches(word, [child.name for child in command.children], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _elsewhere(word: str, root: Command) -> str:
    """A command of that name in another place of the tree: ``vcctl explain`` is ``vcctl job explain``."""
    places = [
        spelled([root, group, child]) for group in root.children for child in group.children if child.name == word
    ]
    return f"; did you mean {' or '.join(repr(place) for place in places)}?" if places else ""


def _command_flag(command: Command) -> str:
    """Where the words of ``vsub -n train -- sleep 60`` belong, for whoever knows them from ``kubectl create``."""
    flag = next((flag for flag in command.flags if flag.name == "command"), None)
    return f"; the command to run is the one word after {flag.label}" if flag else ""


def parse(command: Command, line: Sequence[str]) -> Arguments:
    """Read flags and words. Raises UsageError naming the flag at fault."""
    values: dict[str, FlagValue] = {flag.name: flag.default for flag in command.all_flags}
    words: list[str] = []
    given: set[str] = set()
    rest = iter(line)
    for word in rest:
        if word == "--":
            words.extend(rest)
        elif word.startswith("-") and len(word) > 1:
            for flag, value in _read(command, word, rest):
                earlier = values[flag.name]
                values[flag.name] = (*earlier, str(value)) if isinstance(earlier, tuple) else value
                given.add(flag.name)
        else:
            words.append(word)
    if "..." not in command.argument and len(words) > bool(command.argument):
        raise UsageError(f'unexpected argument "{words[bool(command.argument)]}"{_command_flag(command)}')
    return Arguments(values, tuple(words), frozenset(given))


def _read(command: Command, word: str, rest: Iterator[str]) -> Iterator[tuple[Flag, FlagValue]]:
    if word.startswith("--"):
        flag = _lookup(command.all_flags, word)
        if flag is None:
            raise UsageError(f"unknown flag: {word.partition('=')[0]}{_near_flag(word, command)}")
        name, equals, text = word.partition("=")
        yield flag, flag.read(text) if equals else _following(flag, name, rest)
        return
    letters = word[1:]
    while letters:
        flag = _lookup(command.all_flags, f"-{letters}")
        if flag is None:
            raise UsageError(f"unknown shorthand flag: '{letters[0]}' in {word}")
        letters = letters[1:]
        if letters.startswith("="):
            yield flag, flag.read(letters[1:])
            return
        if flag.takes_value:
            yield flag, flag.read(letters) if letters else _following(flag, f"'{flag.short}' in {word}", rest)
            return
        yield flag, True


def _following(flag: Flag, name: str, rest: Iterator[str]) -> FlagValue:
    if not flag.takes_value:
        return True
    value = next(rest, None)
    if value is None:
        raise UsageError(f"flag needs an argument: {name}")
    return flag.read(value)


def _near_flag(word: str, command: Command) -> str:
    import difflib

    name = word.partition("=")[0]
    if command.children and command.child(name[2:]):
        return f"; did you mean the command {name[2:]!r}?"
    names = [f"--{flag.name}" for flag in command.all_flags]
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
