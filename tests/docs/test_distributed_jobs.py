"""``docs/guide/distributed-jobs.md``: its job is accepted, and its table has all plugins. ``e2e/node`` runs the job."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stromboli.controllers.job import plugins
from tests.webhooks.building import cluster, decide

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "distributed-jobs.md"


def test_the_job_is_accepted() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    job = yaml.safe_load(text)
    job["metadata"]["namespace"] = "default"
    job["spec"]["queue"] = "default"
    assert decide("/jobs/validate", job, known=cluster()).message == ""


def test_the_table_has_every_plugin() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), flags=re.MULTILINE)) == set(plugins._SHIPPED)
