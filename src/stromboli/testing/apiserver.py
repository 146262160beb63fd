"""A small API server on loopback, in memory, that fails on request.

>>> async with FakeApiServer() as server, await server.client() as client:
...     server.put(kinds.PODS, pod)                      # as if it had been there all along
...     server.faults.fail(500, verb="list", times=2)
...     await client.list(kinds.PODS)
...     assert server.count("list", kinds.PODS) == 3

It serves any kind at any path of Kubernetes' shape: create, get, list (selectors, pages), watch (bookmarks, streaming
lists, time-outs), update, patch (JSON, merge, strategic without list merging, apply without field ownership), delete
(preconditions, finalizers), ``status`` as a subresource, ``pods/binding`` and ``pods/eviction``, dry runs and
``/version``. Errors are Status objects as the API server sends them. What it does not do: schemas, admission, defaults,
RBAC, garbage collection, discovery. For those there is the embedded cluster.
"""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Self

from aiohttp import web

from stromboli.api.kinds import ALL, Kind
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject
from stromboli.testing import patching
from stromboli.testing.faults import Call, Delay, Disconnect, Failure, Fault, Faults, Hold
from stromboli.testing.memory import Memory, Resource, refuse, resource_of
from stromboli.testing.requests import Target, parse_target
from stromboli.testing.selecting import predicate
from stromboli.testing.streaming import WatchStream

_KINDS = {resource_of(kind): kind for kind in ALL}
_MERGES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


