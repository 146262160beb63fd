"""Request bodies: JSON, YAML or Protobuf into objects, patches and delete options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from stromboli.api.kinds import Kind
from stromboli.api.manifests import ManifestLoader
from stromboli.localcluster import statuses
from stromboli.localcluster.patching.patches import ApplyPatch, JsonPatch, MergePatch, Patch, StrategicPatch
from stromboli.localcluster.protobuf import decoding as protobuf
from stromboli.localcluster.requests import DeleteOptions, FieldValidation, Propagation, WriteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", APPLY_PATCH)
_JSON_TYPES = (
    "",
    "application/json",
    "application/octet-stream",
    "text/plain",
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
LIMIT = 3 * 1024 * 1024


def parse(body: bytes, content_type: str) -> Any:
    """The document in a body. 400 when it cannot be read, 415 for media types that are not taken."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _YAML_TYPES:
        return _yaml(body)
    if media_type == protobuf.MEDIA_TYPE:
        return _protobuf(body)
    if media_type not in _JSON_TYPES:
        message = (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )
        raise StatusError(415, "UnsupportedMediaType", message)
    try:
        return _writable(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        why = f"couldn't get version/kind; json parse error: {error}"
        raise statuses.bad_request(f"the object provided is unrecognized (must be of a known type): {why}") from error


def _writable(document: Any) -> Any:
    """The document, if it can be written again: reading allows deeper nesting. 400 otherwise."""
    try:
        orjson.dumps(document)
    except TypeError as error:
        raise statuses.bad_request("the object is nested too deeply") from error
    return document


def _protobuf(body: bytes) -> Any:
    try:
        return protobuf.decode(body)
    except protobuf.BadMessage as error:
        raise StatusError(415, "UnsupportedMediaType", str(error)) from error


def _yaml(body: bytes) -> Any:
    try:
        return _writable(orjson.loads(body))  # kubectl applies JSON under YAML's name
    except orjson.JSONDecodeError:
        pass
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, ManifestLoader)):
            # A few nested aliases write out to gigabytes.
            raise statuses.bad_request("error parsing YAML: aliases are not taken; write the values out")
        # Through JSON, so that what JSON cannot say (keys that are no texts, huge numbers) is refused here.
        return orjson.loads(orjson.dumps(yaml.load(body, ManifestLoader)))  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, TypeError, RecursionError) as error:
        raise statuses.bad_request(f"error parsing YAML: {' '.join(str(error).split())}") from error


def parse_object(body: bytes, content_type: str) -> Object:
    """Like :func:`parse`, for a body that must be an object."""
    document = parse(body, content_type)
    if not isinstance(document, dict):
        raise statuses.bad_request("the object provided is unrecognized (must be of a known type): not an object")
    return document


def require_type(document: Object, kind: Kind) -> None:
    """400 for an object without kind or apiVersion, where the server cannot tell them from the path."""
    if not document.get("kind"):
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): "
            f"Object 'Kind' is missing in '{orjson.dumps(document).decode()}'"
        )
    if not document.get("apiVersion"):
        raise statuses.bad_request(
            f"the API version in the data () does not match the expected API version ({kind.api_version})"
        )


def parse_patch(body: bytes, content_type: str, *, is_custom: bool) -> Patch:
    """The patch in a body; 415 for kinds of patches that there are not, or not for custom resources."""
    media_type = content_type.partition(";")[0].strip().lower()
    offered = [JSON_PATCH, MERGE_PATCH, *([] if is_custom else [STRATEGIC_PATCH]), APPLY_PATCH]
    if media_type not in offered:
        message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(
            offered
        )
        raise StatusError(415, "UnsupportedMediaType", message)
    document = parse(body, content_type)
    if media_type == JSON_PATCH:
        if not isinstance(document, list):
            raise statuses.bad_request("error decoding patch: a JSON patch is a list of operations")
        return JsonPatch(document)
    if not isinstance(document, dict):
        raise statuses.bad_request("error decoding patch: the patch is not an object")
    match media_type:
        case "application/merge-patch+json":
            return MergePatch(document)
        case "application/strategic-merge-patch+json":
            return StrategicPatch(document)
        case _:
            return ApplyPatch(document)


