"""Locks on nodes while pods with devices are bound (spec 06 section 4.4).

A lock is an annotation of the node with the time at which it was taken. One that is older than five minutes counts for
nothing: its owner is gone. The device plugin on the node gives most locks back once it has seen the pod; those that the
scheduler must give back itself, and those of pods that were not bound after all, are taken off here. Writes carry the
resourceVersion that was read, so that two owners are never written one over the other.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from stromboli.api import core
from stromboli.api.kinds import NODES
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import Conflict, KubeError, NotFound
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.results import Bind

log = logging.getLogger(__name__)

EXPIRY_SECONDS = 300.0
ATTEMPTS = 5
RETRY_SECONDS = 0.1
WAIT_SECONDS = 30.0
"""How long somebody else's lock is waited for: pods of a gang that go to one node come one after the other."""
POLL_SECONDS = 1.0


class LockError(Exception):
    """The lock cannot be had; one line that says why."""


class Locked(LockError):
    """Somebody else has the lock."""


class NodeLocks:
    """The pre-binder of node locks."""

    def __init__(self, client: Client, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._clock = clock
        self._held: dict[tuple[str, str], str] = {}
        """What was written, by node and key: a lock of somebody else is not taken off."""

    def needs(self, bind: Bind) -> bool:
        """Whether the node is to be locked."""
        return bool(_locks(bind))

    async def pre_bind(self, bind: Bind) -> None:
        """Return when all locks are held. Raises PreBindError, with none held."""
        for number, lock in enumerate(_locks(bind)):
            try:
                await self._wait(bind.node, lock.key)
            except (LockError, KubeError) as error:
                for earlier in _locks(bind)[:number]:
                    await self._release(bind.node, earlier.key)
                raise PreBindError(f"{lock.failure} {error}") from error

    async def roll_back(self, bind: Bind) -> None:
        """The pod is not bound: all locks are given back."""
        for lock in _locks(bind):
            await self._release(bind.node, lock.key)

    async def settle(self, bind: Bind) -> None:
        """The pod is bound: what the device plugin does not give back is given back."""
        for lock in _locks(bind):
            if lock.handed_over:
                self._held.pop((bind.node, lock.key), None)
            else:
                await self._release(bind.node, lock.key)

    async def _wait(self, node: str, key: str) -> None:
        end = self._clock.monotonic() + WAIT_SECONDS
        while True:
            try:
                await self._acquire(node, key)
                return
            except Locked:
                if self._clock.monotonic() >= end:
                    raise
            await self._clock.sleep(POLL_SECONDS)

    async def _acquire(self, node: str, key: str) -> None:
        for _ in range(ATTEMPTS):
            found = await self._node(node)
            self._check(found, key)
            mark = f"{datetime.fromtimestamp(self._clock.time(), UTC):%Y-%m-%dT%H:%M:%SZ}"
            if await self._write(found, key, mark):
                self._held[node, key] = mark
                return
        raise LockError(f"setNodeLock exceeds retry count {ATTEMPTS}")

    def _check(self, node: core.Node, key: str) -> None:
        """Raises Locked, or LockError when the lock cannot be read."""
        written = node.metadata.annotations.get(key)
        if written is None:
            return
        try:
            since = core.timestamp(written or "(nothing)")
        except ValueError as error:
            raise LockError(f"annotation {key} of node {node.name} is no time: {error}") from error
        if self._clock.time() - since < EXPIRY_SECONDS:
            raise Locked(f"node {node.name} has been locked within 5 minutes")

    async def _release(self, node: str, key: str) -> None:
        mark = self._held.pop((node, key), None)
        try:
            for _ in range(ATTEMPTS):
                found = await self._node(node)
                if mark is None or found.metadata.annotations.get(key) != mark or await self._write(found, key, None):
                    return
            log.warning("node %s: lock %s: releaseNodeLock exceeds retry count %d", node, key, ATTEMPTS)
        except NotFound:
            pass  # the lock went with its node
        except KubeError as error:
            log.warning("node %s: lock %s stays until it expires: %s", node, key, error)

    async def _node(self, name: str) -> core.Node:
        return await self._client.get(NODES, name, decode=lambda data: core.decode(core.Node, data))

    async def _write(self, node: core.Node, key: str, mark: str | None) -> bool:
        """False when the node has changed since it was read."""
        metadata = {"resourceVersion": node.metadata.resource_version, "annotations": {key: mark}}
        try:
            await self._client.patch(NODES, node.name, {"metadata": metadata})
        except Conflict:
            await self._clock.sleep(RETRY_SECONDS)
            return False
        return True


def _locks(bind: Bind) -> tuple[NodeLock, ...]:
    return bind.extension.locks if bind.extension is not None else ()
