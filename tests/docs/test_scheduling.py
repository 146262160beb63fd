"""``docs/guide/scheduling.md``: its policies are sound and in force, and its tables have all actions and plugins."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from stromboli.cli.rehearsing.linting import Severity, lint, purpose
from stromboli.cli.rehearsing.policies import PLUGINS, known
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption
from stromboli.scheduler.core.policy_file import parse

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "scheduling.md").read_text()
CHART_POLICY = ROOT / "charts" / "stromboli" / "config" / "volcano-scheduler.conf"
SHOWN, OF_THE_CHART = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)


def test_no_warning_is_to_be_given_about_the_policy_that_is_shown() -> None:
    assert [one.text for one in lint(SHOWN).findings if one.severity is not Severity.NOTE] == []


def test_the_policy_of_the_chart_is_the_one_that_is_shown() -> None:
    assert CHART_POLICY.read_text() == OF_THE_CHART


def test_the_built_in_policy_is_the_one_of_the_chart_but_for_what_is_said() -> None:
    of_the_chart = parse(OF_THE_CHART, known()).policy
    plain = tuple(tuple(PluginOption(one.name) for one in tier if one.name != "binpack") for tier in of_the_chart.tiers)
    assert replace(of_the_chart, tiers=plain) == DEFAULT_POLICY
    assert [one.name for tier in of_the_chart.tiers for one in tier if one != PluginOption(one.name)] == ["gang", "drf"]


def test_the_tables_have_every_action_and_every_plugin() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \|", GUIDE, flags=re.MULTILINE)
    assert sorted(listed) == sorted([*ACTIONS, *PLUGINS])


def test_the_tables_say_what_the_lint_says() -> None:
    for name, thing in {**ACTIONS, **PLUGINS}.items():
        assert f"| `{name}` | {purpose(thing)}" in GUIDE
