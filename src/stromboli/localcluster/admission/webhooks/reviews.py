"""AdmissionReview objects: the question built from a write, and the answer read back and checked."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonpatch
import orjson

from stromboli.localcluster.auth.reviews import user_info
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object

API_VERSION = "admission.k8s.io/v1"


class InvalidReview(Exception):
    """An answer that is not a valid AdmissionReview for the question."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A webhook's answer. ``status`` is what it said about a refusal."""

    allowed: bool
    status: Mapping[str, Any]
    warnings: Sequence[str] = ()
    patch: Sequence[Mapping[str, Any]] = ()


def question(request: AdmissionRequest) -> Object:
    """The AdmissionReview that asks about a write."""
    kind = request.kind
    body = request.obj if request.obj is not None else request.old or {}
    group, _, version = str(body.get("apiVersion") or kind.api_version).rpartition("/")
    gvk = {"group": group, "version": version, "kind": body.get("kind") or kind.kind}
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    asked: Object = {
        "uid": str(uuid.uuid4()),
        "kind": gvk,
        "resource": resource,
        "requestKind": gvk,
        "requestResource": resource,
        "name": request.name,
        "operation": request.operation,
        "userInfo": user_info(request.user),
        "object": request.obj,
        "oldObject": request.old,
        "dryRun": request.dry_run,
        "options": request.options or None,
    }
    if request.subresource:
        asked["subResource"] = asked["requestSubResource"] = request.subresource
    if request.namespace:
        asked["namespace"] = request.namespace
    return {"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": asked}


def verdict(answer: bytes, uid: str) -> Verdict:
    """Read an answer. Raises :class:`InvalidReview` with the reason."""
    try:
        review = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise InvalidReview(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(review, dict) or (review.get("apiVersion"), review.get("kind")) != (
        API_VERSION,
        "AdmissionReview",
    ):
        found = f"{review.get('apiVersion')}, Kind={review.get('kind')}" if isinstance(review, dict) else "no object"
        raise InvalidReview(f"expected webhook response of {API_VERSION}, Kind=AdmissionReview, got {found}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("webhook response was absent")
    if response.get("uid") != uid:
        raise InvalidReview(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    return Verdict(
        bool(response.get("allowed")),
        response.get("status") or {},
        response.get("warnings") or (),
        _patch(response),
    )


def patched(obj: Object, patch: Sequence[Mapping[str, Any]]) -> Object:
    """The object after a JSON patch. Raises :class:`InvalidReview` when it does not apply."""
    try:
        result = jsonpatch.JsonPatch(list(patch)).apply(obj)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        raise InvalidReview(str(error)) from error
    if not isinstance(result, dict):
        raise InvalidReview("the patch does not leave an object")
    return result


def refusal(name: str, status: Mapping[str, Any]) -> StatusError:
    """What the client gets when a webhook says no."""
    text = f'admission webhook "{name}" denied the request'
    if status.get("message"):
        text += f": {status['message']}"
    elif status.get("reason"):
        text += f": {status['reason']}"
    else:
        text += " without explanation"
    code = int(status.get("code") or 0)
    reason = str(status.get("reason") or "")
    return StatusError(code if code >= 400 else 400, reason, text, details=status.get("details"))


def _patch(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    encoded = response.get("patch")
    if not encoded:
        if response.get("patchType"):
            raise InvalidReview("webhook returned response.patchType but not response.patch")
        return []
    if response.get("patchType") != "JSONPatch":
        raise InvalidReview("webhook returned response.patch but response.patchType is not JSONPatch")
    try:
        patch = orjson.loads(base64.b64decode(encoded, validate=True))
    except (binascii.Error, TypeError, orjson.JSONDecodeError) as error:
        raise InvalidReview(f"response.patch is not base64 encoded JSON: {error}") from error
    if not isinstance(patch, list):
        raise InvalidReview("response.patch is not a list of operations")
    return patch
