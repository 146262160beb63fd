"""Queues that close and open with their parents."""

from __future__ import annotations

from e2e.cluster import Cluster, vcjob
from stromboli.api.kinds import JOBS, QUEUES

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


async def test_closing_goes_down_and_waits_for_jobs_and_opening_comes_back(cluster: Cluster) -> None:
    top, team, other = (f"{cluster.namespace[:40]}-{part}" for part in ("top", "team", "other"))
    await cluster.open_queue(top)
    for child in (team, other):
        await cluster.open_queue(child, parent=top)
    await cluster.create(JOBS, vcjob("running", queue=team, command="sleep 600"))
    await cluster.phase_is("running", "Running")
    await cluster.command("CloseQueue", QUEUES, other)
    await cluster.queue_is(other, "Closed")

    await cluster.command("CloseQueue", QUEUES, top)
    await cluster.queue_is(top, "Closed")
    await cluster.queue_is(team, "Closing")
    assert (await cluster.queue(team))["metadata"]["annotations"][CLOSED_BY_PARENT] == "true"
    await cluster.delete(JOBS, "running")
    await cluster.queue_is(team, "Closed")

    await cluster.command("OpenQueue", QUEUES, top)
    await cluster.queue_is(top, "Open")
    await cluster.queue_is(team, "Open")
    assert (await cluster.queue(other))["status"]["state"] == "Closed", "somebody closed it by name"

    await cluster.create(JOBS, vcjob("again", queue=team))
    await cluster.phase_is("again", "Completed")
    await cluster.delete(JOBS, "again")
    await cluster.command("CloseQueue", QUEUES, top)
    for name in (team, other, top):
        await cluster.queue_is(name, "Closed")
    for name in (team, other, top):
        await cluster.delete(QUEUES, name)
        await cluster.gone(QUEUES, name)
