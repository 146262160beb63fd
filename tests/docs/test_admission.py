"""``docs/guide/admission.md``: which reviews are on, and where."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stromboli.cli.stack import ADMISSIONS
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.options import DEFAULT_ADMISSION

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "admission.md").read_text()
VALUES = yaml.safe_load((ROOT / "charts" / "stromboli" / "values.yaml").read_text())
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| `/.*$", GUIDE, flags=re.MULTILINE)
]


def on(column: int) -> set[str]:
    """Paths that the table says are on there."""
    assert {row[column] for row in ROWS} <= {"on", "off"}
    return {row[0].strip("`") for row in ROWS if row[column] == "on"}


def test_the_table_has_every_path() -> None:
    assert sorted(row[0].strip("`") for row in ROWS) == sorted(BY_PATH)


def test_the_table_says_what_is_on_where() -> None:
    assert on(2) == set(VALUES["custom"]["enabled_admissions"].split(","))
    assert on(3) == set(DEFAULT_ADMISSION)
    assert on(4) == set(ADMISSIONS.split(","))


def test_the_values_that_switch_all_on_name_all() -> None:
    [values] = re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
    named = yaml.safe_load(values)["custom"]["enabled_admissions"].split(",")
    assert sorted(path.strip() for path in named) == sorted(BY_PATH)
