"""Requests to kinds: every verb on collections, objects and subresources, mapped to the registry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import orjson
from aiohttp import web

from stromboli.api import kinds
from stromboli.localcluster import clock, scaling, statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.extending import Answer, Attributes, Subresource, SubresourceRequest, User
from stromboli.localcluster.http import answers, bodies, listing, queries, streaming, watching
from stromboli.localcluster.http.negotiating import Answering, negotiate
from stromboli.localcluster.http.paths import Target
from stromboli.localcluster.patching.patches import ApplyPatch
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import Deleted, Listing, WriteOptions
from stromboli.localcluster.selecting import Selection, selection
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Key, Object, Stored
from stromboli.localcluster.tables.rendering import table

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_ANSWERS_WITH_OBJECT = {
    kinds.PODS, kinds.SERVICES, kinds.NAMESPACES, kinds.PERSISTENT_VOLUMES, kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.SERVICE_ACCOUNTS, kinds.POD_TEMPLATES, kinds.RESOURCE_QUOTAS,
}  # fmt: skip
"""Kinds whose immediate deletion is answered with the object rather than a Status."""


def verb_of(method: str, target: Target, *, watches: bool) -> str:
    """The API verb of a request, as RBAC and discovery name it; 405 for other methods."""
    match method:
        case "GET" | "HEAD":
            if target.name:
                return "get"
            return "watch" if watches else "list"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
        case _ if method in _VERBS:
            return _VERBS[method]
    raise statuses.method_not_allowed()


def is_watch(request: web.Request) -> bool:
    """Whether a GET asks for changes rather than for a list."""
    return queries.flag(request.query, "watch")


def attributes_of(target: Target, verb: str) -> Attributes:
    """What the authorizer is asked."""
    return Attributes(
        verb=verb, group=target.group, version=target.version, resource=target.plural,
        subresource=target.subresource, namespace=target.namespace, name=target.name,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way: parsed, authenticated, allowed."""

    request: web.Request
    registry: Registry
    served: ServedKind
    target: Target
    verb: str
    base: WriteOptions
    answering: Answering

    @property
    def namespace(self) -> str:
        """Namespace of the request; empty for cluster-scoped kinds and for all namespaces."""
        return self.target.namespace if self.served.kind.namespaced else ""

    def options(self) -> WriteOptions:
        """Options of a write."""
        agent = self.request.headers.get("User-Agent", "")
        applies = self.request.headers.get("Content-Type", "").startswith(bodies.APPLY_PATCH)
        kind = f"{self.verb.capitalize()}Options"
        return bodies.write_options(self.request.query, agent, self.base, kind, applies=applies)

    def selection(self) -> Selection | None:
        """What the query selects. 400 and 422 for options of lists that cannot be."""
        query = self.request.query
        queries.check_list(query, watches=self.verb == "watch")
        return selection(self.served, query.get("labelSelector", ""), query.get("fieldSelector", ""))

    async def document(self) -> Object:
        """The object in the body."""
        return bodies.parse_object(await self.request.read(), self.request.headers.get("Content-Type", ""))

    async def whole(self) -> Object:
        """The request's body as an object to store. A custom one must say what it is; others are taken for it."""
        document = await self.document()
        if self.served.is_custom:
            bodies.require_type(document, self.served.kind)
        return document


async def serve(request: web.Request, registry: Registry, target: Target, user: User, verb: str) -> web.StreamResponse:
    """Answer a request that is allowed. 404 for kinds that are not served, 405 for verbs they do not have."""
    served = registry.kinds.find(target.group, target.version, target.plural)
    if served is None or (target.namespace and not served.kind.namespaced and served.kind != kinds.NAMESPACES):
        raise statuses.no_such_path()
    warnings: list[str] = request.setdefault(answers.WARNINGS, [])
    base = WriteOptions(user=user, warn=warnings.append)
    streams = target.subresource == "log"
    answering = Answering() if streams else negotiate(request.headers.get("Accept", ""))
    call = Call(request, registry, served, target, verb, base, answering)
    handled = _handled(call)
    if handled is not None:
        return await _handle(call, handled)
    if target.subresource:
        return await _subresource(call)
    if verb not in served.verbs or not _is_placed(verb, target, served):
        raise statuses.method_not_allowed()
    return await _BY_VERB[verb](call)


