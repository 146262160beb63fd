"""What an explanation is tested with: a job that waits, what stands around it, and what is to be said about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from e2e.cluster import Cluster, Json, eventually, queue, vcjob
from e2e.denying import hook_name
from e2e.shell import Shell
from stromboli.api.kinds import JOBS, NODES, QUEUES

JOB = "waits"
NODE_NAMES = tuple(f"node-{number}" for number in range(5))
FOREVER = "sleep 600"
TOLD_SECONDS = 100.0
"""What has been said is not said again for half a minute, and a gang is held back after refused binds."""
UNPLACED = {"Unschedulable", "SchedulingGated", "SchedulerError"}
"""Reasons with which autoscalers take a pod for one that waits, and those of pods that they cannot help."""


def names_in(cluster: Cluster) -> dict[str, str]:
    """What the texts of situations call things: ``{ns}``, and the cluster-wide names of the test's own."""
    parts = {part: queue_name(cluster, part) for part in ("q", "top", "other")}
    return {"ns": cluster.namespace, "hook": hook_name(cluster), **parts}


def queue_name(cluster: Cluster, part: str = "q") -> str:
    """A queue of the test's own."""
    return f"{cluster.namespace[-40:].lstrip('-')}-{part}"


Around = Callable[[Cluster], AbstractAsyncContextManager[None]]
Making = Callable[[Cluster], Json]


@asynccontextmanager
async def nothing(_cluster: Cluster) -> AsyncIterator[None]:
    """Nothing but the cluster."""
    yield


@dataclass(frozen=True)
class Situation:
    """A job that waits for one reason. Texts may have the names of ``names_in`` in braces."""

    job: Making
    want_reason: str
    want_sentence: str
    """Without ``NAMESPACE/JOB`` at its beginning."""
    want_told: str
    """What a condition of the PodGroup or the job says; empty where no one has written anything down."""
    want_event: str | None = None
    """What an event of the job says, if not the same."""
    want_pods: str | None = None
    """What a pod's condition says, if not the same."""
    around: Around = nothing
    want_lines: Sequence[str] = ()
    """Lines of the ladder, without their indentation."""
    want_job_state: str = ""
    """Reason in the job's own status."""


def job(pod_spec: Json | None = None, container: Json | None = None, **shape: Any) -> Making:
    """A vcjob of one task; ``pod_spec`` and ``container`` go into its template."""

    def make(cluster: Cluster) -> Json:
        names = names_in(cluster)
        given: dict[str, Any] = {"command": FOREVER}
        given |= {key: value.format(**names) if isinstance(value, str) else value for key, value in shape.items()}
        made = vcjob(JOB, **given)
        template = made["spec"]["tasks"][0]["template"]["spec"]
        template.update(pod_spec or {})
        template["containers"][0].update(container or {})
        return made

    return make


@asynccontextmanager
async def queues(cluster: Cluster, *given: Json) -> AsyncIterator[None]:
    """The queues, parents first, open; gone at the end."""
    for one in given:
        await cluster.create(QUEUES, one)
        await state_is(cluster, one["metadata"]["name"], "Open")
    try:
        yield
    finally:
        for one in reversed(given):
            await deleted_queue(cluster, one["metadata"]["name"])


async def deleted_queue(cluster: Cluster, name: str) -> None:
    """Delete a queue that may have been deleted already."""
    await cluster.delete(QUEUES, name)
    await cluster.gone(QUEUES, name)


async def state_is(cluster: Cluster, name: str, state: str) -> None:
    """Wait until a queue is in that state."""
    await eventually(
        lambda: cluster.queue(name), lambda seen: seen.get("status", {}).get("state") == state, what=f"{name} {state}"
    )


def own_queue(**spec: Any) -> Around:
    """A queue of the test's own around the job."""
    return lambda cluster: queues(cluster, queue(queue_name(cluster), **spec))


def running(name: str = "hog", **shape: Any) -> Around:
    """Another job that runs while the situation lasts."""

    @asynccontextmanager
    async def around(cluster: Cluster) -> AsyncIterator[None]:
        await cluster.create(JOBS, vcjob(name, **{"command": FOREVER, **shape}))
        await cluster.phase_is(name, "Running")
        # Until its group runs as well, what the group wants counts beside what its pods have.
        await eventually(
            lambda: cluster.pod_group(name),
            lambda seen: seen.get("status", {}).get("phase") == "Running",
            what=f"group of {name} running",
        )
        yield
        await cluster.delete(JOBS, name)
        await cluster.gone(JOBS, name)

    return around


