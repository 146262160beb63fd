"""Telling users what happened to their objects, through core/v1 Events.

Recording never waits and never fails: an event is worth less than the work that it reports on. Repeats are folded into
a count on one Event, floods about one object are thinned out, and memory is bounded whatever is recorded.

The limits are those that users of Kubernetes know: per object 25 at once and then one every five minutes; more than
ten different messages of one reason within ten minutes are combined.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Generic, TypeVar

from stromboli.api.kinds import EVENTS, Kind
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import AlreadyExists, KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.kube.queues import ShutDown, WorkQueue
from stromboli.kube.retrying import is_transient
from stromboli.kube.throttles import TokenBucket

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

REMEMBERED = 4096
SPAM_BURST = 25
SPAM_QPS = 1 / 300
SIMILAR_LIMIT = 10
SIMILAR_SECONDS = 600.0
MAX_MESSAGE = 1024
MAX_REASON = 128
MAX_TRIES = 5
COMBINED = "(combined from similar events): "


class EventType(StrEnum):
    """The two types of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def to(cls, kind: Kind, namespace: str, name: str, uid: str) -> Reference:
        """The object of that kind, namespace, name and UID."""
        return cls(kind.api_version, kind.kind, namespace, name, uid)

    @classmethod
    def to_object(cls, kind: Kind, obj: JsonObject) -> Reference:
        """The object itself, as plain data."""
        return cls(kind.api_version, kind.kind, *json.key_of(obj), json.uid_of(obj))

    def to_wire(self) -> JsonObject:
        """As ``involvedObject``."""
        named = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in named.items() if value}


@dataclass(slots=True, eq=False)
class Series:
    """One Event on the server: what it says and how often it happened. Compared by identity."""

    name: str
    regarding: Reference
    type: str
    reason: str
    message: str
    first: float
    last: float
    count: int = 1
    written: bool = False
    tries: int = 0

    @property
    def namespace(self) -> str:
        """Where the Event lives: events about cluster-scoped objects live in ``default``."""
        return self.regarding.namespace or "default"


class _Recent(Generic[K, V]):
    """A dictionary that forgets what was not used for the longest time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get_or(self, key: K, make: Callable[[], V]) -> V:
        """The value of ``key``, made if need be."""
        if key not in self._items:
            self._items[key] = make()
            if len(self._items) > self._size:
                self._items.popitem(last=False)
        self._items.move_to_end(key)
        return self._items[key]


@dataclass(slots=True)
class _Similar:
    """Messages of one reason about one object within an interval."""

    since: float
    messages: set[str] = field(default_factory=set)


class Correlator:
    """Decides what becomes of an event: a new Event, one more of an old one, or nothing. No I/O."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, remembered: int = REMEMBERED) -> None:
        self._clock = clock
        self._series: _Recent[tuple[Reference, str, str, str], Series] = _Recent(remembered)
        self._similar: _Recent[tuple[Reference, str, str], _Similar] = _Recent(remembered)
        self._buckets: _Recent[Reference, TokenBucket] = _Recent(remembered)

    def correlate(self, regarding: Reference, type: str, reason: str, message: str) -> Series | None:
        """The series to write, its count raised; ``None`` when the object's share is used up (it still counts)."""
        now = self._clock.time()
        shown, distinct = message, message
        if self._is_flooded(regarding, type, reason, message):
            shown, distinct = COMBINED + message, COMBINED
        series = self._series.get_or(
            (regarding, type, reason, distinct),
            lambda: Series(_event_name(regarding), regarding, type, reason, "", first=now, last=now, count=0),
        )
        series.count += 1
        series.last = now
        series.message = _cut(shown, MAX_MESSAGE)
        bucket = self._buckets.get_or(regarding, lambda: TokenBucket(SPAM_QPS, SPAM_BURST, clock=self._clock))
        return series if bucket.try_acquire() else None

    def _is_flooded(self, regarding: Reference, type: str, reason: str, message: str) -> bool:
        now = self._clock.monotonic()
        similar = self._similar.get_or((regarding, type, reason), lambda: _Similar(now))
        if now - similar.since > SIMILAR_SECONDS:
            similar.since, similar.messages = now, set()
        if message in similar.messages:
            return False
        if len(similar.messages) >= SIMILAR_LIMIT:
            return True
        similar.messages.add(message)
        return False


