"""Shell completion: the words that may follow, out of the same trees, and the few lines of shell that ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stromboli.cli.commanding.commands import Command
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation

ASK = "__complete"
"""Hidden first word: the rest of the line is to be completed at its last word."""

SCRIPTS = {
    "bash": """\
_NAME_complete() {
    local IFS=$'\\n'
    COMPREPLY=($(COMMAND __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _NAME_complete COMMAND
""",
    "zsh": """\
#compdef COMMAND
_NAME_complete() {
    local -a found
    found=("${(@f)$(COMMAND __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a found
}
compdef _NAME_complete COMMAND
""",
    "fish": """\
function __NAME_complete
    COMMAND __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c COMMAND -f -a '(__NAME_complete)'
""",
}


def print_script(invocation: Invocation) -> None:
    """``vcctl completion SHELL``."""
    shell = invocation.arguments.name or "bash"
    if shell not in SCRIPTS:
        raise CommandError(f"shell {shell!r} is not known; choose one of {', '.join(SCRIPTS)}")
    command = invocation.root.name
    script = SCRIPTS[shell].replace("COMMAND", command).replace("NAME", command.replace("-", "_").replace(" ", "_"))
    invocation.terminal.out.write(script)


def candidates(root: Command, words: Sequence[str]) -> Iterator[str]:
    """What the last of the words may become."""
    *before, last = words or [""]
    command = root
    for word in before:
        command = command.child(word) or command
    if last.startswith("-"):
        yield from (f"--{flag.name}" for flag in command.all_flags if f"--{flag.name}".startswith(last))
    else:
        yield from (child.name for child in command.children if child.name.startswith(last))
