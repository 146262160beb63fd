"""The controller pattern: keys in a work queue, workers that bring one key at a time to its wanted state.

Level-triggered: ``reconcile`` gets a key, never an event, and looks at the present state. One key that fails is
retried with back-off and never stops the others.

What is wrong with an object is said once for each of its versions: in the log and, when it cannot be read, in an event
on it. Later tries that fail in the same way are not worth a line, let alone a traceback.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from stromboli.api.unreadable import Unreadable
from stromboli.kube import retrying
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock, deadline
from stromboli.kube.errors import Conflict, KubeError, SeveralFailed
from stromboli.kube.queues import ShutDown, WorkQueue

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
AnyKey = TypeVar("AnyKey", contravariant=True)

RECONCILE_TIMEOUT = 300.0
LONGEST_CONFLICT = 1.0
"""Seconds after which a key whose object had changed meanwhile is tried again at the latest: caches catch up sooner."""
LONGEST_OUTAGE = 60.0
"""The same for a server that does not answer or cannot work: an hour of that must not cost a quarter more."""
REMEMBERED_FAILURES = 1024
"""Keys of which it is known what was last said of them."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a successful ``reconcile`` may ask for: to be called again, after ``requeue_after`` seconds."""

    requeue_after: float


class Terminal(Exception):
    """Trying again will not help until the object changes; the key is dropped, with the error logged once."""


class Outcome(StrEnum):
    """How one ``reconcile`` ended, as metrics name it."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    GIVEN_UP = "given_up"


class Observer(Protocol):
    """Where a controller's metrics go."""

    def reconciled(self, controller: str, outcome: Outcome, seconds: float, depth: int) -> None:
        """One ``reconcile`` ended after ``seconds``; ``depth`` keys are ready in the queue."""
        ...


class Objects(Protocol[AnyKey]):
    """The objects that a controller's keys stand for."""

    def version(self, key: AnyKey) -> Hashable:
        """Which object it is, and in which version."""
        ...

    def unreadable(self, key: AnyKey, message: str) -> None:
        """The object cannot be read: its owner is to be told. Once for each version and message."""
        ...


class _Unknown:
    def version(self, key: object) -> Hashable:
        return None

    def unreadable(self, key: object, message: str) -> None:
        pass


class _Unobserved:
    def reconciled(self, controller: str, outcome: Outcome, seconds: float, depth: int) -> None:
        pass


class Controller(Generic[K]):
    """A queue, ``workers`` workers and ``reconcile(key)``.

    ``reconcile`` returns ``None`` (done) or a :class:`Result`; it raises :class:`Terminal` for what no retry can mend,
    and anything else to be retried with back-off, for ever or at most ``max_retries`` times, after which ``give_up``
    (if given) is told. ``timeout`` seconds bound one call. ``objects`` (if given) are told which of them cannot be
    read: those for which ``reconcile`` raises :class:`~stromboli.api.unreadable.Unreadable`, or a :class:`Terminal`
    because of one.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result | None]],
        *,
        workers: int = 1,
        max_retries: int | None = None,
        give_up: Callable[[K, Exception], Awaitable[None]] | None = None,
        timeout: float = RECONCILE_TIMEOUT,
        queue: WorkQueue[K] | None = None,
        objects: Objects[K] | None = None,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = queue if queue is not None else WorkQueue(clock=clock)
        self._reconcile = reconcile
        self._workers = workers
        self._max_retries = max_retries
        self._give_up = give_up
        self._timeout = timeout
        self._objects: Objects[K] = objects or _Unknown()
        self._said: OrderedDict[K, tuple[Hashable, str]] = OrderedDict()
        self._observer = observer or _Unobserved()
        self._clock = clock

    def enqueue(self, key: K) -> None:
        """Ask for ``key`` to be looked at."""
        self.queue.add(key)

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)

    async def _process(self, key: K) -> None:
        started = self._clock.monotonic()
        outcome = await self._attempt(key)
        self._observer.reconciled(self.name, outcome, self._clock.monotonic() - started, len(self.queue))

    async def _attempt(self, key: K) -> Outcome:
        try:
            async with deadline(self._clock, self._timeout):
                result = await self._reconcile(key)
        except Terminal as error:
            if self._is_news(key, error):
                log.error("%s: %s: %s; not retried until it changes", self.name, key, error)
                self._tell_unreadable(key, error.__cause__)
            self.queue.forget(key)
            return Outcome.TERMINAL
        except Exception as error:
            return await self._failed(key, error)
        self.queue.forget(key)
        self._said.pop(key, None)
        if result is None:
            return Outcome.SUCCESS
        self.queue.add_after(key, result.requeue_after)
        return Outcome.REQUEUE_AFTER

    async def _failed(self, key: K, error: Exception) -> Outcome:
        failures = self.queue.failures(key)
        if self._max_retries is not None and failures >= self._max_retries:
            log.error("%s: %s: given up after %d retries: %s", self.name, key, failures, _text(error))
            self.queue.forget(key)
            await self._tell_given_up(key, error)
            return Outcome.GIVEN_UP
        delay = self.queue.add_rate_limited(key, at_most=_longest_wait(error))
        if _is_everyday(error):
            _log_everyday(self.name, key, error, delay)
        elif self._is_news(key, error):
            _log_failure(self.name, key, error, delay)
            self._tell_unreadable(key, error)
        return Outcome.ERROR

    def _is_news(self, key: K, error: Exception) -> bool:
        """Whether this has not been said of the present version of the key's object."""
        said = (self._objects.version(key), f"{type(error).__name__}: {error}")
        news = self._said.pop(key, None) != said
        self._said[key] = said
        if len(self._said) > REMEMBERED_FAILURES:
            self._said.popitem(last=False)
        return news

    def _tell_unreadable(self, key: K, error: BaseException | None) -> None:
        if isinstance(error, Unreadable):
            self._objects.unreadable(key, str(error))

    async def _tell_given_up(self, key: K, error: Exception) -> None:
        if self._give_up is None:
            return
        try:
            async with deadline(self._clock, self._timeout):
                await self._give_up(key, error)
        except Exception:
            log.exception("%s: %s: giving up failed", self.name, key)


def _longest_wait(error: Exception) -> float:
    """Seconds by which a next attempt may be put off: few when the failure passes without anybody's doing."""
    if isinstance(error, SeveralFailed):
        return max(map(_longest_wait, error.errors), default=float("inf"))
    if isinstance(error, Conflict):
        return LONGEST_CONFLICT
    return LONGEST_OUTAGE if retrying.is_transient(error) else float("inf")


def _is_everyday(error: Exception) -> bool:
    """Whether it is about the server and not about the object."""
    return isinstance(error, KubeError | TimeoutError)


def _log_everyday(name: str, key: Hashable, error: Exception, delay: float) -> None:
    # A conflict is the most ordinary of all: somebody else was quicker.
    level = logging.DEBUG if isinstance(error, Conflict) else logging.WARNING
    log.log(level, "%s: %s: %s; again in %.3f s", name, key, _text(error), delay)


def _log_failure(name: str, key: Hashable, error: Exception, delay: float) -> None:
    if isinstance(error, Unreadable):
        log.error("%s: %s: cannot be read: %s; looked at again when it changes", name, key, error)
    else:
        log.error("%s: %s: unexpected error; again in %.3f s", name, key, delay, exc_info=error)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
