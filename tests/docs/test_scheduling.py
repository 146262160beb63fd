"""``docs/guide/scheduling.md``: its policy is sound, and its tables have all actions and plugins."""

from __future__ import annotations

import re
from pathlib import Path

from stromboli.cli.rehearsing.linting import Severity, lint, purpose
from stromboli.cli.rehearsing.policies import PLUGINS
from stromboli.scheduler.actions import ACTIONS

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "scheduling.md").read_text()


def test_no_warning_is_to_be_given_about_the_policy_that_is_shown() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert [one.text for one in lint(text).findings if one.severity is not Severity.NOTE] == []


def test_the_tables_have_every_action_and_every_plugin() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|", GUIDE, flags=re.MULTILINE)
    assert sorted(listed) == sorted([*ACTIONS, *PLUGINS])


def test_the_tables_say_what_the_lint_says() -> None:
    for name, thing in {**ACTIONS, **PLUGINS}.items():
        assert f"| `{name}` | {purpose(thing)}" in GUIDE
