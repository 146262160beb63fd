"""Queues that close and open with their parents."""

from __future__ import annotations

from e2e.cluster import Cluster, eventually, queue, vcjob
from stromboli.api.kinds import COMMANDS, JOBS, QUEUES

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


async def state_is(cluster: Cluster, name: str, state: str) -> None:
    await eventually(
        lambda: cluster.queue(name),
        lambda seen: seen.get("status", {}).get("state") == state,
        what=f"{name} {state}",
    )


async def command(cluster: Cluster, action: str, name: str) -> None:
    target = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "name": name,
        "uid": (await cluster.queue(name))["metadata"]["uid"],
    }
    wire = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": f"{name}-{action.lower()}-"},
        "action": action,
        "target": target,
    }
    await cluster.create(COMMANDS, wire)


async def test_closing_goes_down_and_waits_for_jobs_and_opening_comes_back(cluster: Cluster) -> None:
    top, team, other = (f"{cluster.namespace[:40]}-{part}" for part in ("top", "team", "other"))
    await cluster.create(QUEUES, queue(top))
    await state_is(cluster, top, "Open")
    for child in (team, other):
        await cluster.create(QUEUES, queue(child, parent=top))
        await state_is(cluster, child, "Open")
    await cluster.create(JOBS, vcjob("running", queue=team, command="sleep 600"))
    await cluster.phase_is("running", "Running")
    await command(cluster, "CloseQueue", other)
    await state_is(cluster, other, "Closed")

    await command(cluster, "CloseQueue", top)
    await state_is(cluster, top, "Closed")
    await state_is(cluster, team, "Closing")
    assert (await cluster.queue(team))["metadata"]["annotations"][CLOSED_BY_PARENT] == "true"
    await cluster.delete(JOBS, "running")
    await state_is(cluster, team, "Closed")

    await command(cluster, "OpenQueue", top)
    await state_is(cluster, top, "Open")
    await state_is(cluster, team, "Open")
    assert (await cluster.queue(other))["status"]["state"] == "Closed", "somebody closed it by name"

    await cluster.create(JOBS, vcjob("again", queue=team))
    await cluster.phase_is("again", "Completed")
    await cluster.delete(JOBS, "again")
    await command(cluster, "CloseQueue", top)
    for name in (team, other, top):
        await state_is(cluster, name, "Closed")
    for name in (team, other, top):
        await cluster.delete(QUEUES, name)
        await cluster.gone(QUEUES, name)
