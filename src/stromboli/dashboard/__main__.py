"""``stromboli-dashboard`` or ``python -m stromboli.dashboard``: the page as a process of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Final

from stromboli.dashboard.following import Follower
from stromboli.dashboard.measuring import PREFIX, DashboardMetrics
from stromboli.dashboard.options import PROGRAM, Options
from stromboli.dashboard.serving import application
from stromboli.process.entering import connect, enter
from stromboli.process.serving import endpoints
from stromboli.telemetry import traces
from stromboli.telemetry.health import Health
from stromboli.telemetry.listening import Address, listening
from stromboli.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 2.0
"""That requests in flight get; nothing is lost when one is cut off."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process; answers its exit code."""
    return enter(PROGRAM, Options, serve, arguments)


async def serve(options: Options) -> None:
    """Follow the cluster and serve the page until cancelled.

    Raises ``FlagError``, ``ConfigurationError`` or ``ListenError`` where it cannot start.
    """
    traces.setup(PROGRAM)
    health = Health()
    registry = Metrics(PREFIX, process_series=True)
    client = await connect(options, PROGRAM)
    async with client, endpoints(options.serving, health, registry):
        follower = Follower(client, client.server)
        metrics = DashboardMetrics(registry)
        metrics.follow(follower)
        health.add_readiness("informers", follower.missing)
        app = application(follower, metrics, allowed_hosts=options.allowed_hosts)
        async with (
            listening(app, Address.parse(options.listen_address), stop_seconds=STOP_SECONDS) as bound,
            asyncio.TaskGroup() as tasks,
        ):
            log.info("the page is at http://%s/", bound)
            tasks.create_task(follower.run(), name="follower")


if __name__ == "__main__":
    sys.exit(main())
