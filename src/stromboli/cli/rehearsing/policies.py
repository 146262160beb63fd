"""The policy to rehearse with: a file, what the snapshot says was in force, or the built-in one."""

from __future__ import annotations

from pathlib import Path

from stromboli.api.kinds import CONFIG_MAPS
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.kube.errors import ApiError
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.policy import DEFAULT_POLICY, Policy, PolicyError
from stromboli.scheduler.plugins import built_in
from stromboli.scheduler.policy_file import Known, parse

NAMESPACE, CONFIG_MAP = "volcano-system", "volcano-scheduler-configmap"
"""Where the chart keeps the policy file (spec 08 section 6), when it is installed under its usual name."""
BUILT_IN = "the built-in policy"
PLUGINS = built_in().factories


def known() -> Known:
    """The actions and plugins that come with the scheduler."""
    return Known(actions=dict.fromkeys(ACTIONS), plugins=dict.fromkeys(PLUGINS))


def in_cluster(api: Api) -> tuple[str, str]:
    """The policy file that the chart gives the scheduler, and where it stands; empty if it may not be read."""
    try:
        found = api.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
    except ApiError:
        return "", ""
    for key, content in (found.get("data") or {}).items():
        if key.endswith(".conf"):
            return str(content), f"the policy in ConfigMap {NAMESPACE}/{CONFIG_MAP}"
    return "", ""


def choose(file: str, recorded: str, recorded_name: str = "the recorded policy") -> tuple[Policy, str]:
    """The policy and what to call it. Raises CommandError naming what is wrong with a file."""
    if file:
        return _read(_content(Path(file)), f"policy {file}"), f"policy {file}"
    if recorded:
        return _read(recorded, recorded_name), recorded_name
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
        raise CommandError(f"{where}: {error}") from error