def patched_nodes(spec: Json, back: Json) -> Around:
    """All nodes changed, and changed back."""

    async def patch(cluster: Cluster, changed: Json) -> None:
        await asyncio.gather(*(cluster.patch(NODES, name, {"spec": changed}) for name in NODE_NAMES))

    @asynccontextmanager
    async def around(cluster: Cluster) -> AsyncIterator[None]:
        await patch(cluster, spec)
        try:
            yield
        finally:
            await patch(cluster, back)

    return around


async def check(situation: Situation, cluster: Cluster, shell: Shell, *more: str) -> None:
    """Submit the job, and see that the command line and the objects tell the cause."""
    names = names_in(cluster)
    async with situation.around(cluster):
        await cluster.create(JOBS, situation.job(cluster))
        await told(situation, cluster, shell, *more)
        await cluster.delete(JOBS, JOB)
        await cluster.gone(JOBS, JOB)
        await eventually(cluster.pods, lambda seen: not [pod for pod in seen if is_of(pod, JOB)], what=f"{names} left")


def is_of(pod: Json, job: str) -> bool:
    """Whether a pod is of the job."""
    return bool(pod["metadata"]["labels"].get("volcano.sh/job-name") == job)


async def told(situation: Situation, cluster: Cluster, shell: Shell, *more: str) -> None:
    """See that the command line and the objects tell the cause of the job that waits."""
    names = names_in(cluster)
    want = (situation.want_reason, f"{cluster.namespace}/{JOB} {situation.want_sentence}".format(**names))
    found = await eventually(
        lambda: shell.explain(JOB, *more),
        lambda seen: (seen["reason"], seen["sentence"]) == want,
        what=f"explained as {want}",
    )
    assert found["nextStep"]
    lines = [line.strip() for rung in found["ladder"] for line in rung["lines"]]
    assert [line for line in situation.want_lines if line.format(**names) not in lines] == [], lines
    await told_by_objects(situation, cluster)


async def told_by_objects(situation: Situation, cluster: Cluster) -> None:
    """PodGroup, pods and job name the same cause; pods that wait are Unschedulable, which is what autoscalers read."""
    names, want = names_in(cluster), situation.want_told
    if not want:
        return
    event, of_pods = (
        (want if text is None else text).format(**names) for text in (situation.want_event, situation.want_pods)
    )
    want = want.format(**names)
    await eventually(lambda: conditions(cluster), lambda seen: any(want in text for text in seen), what=want)
    await eventually(
        lambda: waiting_pods(cluster),
        lambda seen: not seen or any(of_pods in text for _, text in seen.values()),
        what=f"a pod with {of_pods!r}",
    )
    assert {reason for reason, _ in (await waiting_pods(cluster)).values()} <= UNPLACED
    await eventually(
        lambda: cluster.events(JOB),
        lambda seen: any(event in one["message"] for one in seen),
        within=TOLD_SECONDS,
        what=f"event {event!r}",
    )
    if situation.want_job_state:
        state = (await cluster.job(JOB))["status"]["state"]
        assert (state["reason"], want in state["message"]) == (situation.want_job_state, True), state


async def conditions(cluster: Cluster) -> list[str]:
    """What is written about the job that waits: conditions of its PodGroup, and its own state."""
    group = await cluster.pod_group(JOB)
    found = [item.get("message", "") for item in group.get("status", {}).get("conditions", [])]
    state = (await cluster.job(JOB)).get("status", {}).get("state", {})
    return [*found, state.get("message", "")]


async def waiting_pods(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Reason and message of the condition ``PodScheduled`` of the job's pods that have no node, by name."""
    found: dict[str, tuple[str, str]] = {}
    for pod in await cluster.pods(JOB):
        if not pod["spec"].get("nodeName"):
            for item in pod["status"].get("conditions", []):
                if item["type"] == "PodScheduled":
                    found[pod["metadata"]["name"]] = (item["reason"], item.get("message", ""))
    return found
