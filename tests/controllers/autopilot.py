"""Scheduler and kubelet in one: admits every PodGroup, runs every pod, and ends pods as a script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from stromboli.api import kinds, names
from stromboli.kube import json
from stromboli.kube.errors import NotFound
from stromboli.kube.json import JsonObject
from tests.controllers.stage import Stage

Script = Callable[[str, int], str]
"""From a pod's name and job version to the phase it ends in (``Running`` for one that does not end)."""


def always_succeed(name: str, version: int) -> str:
    return "Succeeded"


def step(scene: Stage, script: Script) -> None:
    """Move every object one step along its life."""
    for group in scene.server.objects(kinds.POD_GROUPS):
        if (group.get("status") or {}).get("phase", "Pending") == "Pending":
            scene.server.put(kinds.POD_GROUPS, {**group, "status": {"phase": "Inqueue"}})
    for pod in scene.server.objects(kinds.PODS):
        _step_pod(scene, pod, script)


def _step_pod(scene: Stage, pod: JsonObject, script: Script) -> None:
    name, phase = json.key_of(pod)[1], (pod.get("status") or {}).get("phase", "Pending")
    version = int(pod["metadata"]["annotations"][names.JOB_VERSION])
    counted = (scene.status().get("running") or 0) > 0
    if phase == "Pending":
        scene.set_pod(name, "Running")
    elif phase == "Running" and counted and scene.phase() == "Running":
        end = script(name, version)
        if end != "Running":
            scene.set_pod(name, end, exit_code=0 if end == "Succeeded" else 1)


@asynccontextmanager
async def autopilot(scene: Stage, script: Script = always_succeed) -> AsyncIterator[None]:
    """Fly while the block runs."""

    async def fly() -> None:
        while True:
            with suppress(NotFound):  # the job may go while its pods are looked at
                step(scene, script)
            await asyncio.sleep(0.003)

    task = asyncio.create_task(fly())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
