"""Leader election on a Lease of ``coordination.k8s.io`` (spec 04 section 1, spec 08 section 14).

The protocol is that of every Kubernetes component, so processes of either make may compete for one Lease:

* The holder renews every ``retry_period``. Others may take the Lease once they have watched it unchanged for as long as
  it says, on their own steady clock: clocks of different machines need not agree.
* Every write names the resource version that was read, so of two candidates one gets a conflict.
* Who cannot renew for ``renew_deadline`` stops working; that is before anybody else may start.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from stromboli.api.kinds import LEASES
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock, deadline
from stromboli.kube.errors import (
    AlreadyExists,
    ConfigurationError,
    Conflict,
    KubeError,
    LeadershipLost,
    NotFound,
)
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)

JITTER = 1.2
RELEASE_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds. Raises :class:`ConfigurationError` when they cannot keep two holders apart."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.retry_period <= 0:
            raise ConfigurationError("--leader-elect-retry-period must be greater than zero")
        if self.duration < 1:
            raise ConfigurationError("--leader-elect-lease-duration must be at least one second")
        if self.duration <= self.renew_deadline:
            raise ConfigurationError(
                "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline "
                f"({self.duration:g} s, {self.renew_deadline:g} s)"
            )
        if self.renew_deadline <= JITTER * self.retry_period:
            raise ConfigurationError(
                f"--leader-elect-renew-deadline must be greater than {JITTER} times --leader-elect-retry-period "
                f"({self.renew_deadline:g} s, {self.retry_period:g} s)"
            )


def new_identity() -> str:
    """``<hostname>_<uuid>``: different for every process, and for every start of one."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """Competes for one Lease.

    ``on_new_leader`` is told of every holder that is seen, also of this one. With ``release_on_stop`` the Lease is
    given back when the work has ended, so that the next candidate need not wait for it to run out.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str | None = None,
        timing: LeaseTiming | None = None,
        release_on_stop: bool = True,
        on_new_leader: Callable[[str], object] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        rng: random.Random | None = None,
    ) -> None:
        self.identity = identity or new_identity()
        self.namespace = namespace
        self.name = name
        # Renewals must not wait behind everything else that the process asks for.
        self._client = client.with_limit(qps=0)
        self._timing = timing or LeaseTiming()
        self._release_on_stop = release_on_stop
        self._on_new_leader = on_new_leader
        self._clock = clock
        self._rng = rng or random.Random()
        self._lease: JsonObject | None = None  # as last seen
        self._seen_at = 0.0  # when it last changed, on our clock
        self._renewed_at = 0.0
        self._held = False
        self._leader = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process holds the Lease and it has not run out."""
        return self._held and self._clock.monotonic() < self._renewed_at + self._timing.duration

    @property
    def leader(self) -> str:
        """Identity of the last holder seen, empty if none."""
        return self._leader

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the Lease, then do ``work`` for as long as it is held.

        Returns when ``work`` does. Raises :class:`LeadershipLost`, after ``work`` was cancelled and has ended, when the
        Lease is lost. Gives the Lease back at the end, however it comes.
        """
        await self.acquire()
        try:
            await self._work_and_hold(work)
        finally:
            await self.release()

    async def acquire(self) -> None:
        """Return once this process holds the Lease. Failing requests are logged and tried again, for ever."""
        log.info("waiting for the lease %s/%s as %s", self.namespace, self.name, self.identity)
        while not await self._attempt(self._timing.renew_deadline):
            await self._clock.sleep(self._timing.retry_period * (1 + JITTER * self._rng.random()))
        log.info("holding the lease %s/%s as %s", self.namespace, self.name, self.identity)

    async def hold(self) -> None:
        """Renew until the Lease is lost, then raise :class:`LeadershipLost`. Never returns."""
        while True:
            await self._clock.sleep(self._timing.retry_period)
            # However late we are: a renewal that succeeds names the version that we wrote, so nobody was in between.
            left = self._renewed_at + self._timing.renew_deadline - self._clock.monotonic()
            if await self._attempt(max(left, self._timing.retry_period)):
                continue
            if self._holder() not in ("", self.identity):
                raise self._lost(f"{self._holder()} holds it")
            if self._clock.monotonic() >= self._renewed_at + self._timing.renew_deadline:
                raise self._lost(f"it could not be renewed for {self._timing.renew_deadline:g} s")

    async def release(self) -> None:
        """Give the Lease back if this process holds it. Failures are logged: it runs out by itself."""
        if not self._held or self._lease is None:
            return
        self._held = False
        if not self._release_on_stop:
            return
        now = self._now()
        empty = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await self._client.update(LEASES, {**self._lease, "spec": {**self._spec(), **empty}})
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s/%s was not released: %s", self.namespace, self.name, error)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _work_and_hold(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                holding = tasks.create_task(self.hold(), name=f"lease {self.name}")
                await work()
                holding.cancel()
        except BaseExceptionGroup as group:
            lost, others = group.split(LeadershipLost)
            if lost is None or others is not None:
                raise
            raise LeadershipLost(str(lost.exceptions[0])) from group

    def _lost(self, why: str) -> LeadershipLost:
        self._held = False
        return LeadershipLost(f"the lease {self.namespace}/{self.name} is lost: {why}")

    async def _attempt(self, seconds: float) -> bool:
        try:
            async with deadline(self._clock, seconds):
                return await self._acquire_or_renew()
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s/%s: %s", self.namespace, self.name, str(error) or "no answer in time")
            return False

    async def _acquire_or_renew(self) -> bool:
        if self._held and self._lease is not None:
            try:
                return await self._write(self._lease)  # nobody else writes it in an orderly world: no need to read
            except (Conflict, NotFound):
                pass
        try:
            lease = await self._client.get(LEASES, self.name, self.namespace)
        except NotFound:
            return await self._create()
        self._see(lease)
        if self._holder() not in ("", self.identity) and not self._has_run_out():
            return False
        try:
            return await self._write(lease)
        except Conflict:
            return False  # somebody was quicker

    async def _create(self) -> bool:
        asked_at = self._clock.monotonic()
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self.namespace, "name": self.name},
            "spec": self._spec_to_hold({}),
        }
        try:
            self._took(await self._client.create(LEASES, lease), asked_at)
        except AlreadyExists:
            return False
        return True

    async def _write(self, lease: JsonObject) -> bool:
        asked_at = self._clock.monotonic()
        spec = self._spec_to_hold(lease.get("spec") or {})
        self._took(await self._client.update(LEASES, {**lease, "spec": spec}), asked_at)
        return True

    def _spec_to_hold(self, old: JsonObject) -> JsonObject:
        now = self._now()
        spec = {
            **old,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "renewTime": now,
        }
        if old.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(old.get("leaseTransitions") or 0) + (1 if old else 0)
        return spec

    def _took(self, lease: JsonObject, asked_at: float) -> None:
        self._held = True
        self._renewed_at = asked_at
        self._see(lease)

    def _see(self, lease: JsonObject) -> None:
        if self._lease is None or self._lease.get("spec") != lease.get("spec"):
            self._seen_at = self._clock.monotonic()
        self._lease = lease
        holder = self._holder()
        if holder != self.identity:
            self._held = False
        if holder and holder != self._leader:
            self._leader = holder
            log.info("the lease %s/%s is held by %s", self.namespace, self.name, holder)
            if self._on_new_leader:
                self._on_new_leader(holder)

    def _spec(self) -> JsonObject:
        found = (self._lease or {}).get("spec")
        return found if isinstance(found, dict) else {}

    def _holder(self) -> str:
        return str(self._spec().get("holderIdentity") or "")

    def _has_run_out(self) -> bool:
        seconds = float(self._spec().get("leaseDurationSeconds") or self._timing.duration)
        return self._clock.monotonic() >= self._seen_at + seconds

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
