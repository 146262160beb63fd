"""The cluster as ``vcctl top`` keeps it: listed once, then kept up by watching, for as long as somebody looks.

Cut connections are taken up again where they ended, and forgotten resource versions lead to a new listing; that is what
:mod:`stromboli.kube.watching` does. Of each object one line is kept, so memory goes with the number of objects only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from stromboli.api.kinds import QUEUES, Kind
from stromboli.cli.vc.looking import OPTIONAL, READINGS, Line, Look, look_of
from stromboli.dashboard.following import FollowingInformer
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import Forbidden, Gone, KubeError
from stromboli.kube.stores import Identity
from stromboli.kube.watching import Interrupted, ListingEnded, Step


class Keeper:
    """Keeps the lines of all that is looked at. Use within :meth:`running`."""

    def __init__(self, client: Client, clock: Clock = SYSTEM_CLOCK) -> None:
        self._informers: dict[Kind, _Kept] = {kind: _Kept(client, kind, clock) for kind in READINGS}
        self._watching: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Keep up with the cluster until the end of the block."""
        self._watching = asyncio.create_task(self._run(), name="keeping up")
        try:
            yield
        finally:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for kind, informer in self._informers.items():
                tasks.create_task(informer.run(), name=f"informer-{kind.resource}")

    async def wait(self, seconds: float) -> None:
        """Let so much time pass. Raises what has ended the watching, which nothing should."""
        assert self._watching is not None
        ended, _ = await asyncio.wait({self._watching}, timeout=seconds)
        for task in ended:
            task.result()

    async def complete(self, seconds: float) -> bool:
        """Whether everything has been listed within so much time.

        Raises KubeError when something cannot be listed that a look cannot do without.
        """
        listing = [asyncio.create_task(informer.answered.wait()) for informer in self._informers.values()]
        try:
            _, missing = await asyncio.wait(listing, timeout=seconds)
        finally:
            for task in listing:
                task.cancel()
        for informer in self._informers.values():
            if informer.refusal is not None and informer.kind not in OPTIONAL:
                raise informer.refusal
        return not missing

    @property
    def known(self) -> int:
        """Objects that are known."""
        return sum(len(informer.store) for informer in self._informers.values())

    @property
    def problem(self) -> str:
        """Why what is kept may be out of date; empty when it follows the cluster."""
        for kind, informer in self._informers.items():
            if kind in OPTIONAL and isinstance(informer.last_error, Forbidden):
                continue
            if informer.problem:
                return informer.problem
        return ""

    def look(self, now: float) -> Look:
        """What is known now."""
        return look_of(now, lambda kind: self._informers[kind].store.list())


class _Kept(FollowingInformer[Any]):
    """An informer of lines. ``answered`` is set once the first listing is complete or refused; then see ``refusal``."""

    def __init__(self, client: Client, kind: Kind, clock: Clock) -> None:
        identify: Callable[[Line], Identity] | None = None if kind is QUEUES else _identity
        super().__init__(client, kind, READINGS[kind].decode, clock, identify=identify)
        self.answered = asyncio.Event()

    def take(self, step: Step) -> None:
        """Take in one step."""
        super().take(step)
        expired = isinstance(step, Interrupted) and isinstance(step.error, Gone)  # it is listed anew, at once
        if isinstance(step, ListingEnded | Interrupted) and not expired:
            self.answered.set()

    @property
    def refusal(self) -> KubeError | None:
        """Why nothing is known; None once something is."""
        return None if self.synced else self.last_error


def _identity(line: Line) -> Identity:
    return line.identity
