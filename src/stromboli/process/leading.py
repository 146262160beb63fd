"""Work that only the leader does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from stromboli.kube.leases import LeaderElector, LeaseTiming

if TYPE_CHECKING:
    from stromboli.kube.client import Client
    from stromboli.process.options import LeaderOptions

log = logging.getLogger(__name__)


async def lead(options: LeaderOptions, client: Client, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do ``work`` at once when election is off, else for as long as this process holds the lease.

    Raises:
        LeadershipLost: the lease is gone; the process must end.
    """
    if not options.leader_elect:
        await work()
        return
    timing = LeaseTiming(
        duration=options.leader_elect_lease_duration,
        renew_deadline=options.leader_elect_renew_deadline,
        retry_period=options.leader_elect_retry_period,
    )
    elector = LeaderElector(
        client,
        namespace=options.lease_namespace,
        name=options.leader_elect_resource_name,
        timing=timing,
        on_new_leader=lambda leader: log.info("the leader is %s", leader),
    )
    await elector.run(work)