def _is_placed(verb: str, target: Target, served: ServedKind) -> bool:
    """Whether a verb goes with a path: writes name their object but for creations, and their namespace."""
    if verb in ("create", "update", "patch") and bool(target.name) is (verb == "create"):
        return False
    reads_all_namespaces = verb in ("list", "watch")
    return bool(target.namespace) or not served.kind.namespaced or reads_all_namespaces


def _handled(call: Call) -> Subresource | None:
    if call.target.subresource:
        return call.served.subresources.get(call.target.subresource)
    if call.served.handler is not None:
        return Subresource(call.served.handler, call.served.kind, call.served.verbs)
    return None


async def _handle(call: Call, handled: Subresource) -> web.StreamResponse:
    if call.verb not in handled.verbs:
        raise statuses.method_not_allowed()
    body = await call.document() if call.request.can_read_body else None
    answer = await handled.handler(
        SubresourceRequest(
            call.verb,
            call.served.kind,
            call.namespace,
            call.target.name,
            call.target.subresource,
            body,
            call.request.query,
            call.base.user,
            bodies.is_dry_run(call.request.query, f"{call.verb.capitalize()}Options"),
            call.base.warn,
        )  # fmt: skip
    )
    return await _answer(call, answer)


async def _answer(call: Call, answer: Answer) -> web.StreamResponse:
    if isinstance(answer.body, dict):
        return await answers.respond(call.request, answer.body, Answering(), answer.code)
    chunks = answer.body
    response = web.StreamResponse(status=answer.code, headers={"Content-Type": answer.content_type})
    response.enable_chunked_encoding()
    return await streaming.written(call.request, response, lambda: _write_all(call.request, response, chunks))


async def _write_all(request: web.Request, response: web.StreamResponse, chunks: AsyncGenerator[bytes, None]) -> None:
    """Write what comes, until it ends or nobody reads it any more."""
    async with aclosing(chunks):
        async for chunk in chunks:
            if streaming.has_left(request):
                return
            if chunk:
                await response.write(chunk)


async def _subresource(call: Call) -> web.StreamResponse:
    part = call.target.subresource
    served = call.served
    is_scale = part == "scale" and served.scale is not None
    is_finalize = part == "finalize" and served.kind == kinds.NAMESPACES
    if not (is_scale or is_finalize or (part == "status" and served.has_status)):
        raise statuses.no_such_path()
    match call.verb:
        case "get":
            stored = call.registry.read(served.kind, call.namespace, call.target.name)
            return await _respond(call, scaling.scale_of(served, stored.object) if is_scale else stored.object)
        case "update":
            return await _update(call)
        case "patch":
            return await _patch(call)
    raise statuses.method_not_allowed()


async def _respond(call: Call, obj: Object, code: int = 200) -> web.Response:
    if call.answering.form == "table" and obj.get("kind") == call.served.kind.kind:
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return await _respond_table(call, [obj], metadata, code)
    if call.answering.form == "metadata" and "metadata" in obj and obj.get("kind") != "Status":
        obj = answers.partial(obj, call.answering.version)
    elif call.served.is_custom and obj.get("kind") == call.served.kind.kind:
        obj = {**obj, "apiVersion": call.served.kind.api_version}
    return await answers.respond(call.request, obj, call.answering, code)


async def _respond_table(call: Call, objects: list[Object], metadata: Object, code: int = 200) -> web.Response:
    include = call.request.query.get("includeObject", "Metadata")
    body = table(call.served, objects, metadata, clock.now(), include=include, version=call.answering.version)
    return await answers.respond(call.request, body, call.answering, code)


async def _get(call: Call) -> web.StreamResponse:
    wanted, present = queries.revision(call.request.query), call.registry.store.revision
    if wanted > present:
        raise listing.too_large(wanted, present)
    stored = call.registry.read(call.served.kind, call.namespace, call.target.name)
    return await _respond(call, stored.object)


