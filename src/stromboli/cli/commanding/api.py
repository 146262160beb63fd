"""The API server's verbs for commands that come and go: synchronous, one connection, loaded in milliseconds.

The processes use :mod:`stromboli.kube.client`; its libraries take longer to import than a command may take to run. The
errors are the same tree, :mod:`stromboli.kube.errors`.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from stromboli.api.kinds import Kind
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.commanding.kubeconfig import Target
from stromboli.kube import json
from stromboli.kube.errors import (
    ApiError,
    ConfigurationError,
    MalformedAnswer,
    TooManyRequests,
    Unreachable,
    api_error,
    from_status,
)
from stromboli.kube.json import JsonObject

TIMEOUT_SECONDS = 30.0
PAGE_LIMIT = 500
PATIENCE_SECONDS = 10.0
"""Longest wait for a server that says it is busy."""
SHORTEST_WATCH_SECONDS = 1.0
"""Watches that the server ends earlier are not begun again in a hurry."""
NO_NAMESPACE = "the namespace is empty; name one, or leave the flag out"

Objects: TypeAlias = list[JsonObject]
Query: TypeAlias = Mapping[str, str | int | bool | None]


class Api:
    """A client of one API server; closes its connection at the end of a ``with`` block."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._split = urlsplit(target.server)
        self._context = ssl_context(target) if self._split.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._watching: list[http.client.HTTPConnection] = []
        self._ended: set[http.client.HTTPConnection] = set()
        """Watches that we have ended ourselves."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and end watches that other threads are reading."""
        for watching in list(self._watching):
            self._ended.add(watching)
            if watching.sock is not None:
                with contextlib.suppress(OSError):
                    watching.sock.shutdown(socket.SHUT_RDWR)
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> JsonObject:
        """One object. Raises NotFound and the rest of the tree."""
        return _object(self.request("GET", _place(kind, namespace, name)))

    def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Objects:
        """All objects, page by page, each with ``apiVersion`` and ``kind``."""
        return self.snapshot(kind, namespace, label_selector=label_selector, field_selector=field_selector)[0]

    def snapshot(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[Objects, str]:
        """All objects, and the resource version from which to watch."""
        found: Objects = []
        token = ""
        while True:
            query = {
                "limit": PAGE_LIMIT,
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "continue": token or None,
            }
            page = _object(self.request("GET", _place(kind, namespace), query=query))
            named = {"apiVersion": kind.api_version, "kind": kind.kind}
            found.extend({**named, **item} for item in page.get("items") or [])
            meta = json.metadata(page)
            token = str(meta.get("continue") or "")
            if not token:
                return found, str(meta.get("resourceVersion") or "")

    def raw_items(self, kind: Kind) -> Iterator[bytes]:
        """All objects as bytes, page by page, for those who need a few fields of many."""
        from stromboli.kube.paging import Page

        token = ""
        while True:
            query = {"limit": PAGE_LIMIT, "continue": token or None}
            page = Page.parse(self.request("GET", _place(kind), query=query))
            yield from page.items
            token = page.continue_token
            if not token:
                return

    def create(self, kind: Kind, obj: JsonObject, namespace: str | None = None, *, dry_run: bool = False) -> JsonObject:
        """Create an object, or only have the server judge and complete it."""
        where = namespace or json.key_of(obj)[0]
        if kind.namespaced and not where:
            raise CommandError(NO_NAMESPACE)
        path = _place(kind, where)
        return _object(self.request("POST", path, query=_dry(dry_run), body=obj))

    def merge(
        self, kind: Kind, name: str, patch: JsonObject, namespace: str | None = None, *, dry_run: bool = False
    ) -> JsonObject:
        """JSON merge patch of an object."""
        headers = {"Content-Type": "application/merge-patch+json"}
        path = _place(kind, namespace, name)
        return _object(self.request("PATCH", path, query=_dry(dry_run), body=patch, headers=headers))

    def delete(self, kind: Kind, name: str, namespace: str | None = None, *, dry_run: bool = False) -> JsonObject:
        """Delete an object with default options."""
        return _object(self.request("DELETE", _place(kind, namespace, name), query=_dry(dry_run)))

    def watch(
        self, kind: Kind, namespace: str | None, version: str, *, label_selector: str | None = None
    ) -> Generator[tuple[str, JsonObject], None, None]:
        """(type, object) of each event after ``version``, until the server ends the watch. Raises Gone.

        Close the generator (``contextlib.closing``), or the client from another thread: that ends the watch.
        """
        asked = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        query = urlencode(asked | ({"labelSelector": label_selector} if label_selector else {}))
        connection = self._open(timeout=None)
        self._watching.append(connection)
        begun = time.monotonic()
        try:
            connection.request("GET", self._path(f"{_place(kind, namespace)}?{query}"), headers=self._headers())
            with connection.getresponse() as response:
                yield from _events(response)
            if connection not in self._ended:
                time.sleep(max(begun + SHORTEST_WATCH_SECONDS - time.monotonic(), 0.0))
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            self._watching.remove(connection)
            self._ended.discard(connection)
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request; a server that is busy (429) is asked again when it says, for some seconds at most."""
        given = {key: _word(value) for key, value in (query or {}).items() if value is not None}
        where = self._path(f"{path}?{urlencode(given)}" if given else path)
        data = None if body is None else json.encode(body)
        sent = self._headers({"Content-Type": "application/json"} if data else {}, headers or {})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._sent_again_if_stale(method, where, data, sent)
            except TooManyRequests as error:
                pause = error.retry_after or 1.0
                if time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)

    def _sent_again_if_stale(self, method: str, where: str, data: bytes | None, headers: Mapping[str, str]) -> bytes:
        """A server may have closed a kept connection meanwhile; reads are then sent again on a new one."""
        kept = self._connection is not None
        try:
            return self._attempt(method, where, data, headers)
        except Unreachable:
            if not (kept and method == "GET"):
                raise
            return self._attempt(method, where, data, headers)

    def _attempt(self, method: str, where: str, data: bytes | None, headers: Mapping[str, str]) -> bytes:
        connection = self._connection = self._connection or self._open(TIMEOUT_SECONDS)
        try:
            connection.request(method, where, body=data, headers=dict(headers))
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._unreachable(error) from error
        if response.will_close:
            self.close()
        if response.status >= 300:
            after = response.getheader("Retry-After") or ""
            raise api_error(response.status, body, retry_after=float(after) if after.isdecimal() else None)
        return body

    def _open(self, timeout: float | None) -> http.client.HTTPConnection:
        host, port = self._split.hostname or "", self._split.port
        if self._context is None:
            return http.client.HTTPConnection(host, port or 80, timeout=timeout)
        return _HttpsConnection(host, port or 443, self._context, timeout, self.target.server_name)

    def _path(self, path: str) -> str:
        return f"{self._split.path}{path}"

    def _headers(self, *more: Mapping[str, str]) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "vcctl"}
        if self.target.authorization:
            headers["Authorization"] = self.target.authorization
        for extra in more:
            headers |= extra
        return headers

    def _unreachable(self, error: Exception) -> Unreachable:
        what = str(error) or type(error).__name__
        hint = self.target.hint or "is the address right and the server up?"
        return Unreachable(f"no answer from {self.target.server}: {what}; {hint}")


class _HttpsConnection(http.client.HTTPSConnection):
    """HTTPS to a server whose certificate may be for another name (``tls-server-name``)."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, timeout: float | None, server_name: str) -> None:
        super().__init__(host, port, context=context, timeout=timeout)
        self._own_context = context
        self._server_name = server_name or host

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._own_context.wrap_socket(self.sock, server_hostname=self._server_name)


def ssl_context(target: Target) -> ssl.SSLContext:
    """The TLS settings of a target. Raises ConfigurationError."""
    try:
        context = ssl.create_default_context(cadata=target.ca.decode() or None)
        if not target.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if target.certificate:
            _load_certificate(context, target)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(f"the kubeconfig's certificates cannot be used: {error}; check the file") from error
    return context


def _load_certificate(context: ssl.SSLContext, target: Target) -> None:
    """OpenSSL reads certificates from files only: one that only we can read, and only for a moment."""
    descriptor, path = tempfile.mkstemp(prefix="vcctl-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(target.certificate + b"\n" + target.key)
        context.load_cert_chain(path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, JsonObject]]:
    if response.status >= 300:
        raise api_error(response.status, response.read())
    while line := response.readline():
        event = _object(line)
        if event.get("type") == "ERROR":
            raise from_status(event.get("object") or {})
        yield str(event.get("type")), event.get("object") or {}


def _object(raw: bytes) -> JsonObject:
    try:
        return json.decode_object(raw)
    except ValueError as error:
        raise MalformedAnswer(f"the answer is not a JSON object: {raw[:80]!r}") from error


def _place(kind: Kind, namespace: str | None = None, name: str | None = None) -> str:
    """The URL path. A name must stay one segment of it, or the request would be about something else."""
    if kind.namespaced and name and not namespace:
        raise CommandError(NO_NAMESPACE)
    for what, segment in (("namespace", namespace), ("name", name)):
        if segment in (".", ".."):
            raise CommandError(f'invalid {what} "{segment}": may not be "{segment}"')
        if segment and "/" in segment:
            raise CommandError(f'invalid {what} "{segment}": may not contain "/"')
    return quote(kind.path(namespace, name), errors="surrogateescape")


def _dry(dry_run: bool) -> Query:
    return {"dryRun": "All"} if dry_run else {}


def _word(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["Api", "ApiError"]
