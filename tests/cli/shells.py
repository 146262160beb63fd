"""Completion as a shell does it: a line, Tab, and what is offered. The shell is the real one."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

DEADLINE_SECONDS = 40.0
PROMPT = "ready-for-the-line"

ZSHRC = f"""\
PROMPT='{PROMPT} '
fpath=("$FUNCTIONS" $fpath)
autoload -Uz compinit && compinit -u -d "$HOME/dump"
compadd() {{
    local -a hits
    builtin compadd -O hits "$@"
    print -rl -- $hits >> "$OFFERED"
}}
bindkey '^I' complete-word
"""
"""Every completion function offers through ``compadd``: what it would show is written down instead."""


def installed(shell: str) -> str:
    """Path of the shell; the test is skipped where there is none."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


BASH = """\
declared=$(complete -p vcctl)
$(sed 's/.*-F \\([^ ]*\\) .*/\\1/' <<< "$declared")
if [[ ${#COMPREPLY[@]} = 0 && $declared = *"-o default"* ]]; then
    COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
fi
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Calls what the script has declared, as readline does, which looks for files where nothing is offered."""


def offered_by_bash(line: str, script: str, environment: Mapping[str, str], home: Path) -> list[str]:
    """What bash's function puts into COMPREPLY."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f"{script}\nCOMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n{BASH}"
    return _lines([installed("bash"), "--norc", "-c", ask], environment, home)


def offered_by_fish(line: str, script: str, environment: Mapping[str, str], home: Path) -> list[str]:
    """What ``complete -C`` answers; descriptions of files are left out."""
    (home / "vcctl.fish").write_text(script)
    found = _lines(
        [installed("fish"), "--no-config", "-c", f"source {home}/vcctl.fish; complete -C '{line}'"], environment, home
    )
    return [each.partition("\t")[0] for each in found]


def _lines(command: list[str], environment: Mapping[str, str], home: Path) -> list[str]:
    done = subprocess.run(
        command, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def offered_by_zsh(line: str, script: str, environment: Mapping[str, str], home: Path) -> list[str]:
    """What an interactive zsh offers after Tab, with the script as a file on its ``fpath``."""
    (home / "functions").mkdir(exist_ok=True)
    (home / "functions" / "_vcctl").write_text(script)
    return _typed_into_zsh(line, environment, home, ZSHRC)


def offered_by_zsh_that_sources(line: str, script: str, environment: Mapping[str, str], home: Path) -> list[str]:
    """The same with the script sourced in ``.zshrc``."""
    (home / "sourced").write_text(script)
    return _typed_into_zsh(line, environment, home, f'{ZSHRC}source "$HOME/sourced"\n')


def _typed_into_zsh(line: str, environment: Mapping[str, str], home: Path, start: str) -> list[str]:
    (home / ".zshrc").write_text(start)
    offered = home / "offered"
    offered.write_text("")
    told = {**environment, "ZDOTDIR": str(home), "FUNCTIONS": str(home / "functions"), "OFFERED": str(offered)}
    ours, theirs = pty.openpty()
    shell = subprocess.Popen([installed("zsh"), "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=told, cwd=home)
    os.close(theirs)
    try:
        _read_until(ours, lambda seen: PROMPT in seen)
        os.write(ours, f"{line}\t".encode())
        os.write(ours, b"\x15exit\n")
        _read_until(ours, lambda _seen: False)
        shell.wait(DEADLINE_SECONDS)
    finally:
        shell.kill()
        os.close(ours)
    return offered.read_text().split()


def _read_until(terminal: int, enough: Callable[[str], bool]) -> None:
    """Read what the shell shows until that is enough, or it is gone."""
    seen = ""
    while not enough(seen):
        try:
            got = os.read(terminal, 4096)
        except OSError:  # what Linux says when the other end is closed
            return
        if not got:
            return
        seen += got.decode(errors="replace")
