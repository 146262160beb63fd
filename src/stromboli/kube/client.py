"""The API server's verbs over raw bytes: get, list, create, update, patch, delete, watch.

Objects go in and come out as plain data; hot paths pass ``decode=``, or read the bytes of a :class:`Page` and of a
:class:`WatchEvent`.

What every request gets:

* a place in the queue of the token bucket (``qps``, ``burst``),
* a deadline (30 s unless told otherwise) over all its attempts,
* repetition where that is safe: reads after no answer or a 5xx, anything after a refused connection or a 429 with a
  Retry-After. A POST or PATCH that may have been carried out is never sent twice (a PUT or DELETE is, when the server
  closes a kept-alive connection at that very moment; both are safe to repeat),
* an error from :mod:`stromboli.kube.errors`, with its cause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Self, TypeVar, overload

import aiohttp

from stromboli.api.kinds import Kind
from stromboli.kube import connecting, http1, json
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.counting import RequestCounts
from stromboli.kube.errors import KubeError, MalformedAnswer, Unauthorized, Unreachable, api_error
from stromboli.kube.exchanging import Exchanges, NotConnected
from stromboli.kube.json import JsonObject
from stromboli.kube.paging import Page
from stromboli.kube.retrying import SAFE_METHODS, Backoff, decide, retry_after_seconds
from stromboli.kube.throttles import TokenBucket
from stromboli.kube.wire import WatchEvent, lines, parse_line

log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_TIMEOUT = 30.0
CONNECT_TIMEOUT = 10.0
PAGE_LIMIT = 500
NOTABLE_WAIT = 1.0
Query = Mapping[str, str | int | bool | None]


class PatchType(StrEnum):
    """The four kinds of patch, by media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class _Call(NamedTuple):
    """One request as it was asked for, without what every request gets."""

    method: str
    path: str
    query: Query = {}
    data: bytes | None = None
    headers: Mapping[str, str] = {}


