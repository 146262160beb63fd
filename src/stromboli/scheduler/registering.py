"""Finds the actions and plugins that a policy may name: those in the tree, installed ones, and files of a directory.

Installed packages offer theirs under the entry-point groups ``stromboli.scheduler.plugins`` and
``stromboli.scheduler.actions``, by the name used in policy files. A file ``NAME.py`` in ``--plugins-dir`` is registered
under ``NAME`` (spec 04 section 1); it holds one subclass of ``Plugin``, or several of which one is called ``PLUGIN``.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar, cast

import pydantic

from stromboli.process.running import StartupError
from stromboli.scheduler import actions as in_tree_actions
from stromboli.scheduler import plugins as in_tree_plugins
from stromboli.scheduler.core.acting import Action
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.policy_file import ArgumentCheck, Arguments, Known
from stromboli.scheduler.holding import BindBackoff

PLUGIN_GROUP = "stromboli.scheduler.plugins"
ACTION_GROUP = "stromboli.scheduler.actions"
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything that a policy may name."""

    actions: Mapping[str, Action]
    plugins: Mapping[str, type[Plugin]]

    @property
    def offered(self) -> dict[str, type[Plugin]]:
        """The plugins for policy files: all but the scheduler's own."""
        return {name: plugin for name, plugin in self.plugins.items() if plugin is not BindBackoff}

    @property
    def known(self) -> Known:
        """The names for policy files, with what checks arguments."""
        plugins = {name: argument_check(plugin) for name, plugin in self.offered.items()}
        entries = {name for plugin in self.plugins.values() for name in plugin.configuration_entries}
        return Known(actions=dict.fromkeys(self.actions), plugins=plugins, entries=entries)


def _refuse(error: StartupError) -> NoReturn:
    raise error


def load(plugins_dir: str = "", broken: Callable[[StartupError], None] = _refuse) -> Registry:
    """The registry of this process; ``broken`` is told of what a package offers that is left out, if it may be.

    Raises:
        StartupError: naming the action or plugin that cannot be loaded, and why.
    """
    plugins: dict[str, type[Plugin]] = {BindBackoff.name: BindBackoff}
    plugins |= in_tree_plugins.built_in().factories
    actions: dict[str, Action] = dict(in_tree_actions.ACTIONS)
    plugins |= _installed(PLUGIN_GROUP, _plugin_of, broken)
    actions |= _installed(ACTION_GROUP, _action_of, broken)
    if plugins_dir:
        plugins |= from_directory(Path(plugins_dir))
    return Registry(actions, plugins)


def _installed(
    group: str, read: Callable[[EntryPoint], Found], broken: Callable[[StartupError], None]
) -> dict[str, Found]:
    """What installed packages offer under a group, by name."""
    found = {}
    for entry in entry_points(group=group):
        try:
            found[entry.name] = read(entry)
        except StartupError as error:
            broken(error)
    return found


def from_directory(directory: Path) -> dict[str, type[Plugin]]:
    """Plugins of the files ``NAME.py`` in a directory, by ``NAME``."""
    if not directory.is_dir():
        raise StartupError(f"--plugins-dir={directory}: no such directory")
    return {path.stem: _plugin_in(path) for path in sorted(directory.glob("*.py"))}


def argument_check(plugin: type[Plugin]) -> ArgumentCheck | None:
    """A check of a plugin's arguments, for plugins that declare a pydantic model as ``arguments_model``."""
    model = getattr(plugin, "arguments_model", None)
    if not (inspect.isclass(model) and issubclass(model, pydantic.BaseModel)):
        return None
    return partial(_complaints, model)


def _complaints(model: type[pydantic.BaseModel], arguments: Arguments) -> list[str]:
    try:
        model.model_validate(dict(arguments))
    except pydantic.ValidationError as error:
        return [f"{'.'.join(map(str, item['loc']))}: {item['msg']}, got {item['input']!r}" for item in error.errors()]
    return []


def _plugin_of(entry: EntryPoint) -> type[Plugin]:
    return _checked(_loaded(entry), f"plugin {entry.name} ({entry.value})")


def _action_of(entry: EntryPoint) -> Action:
    found = _loaded(entry)
    if not callable(found):
        raise StartupError(f"action {entry.name} ({entry.value}) is not a function of a cycle and its arguments")
    return cast(Action, found)


def _loaded(entry: EntryPoint) -> object:
    try:
        return cast(object, entry.load())
    except Exception as error:
        raise StartupError(f"{entry.name} ({entry.value}) cannot be loaded: {error}") from error


def _plugin_in(path: Path) -> type[Plugin]:
    module = _module(path)
    named = getattr(module, "PLUGIN", None)
    if named is not None:
        return _checked(named, f"PLUGIN of {path}")
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Plugin) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise StartupError(f"{path} defines {len(found)} plugins: it must define one, or name one as PLUGIN")
    return found[0]


def _module(path: Path) -> ModuleType:
    name = f"stromboli_plugin_{path.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StartupError(f"{path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise StartupError(f"plugin {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _checked(value: object, what: str) -> type[Plugin]:
    if inspect.isclass(value) and issubclass(value, Plugin):
        return value
    raise StartupError(f"{what} is not a subclass of stromboli.scheduler.core.plugin.Plugin")
