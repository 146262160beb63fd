"""Whole lives of jobs, against a fake API server."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.kube import json
from tests.controllers.building import job
from tests.controllers.stage import stage


async def test_a_job_runs_to_its_end() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2), 2)
        for name in scene.pods():
            scene.set_pod(name, "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.server.objects(kinds.POD_GROUPS), "the PodGroup to go")
        assert scene.pod_phases() == {"job1-worker-0": "Succeeded", "job1-worker-1": "Succeeded"}
        assert scene.status()["succeeded"] == 2
        assert [one["status"] for one in scene.status()["conditions"]] == ["Pending", "Running", "Completed"]


async def test_no_pod_before_admission() -> None:
    async with stage() as scene:
        scene.submit(job().task("worker", 2))
        await scene.until(lambda: scene.group())
        await scene.until(lambda: scene.phase() == "Pending")
        assert not scene.pods()
        await scene.admit()
        await scene.until(lambda: len(scene.pods()) == 2)


async def test_restarting_a_job_makes_new_pods_and_a_new_gang() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 2).policy("PodFailed", "RestartJob"), 2)
        before, gang = scene.uids(), json.uid_of(scene.group())
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: scene.status().get("retryCount") == 1)
        await scene.until(lambda: json.uid_of(scene.group()) != gang, "a new PodGroup")
        await scene.admit()
        await scene.run_pods(2)
        await scene.until(lambda: scene.phase() == "Running")
        assert set(before.values()).isdisjoint(scene.uids().values())
        assert scene.status()["version"] == 1
