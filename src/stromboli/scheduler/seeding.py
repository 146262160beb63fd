"""Makes sure that the queues exist which every cluster has: ``root`` and the default one (spec 04 section 1, pain P36).

Several schedulers may do this at the same time: a queue that exists already is as good as one just made.
"""

from __future__ import annotations

import logging
import random

from stromboli.api.kinds import QUEUES
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import AlreadyExists, KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.process.running import StartupError

log = logging.getLogger(__name__)

ROOT_QUEUE = "root"
ATTEMPTS = 60
PAUSE_SECONDS = 1.0
JITTER = 0.1


async def ensure_queues(client: Client, default_queue: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Create ``root`` (not reclaimable) and the default queue (reclaimable), each if it is missing.

    Raises:
        StartupError: a queue could be neither found nor created in a minute of attempts.
    """
    await _ensure(client, queue(ROOT_QUEUE, reclaimable=False), clock)
    await _ensure(client, queue(default_queue, reclaimable=True), clock)


def queue(name: str, *, reclaimable: bool) -> JsonObject:
    """A Queue of weight 1."""
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": reclaimable},
    }


async def _ensure(client: Client, wanted: JsonObject, clock: Clock) -> None:
    name = wanted["metadata"]["name"]
    last: KubeError | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            await clock.sleep(PAUSE_SECONDS * (1 + random.random() * JITTER))  # noqa: S311
        try:
            await _create_if_missing(client, name, wanted)
            return
        except KubeError as error:
            log.warning("queue %s: %s (attempt %d of %d)", name, error, attempt + 1, ATTEMPTS)
            last = error
    raise StartupError(f"queue {name} is missing and could not be created in {ATTEMPTS} attempts: {last}") from last


async def _create_if_missing(client: Client, name: str, wanted: JsonObject) -> None:
    try:
        await client.get(QUEUES, name)
        return
    except NotFound:
        pass
    try:
        await client.create(QUEUES, wanted)
    except AlreadyExists:
        log.info("queue %s was created by somebody else meanwhile", name)
    else:
        log.info("created queue %s", name)
