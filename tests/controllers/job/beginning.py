"""A job controller at work on a stage."""

from __future__ import annotations

from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job.controller import JobController
from tests.controllers.stage import Stage


async def begin(scene: Stage) -> JobController:
    """Start one; answers it."""
    made: list[JobController] = []

    def make(informers: SharedInformers) -> JobController:
        made.append(JobController(scene.client, informers, scene.events, scene.numbers, clock=scene.clock))
        return made[0]

    await scene.run(make)
    return made[0]
