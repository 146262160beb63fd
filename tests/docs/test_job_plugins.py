"""``docs/guide/job-plugins.md``: its plugin is found, admitted and does what the page says."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.api import kinds
from stromboli.controllers.job import plugins
from stromboli.webhooks import jobs
from tests.controllers.building import JobBuilder
from tests.controllers.stage import stage
from tests.webhooks.building import cluster, decide, queue

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "job-plugins.md"


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    return str(found)


JOB = yaml.safe_load(block("yaml"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's package, installed as its entry point says."""
    [group] = tomllib.loads(block("toml"))["project"]["entry-points"].items()
    [(name, value)] = group[1].items()
    package, _, module = value.partition(":")[0].partition(".")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / f"{module}.py").write_text(block("python"))
    monkeypatch.syspath_prepend(str(tmp_path))
    for user in (plugins, jobs):
        monkeypatch.setattr(user, "entry_points", lambda group: [EntryPoint(name, value, group)])
    forget()
    yield
    forget()
    for known in [known for known in sys.modules if known.partition(".")[0] == package]:
        del sys.modules[known]
    importlib.invalidate_caches()


def forget() -> None:
    """Have both sides look again at what is installed."""
    plugins._available.cache_clear()
    jobs.known_plugins.cache_clear()


def builder(**plugin_arguments: list[str]) -> JobBuilder:
    made = JobBuilder(JOB["metadata"]["name"])
    made.wire["spec"] = {**JOB["spec"], "plugins": plugin_arguments or JOB["spec"]["plugins"]}
    return made


def judged(**members: Any) -> str:
    return decide("/jobs/validate", {**JOB, **members}, known=cluster(queue("default"))).message


@pytest.mark.usefixtures("installed")
async def test_the_plugin_does_what_the_page_says() -> None:
    assert judged() == ""
    async with stage() as scene:
        await scene.running(builder(), 2)
        for pod in scene.pods("spending").values():
            assert pod["spec"]["containers"][0]["env"] == [{"name": "BUDGET", "value": "5"}]
        assert scene.server.get(kinds.CONFIG_MAPS, "spending-budget", "default")["data"] == {"owner": "physics"}
        for name in scene.pods("spending"):
            scene.set_pod(name, "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase("spending") == "Completed")
        await scene.until(lambda: not scene.names_of(kinds.CONFIG_MAPS))


@pytest.mark.usefixtures("installed")
async def test_what_the_plugin_refuses_is_told() -> None:
    async with stage(max_requeue=1) as scene:
        scene.submit(builder(budget=["--total=1"]))
        await scene.admit("spending")
        await scene.until(lambda: scene.phase("spending") == "Terminated")
        assert "raise --total" in scene.events.messages("spending", "PluginError")[0]


def test_admission_refuses_it_where_it_is_not_installed() -> None:
    assert "unable to find job plugin: budget" in judged()
