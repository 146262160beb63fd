"""The policy to rehearse with: a file, what the snapshot says was in force, or the built-in one."""

from __future__ import annotations

from pathlib import Path

from stromboli.cli.commanding.errors import CommandError
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.policy import DEFAULT_POLICY, Policy, PolicyError
from stromboli.scheduler.plugins import built_in
from stromboli.scheduler.policy_file import Known, parse

BUILT_IN = "the built-in policy"
PLUGINS = built_in().factories


def known() -> Known:
    """The actions and plugins that come with the scheduler."""
    return Known(actions=dict.fromkeys(ACTIONS), plugins=dict.fromkeys(PLUGINS))


def choose(file: str, recorded: str) -> tuple[Policy, str]:
    """The policy and what to call it. Raises CommandError naming what is wrong with a file."""
    if file:
        return _read(_content(Path(file)), file), f"policy {file}"
    if recorded:
        return _read(recorded, "the recorded policy"), "the recorded policy"
    return DEFAULT_POLICY, BUILT_IN


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"policy {path}: cannot be read: {error}") from error


def _read(content: str, where: str) -> Policy:
    try:
        return parse(content, known()).policy
    except PolicyError as error:
        raise CommandError(f"policy {where}: {error}") from error
