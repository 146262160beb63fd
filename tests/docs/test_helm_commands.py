"""Upgrades in the guide are of the release that the guide installs, and keep its values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "guide").glob("*.md"))
UPGRADES = [
    (page.stem, command)
    for page in PAGES
    for command in re.findall(r"^ *(?:\$ )?(helm upgrade (?:.*\\\n)*.*)$", page.read_text(), flags=re.MULTILINE)
]


def test_the_guide_upgrades() -> None:
    assert {page for page, _ in UPGRADES} >= {"admission", "dashboard", "install"}


@pytest.mark.parametrize(("page", "command"), UPGRADES)
def test_an_upgrade_names_the_namespace_and_keeps_the_values(page: str, command: str) -> None:
    assert "--namespace volcano-system" in command, page
    assert "--reset-then-reuse-values" in command or "--reset-values -f values.yaml" in command, page
