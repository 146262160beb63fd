"""AdmissionReviews: reading requests, deciding, writing answers (spec 07 section 3). Bytes in, bytes out, no I/O.

Whatever the bytes, :func:`parse` gives a :class:`Request` or raises :class:`BadReview`; a readable request gets a
verdict, also where its object is nonsense.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson

from stromboli.api.kinds import Kind
from stromboli.webhooks import patches
from stromboli.webhooks.context import Context
from stromboli.webhooks.endpoints import Endpoint
from stromboli.webhooks.errors import FieldError, causes
from stromboli.webhooks.shapes import JsonObject, Malformed, Shape, read, without_nulls

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_BYTES: Final = 3 * 1024 * 1024
LONGEST_NAME: Final = 253
MAX_MESSAGE: Final = 32 * 1024
"""Longer messages are cut: they go back to the tenant who caused them, through the API server's log."""


_OBJECTS: Final = {"object": "object", "oldObject": "old_object"}
"""Members of a request that are cleaned apart from it, and their attributes."""


class BadReview(Exception):
    """A body that is no AdmissionReview; the text is for the caller."""


class UnreadableObject(BadReview):
    """A review whose object is none that can be judged; the request, without its objects, can be answered."""

    def __init__(self, request: Request, error: Malformed) -> None:
        super().__init__(str(error))
        self.request = request
        self.verdict = Verdict(allowed=False, message=str(error), errors=error.errors)


class Resource(Shape, frozen=True):
    """What a request is about."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(Shape, frozen=True):
    """``request`` of a review, without nulls."""

    uid: str = ""
    operation: str = ""
    name: str = ""
    namespace: str = ""
    resource: Resource = Resource()
    object: JsonObject | None = None
    old_object: JsonObject | None = None


class _Review(Shape, frozen=True):
    api_version: str = API_VERSION
    kind: str = KIND
    request: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on one request."""

    allowed: bool
    message: str = ""
    errors: Sequence[FieldError] = ()
    patch: Sequence[patches.Operation] = ()


def parse(body: bytes) -> Request:
    """Read the body of a review; raises :class:`BadReview`, of it :class:`UnreadableObject`."""
    try:
        review = read(_Review, _json_object(body))
        if (review.api_version, review.kind) != (API_VERSION, KIND):
            raise BadReview(f"expected {KIND} of {API_VERSION}, got {review.kind} of {review.api_version}")
        if review.request is None:
            raise BadReview("the review has no request")
        objects = {name: value for name, value in review.request.items() if name in _OBJECTS and value is not None}
        rest = {name: value for name, value in review.request.items() if name not in _OBJECTS}
        request = read(Request, without_nulls(rest), "request")
        return _with_objects(request, objects)
    except Malformed as error:
        raise BadReview(str(error)) from error


def _with_objects(request: Request, objects: Mapping[str, Any]) -> Request:
    for name, value in objects.items():
        if not isinstance(value, dict):
            raise BadReview(f"request.{name}: Invalid type: expected an object")
    try:
        cleaned = {_OBJECTS[name]: without_nulls(value) for name, value in objects.items()}
    except Malformed as error:
        raise UnreadableObject(request, error) from error
    return msgspec.structs.replace(request, **cleaned)


def _json_object(body: bytes) -> JsonObject:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadReview(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadReview("the body is not a JSON object")
    return value


def decide(endpoint: Endpoint, request: Request, context: Context) -> Verdict:
    """The endpoint's verdict on a request. Pure, and without side effects, so that dry runs are like real ones."""
    if (text := _misdirected(endpoint.kind, request)) is not None:
        return Verdict(allowed=False, message=text)
    if endpoint.refusal is not None and request.operation not in endpoint.operations:
        return Verdict(allowed=False, message=endpoint.refusal.replace("{operation}", request.operation))
    try:
        return _defaulted(endpoint, request, context) if endpoint.mutating else _validated(endpoint, request, context)
    except Malformed as error:
        return Verdict(allowed=False, message=str(error), errors=error.errors)


def _misdirected(kind: Kind, request: Request) -> str | None:
    resource = request.resource
    if (resource.group, resource.version, resource.resource) == (kind.group, kind.version, kind.plural):
        return None
    return f"expect resource to be {{{kind.group} {kind.version} {kind.plural}}}"


def _defaulted(endpoint: Endpoint, request: Request, context: Context) -> Verdict:
    before = request.object or {}
    after = endpoint.default(before, context) if endpoint.default else before
    return Verdict(allowed=True, patch=patches.derive(before, after))


def _validated(endpoint: Endpoint, request: Request, context: Context) -> Verdict:
    errors = endpoint.validate(request.object, request.old_object, context) if endpoint.validate else []
    if not errors:
        return Verdict(allowed=True)
    said = [error for error in errors if error.said]
    return Verdict(allowed=False, message=endpoint.join(said, request.operation), errors=errors)


def answer(request: Request, verdict: Verdict) -> bytes:
    """The review that answers ``request``."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = _status(request, verdict)
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(verdict.patch)).decode()
    return orjson.dumps({"kind": KIND, "apiVersion": API_VERSION, "response": response})


def _status(request: Request, verdict: Verdict) -> Mapping[str, Any]:
    status: dict[str, Any] = {"metadata": {}, "message": shortened(verdict.message)}
    if verdict.errors:
        found = [{**cause, "message": shortened(cause["message"])} for cause in causes(verdict.errors)]
        status["details"] = {"name": request.name[:LONGEST_NAME], "kind": request.resource.resource, "causes": found}
    return status


def shortened(message: str) -> str:
    """The message, cut where it is longer than :data:`MAX_MESSAGE` characters."""
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + " … (cut)"
