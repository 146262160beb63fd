"""Help screens, laid out as Cobra lays them out: the tools that read them know that layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stromboli.cli.commanding.commands import GLOBAL_FLAGS, Command, Flag, spelled

HELP_COMMAND = Command("help", "Help about any command")
"""Stands in the list of the root's commands; what it does is done before commands are chosen."""


def help_screen(path: Sequence[Command]) -> str:
    """What ``--help`` prints."""
    command = path[-1]
    return f"{command.long or command.short}\n\n{usage(path)}"


def usage(path: Sequence[Command]) -> str:
    """Everything of the help screen but the description; printed before usage errors."""
    command, parts = path[-1], [_usage_lines(path)]
    if command.example:
        parts.append("Examples:\n" + "\n".join(f"  {line}" for line in command.example.splitlines()))
    if command.children:
        parts.append(_commands((*command.children, HELP_COMMAND) if len(path) == 1 else command.children))
    help_flag = Flag("help", f"help for {command.name}", "h", default=False)
    parts.append("Flags:\n" + _flags((*command.flags, help_flag, *(GLOBAL_FLAGS if len(path) == 1 else ()))))
    if len(path) > 1:
        parts.append("Global Flags:\n" + _flags(GLOBAL_FLAGS))
    if command.children:
        parts.append(f'Use "{spelled(path)} [command] --help" for more information about a command.')
    return "\n\n".join(parts) + "\n"


def _usage_lines(path: Sequence[Command]) -> str:
    command, name = path[-1], spelled(path)
    lines = []
    if command.run:
        argument = command.argument if " " in command.argument else f"[{command.argument}]"
        lines.append(f"  {name} {argument} [flags]" if command.argument else f"  {name} [flags]")
    if command.children:
        lines.append(f"  {name} [command]")
    return "Usage:\n" + "\n".join(lines)


def _commands(commands: Sequence[Command]) -> str:
    children = sorted(commands, key=lambda child: child.name)
    width = max(11, *(len(child.name) for child in children))
    return "Available Commands:\n" + "\n".join(f"  {child.name:<{width}} {child.short}" for child in children)


def _flags(flags: Iterable[Flag]) -> str:
    entries = [(_left(flag), flag) for flag in sorted(flags, key=lambda flag: flag.name)]
    width = max(len(left) for left, _ in entries)
    return "\n".join(f"{left:<{width}}   {flag.usage}{_default(flag)}".rstrip() for left, flag in entries)


def _left(flag: Flag) -> str:
    word = flag.word or {bool: "", int: "int", tuple: "stringArray"}.get(type(flag.default), "string")
    short = f"-{flag.short}, " if flag.short and flag.short != flag.name else "    "
    name = f"-{flag.name}, --{flag.name}" if flag.short == flag.name else f"{short}--{flag.name}"
    return f"  {name} {word}".rstrip()


def _default(flag: Flag) -> str:
    if flag.default in ("", 0, False, ()):
        return ""
    shown = f'"{flag.default}"' if isinstance(flag.default, str) else str(flag.default)
    return f" (default {shown})"
