"""The policy to rehearse with: a file, what the snapshot says was in force, or the built-in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from stromboli.api.kinds import CONFIG_MAPS
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.files import text_of
from stromboli.kube.errors import ApiError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.process.running import StartupError
from stromboli.scheduler import registering
from stromboli.scheduler.core.acting import Action
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.policy import DEFAULT_POLICY, Policy, PolicyError
from stromboli.scheduler.core.policy_file import LARGEST, LOADER, ArgumentCheck, Known, parse

NAMESPACE, CONFIG_MAP = "volcano-system", "volcano-scheduler-configmap"
"""Where the chart keeps the policy file (spec 08 section 6), when it is installed under its usual name."""
OF_RELEASES = "-scheduler-configmap"
"""How the name ends when it is installed under another one."""
CONF = ".conf"
"""How the ConfigMap's key that has the policy ends."""
BUILT_IN = "the built-in policy"
_REGISTRY = registering.load(broken=lambda _error: None)  # somebody else's package must not keep ours from working
ACTIONS: Mapping[str, Action] = _REGISTRY.actions
"""The actions of the tree and of installed packages; one that cannot be loaded counts as not known."""
PLUGINS: Mapping[str, type[Plugin]] = _REGISTRY.offered
"""The plugins likewise."""
Plugins = Mapping[str, type[Plugin]]


def known(
    check: Callable[[str], ArgumentCheck | None] = lambda _name: None,
    plugins: Plugins = PLUGINS,
) -> Known:
    """The actions and plugins that a policy may name; ``check`` says how a plugin's arguments are checked."""
    return Known(
        actions=dict.fromkeys(ACTIONS),
        plugins={name: check(name) for name in plugins},
        entries={name for plugin in plugins.values() for name in plugin.configuration_entries},
    )


def of_directory(directory: str) -> dict[str, type[Plugin]]:
    """The plugins of every scheduler and those it finds with this ``--plugins-dir``. Raises CommandError."""
    if not directory:
        return dict(PLUGINS)
    try:
        return {**PLUGINS, **registering.from_directory(Path(directory))}
    except StartupError as error:
        raise CommandError(str(error)) from error


def policy_text(file: str, what: str = "") -> str:
    """The policy in a file, which may be the ConfigMap that holds it. Raises CommandError for any other object."""
    text = text_of(file, what)
    if len(text) > LARGEST:
        return text  # whoever reads the policy says what is wrong with it
    try:
        found = yaml.load(text, Loader=LOADER)  # noqa: S506 - the loader is a safe one
    except (yaml.YAMLError, RecursionError):
        return text
    if not isinstance(found, dict) or not {"apiVersion", "kind"} <= set(found):
        return text
    data = found.get("data")
    policies = [str(data[key]) for key in data if str(key).endswith(CONF)] if isinstance(data, dict) else []
    if found["kind"] != CONFIG_MAPS.kind or len(policies) != 1:
        raise CommandError(
            f"{what}{file}: is a {found['kind']} of {found['apiVersion']}; expected a policy file, or a ConfigMap with "
            f"one in a key that ends with {CONF}"
        )
    return policies[0]


def in_cluster(api: Api) -> tuple[str, str]:
    """The policy file that the chart gives the scheduler, and where it stands; empty if it may not be read.

    Of a release under another name it is taken when there is only one.
    """
    try:
        found = [api.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)]
    except NotFound:
        found = _of_releases(api)
    except ApiError:
        return "", ""
    policies = [
        (str(content), f"the policy in ConfigMap {NAMESPACE}/{one['metadata']['name']}")
        for one in found
        for key, content in (one.get("data") or {}).items()
        if key.endswith(CONF)
    ]
    return policies[0] if len(found) == 1 and policies else ("", "")


def _of_releases(api: Api) -> list[JsonObject]:
    try:
        return [one for one in api.list(CONFIG_MAPS, NAMESPACE) if one["metadata"]["name"].endswith(OF_RELEASES)]
    except ApiError:
        return []


@dataclass(frozen=True)
class Rules:
    """A policy to work with, what to call it, and what its names stand for."""

    policy: Policy
    name: str
    plugins: Plugins
    problems: tuple[str, ...] = ()
    """What of it is left out, such as plugins that are not known here."""
    is_guessed: bool = False
    """Whether nobody has said what policy is in force."""


def choose(
    file: str, recorded: str, recorded_name: str = "the recorded policy", *, plugins: Plugins = PLUGINS
) -> Rules:
    """The policy of the file, else the recorded one. Raises CommandError naming what is wrong with it."""
    if file:
        return _read(policy_text(file, "policy "), f"policy {file}", plugins)
    if recorded:
        return _read(recorded, recorded_name, plugins)
    return Rules(DEFAULT_POLICY, BUILT_IN, plugins, is_guessed=True)


def _read(content: str, where: str, plugins: Plugins) -> Rules:
    try:
        loaded = parse(content, known(plugins=plugins))
    except PolicyError as error:
        raise CommandError(f"{where}: {error}") from error
    return Rules(loaded.policy, where, plugins, tuple(f"{where}: {problem}" for problem in loaded.problems))