class Client:
    """One connection pool to one API server. Use as an async context manager, or call :meth:`close`."""

    def __init__(
        self,
        connection: connecting.Connection,
        *,
        qps: float = 50.0,
        burst: int = 100,
        user_agent: str = "stromboli",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.requests = RequestCounts(connection.base.host_port_subcomponent or "")
        """For the process' metrics."""
        self._connection = connection
        self._shared = False
        self._bucket = TokenBucket(qps, burst, clock=clock)
        self._user_agent = user_agent
        self._clock = clock

    @classmethod
    async def connect(
        cls,
        *,
        kubeconfig: str | None = None,
        master: str | None = None,
        context: str | None = None,
        qps: float = 50.0,
        burst: int = 100,
        user_agent: str = "stromboli",
        clock: Clock = SYSTEM_CLOCK,
    ) -> Self:
        """A client for what the flags, the environment and the files say; see :func:`connecting.connect`.

        Nothing is sent yet. Raises :class:`~stromboli.kube.errors.ConfigurationError`.
        """
        connection = await connecting.connect(kubeconfig=kubeconfig, master=master, context=context)
        return cls(connection, qps=qps, burst=burst, user_agent=user_agent, clock=clock)

    def with_limit(self, *, qps: float, burst: int = 100, user_agent: str | None = None) -> Self:
        """Another client on the same connections, with a limit of its own. Closing it leaves the connections open.

        For requests that must not queue up behind others, such as the renewal of a lease.
        """
        other = type(self)(
            self._connection, qps=qps, burst=burst, user_agent=user_agent or self._user_agent, clock=self._clock
        )
        other._shared = True
        other.requests = self.requests
        return other

    async def close(self) -> None:
        """Close all connections."""
        if not self._shared:
            await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def server(self) -> str:
        """Address of the API server."""
        return str(self._connection.base)

    # -- reading ---------------------------------------------------------------------------------------------------

    @overload
    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        decode: None = None,
        resource_version: str | None = None,
    ) -> JsonObject: ...

    @overload
    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        decode: Callable[[bytes], T],
        resource_version: str | None = None,
    ) -> T: ...

    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        decode: Callable[[bytes], T] | None = None,
        resource_version: str | None = None,
    ) -> JsonObject | T:
        """One object, decoded by ``decode`` or as plain data. Raises ``NotFound`` and the rest of the tree."""
        raw = await self.request("GET", kind.path(namespace, name), query={"resourceVersion": resource_version})
        return decode(raw) if decode else _object(raw)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> list[JsonObject]:
        """All objects, following continue tokens; each carries ``apiVersion`` and ``kind``."""
        found: list[JsonObject] = []
        pages = self.pages(kind, namespace, label_selector=label_selector, field_selector=field_selector)
        async for page in pages:
            for raw in page.items:
                obj = _object(raw)
                obj.setdefault("apiVersion", kind.api_version)
                obj.setdefault("kind", kind.kind)
                found.append(obj)
        return found

    async def pages(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        limit: int = PAGE_LIMIT,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resource_version: str | None = None,
    ) -> AsyncGenerator[Page, None]:
        """Pages of a collection as bytes. Raises ``Gone`` when a continue token expires between two pages."""
        query: dict[str, str | int | None] = {
            "limit": limit,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
        }
        while True:
            page = Page.parse(await self.request("GET", kind.path(namespace), query=query))
            yield page
            if not page.continue_token:
                return
            # A continue token carries its own resource version, and the server refuses a second one.
            query |= {"continue": page.continue_token, "resourceVersion": None}

    # -- writing ---------------------------------------------------------------------------------------------------

    async def create(
        self,
        kind: Kind,
        obj: JsonObject,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        name: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> JsonObject:
        """Create ``obj``, in ``namespace`` or that of its metadata; with ``name`` and ``subresource``, post to
        ``<name>/<subresource>`` (binding, eviction). Raises ``AlreadyExists``, ``Invalid``, ``Forbidden``, ...
        """
        where = namespace or json.key_of(obj)[0]
        query = {"dryRun": _dry_run(dry_run), "fieldManager": field_manager}
        # Servers refuse custom objects that do not say what they are.
        body = obj if subresource else {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return _object(await self.request("POST", kind.path(where, name, subresource), query=query, body=body))

    async def update(
        self, kind: Kind, obj: JsonObject, *, subresource: str | None = None, dry_run: bool = False
    ) -> JsonObject:
        """Replace the object of the same namespace and name. Raises ``Conflict`` if its resourceVersion is stale."""
        namespace, name = json.key_of(obj)
        path = kind.path(namespace, name, subresource)
        return _object(await self.request("PUT", path, query={"dryRun": _dry_run(dry_run)}, body=obj))

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: object,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> JsonObject:
        """Patch one object. ``APPLY`` needs ``field_manager``, and takes fields from other managers with ``force``."""
        query = {
            "dryRun": _dry_run(dry_run),
            "fieldManager": field_manager,
            "force": True if force and type is PatchType.APPLY else None,
        }
        path = kind.path(namespace, name, subresource)
        return _object(await self.request("PATCH", path, query=query, body=patch, content_type=type.value))

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> JsonObject:
        """Delete one object; ``uid`` and ``resource_version`` are preconditions (``Conflict`` when they do not hold).

        ``propagation`` is ``Background``, ``Foreground`` or ``Orphan``. Raises ``NotFound`` when it is gone already.
        """
        body = _delete_options(uid, resource_version, propagation, grace_period_seconds)
        return _object(await self.request("DELETE", kind.path(namespace, name), body=body))

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete everything that the selectors match."""
        body = _delete_options(None, None, propagation, grace_period_seconds)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        await self.request("DELETE", kind.path(namespace), query=query, body=body)

    # -- watching --------------------------------------------------------------------------------------------------

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int | None = None,
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        idle_timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """One watch request: its events until the server ends it. Close the iterator (``contextlib.aclosing``).

        Raises ``Gone`` for an expired resource version (as answer or as ``ERROR`` event), other ``ApiError`` likewise,
        and ``Unreachable`` when the connection breaks or nothing at all arrives for ``idle_timeout`` seconds.
        """
        query: Query = {
            "watch": True,
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": timeout_seconds,
            "allowWatchBookmarks": True if allow_bookmarks else None,
            "sendInitialEvents": True if send_initial_events else None,
            "resourceVersionMatch": "NotOlderThan" if send_initial_events else None,
        }
        await self._queue_up("GET", kind.path(namespace))
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
        try:
            async with await self._open(_Call("GET", kind.path(namespace), query), timeout) as response:
                if response.status >= 300:
                    failure = await _failure(response)
                    if isinstance(failure, Unauthorized):  # the next watch has what is valid then
                        await self._connection.credentials.renew(older_than=5.0)
                    raise failure
                async for line in lines(response.content):
                    yield parse_line(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable("GET", kind.path(namespace), error) from error

    # -- everything ------------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout: float = DEFAULT_TIMEOUT,
    ) -> bytes:
        """Send one request and return the answer's body.

        ``body`` is bytes, or anything JSON can carry; ``query`` entries that are ``None`` are left out. ``timeout``
        (seconds) covers all attempts. Raises an ``ApiError`` for an answer of 300 or more, ``Unreachable`` for none.
        """
        data = body if body is None or isinstance(body, bytes) else json.encode(body)
        extra = dict(headers or {})
        if data is not None:
            extra["Content-Type"] = content_type
        call = _Call(method, path, _unjudged(method, query), data, extra)
        await self._queue_up(method, path)
        deadline = self._clock.monotonic() + timeout
        backoff: Backoff | None = None
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(call, deadline - self._clock.monotonic())
            except KubeError as error:
                retry = decide(method, error, attempt)
                if retry is None:
                    raise
                backoff = backoff or Backoff(first=0.1, maximum=5.0)
                delay = backoff.next() if retry.delay is None else retry.delay
                if self._clock.monotonic() + delay >= deadline:
                    raise
                await self._clock.sleep(delay)

    async def _queue_up(self, method: str, path: str) -> None:
        waited = await self._bucket.acquire()
        if waited > NOTABLE_WAIT:
            log.info("%s %s waited %.1f s for --kube-api-qps", method, path, waited)

    async def _attempt(self, call: _Call, seconds: float) -> bytes:
        try:
            return await self._answer(call, seconds)
        except Unauthorized:
            if not await self._connection.credentials.renew(older_than=5.0):
                raise
        return await self._answer(call, seconds)

    async def _answer(self, call: _Call, seconds: float) -> bytes:
        seconds = max(seconds, 0.001)
        exchanges = self._connection.exchanges
        try:
            if exchanges is not None and call.method not in SAFE_METHODS:
                return await self._exchange(exchanges, call, seconds)
            timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT)
            async with await self._open(call, timeout) as response:
                if response.status >= 300:
                    raise await _failure(response)
                return await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(call.method, call.path, error) from error

    async def _exchange(self, exchanges: Exchanges, call: _Call, seconds: float) -> bytes:
        base = self._connection.base
        target = http1.target(base.raw_path.rstrip("/") + call.path, _parameters(call.query))
        sent = {"Host": base.host_port_subcomponent or "", **await self._headers(call.headers)}
        request = http1.compose(call.method, target, sent, call.data)
        try:
            answer = await exchanges.exchange(call.method, request, timeout=seconds)
        except BaseException:
            self.requests.count(call.method, None)
            raise
        self.requests.count(call.method, answer.status)
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, retry_after=retry_after_seconds(answer.retry_after))
        return answer.body

    async def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        sent = {"Accept": "application/json", "User-Agent": self._user_agent, **headers}
        authorization = await self._connection.credentials.header()
        if authorization:
            sent["Authorization"] = authorization
        return sent

    async def _open(self, call: _Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        connection = self._connection
        sent = await self._headers(call.headers)
        base = connection.base
        url = base.with_path(base.path.rstrip("/") + call.path).with_query(_parameters(call.query))
        try:
            response = await connection.session.request(
                call.method,
                url,
                data=call.data,
                headers=sent,
                timeout=timeout,
                allow_redirects=False,
                proxy=connection.proxy,
                server_hostname=connection.server_hostname,
            )
        except BaseException:
            self.requests.count(call.method, None)
            raise
        self.requests.count(call.method, response.status)
        return response


def _unjudged(method: str, query: Query | None) -> Query:
    """The query of a write, asking the server not to look for unknown fields, which costs it a second decoding.

    It would only warn of them, in a header that nobody reads.
    """
    known = query or {}
    judged = method in ("POST", "PUT", "PATCH") and "fieldValidation" not in known
    return {**known, "fieldValidation": "Ignore"} if judged else known


def _parameters(query: Query) -> dict[str, str]:
    return {
        key: ("true" if value else "false") if isinstance(value, bool) else str(value)
        for key, value in query.items()
        if value is not None and value != ""
    }


def _object(raw: bytes) -> JsonObject:
    try:
        return json.decode_object(raw)
    except ValueError as error:
        raise MalformedAnswer(f"the server's answer is not a JSON object: {raw[:80]!r}") from error


def _dry_run(wanted: bool) -> str | None:
    return "All" if wanted else None


def _delete_options(
    uid: str | None, resource_version: str | None, propagation: str | None, grace_period_seconds: int | None
) -> JsonObject:
    options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1"}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if any(preconditions.values()):
        options["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options


async def _failure(response: aiohttp.ClientResponse) -> KubeError:
    retry_after = retry_after_seconds(response.headers.get("Retry-After"))
    return api_error(response.status, await response.read(), retry_after=retry_after)


def _unreachable(method: str, path: str, error: Exception) -> Unreachable:
    sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | NotConnected)
    what = "no answer in time" if isinstance(error, asyncio.TimeoutError) else (str(error) or type(error).__name__)
    return Unreachable(f"{method} {path}: {what}", sent=sent)
