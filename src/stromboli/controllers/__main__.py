"""``python -m stromboli.controllers``: the controller manager process (spec 03 section 1.3, spec 08 section 14)."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence
from typing import Final

from stromboli.api import names
from stromboli.controllers.assembling import Parts, enabled, run_all
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.metrics import ControllerMetrics
from stromboli.controllers.options import PROGRAM, Options
from stromboli.kube.client import Client
from stromboli.kube.events import Recorder
from stromboli.kube.leases import LeaderElector, LeaseTiming
from stromboli.process.entering import connect, enter
from stromboli.process.serving import endpoints
from stromboli.telemetry import traces
from stromboli.telemetry.health import Health
from stromboli.telemetry.metrics import Metrics

GARBAGE_THRESHOLDS: Final = (50_000, 20, 50)
"""What is kept are trees that live long: looking for circles among them after every 700 new objects finds none."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process; answers its exit code."""
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    return enter(PROGRAM, Options, serve, arguments)


async def serve(options: Options) -> None:
    """Serve the endpoints, and work while leading."""
    traces.setup(PROGRAM)
    health, metrics = Health(), Metrics(process_series=True)
    client = await connect(options, PROGRAM)
    metrics.registry.register(client.requests)
    async with client, endpoints(options, health, metrics):
        await _lead(options, client, health, ControllerMetrics(metrics))


async def _lead(options: Options, client: Client, health: Health, metrics: ControllerMetrics) -> None:
    async def work() -> None:
        await _work(options, client, health, metrics)

    if not options.leader_elect:
        await work()
        return
    elector = LeaderElector(
        client,
        namespace=options.lease_namespace,
        name=options.leader_elect_resource_name,
        timing=LeaseTiming(
            options.leader_elect_lease_duration,
            options.leader_elect_renew_deadline,
            options.leader_elect_retry_period,
        ),
    )
    await elector.run(work)


async def _work(options: Options, client: Client, health: Health, metrics: ControllerMetrics) -> None:
    informers = SharedInformers(client)
    recorder = Recorder(client, names.CONTROLLER_EVENT_SOURCE)
    controllers = enabled(Parts(options, client, informers, recorder, metrics))
    health.add_readiness("informers", lambda: _complaint(informers.unsynced))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recorder.run(), name="events")
        tasks.create_task(informers.run(), name="informers")
        tasks.create_task(run_all(controllers), name="controllers")


def _complaint(unsynced: list[str]) -> str | None:
    return f"not listed yet: {', '.join(unsynced)}" if unsynced else None


if __name__ == "__main__":
    sys.exit(main())