# Options in query strings and bodies

_FIELD_VALIDATION: dict[str, FieldValidation] = {"": "Warn", "Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}
_PROPAGATION: dict[str, Propagation] = {
    "Background": "Background", "Foreground": "Foreground", "Orphan": "Orphan",
}  # fmt: skip


_DELETE_OPTIONS: dict[str, type] = {
    "dryRun": list,
    "gracePeriodSeconds": int,
    "orphanDependents": bool,
    "preconditions": dict,
    "propagationPolicy": str,
}
_PRECONDITIONS: dict[str, type] = {"uid": str, "resourceVersion": str}
_TYPES: dict[type, str] = {
    list: "a list of strings", int: "an integer", bool: "a boolean", dict: "an object", str: "a string",
}  # fmt: skip


def write_options(query: Mapping[str, str], user_agent: str, base: WriteOptions) -> WriteOptions:
    """Options of a write; ``base`` carries the user and the receiver of warnings."""
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATION:
        raise _unsupported("fieldValidation", validation, ["Ignore", "Strict", "Warn"])
    return WriteOptions(
        user=base.user,
        dry_run=is_dry_run(query),
        field_manager=query.get("fieldManager") or user_agent.partition("/")[0][:128] or "unknown",
        field_validation=_FIELD_VALIDATION[validation],
        force=query.get("force", "") in ("true", "1"),
        warn=base.warn,
    )


def is_dry_run(query: Mapping[str, str]) -> bool:
    """Whether ``dryRun=All`` is asked for; 422 for other values."""
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise _unsupported("dryRun", value, ["All"])
    return value == "All"


def delete_options(query: Mapping[str, str], body: Object | None, base: WriteOptions) -> DeleteOptions:
    """Options of a deletion; the body's win over the query's. 400 for members of a wrong type."""
    found = dict(body or {})
    _check_types(found, _DELETE_OPTIONS)
    _check_types(found.get("preconditions") or {}, _PRECONDITIONS, "preconditions.")
    if "propagationPolicy" not in found and query.get("propagationPolicy"):
        found["propagationPolicy"] = query["propagationPolicy"]
    if found.get("gracePeriodSeconds") is None and query.get("gracePeriodSeconds"):
        found["gracePeriodSeconds"] = _integer("gracePeriodSeconds", query["gracePeriodSeconds"])
    policy = found.get("propagationPolicy")
    if policy is None and found.get("orphanDependents") is not None:
        policy = "Orphan" if found["orphanDependents"] else "Background"
    if policy is not None and policy not in _PROPAGATION:
        raise _unsupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"])
    preconditions = found.get("preconditions") or {}
    return DeleteOptions(
        user=base.user,
        dry_run=is_dry_run(query) or "All" in (found.get("dryRun") or ()),
        propagation=_PROPAGATION[policy] if policy else None,
        grace_period=found.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        warn=base.warn,
    )


def _check_types(found: Object, types: Mapping[str, type], prefix: str = "") -> None:
    for name, wanted in types.items():
        value = found.get(name)
        if value is None or _is_of(value, wanted):
            continue
        written = orjson.dumps(value).decode()
        raise statuses.bad_request(f"{prefix}{name}: Invalid value: {written}: must be {_TYPES[wanted]}")


def _is_of(value: object, wanted: type) -> bool:
    if isinstance(value, list):
        return wanted is list and all(isinstance(one, str) for one in value)
    return type(value) is wanted  # not isinstance: a boolean is no integer here


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise statuses.bad_request(f'{name}: Invalid value: "{text}": must be an integer') from error


def integer(query: Mapping[str, str], name: str) -> int:
    """A number in the query; 0 when it is not there, 400 when it is none."""
    return _integer(name, query[name]) if query.get(name) else 0


def _unsupported(field: str, value: str, allowed: list[str]) -> StatusError:
    listed = ", ".join(f'"{one}"' for one in allowed)
    message = f'{field}: Unsupported value: "{value}": supported values: {listed}'
    cause = {"reason": "FieldValueNotSupported", "message": message.partition(": ")[2], "field": field}
    return StatusError(422, "Invalid", f' "" is invalid: {message}', details={"causes": [cause]})
