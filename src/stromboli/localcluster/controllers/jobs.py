"""batch/v1 Jobs: so many completions, so many at a time, so many failures at most; Indexed or not.

Not simulated: pod failure policies, success policies, per-index back-off and back-off delays between retries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import (
    controlled,
    delete_pod,
    from_template,
    is_active,
    is_ready,
    phase,
    to_delete_first,
    with_condition,
    write_status,
)
from stromboli.localcluster.controllers.running import Mapper, itself, owned_by
from stromboli.localcluster.nodes.timestamps import seconds, stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.storage import Key, Object

INDEX = "batch.kubernetes.io/job-completion-index"


class BatchJobController:
    """Runs the pods of batch/v1 Jobs."""

    name = "job"

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now

    def sources(self) -> Mapping[Kind, Mapper]:
        """Jobs and their pods."""
        return {kinds.BATCH_JOBS: itself, kinds.PODS: owned_by("Job")}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Start what is missing, stop what is too much, and conclude."""
        stored = self._registry.store.get(Key.of(kinds.BATCH_JOBS, namespace, name))
        if stored is None or stored.object["metadata"].get("deletionTimestamp"):
            return None
        job = stored.object
        ended = finished(job)
        if ended is not None:
            return await self._expire(job, ended)
        pods = controlled(self._registry.store, kinds.PODS, job)
        active = [pod for pod in pods if is_active(pod)]
        verdict = conclusion(job, pods, self._now())
        wanted = 0 if verdict or job["spec"].get("suspend") else wanted_active(job, pods)
        for pod in to_delete_first(active)[: max(len(active) - wanted, 0)]:
            await delete_pod(self._registry, pod)
        created = [
            await self._registry.create(kinds.PODS, new_pod(job, index))
            for index in missing_indexes(job, pods, wanted - len(active))
        ]
        alive = [*active[: wanted if wanted < len(active) else None], *created] if wanted else []
        await write_status(self._registry, kinds.BATCH_JOBS, job, self._status(job, pods, alive, verdict))
        return self._time_left(job)

    async def _expire(self, job: Object, ended: float) -> float | None:
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is None:
            return None
        left = ended + float(lifetime) - self._now()
        if left > 0:
            return left
        options = DeleteOptions(propagation="Background", uid=job["metadata"]["uid"])
        await self._registry.delete(kinds.BATCH_JOBS, job["metadata"]["namespace"], job["metadata"]["name"], options)
        return None

    def _status(
        self, job: Object, pods: Sequence[Object], active: Sequence[Object], verdict: tuple[str, str, str] | None
    ) -> Object:
        now = stamp(self._now())
        fresh: Object = dict(job.get("status") or {})
        suspended = bool(job["spec"].get("suspend"))
        if not suspended:
            fresh.setdefault("startTime", now)
        done = sum(phase(pod) == "Succeeded" for pod in pods)
        failed = sum(phase(pod) == "Failed" for pod in pods)
        ready = sum(map(is_ready, active))
        fresh |= {"active": len(active), "succeeded": done, "failed": failed, "ready": ready, "terminating": 0}
        if _indexed(job):
            fresh["completedIndexes"] = ranges(_indexes(pod for pod in pods if phase(pod) == "Succeeded"))
        conditions = fresh.get("conditions") or []
        if verdict:
            kind, reason, message = verdict
            before = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
            conditions = with_condition(conditions, before, "True", reason, message, now)
            conditions = with_condition(conditions, kind, "True", reason, message, now)
            if kind == "Complete":
                fresh["completionTime"] = now
        elif suspended or any(one["type"] == "Suspended" for one in conditions):
            word = "JobSuspended" if suspended else "JobResumed"
            text = "Job suspended" if suspended else "Job resumed"
            conditions = with_condition(conditions, "Suspended", str(suspended), word, text, now)
        if conditions:
            fresh["conditions"] = conditions
        return {key: value for key, value in fresh.items() if value or key == "ready"}

    def _time_left(self, job: Object) -> float | None:
        deadline, started = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
        if deadline is None:
            return None
        since = seconds(started) if started else self._now()
        return max(since + float(deadline) - self._now(), 0.05)


def finished(job: Object) -> float | None:
    """When a Job ended, in seconds since the epoch; None while it runs."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return seconds(condition["lastTransitionTime"])
    return None


def conclusion(job: Object, pods: Sequence[Object], now: float) -> tuple[str, str, str] | None:
    """Condition type, reason and message of a Job that is over; None while it is not."""
    spec = job["spec"]
    failed = sum(phase(pod) == "Failed" for pod in pods)
    started = (job.get("status") or {}).get("startTime")
    deadline = spec.get("activeDeadlineSeconds")
    if failed > int(spec.get("backoffLimit", 6)):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if deadline is not None and started and now >= seconds(started) + float(deadline):
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    done = [pod for pod in pods if phase(pod) == "Succeeded"]
    completions = spec.get("completions")
    reached = "Reached expected number of succeeded pods"
    if completions is None:
        return ("Complete", "CompletionsReached", reached) if done and not any(map(is_active, pods)) else None
    count = len(_indexes(done)) if _indexed(job) else len(done)
    return ("Complete", "CompletionsReached", reached) if count >= int(completions) else None


def wanted_active(job: Object, pods: Sequence[Object]) -> int:
    """How many pods should be active now."""
    spec = job["spec"]
    parallelism = int(spec.get("parallelism", 1))
    done = [pod for pod in pods if phase(pod) == "Succeeded"]
    if spec.get("completions") is None:
        return sum(map(is_active, pods)) if done else parallelism
    count = len(_indexes(done)) if _indexed(job) else len(done)
    return min(parallelism, int(spec["completions"]) - count)


def missing_indexes(job: Object, pods: Sequence[Object], count: int) -> list[int | None]:
    """Completion indexes of pods to start (None for Jobs that have none)."""
    if count <= 0:
        return []
    if not _indexed(job):
        return [None] * count
    taken = _indexes(pod for pod in pods if is_active(pod) or phase(pod) == "Succeeded")
    free = (index for index in range(int(job["spec"]["completions"])) if index not in taken)
    return [index for index, _ in zip(free, range(count), strict=False)]


def new_pod(job: Object, index: int | None) -> Object:
    """A pod of the Job."""
    metadata = job["metadata"]
    labels = {
        "batch.kubernetes.io/controller-uid": metadata["uid"],
        "batch.kubernetes.io/job-name": metadata["name"],
        "controller-uid": metadata["uid"],
        "job-name": metadata["name"],
    }
    if index is None:
        return from_template(job["spec"]["template"], kinds.BATCH_JOBS, job, labels=labels)
    labels[INDEX] = str(index)
    pod = from_template(job["spec"]["template"], kinds.BATCH_JOBS, job, labels=labels, annotations={INDEX: str(index)})
    pod["metadata"]["generateName"] = f"{metadata['name']}-{index}-"
    for container in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]:
        container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return pod


def ranges(indexes: Iterable[int]) -> str:
    """``1,3-5,7`` for a set of numbers."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _indexes(pods: Iterable[Object]) -> set[int]:
    return {int((pod["metadata"].get("annotations") or {}).get(INDEX, -1)) for pod in pods}