class Recorder:
    """Records events in the name of ``component``. Run :meth:`run` in a task group; when it is cancelled it writes what
    is waiting, for at most ``flush_timeout`` seconds.

    At most ``queue_size`` Events wait to be written; more are dropped and counted in :attr:`dropped`.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        host: str | None = None,
        queue_size: int = 10_000,
        workers: int = 4,
        flush_timeout: float = 5.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._component = component
        self._host = host if host is not None else socket.gethostname()
        self._queue_size = queue_size
        self._workers = workers
        self._flush_timeout = flush_timeout
        self._correlator = Correlator(clock=clock)
        self._queue: WorkQueue[Series] = WorkQueue(first_backoff=0.5, max_backoff=10.0, clock=clock)
        self.dropped = 0

    @property
    def pending(self) -> int:
        """Events that are yet to be written."""
        return self._queue.unfinished

    def event(self, regarding: Reference, type: EventType, reason: str, message: str) -> None:
        """Record one event. Returns at once and never raises."""
        series = self._correlator.correlate(regarding, type.value, _cut(reason, MAX_REASON), message)
        if series is None or self._queue.is_shut_down or self.pending >= self._queue_size:
            self.dropped += 1
            return
        self._queue.add(series)

    def normal(self, regarding: Reference, reason: str, message: str) -> None:
        """Record an event of type Normal."""
        self.event(regarding, EventType.NORMAL, reason, message)

    def warning(self, regarding: Reference, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        self.event(regarding, EventType.WARNING, reason, message)

    async def run(self) -> None:
        """Write events until cancelled."""
        try:
            await self._run_workers()
        finally:
            self._queue.shut_down()
            try:
                async with asyncio.timeout(self._flush_timeout):
                    await self._run_workers()
            except TimeoutError:
                log.warning("%d events were not written before the end", len(self._queue))

    async def _run_workers(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"events-{number}")

    async def _work(self) -> None:
        while True:
            try:
                series = await self._queue.get()
            except ShutDown:
                return
            try:
                await self._write(series)
            except asyncio.CancelledError:
                self._queue.add(series)  # for the last round
                raise
            finally:
                self._queue.done(series)

    async def _write(self, series: Series) -> None:
        try:
            await self._send(series)
        except KubeError as error:
            series.tries += 1
            if is_transient(error) and series.tries < MAX_TRIES:
                self._queue.add_rate_limited(series)
                return
            log.warning("event %s/%s not written: %s", series.namespace, series.name, error)
        except Exception:  # whatever it is, the other events go on
            log.exception("event %s/%s not written", series.namespace, series.name)
        series.tries = 0
        self._queue.forget(series)

    async def _send(self, series: Series) -> None:
        namespace = series.namespace
        if series.written:
            patch = {"count": series.count, "lastTimestamp": _timestamp(series.last), "message": series.message}
            try:
                await self._client.patch(EVENTS, series.name, patch, namespace)
                return
            except NotFound:  # events live for an hour: begin a new one
                series.name, series.first, series.count = _event_name(series.regarding), series.last, 1
        try:
            await self._client.create(EVENTS, self._to_wire(series, namespace))
        except AlreadyExists:
            pass  # an earlier try did arrive
        series.written = True

    def _to_wire(self, series: Series, namespace: str) -> JsonObject:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": namespace, "name": series.name},
            "involvedObject": series.regarding.to_wire(),
            "type": series.type,
            "reason": series.reason,
            "message": series.message,
            "count": series.count,
            "firstTimestamp": _timestamp(series.first),
            "lastTimestamp": _timestamp(series.last),
            "source": {"component": self._component, "host": self._host},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }


def _event_name(regarding: Reference) -> str:
    # A DNS subdomain of at most 253 characters, whatever the object is called.
    return f"{regarding.name[:230].replace(':', '-').rstrip('.-')}.{uuid.uuid4().hex[:16]}"


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