async def _list(call: Call) -> web.StreamResponse:
    registry, kind = call.registry, call.served.kind
    selection = call.selection()
    listing.check_revision(call.request.query, registry.store.revision)
    found = await registry.list(kind, call.namespace, selection, listing.start_of(call.request.query))
    page = listing.page(found, call.request.query)
    match call.answering.form:
        case "objects":
            items = answers.encoded_items(page.items, kind.api_version)
            body = answers.encode_list(kind.list_kind, kind.api_version, page, items)
            return await answers.respond(call.request, body, call.answering)
        case "metadata":
            return await _respond_metadata(call, page.items, page)
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata |= {"continue": page.continue_token, "remainingItemCount": page.remaining}
    return await _respond_table(call, page.objects, metadata)


async def _respond_metadata(call: Call, items: list[Stored], page: Listing) -> web.Response:
    version = call.answering.version
    encoded = (orjson.dumps(answers.partial(stored.object, version)) for stored in items)
    body = answers.encode_list("PartialObjectMetadataList", f"meta.k8s.io/{version}", page, encoded)
    return await answers.respond(call.request, body, call.answering)


async def _watch(call: Call) -> web.StreamResponse:
    include = call.request.query.get("includeObject", "Metadata")
    viewer = watching.Viewer(call.served, call.selection(), call.answering, include)
    planned = watching.plan(call.registry, viewer, call.namespace, call.request.query)
    return await watching.stream(call.request, planned, viewer)


async def _create(call: Call) -> web.StreamResponse:
    obj = await call.registry.create(call.served.kind, await call.whole(), call.namespace or None, call.options())
    return await _respond(call, obj, 201)


async def _update(call: Call) -> web.StreamResponse:
    document = await call.whole()
    name = (document.get("metadata") or {}).get("name") or call.target.name
    if name != call.target.name:
        raise statuses.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.target.name})"
        )
    document["metadata"] = {**(document.get("metadata") or {}), "name": name}
    obj = await call.registry.update(
        call.served.kind, document, call.namespace or None, call.options(), call.target.subresource
    )
    return await _respond(call, obj)


async def _patch(call: Call) -> web.StreamResponse:
    registry, kind, name = call.registry, call.served.kind, call.target.name
    content_type = call.request.headers.get("Content-Type", "")
    patch = bodies.parse_patch(await call.request.read(), content_type, is_custom=call.served.is_custom)
    options = call.options()
    if isinstance(patch, ApplyPatch) and not call.request.query.get("fieldManager"):
        cause = Cause("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
        raise statuses.invalid(kinds.Kind("meta.k8s.io", "v1", "", "PatchOptions"), "", [cause])
    is_new = isinstance(patch, ApplyPatch) and registry.store.get(Key.of(kind, call.namespace, name)) is None
    obj = await registry.patch(kind, call.namespace, name, patch, options, call.target.subresource)
    return await _respond(call, obj, 201 if is_new else 200)


async def _delete(call: Call) -> web.StreamResponse:
    body = await call.document() if call.request.can_read_body else None
    options = bodies.delete_options(call.request.query, body, call.base)
    deleted = await call.registry.delete(call.served.kind, call.namespace, call.target.name, options)
    return await _respond_deleted(call, deleted)


async def _respond_deleted(call: Call, deleted: Deleted) -> web.Response:
    kind = call.served.kind
    if deleted.gone and kind not in _ANSWERS_WITH_OBJECT:
        metadata = deleted.obj["metadata"]
        return await answers.respond(
            call.request, statuses.success(kind, metadata["name"], metadata["uid"]), Answering()
        )
    return await _respond(call, deleted.obj)


async def _delete_collection(call: Call) -> web.StreamResponse:
    body = await call.document() if call.request.can_read_body else None
    options = bodies.delete_options(call.request.query, body, call.base)
    found = await call.registry.delete_collection(call.served.kind, call.namespace, call.selection(), options)
    kind = call.served.kind
    items = answers.encoded_items(found.items, kind.api_version)
    encoded = answers.encode_list(kind.list_kind, kind.api_version, found, items)
    return await answers.respond(call.request, encoded, call.answering)


_BY_VERB: dict[str, Callable[[Call], Awaitable[web.StreamResponse]]] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}
