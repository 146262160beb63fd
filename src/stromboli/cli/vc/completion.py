"""Shell completion: the words that may follow, out of the same trees, and the few lines of shell that ask for them.

Names of jobs, queues and the like come from the server. A completion never complains: what cannot be found out is not
offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from stromboli.cli.commanding.commands import Command, Flag
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation, Terminal

ASK = "__complete"
"""Hidden first word: the rest of the line is to be completed at its last word."""
FILES, NO_FILES = 0, 4
"""What kubectl is told to do when nothing is offered (directives of the library that it is made with)."""
OFFERED_GROUPS = ("", "batch.volcano.sh", "scheduling.volcano.sh", "flow.volcano.sh")

Given = Mapping[str, str]
"""Flags that the line has before the word to be completed."""
Lookup = Callable[[str, Given], Iterable[str]]
"""Names of a resource (``jobs``, ``queues``), heeding ``--namespace`` and the like."""

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
_COMMAND() {
    local -a found
    found=("${(@f)$(COMMAND __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
if [[ "${funcstack[1]}" = _COMMAND ]]; then _COMMAND "$@"; else compdef _COMMAND COMMAND; fi
""",
    "fish": """\
function __NAME_complete
    set -l found (COMMAND __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
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
    if command.startswith("kubectl"):
        raise CommandError(
            "kubectl completes its plugins by itself: source <(kubectl completion bash), "
            "with kubectl_complete-vc on the PATH"
        )
    script = SCRIPTS[shell].replace("COMMAND", command).replace("NAME", command.replace("-", "_").replace(" ", "_"))
    invocation.terminal.out.write(script)


def answer(root: Command, words: Sequence[str], terminal: Terminal) -> None:
    """What a shell's script asks for: one candidate a line."""
    for found in candidates(root, words, lookup_with(terminal)):
        terminal.out.write(f"{found}\n")


def answer_kubectl(root: Command, words: Sequence[str], terminal: Terminal) -> None:
    """What kubectl asks ``kubectl_complete-NAME`` for: candidates, and what to do without any."""
    found = list(candidates(root, words, lookup_with(terminal)))
    for one in found:
        terminal.out.write(f"{one}\n")
    terminal.out.write(f":{NO_FILES if found else FILES}\n")


def candidates(root: Command, words: Sequence[str], lookup: Lookup = lambda _what, _given: ()) -> Iterator[str]:
    """What the last of the words may become."""
    *before, last = _joined(words) or [""]
    command, given, named, pending = root, dict[str, str](), False, None
    for word in before:
        flag = _flag(command, word) if word.startswith("-") else None
        if pending is not None:
            given[pending.name], pending = word, None
        elif flag is not None:
            given[flag.name] = word.partition("=")[2]
            pending = flag if flag.takes_value and "=" not in word else None
        elif not word.startswith("-"):
            child = command.child(word)
            command, named = child or command, child is None
    yield from _following(command, pending, last, named, lambda what: _expand(what, given, lookup))


def _following(
    command: Command, pending: Flag | None, last: str, named: bool, expand: Callable[[str], Iterable[str]]
) -> Iterator[str]:
    """What may follow a command: the value of the flag before, flags, sub-commands, or the name it is about."""
    flag, equals, begun = last.partition("=")
    if pending is not None:
        yield from (value for value in expand(pending.completes) if value.startswith(last))
    elif last.startswith("-") and equals:
        found = _flag(command, flag)
        yield from (f"{flag}={value}" for value in expand(found.completes if found else "") if value.startswith(begun))
    elif last.startswith("-"):
        yield from (f"--{flag.name}" for flag in command.all_flags if f"--{flag.name}".startswith(last))
    else:
        yield from (child.name for child in command.children if child.name.startswith(last))
        if command.argument and not named:
            yield from (value for value in expand(command.completes) if value.startswith(last))


def _joined(words: Sequence[str]) -> list[str]:
    """bash takes ``--queue=x`` for three words."""
    joined: list[str] = []
    for word in words:
        if joined and (word == "=" or joined[-1].endswith("=")) and joined[-1].startswith("-"):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _flag(command: Command, word: str) -> Flag | None:
    name = word.partition("=")[0]
    for flag in command.all_flags:
        if name == f"--{flag.name}" or (flag.short and name == f"-{flag.short}"):
            return flag
    return None


def _expand(what: str, given: Given, lookup: Lookup) -> Iterable[str]:
    """``open|close`` are the words themselves, ``jobs`` those of the cluster."""
    return what.split("|") if "|" in what else lookup(what, given) if what else ()


def lookup_with(terminal: Terminal) -> Lookup:
    """Names from the cluster that flags, environment and files lead to."""

    def lookup(what: str, given: Given) -> Iterable[str]:
        from stromboli.api import kinds
        from stromboli.cli.commanding.api import Api
        from stromboli.cli.commanding.kubeconfig import find
        from stromboli.kube import json
        from stromboli.kube.errors import KubeError

        kind = next(kind for kind in kinds.ALL if kind.plural == what and kind.group in OFFERED_GROUPS)
        try:
            with Api(find(given.get("kubeconfig", ""), given.get("master", ""), terminal.environment)) as api:
                namespace = given.get("namespace") or "default"
                found = api.list(kind, namespace if kind.namespaced else None)
        except (KubeError, CommandError, OSError):
            return ()
        return sorted(json.key_of(obj)[1] for obj in found)

    return lookup
