"""Templates know their jobs: spec 03 section 6."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.api import kinds, names
from stromboli.controllers.jobtemplate.controller import JobTemplateController, plan, template_of
from stromboli.kube.json import JsonObject
from tests.controllers.stage import Stage, stage


def template(name: str = "t", *jobs: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {}, "status": {"jobDependsOnList": list(jobs)}}


def job(name: str, label: str = "ns.t", namespace: str = "ns") -> JsonObject:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {names.CREATED_BY_JOB_TEMPLATE: label}}}


@asynccontextmanager
async def templates(**options: Any) -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        await scene.run(lambda informers: JobTemplateController(scene.client, informers, scene.events, **options))
        yield scene


def listed(scene: Stage, name: str = "t") -> list[str] | None:
    found: list[str] | None = (scene.server.get(kinds.JOB_TEMPLATES, name, "ns").get("status") or {}).get(
        "jobDependsOnList"
    )
    return found


LABELS = {
    "ns.t": ("ns", "t"),
    "ns.a.dotted.name": ("ns", "a.dotted.name"),
    "": None,
    "t": None,
    ".t": None,
    "ns.": None,
}


@pytest.mark.parametrize(("label", "want"), LABELS.items())
def test_whose_job_it_is(label: str, want: tuple[str, str] | None) -> None:
    assert template_of(job("j", label)) == want


def test_nothing_to_write() -> None:
    assert plan(template("t", "a", "b"), [job("b"), job("a")]) is None
    assert plan(template("t"), []) is None
    assert plan(template("t"), [job("a", namespace="other")]) is None, "a label may lie about the namespace"


async def test_jobs_are_listed_in_whatever_order_things_come() -> None:
    async with templates() as scene:
        scene.server.put(kinds.JOBS, job("j2"))
        scene.server.put(kinds.JOB_TEMPLATES, template())
        scene.server.put(kinds.JOBS, job("j1"))
        await scene.until(lambda: listed(scene) == ["j1", "j2"])


async def test_the_list_shrinks_and_is_emptied() -> None:
    """Defect 14 of spec 03 section 13."""
    async with templates() as scene:
        scene.server.put(kinds.JOB_TEMPLATES, template())
        for name in ("j1", "j2"):
            scene.server.put(kinds.JOBS, job(name))
        await scene.until(lambda: listed(scene) == ["j1", "j2"])
        scene.server.remove(kinds.JOBS, "j1", "ns")
        await scene.until(lambda: listed(scene) == ["j2"])
        scene.server.remove(kinds.JOBS, "j2", "ns")
        await scene.until(lambda: listed(scene) == [])


async def test_a_template_whose_name_has_dots() -> None:
    """Defect 14 of spec 03 section 13."""
    async with templates() as scene:
        scene.server.put(kinds.JOB_TEMPLATES, template("a.b"))
        scene.server.put(kinds.JOBS, job("j", "ns.a.b"))
        await scene.until(lambda: listed(scene, "a.b") == ["j"])


async def test_a_job_that_changes_its_label() -> None:
    async with templates() as scene:
        for name in ("t", "u"):
            scene.server.put(kinds.JOB_TEMPLATES, template(name))
        scene.server.put(kinds.JOBS, job("j"))
        await scene.until(lambda: listed(scene) == ["j"])
        scene.server.put(kinds.JOBS, job("j", "ns.u"))
        await scene.until(lambda: (listed(scene, "t"), listed(scene, "u")) == ([], ["j"]))


async def test_giving_up_has_a_reason() -> None:
    """Defect 14 of spec 03 section 13: the reason was empty."""
    async with templates(max_requeue=1) as scene:
        scene.server.faults.fail(500, verb="patch", kind=kinds.JOB_TEMPLATES, times=2)
        scene.server.put(kinds.JOB_TEMPLATES, template())
        scene.server.put(kinds.JOBS, job("j"))
        await scene.until(lambda: scene.events.messages("t", "SyncJobTemplate"))


async def test_nothing_is_written_when_nothing_changed() -> None:
    async with templates() as scene:
        scene.server.put(kinds.JOB_TEMPLATES, template("t", "j"))
        scene.server.put(kinds.JOBS, job("j"))
        scene.server.put(kinds.JOB_TEMPLATES, template("u"))
        scene.server.put(kinds.JOBS, job("k", "ns.u"))
        await scene.until(lambda: listed(scene, "u") == ["k"])
        assert scene.server.count("patch") == 1
