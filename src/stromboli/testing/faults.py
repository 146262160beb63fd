"""Faults that a test orders from the fake API server.

>>> server.faults.fail(503, verb="list", kind=kinds.PODS, times=3, retry_after=1)
>>> cut = server.faults.cut_watch(kind=kinds.PODS, after=2)       # two events, then the connection breaks
>>> held = server.faults.hold(verb="update", kind=kinds.LEASES)    # no answer until held.release()
...
>>> assert cut.hits == 1                                           # the fault did happen

Every order matches requests by verb, kind, namespace and name (what is left out matches everything), skips the first
``skip`` matches and then applies ``times`` times (``None``: until cleared). Orders are tried in the order in which they
were given; the first that applies is used.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from stromboli.api.kinds import Kind


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the fake server saw it.

    ``verb`` is one of get, list, watch, create, update, patch, delete, deletecollection; ``kind`` is the resource's
    plural; ``subresource`` is empty for the object itself.
    """

    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    field_validation: str = field(default="", compare=False)


@dataclass(slots=True, kw_only=True)
class Fault:
    """Which requests are hit. ``hits`` counts those that were."""

    verb: str | None = None
    kind: Kind | None = None
    namespace: str | None = None
    name: str | None = None
    skip: int = 0
    times: int | None = 1
    hits: int = 0
    seen: int = 0

    def applies(self, call: Call) -> bool:
        """Whether this request is hit; counts it."""
        wanted = (self.verb, self.kind.plural if self.kind else None, self.namespace, self.name)
        actual = (call.verb, call.kind, call.namespace, call.name)
        if any(want not in (None, have) for want, have in zip(wanted, actual, strict=True)):
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True


@dataclass(slots=True, kw_only=True)
class Failure(Fault):
    """Answers with an error status and does nothing."""

    code: int = 500
    reason: str = ""
    message: str = "ordered by the test"
    retry_after: int | None = None


@dataclass(slots=True, kw_only=True)
class Disconnect(Fault):
    """Cuts the connection instead of answering; ``executed`` says whether the request is carried out before that."""

    executed: bool = False


@dataclass(slots=True, kw_only=True)
class Delay(Fault):
    """Answers only after ``seconds``."""

    seconds: float = 0.1


@dataclass(slots=True, kw_only=True)
class Hold(Fault):
    """Answers only after :meth:`release`."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let held requests go on."""
        self.gate.set()


@dataclass(slots=True, kw_only=True)
class CutWatch(Fault):
    """Breaks a watch's connection after ``after`` events, in the middle of the next line if there is one."""

    after: int = 0


@dataclass(slots=True, kw_only=True)
class HalfOpen(Fault):
    """After ``after`` events the watch stays open and silent: no events, no bookmarks, no end."""

    after: int = 0


@dataclass(slots=True, kw_only=True)
class ExpireWatch(Fault):
    """Ends a watch with an ``ERROR`` event of code 410 after ``after`` events."""

    after: int = 0


@dataclass(slots=True, kw_only=True)
class Duplicate(Fault):
    """Sends every event of a watch twice."""


@dataclass(slots=True, kw_only=True)
class Reorder(Fault):
    """Sends events of a watch in pairs, the later one first (an event without a second soon after goes out alone)."""


@dataclass(slots=True, kw_only=True)
class Lose(Fault):
    """Leaves out one event of a watch, the one after ``after`` others; what follows is sent."""

    after: int = 0
    lost: bool = False


@dataclass(slots=True, kw_only=True)
class Garbage(Fault):
    """Sends ``line`` before the first event of a watch."""

    line: bytes = b"{not json"


class Faults:
    """The orders given to one fake server."""

    def __init__(self) -> None:
        self._orders: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Order ``fault``."""
        self._orders.append(fault)

    def clear(self) -> None:
        """Cancel all orders, and let held requests go on."""
        for order in self._orders:
            if isinstance(order, Hold):
                order.release()
        self._orders.clear()

    def for_call(self, call: Call) -> Fault | None:
        """The fault that hits this request, if any."""
        return next((order for order in self._orders if order.applies(call)), None)

    # -- orders ----------------------------------------------------------------------------------------------------

    def fail(
        self,
        code: int,
        *,
        verb: str | None = None,
        kind: Kind | None = None,
        namespace: str | None = None,
        name: str | None = None,
        skip: int = 0,
        times: int | None = 1,
        reason: str = "",
        message: str = "ordered by the test",
        retry_after: int | None = None,
    ) -> Failure:
        """Answer with an error status."""
        fault = Failure(
            verb=verb, kind=kind, namespace=namespace, name=name, skip=skip, times=times,
            code=code, reason=reason, message=message, retry_after=retry_after,
        )  # fmt: skip
        self.add(fault)
        return fault

    def disconnect(
        self,
        *,
        verb: str | None = None,
        kind: Kind | None = None,
        name: str | None = None,
        skip: int = 0,
        times: int | None = 1,
        executed: bool = False,
    ) -> Disconnect:
        """Cut the connection, before or after carrying the request out."""
        fault = Disconnect(verb=verb, kind=kind, name=name, skip=skip, times=times, executed=executed)
        self.add(fault)
        return fault

    def delay(
        self,
        seconds: float,
        *,
        verb: str | None = None,
        kind: Kind | None = None,
        name: str | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Delay:
        """Answer late."""
        fault = Delay(verb=verb, kind=kind, name=name, skip=skip, times=times, seconds=seconds)
        self.add(fault)
        return fault

    def hold(
        self,
        *,
        verb: str | None = None,
        kind: Kind | None = None,
        name: str | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Hold:
        """Answer only after ``release()``."""
        fault = Hold(verb=verb, kind=kind, name=name, skip=skip, times=times)
        self.add(fault)
        return fault

    def cut_watch(self, *, kind: Kind | None = None, after: int = 0, times: int | None = 1) -> CutWatch:
        """Break watches in the middle."""
        fault = CutWatch(verb="watch", kind=kind, after=after, times=times)
        self.add(fault)
        return fault

    def half_open(self, *, kind: Kind | None = None, after: int = 0, times: int | None = 1) -> HalfOpen:
        """Let watches fall silent."""
        fault = HalfOpen(verb="watch", kind=kind, after=after, times=times)
        self.add(fault)
        return fault

    def expire_watch(self, *, kind: Kind | None = None, after: int = 0, times: int | None = 1) -> ExpireWatch:
        """End watches with 410 as an ``ERROR`` event."""
        fault = ExpireWatch(verb="watch", kind=kind, after=after, times=times)
        self.add(fault)
        return fault

    def duplicate_events(self, *, kind: Kind | None = None, times: int | None = None) -> Duplicate:
        """Send watch events twice."""
        fault = Duplicate(verb="watch", kind=kind, times=times)
        self.add(fault)
        return fault

    def reorder_events(self, *, kind: Kind | None = None, times: int | None = None) -> Reorder:
        """Send watch events in the wrong order."""
        fault = Reorder(verb="watch", kind=kind, times=times)
        self.add(fault)
        return fault

    def lose_event(self, *, kind: Kind | None = None, after: int = 0) -> Lose:
        """Leave one watch event out, as if it had never been sent."""
        fault = Lose(verb="watch", kind=kind, after=after)
        self.add(fault)
        return fault

    def garbage(self, line: bytes = b"{not json", *, kind: Kind | None = None, times: int | None = 1) -> Garbage:
        """Send a line that is no event."""
        fault = Garbage(verb="watch", kind=kind, line=line, times=times)
        self.add(fault)
        return fault
