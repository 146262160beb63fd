"""``vcctl pod list``: pods of jobs and queues (spec 08 section 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from stromboli.api.kinds import PODS
from stromboli.api.names import JOB_NAME, POD_QUEUE_NAME, QUEUE_NAME
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.running import Invocation
from stromboli.cli.vc import ages
from stromboli.cli.vc.columns import Column
from stromboli.cli.vc.output import Listing
from stromboli.kube import json
from stromboli.kube.json import JsonObject


def list_pods(invocation: Invocation) -> None:
    """``vcctl pod list``."""
    arguments = invocation.arguments
    job, queue = arguments.text("job"), arguments.text("queue")
    with invocation.connect() as api:
        namespace = None if arguments.on("all-namespaces") else invocation.namespace(api)
        if job and queue:
            _check_queue(api, job, queue, namespace)
        listing = Listing(
            PODS,
            namespace,
            columns=lambda wide: columns(invocation, wide=wide),
            keep=(lambda pod: _in_queue(pod, queue)) if queue and not job else (lambda _pod: True),
            label_selector=f"{JOB_NAME}={job}" if job else None if queue else JOB_NAME,
        )
        listing.show(invocation, api)


def _check_queue(api: Api, job: str, queue: str, namespace: str | None) -> None:
    for pod in api.list(PODS, namespace, label_selector=f"{JOB_NAME}={job}"):
        if _labels(pod).get(QUEUE_NAME) not in (None, "", queue):
            raise CommandError(f"the input vcjob {job} does not match the queue {queue}")


def _labels(pod: JsonObject) -> dict[str, Any]:
    return json.metadata(pod).get("labels") or {}


def _in_queue(pod: JsonObject, queue: str) -> bool:
    annotations = json.metadata(pod).get("annotations") or {}
    return queue in (_labels(pod).get(QUEUE_NAME), annotations.get(POD_QUEUE_NAME))


def columns(invocation: Invocation, *, wide: bool) -> Sequence[Column]:
    """The columns of a list of pods."""
    from stromboli.localcluster.tables.pods import status

    now = datetime.fromtimestamp(invocation.now(), UTC)
    found = [
        Column("Name", lambda pod: json.key_of(pod)[1], gap=8),
        Column("Ready", ready, gap=8),
        Column("Status", lambda pod: status(pod, now), gap=8),
        Column("Restart", lambda pod: restarts(pod, invocation.now()), gap=8),
        Column("Age", lambda pod: ages.age(json.metadata(pod).get("creationTimestamp"), invocation.now()), gap=8),
    ]
    if wide:
        found += [
            Column("Node", lambda pod: (pod.get("spec") or {}).get("nodeName") or "<none>", gap=8),
            Column("Queue", lambda pod: _labels(pod).get(QUEUE_NAME) or "<none>", gap=8),
            Column("Job", lambda pod: _labels(pod).get(JOB_NAME) or "<none>", gap=8),
        ]
    return found


def ready(pod: JsonObject) -> str:
    """``<ready>/<total>`` containers, sidecars included."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"}
    mine = [one for one in status.get("initContainerStatuses") or [] if one.get("name") in sidecars]
    count = sum(bool(one.get("ready")) for one in [*(status.get("containerStatuses") or []), *mine])
    return f"{count}/{len(spec.get('containers') or []) + len(sidecars)}"


def restarts(pod: JsonObject, now: float) -> str:
    """``n``, or ``n (<age> ago)`` when the last end is known."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"}
    mine = [one for one in status.get("initContainerStatuses") or [] if one.get("name") in sidecars]
    statuses = [*(status.get("containerStatuses") or []), *mine]
    count = sum(one.get("restartCount") or 0 for one in statuses)
    ended = [(one.get("lastState") or {}).get("terminated") or {} for one in statuses]
    finished = [end["finishedAt"] for end in ended if end.get("finishedAt")]
    return f"{count} ({ages.age(max(finished), now)} ago)" if count and finished else str(count)
