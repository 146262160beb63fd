"""Informers of everything that is shown, and whether what they hold is still true.

Two signs tell that it may not be: a small request every two seconds that the API server does not answer, and informers
that say their listing or watch was interrupted and wait before they try again. Views are made from what was known last,
and say since when it has been so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.dashboard.objects import Job, PodSight, pod_sight
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.starts import Starts
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import Forbidden, KubeError, NotFound
from stromboli.kube.informers import Informer
from stromboli.kube.retrying import Backoff
from stromboli.kube.stores import Identity
from stromboli.kube.watching import Interrupted, Pace, Step

log = logging.getLogger(__name__)

T = TypeVar("T")

BEAT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 10.0
LONGEST_PAUSE: Final = 5.0
"""Between two attempts to list or watch: somebody is looking."""
SETTLE_SECONDS: Final = 1.0
"""An informer that has not been interrupted again so long after its next attempt follows the cluster."""


class FollowingInformer(Informer[T]):
    """An informer that says whether it follows the cluster at present."""

    def __init__(self, client: Client, kind: Kind, decode: Callable[[bytes], T], clock: Clock, **options: Any) -> None:
        pace = Pace(backoff=Backoff(first=0.3, maximum=LONGEST_PAUSE))
        super().__init__(client, kind, decode, pace=pace, **options)
        self._clock = clock
        self._behind_until = 0.0

    def take(self, step: Step) -> None:
        """Take in one step, and remember an interruption until the next attempt has had its chance."""
        super().take(step)
        if isinstance(step, Interrupted):
            self._behind_until = self._clock.monotonic() + step.delay + SETTLE_SECONDS
        elif self.synced:
            self._behind_until = 0.0

    @property
    def problem(self) -> str:
        """Why the store may be out of date; empty when it follows the cluster, or has not been asked yet."""
        if self.last_error is None or (self.synced and self._clock.monotonic() >= self._behind_until):
            return ""
        return str(self.last_error)


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind that cannot be read at present, and why."""

    resource: str
    message: str


@dataclass(frozen=True, slots=True)
class Connection:
    """How it stands with the API server: ``since`` is when it stopped answering, 0 while it answers."""

    server: str
    since: float
    error: str
    problems: tuple[Problem, ...]


class Follower:
    """Follows one cluster. ``revision`` grows with every change of what is shown."""

    def __init__(self, client: Client, server: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.revision = 0
        self.starts = Starts()
        self._client = client
        self._server = server
        self._clock = clock
        self._error = ""
        self._since = 0.0
        self._asked = False
        self._changed = asyncio.Event()
        self._problems: tuple[Problem, ...] = ()
        self._queues = self._hot(kinds.QUEUES, core.Queue)
        self._groups = self._hot(kinds.POD_GROUPS, core.PodGroup)
        self._jobs = self._hot(kinds.JOBS, Job)
        self._nodes = self._hot(kinds.NODES, core.Node)
        self._hyper_nodes = self._hot(kinds.HYPER_NODES, core.HyperNode)
        self._events = self._hot(kinds.EVENTS, core.Event)
        self._pods = self._informer(kinds.PODS, pod_sight, identify=_identity)
        self._pods.add_handler(on_add=self._pod_added, on_update=self._pod_updated)

    @property
    def informers(self) -> tuple[FollowingInformer[Any], ...]:
        """All of them."""
        return (
            self._queues,
            self._groups,
            self._jobs,
            self._nodes,
            self._hyper_nodes,
            self._events,
            self._pods,
        )

    def sight(self) -> Sight:
        """What is known now."""
        return Sight(
            queues=self._queues.store.list(),
            groups=self._groups.store.list(),
            jobs=self._jobs.store.list(),
            pods=self._pods.store.list(),
            nodes=self._nodes.store.list(),
            hyper_nodes=self._hyper_nodes.store.list(),
            events=self._events.store.list(),
        )

    def connection(self) -> Connection:
        """How it stands with the API server."""
        return Connection(self._server, self._since, self._error, self._problems)

    def missing(self) -> str | None:
        """What has not been asked for yet, in one line; None when all has: readiness."""
        if not self._asked:
            return "the API server has not been asked yet"
        waiting = [one.kind.resource for one in self.informers if not one.synced and one.last_error is None]
        return f"not listed yet: {', '.join(waiting)}" if waiting and not self._since else None

    async def changed(self, revision: int) -> int:
        """Wait until the revision is another one than ``revision``; answers it."""
        while self.revision == revision:
            await self._changed.wait()
        return self.revision

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run(), name=f"informer-{informer.kind.resource}")
            tasks.create_task(self._beat(), name="heartbeat")

    # -- connection ------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            try:
                await self._client.request("GET", "/version", timeout=ANSWER_SECONDS)
            except (Forbidden, NotFound):
                self._note("")  # an answer is an answer
            except KubeError as error:
                self._note(str(error))
            else:
                self._note("")
            await self._clock.sleep(BEAT_SECONDS)

    def _note(self, error: str) -> None:
        """Take down how the last request went, and which informers are behind."""
        self._asked = True
        if error and not self._error:
            self._since = self._clock.time()
            log.warning("the API server does not answer: %s", error)
        if self._error and not error:
            self._since = 0.0
            log.info("the API server answers again")
        found = tuple(Problem(one.kind.resource, one.problem) for one in self.informers if one.problem)
        if error != self._error or found != self._problems:
            self._error, self._problems = error, found
            self._touch()

    # -- changes ---------------------------------------------------------------------------------------------------

    def _touch(self, *_: object) -> None:
        self.revision += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _pod_added(self, pod: PodSight) -> None:
        if pod.node:
            self.starts.bound(pod.bound, self._clock.time())

    def _pod_updated(self, old: PodSight, pod: PodSight) -> None:
        if pod.node and not old.node:
            self.starts.bound(pod.bound, self._clock.time())

    def _hot(self, kind: Kind, struct: type[Any]) -> FollowingInformer[Any]:
        return self._informer(kind, partial(core.decode, struct))

    def _informer(self, kind: Kind, decode: Callable[[bytes], Any], **options: Any) -> FollowingInformer[Any]:
        informer: FollowingInformer[Any] = FollowingInformer(self._client, kind, decode, self._clock, **options)
        informer.add_handler(on_add=self._touch, on_update=self._touch, on_delete=self._touch)
        return informer


def _identity(pod: PodSight) -> Identity:
    return pod.identity
