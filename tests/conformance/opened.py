"""Compares a mirror with ``observed.open``, the session right after opening: who is there, in which state."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Job, Task
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.vectors import JsonObject


def differences(want: JsonObject | None, mirror: Mirror) -> list[str]:
    """What differs; nothing when the vector does not show the opened session."""
    if not want:
        return []
    found = [*differ("open nodeList", want.get("nodeList") or [], [node.name for node in mirror.node_list if node])]
    jobs = want.get("jobs") or {}
    found += differ("open jobs", sorted(jobs), sorted(mirror.session_jobs))
    for job_id, job in jobs.items():
        if job_id in mirror.session_jobs:
            found += _job_differences(f"open {job_id}", job, mirror.session_jobs[job_id])
    return found


def _job_differences(where: str, want: JsonObject, job: Job) -> Iterator[str]:
    yield from differ(f"{where} priority", want["priority"], job.priority)
    yield from differ(f"{where} minAvailable", want["minAvailable"], job.min_member)
    yield from differ(f"{where} queue", want["queue"], job.queue_name)
    yield from differ(f"{where} preemptable", want["preemptable"], job.preemptable)
    tasks = {task.key: task for task in job.tasks.values()}
    for key, task in (want.get("tasks") or {}).items():
        if key in tasks:
            yield from differing_maps(f"{where} {key}", _wanted(task), _found(tasks[key]))
        else:
            yield f"{where}: {key} is missing"
    members = {id_: sorted(sub_job.get("tasks") or []) for id_, sub_job in (want.get("subJobs") or {}).items()}
    got = {id_: sorted(task.key for task in sub_job.tasks.values()) for id_, sub_job in job.sub_jobs.items()}
    yield from differing_maps(f"{where} subJobs", members, got)


def _wanted(task: JsonObject) -> JsonObject:
    return {
        "status": task["status"],
        "node": task.get("node") or "",
        "priority": task["priority"],
        "preemptable": task["preemptable"],
        "role": task.get("role") or "",
        "bestEffort": bool(task.get("bestEffort")),
    }


def _found(task: Task) -> JsonObject:
    return {
        "status": task.status.word,
        "node": task.node_name,
        "priority": task.priority,
        "preemptable": task.preemptable,
        "role": task.role,
        "bestEffort": task.best_effort,
    }
