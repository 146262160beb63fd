"""One kind's objects as an endless stream of steps: what is there, then what changes.

Cut in three, so that each part can be tested: :func:`infinite_watch` is a trivial loop over :func:`continuous_watch`
(list once, then watch until the server forgets our place), which is a loop over single watch requests.

What the stream promises to a reader that takes in every step:

* Nothing is lost. A watch goes on from the last event that the reader has taken in (the reader moves
  :class:`Position`), and a place from which the server cannot go on (410 above all) leads to a new listing.
* Nothing is asked in a hurry. Every failure, and every watch that ended soon after it began, costs a jittered delay
  that doubles; a Retry-After is honoured; the delay starts anew after a watch that lived.
* Nothing stale is kept for politeness. The first loss of the place leads to a new listing at once, and later delays
  start anew, however many failures came before: the server answers again, and what we know is out of date. Only
  losses that follow it without a watch that lived in between are waited for.
* Nothing is waited for without end. A connection on which nothing arrives for ``idle_timeout`` seconds (no event, no
  bookmark) is given up, because a half-open connection looks just like that.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

from stromboli.api.kinds import Kind
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import ApiError, BadRequest, Gone, Invalid, KubeError, NotFound, ServerError
from stromboli.kube.retrying import Backoff
from stromboli.kube.wire import ADDED, BOOKMARK, MODIFIED, WatchEvent

log = logging.getLogger(__name__)

IDLE_TIMEOUT = 120.0
STABLE_SECONDS = 5.0
"""A watch that lived for so long was a success."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to watch."""

    kind: Kind
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    @property
    def selective(self) -> bool:
        """Whether objects can enter and leave the scope without being created or deleted."""
        return bool(self.label_selector or self.field_selector)


@dataclass(slots=True)
class Position:
    """The resource version from which to go on; the reader moves it after taking in an event.

    ``lost`` is for the stream alone: the place was lost, and no watch has lived since.
    """

    resource_version: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of waiting: ``idle_timeout`` and ``server_timeout`` in seconds, ``page_limit`` in objects.

    ``server_timeout`` is the least time after which the server is asked to end a watch; up to twice as long is asked.
    ``streaming`` asks for the initial listing as a stream (WatchList) and falls back to pages where that is refused.
    Each informer needs a pace of its own, because ``backoff`` counts its failures.
    """

    idle_timeout: float = IDLE_TIMEOUT
    server_timeout: int = 300
    page_limit: int = 500
    streaming: bool = False
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.3, maximum=30.0))
    clock: Clock = SYSTEM_CLOCK


@dataclass(frozen=True, slots=True)
class ListingStarted:
    """A complete listing begins; what it does not name is gone when it ends."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One object that is there."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class ListingEnded:
    """The listing is complete as of ``resource_version``."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Changed:
    """One watch event: added, modified, deleted, a bookmark, or an unreadable line."""

    event: WatchEvent


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Listing or watching failed with ``error``; it is tried again after ``delay`` seconds."""

    error: KubeError
    delay: float


Step: TypeAlias = ListingStarted | Listed | ListingEnded | Changed | Interrupted


async def infinite_watch(client: Client, scope: Scope, position: Position, pace: Pace) -> AsyncGenerator[Step, None]:
    """Steps for ever; only cancellation ends it."""
    while True:
        async with aclosing(continuous_watch(client, scope, position, pace)) as steps:
            async for step in steps:
                yield step