class FakeApiServer:
    """The server and the test's handle on it. Use as an async context manager.

    ``token`` makes it refuse requests without that bearer token (and may be changed while it runs); ``streaming_lists``
    says whether it serves WatchList; ``bookmark_interval`` is in seconds. ``calls`` is the log of all requests and
    ``held`` the number of those that a ``hold`` fault keeps waiting.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        streaming_lists: bool = True,
        bookmark_interval: float = 0.5,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.token = token
        self.streaming_lists = streaming_lists
        self.bookmark_interval = bookmark_interval
        self.memory = Memory()
        self.faults = Faults()
        self.calls: list[Call] = []
        self.held = 0
        self.port = 0
        self._ssl = ssl_context
        self._snapshots: dict[str, tuple[int, list[JsonObject]]] = {}
        self._watches: set[WatchStream] = set()
        self._runner: web.AppRunner | None = None

    # -- for tests -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self.port}"

    async def client(self, *, qps: float = 0.0, user_agent: str = "test") -> Client:
        """A client of this server, without throttling unless told otherwise. The test closes it."""
        return await Client.connect(master=self.url, qps=qps, user_agent=user_agent)

    def put(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Create or replace an object with everything in it, status too, past faults and the call log."""
        resource, key = resource_of(kind), json.key_of(obj)
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        try:
            present = self.memory.get(resource, key)
        except ApiError:
            return self.memory.create(resource, key[0], whole)
        # UID and version of the stored object hold, so that a builder's fresh object may be put again and again.
        meta = {**json.metadata(whole), "uid": json.uid_of(present), "resourceVersion": ""}
        self.memory.replace(resource, key, {**whole, "metadata": meta})
        if "status" not in whole:
            return self.memory.get(resource, key)
        return self.memory.replace(resource, key, {"status": whole["status"]}, subresource="status")

    def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """A copy of one object. Raises ``NotFound``."""
        return self.memory.get(resource_of(kind), (namespace, name))

    def objects(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Copies of all objects (of one namespace), ordered by name."""
        return self.memory.list(resource_of(kind), namespace)

    def remove(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Delete an object past the call log; finalizers hold it as they do for everybody."""
        self.memory.delete(resource_of(kind), (namespace, name))

    def expire_versions(self) -> None:
        """Forget the history and all continue tokens: older resource versions answer 410 from now on."""
        self.memory.forget()
        self._snapshots.clear()

    def count(self, verb: str | None = None, kind: Kind | None = None, name: str | None = None) -> int:
        """How many requests of that verb, kind and name were made."""
        return len(self.called(verb, kind, name))

    def called(self, verb: str | None = None, kind: Kind | None = None, name: str | None = None) -> list[Call]:
        """The requests of that verb, kind and name, in order."""
        return [
            call
            for call in self.calls
            if verb in (None, call.verb) and name in (None, call.name) and (kind is None or kind.plural == call.kind)
        ]

    @property
    def open_watches(self) -> int:
        """Watches that are open now."""
        return len(self._watches)

    def end_watches(self) -> None:
        """End all watches in the orderly way, as a server that restarts does."""
        for watch in list(self._watches):
            watch.end()

    def break_watches(self) -> None:
        """Break the connections of all watches."""
        for watch in list(self._watches):
            watch.break_off()

    # -- life ------------------------------------------------------------------------------------------------------

    async def start(self, port: int = 0) -> None:
        """Listen on loopback; ``port`` 0 takes a free one. May be called again after :meth:`stop`."""
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port or self.port, ssl_context=self._ssl, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Break all connections and stop listening. Objects stay, for a later :meth:`start` on the same port."""
        self.faults.clear()
        self.end_watches()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # -- requests --------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(refuse(401, "Unauthorized", "Unauthorized"))
        if request.path == "/version":
            return _json({"major": "1", "minor": "34", "gitVersion": "v1.34.0", "platform": "linux/amd64"})
        try:
            target = parse_target(request)
        except LookupError:
            return _status(refuse(404, "NotFound", "the server could not find the requested resource"))
        validation = request.query.get("fieldValidation", "")
        call = Call(target.verb, target.resource[2], target.namespace, target.name, target.subresource, validation)
        self.calls.append(call)
        fault = self.faults.for_call(call)
        if isinstance(fault, Failure):
            error = refuse(fault.code, fault.reason, fault.message)
            return _status(error, retry_after=fault.retry_after)
        if isinstance(fault, Delay):
            await asyncio.sleep(fault.seconds)
        if isinstance(fault, Hold):
            await self._hold(fault)
        if isinstance(fault, Disconnect):
            return await self._disconnect(request, target, executed=fault.executed)
        return await self._answer(request, target, fault)

    async def _hold(self, fault: Hold) -> None:
        self.held += 1
        try:
            await fault.gate.wait()
        finally:
            self.held -= 1

    async def _disconnect(self, request: web.Request, target: Target, *, executed: bool) -> web.StreamResponse:
        if executed:
            await self._answer(request, target, None)
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _answer(self, request: web.Request, target: Target, fault: Fault | None) -> web.StreamResponse:
        try:
            if target.verb == "watch":
                return await self._watch(request, target, fault)
            return _json(await self._execute(request, target), status=201 if target.verb == "create" else 200)
        except ApiError as error:
            return _status(error)
        except ValueError as error:
            return _status(refuse(400, "BadRequest", str(error)))

    async def _execute(self, request: web.Request, target: Target) -> JsonObject:
        match target.verb:
            case "list":
                return self._list(request, target)
            case "get":
                return self.memory.get(target.resource, target.key)
            case "create":
                return self._create(target, json.decode_object(await request.read()))
            case "update":
                body = json.decode_object(await request.read())
                return self.memory.replace(
                    target.resource, target.key, body, subresource=target.subresource, dry_run=target.dry_run
                )
            case "patch":
                return self._patch(target, request, await request.read())
            case "delete":
                return self._delete(target, await request.read())
            case _:
                return self._delete_collection(target)

    # -- verbs -----------------------------------------------------------------------------------------------------

    def _list(self, request: web.Request, target: Target) -> JsonObject:
        token, limit = request.query.get("continue", ""), int(request.query.get("limit") or 0)
        if token:
            if request.query.get("resourceVersion"):
                raise ValueError("specifying resource version is not allowed when using continue")
            if token not in self._snapshots:
                raise refuse(410, "Expired", "The provided continue parameter is too old; list again")
            version, rest = self._snapshots[token]
        else:
            version = self.memory.version
            matches = predicate(target.label_selector, target.field_selector)
            rest = [obj for obj in self.memory.list(target.resource, target.namespace) if matches(obj)]
        page, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        meta: JsonObject = {"resourceVersion": str(version)}
        if rest:
            token = f"{version}.{len(self._snapshots)}"
            self._snapshots[token] = version, rest
            meta |= {"continue": token, "remainingItemCount": len(rest)}
        kind = _KINDS.get(target.resource)
        return {
            "kind": kind.list_kind if kind else "List",
            "apiVersion": target.api_version,
            "metadata": meta,
            "items": page,
        }

    def _create(self, target: Target, obj: JsonObject) -> JsonObject:
        if target.name:
            return self._create_subresource(target, obj)
        obj.pop("status", None)
        return self.memory.create(target.resource, target.namespace, obj, dry_run=target.dry_run)

    def _create_subresource(self, target: Target, obj: JsonObject) -> JsonObject:
        key = target.key
        if target.subresource == "binding":
            pod = self.memory.get(target.resource, key)
            wanted, bound = json.uid_of(obj), pod.get("spec", {}).get("nodeName")
            if (wanted and wanted != json.uid_of(pod)) or bound:
                raise refuse(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{target.name}"')
            pod.setdefault("spec", {})["nodeName"] = obj["target"]["name"]
            for part in ("annotations", "labels"):  # which a Binding may bring along
                given = (obj.get("metadata") or {}).get(part)
                if given:
                    pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **given}
            self.memory.replace(target.resource, key, pod, dry_run=target.dry_run)
        elif target.subresource == "eviction":
            if not target.dry_run:
                preconditions = (obj.get("deleteOptions") or {}).get("preconditions") or {}
                self.memory.delete(target.resource, key, uid=preconditions.get("uid") or "")
        else:
            raise refuse(404, "NotFound", "the server could not find the requested resource")
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def _patch(self, target: Target, request: web.Request, body: bytes) -> JsonObject:
        media_type = request.content_type
        resource, key = target.resource, target.key
        if media_type == "application/apply-patch+yaml":
            if not request.query.get("fieldManager"):
                raise ValueError("fieldManager is required for apply patch")
            patch = json.decode_object(body)
            try:
                old = self.memory.get(resource, key)
            except ApiError:
                if target.subresource:  # only the object itself comes into being by being applied
                    raise
                return self.memory.create(resource, target.namespace, patch, dry_run=target.dry_run)
            new = patching.merge(old, patch)
        else:
            old = self.memory.get(resource, key)
            new = patching.merge(old, json.decode_object(body)) if media_type in _MERGES else patching.apply(old, body)
        return self.memory.replace(resource, key, new, subresource=target.subresource, dry_run=target.dry_run)

    def _delete(self, target: Target, body: bytes) -> JsonObject:
        options = json.decode_object(body) if body else {}
        wanted = options.get("preconditions") or {}
        uid, version = wanted.get("uid") or "", wanted.get("resourceVersion") or ""
        if target.dry_run:
            return self.memory.get(target.resource, target.key)
        return self.memory.delete(target.resource, target.key, uid=uid, version=version)

    def _delete_collection(self, target: Target) -> JsonObject:
        matches = predicate(target.label_selector, target.field_selector)
        for obj in self.memory.list(target.resource, target.namespace):
            if matches(obj):
                self.memory.delete(target.resource, json.key_of(obj))
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    async def _watch(self, request: web.Request, target: Target, fault: Fault | None) -> web.StreamResponse:
        if request.query.get("sendInitialEvents") == "true" and not self.streaming_lists:
            raise refuse(422, "Invalid", "sendInitialEvents: Forbidden: unless the WatchList feature gate is enabled")
        stream = WatchStream(
            self.memory, target, request.query, fault, api_kind=_kind_name(target.resource),
            bookmark_interval=self.bookmark_interval,
        )  # fmt: skip
        self._watches.add(stream)
        try:
            return await stream.serve(request)
        finally:
            self._watches.discard(stream)


def _kind_name(resource: Resource) -> str:
    return _KINDS[resource].kind if resource in _KINDS else "Object"


def _json(obj: JsonObject, *, status: int = 200) -> web.Response:
    return web.Response(body=json.encode(obj), status=status, content_type="application/json")


def _status(error: ApiError, *, retry_after: int | None = None) -> web.Response:
    response = _json(error.status, status=error.code)
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)
    return response
