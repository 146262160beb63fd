"""Plugins from a directory, and checks of arguments."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pydantic
import pytest

from stromboli.process.running import StartupError
from stromboli.scheduler import registering
from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.core.view import View
from stromboli.scheduler.holding import NAME as BACKOFF

PLUGIN = """
from stromboli.scheduler.core.plugin import Hooks, Plugin

class Mine(Plugin):
    name = "whatever"

    def open(self, view):
        return Hooks()
"""


def test_everything_that_the_built_in_policy_names_is_there() -> None:
    registry = registering.load()
    assert set(DEFAULT_POLICY.actions) <= set(registry.actions)
    assert {option.name for tier in DEFAULT_POLICY.tiers for option in tier} <= set(registry.plugins)


def test_own_plugin_is_registered_but_not_offered_to_policy_files() -> None:
    registry = registering.load()
    assert BACKOFF in registry.plugins
    assert BACKOFF not in registry.known.plugins


def test_file_is_registered_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "magic-one.py").write_text(PLUGIN)
    registry = registering.load(str(tmp_path))
    assert registry.plugins["magic-one"].__name__ == "Mine"
    assert "magic-one" in registry.known.plugins


BROKEN = {
    "syntax error": ("def", "cannot be loaded: SyntaxError"),
    "raises": ("raise RuntimeError('boom')", "cannot be loaded: RuntimeError: boom"),
    "no plugin": ("x = 1", "defines 0 plugins"),
    "two plugins": (PLUGIN + PLUGIN.replace("Mine", "Other"), "defines 2 plugins"),
    "PLUGIN is something else": ("PLUGIN = 7", "is not a subclass of"),
}


@pytest.mark.parametrize(("content", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_file_that_is_no_plugin_is_refused_in_one_line(tmp_path: Path, content: str, want: str) -> None:
    (tmp_path / "bad.py").write_text(content)
    with pytest.raises(StartupError) as refused:
        registering.load(str(tmp_path))
    assert "bad.py" in str(refused.value)
    assert want in str(refused.value)


def test_one_of_several_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(PLUGIN + PLUGIN.replace("Mine", "Other") + "\nPLUGIN = Other\n")
    assert registering.load(str(tmp_path)).plugins["two"].__name__ == "Other"


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="--plugins-dir"):
        registering.load(str(tmp_path / "nowhere"))


class Weights(pydantic.BaseModel):
    weight: int = 1


class Typed(Plugin):
    name = "typed"
    arguments_model: ClassVar[type[pydantic.BaseModel]] = Weights

    def open(self, view: View) -> Hooks:
        return Hooks()


class Untyped(Plugin):
    name = "untyped"

    def open(self, view: View) -> Hooks:
        return Hooks()


def test_arguments_are_checked_by_the_model_of_the_plugin() -> None:
    check = registering.argument_check(Typed)
    assert check is not None
    assert list(check({"weight": 3})) == []
    (complaint,) = check({"weight": "heavy"})
    assert complaint.startswith("weight: ")
    assert "'heavy'" in complaint


def test_plugin_without_a_model_takes_any_arguments() -> None:
    assert registering.argument_check(Untyped) is None