async def continuous_watch(client: Client, scope: Scope, position: Position, pace: Pace) -> AsyncGenerator[Step, None]:
    """List, then watch until a new listing is needed: the place was lost, or listing failed (after the delay)."""
    try:
        async with aclosing(_listing(client, scope, position, pace)) as listing:
            async for step in listing:
                yield step
    except KubeError as error:
        # Pages that have expired can be listed again at once; a kind that is not served, for instance, cannot.
        delay = _delay(pace, error, position, lost=isinstance(error, Gone))
        yield Interrupted(error, delay)
        await pace.clock.sleep(delay)
        return
    lost = False
    while not lost:
        started = pace.clock.monotonic()
        failure: KubeError | None = None
        try:
            async with aclosing(single_watch(client, scope, position, pace)) as events:
                async for event in events:
                    yield Changed(event)
        except KubeError as error:
            failure, lost = error, _place_is_lost(error)
        if pace.clock.monotonic() - started >= STABLE_SECONDS:
            pace.backoff.reset()
            position.lost = False
            if failure is None:
                continue
        delay = _delay(pace, failure, position, lost=lost)
        if failure is not None:
            yield Interrupted(failure, delay)
        await pace.clock.sleep(delay)


async def single_watch(
    client: Client, scope: Scope, position: Position, pace: Pace
) -> AsyncGenerator[WatchEvent, None]:
    """The events of one watch request, from ``position``, until the server ends it or it fails."""
    watch = client.watch(
        scope.kind,
        scope.namespace,
        resource_version=position.resource_version,
        label_selector=scope.label_selector,
        field_selector=scope.field_selector,
        # Spread, so that the watches of all processes do not end together.
        timeout_seconds=int(pace.server_timeout * (1 + random.random())),
        idle_timeout=pace.idle_timeout,
    )
    async with aclosing(watch) as events:
        async for event in events:
            yield event


async def _listing(client: Client, scope: Scope, position: Position, pace: Pace) -> AsyncGenerator[Step, None]:
    if pace.streaming:
        try:
            async with aclosing(_streamed_listing(client, scope, position, pace)) as steps:
                async for step in steps:
                    yield step
            return
        except KubeError as error:  # refused, ignored or broken off: pages work everywhere
            log.info("%s: no streaming list here (%s); listing in pages", scope.kind.resource, error)
    async with aclosing(_paged_listing(client, scope, position, pace)) as steps:
        async for step in steps:
            yield step


async def _paged_listing(client: Client, scope: Scope, position: Position, pace: Pace) -> AsyncGenerator[Step, None]:
    yield ListingStarted()
    version = ""
    pages = client.pages(
        scope.kind,
        scope.namespace,
        limit=pace.page_limit,
        label_selector=scope.label_selector,
        field_selector=scope.field_selector,
    )
    async with aclosing(pages):
        async for page in pages:
            # All pages show the moment of the first one; watching from there repeats nothing and misses nothing.
            version = page.resource_version
            for raw in page.items:
                yield Listed(raw)
    position.resource_version = version
    yield ListingEnded(version)


async def _streamed_listing(client: Client, scope: Scope, position: Position, pace: Pace) -> AsyncGenerator[Step, None]:
    yield ListingStarted()
    watch = client.watch(
        scope.kind,
        scope.namespace,
        label_selector=scope.label_selector,
        field_selector=scope.field_selector,
        timeout_seconds=pace.server_timeout,
        send_initial_events=True,
        idle_timeout=pace.idle_timeout,
    )
    async with aclosing(watch):
        async for event in watch:
            if event.ends_listing:
                position.resource_version = event.metadata.resource_version
                yield ListingEnded(position.resource_version)
                return
            if event.type in (ADDED, MODIFIED):
                yield Listed(event.object)
            elif event.type != BOOKMARK:  # something happens while the listing is under way
                yield Changed(event)
    raise Gone(410, {"message": "the server ended the stream before the listing was complete"})


def _place_is_lost(error: KubeError) -> bool:
    """Whether the server cannot go on from our resource version: forgotten, from before a restore, not understood."""
    if isinstance(error, ServerError):
        return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in error.causes)
    return isinstance(error, Gone | BadRequest | NotFound | Invalid)


def _delay(pace: Pace, error: KubeError | None, position: Position, *, lost: bool) -> float:
    asked = error.retry_after if isinstance(error, ApiError) else None
    if lost and not position.lost:
        position.lost = True
        pace.backoff.reset()
        return asked or 0.0
    return max(pace.backoff.next(), asked or 0.0)
