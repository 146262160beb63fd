"""Request bodies: JSON, YAML or Protobuf into objects, patches and delete options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import yaml
from multidict import MultiMapping

from stromboli.api.kinds import Kind
from stromboli.api.manifests import ManifestLoader
from stromboli.localcluster import statuses
from stromboli.localcluster.http import queries
from stromboli.localcluster.patching.patches import ApplyPatch, JsonPatch, MergePatch, Patch, StrategicPatch
from stromboli.localcluster.protobuf import decoding as protobuf
from stromboli.localcluster.requests import DeleteOptions, FieldValidation, Propagation, WriteOptions
from stromboli.localcluster.statuses import Cause, StatusError
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
"""Bytes of a request's body."""

_OPERATIONS = 10_000
_LONGEST_MANAGER = 128


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
        if len(document) > _OPERATIONS:
            why = f"The allowed maximum operations in a JSON patch is {_OPERATIONS}, got {len(document)}"
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
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


def write_options(
    query: MultiMapping[str], user_agent: str, base: WriteOptions, kind: str, *, applies: bool = False
) -> WriteOptions:
    """Options of a write; ``base`` carries the user and the receiver of warnings.

    ``kind`` is what the API calls them: CreateOptions, UpdateOptions or PatchOptions. ``applies`` tells server-side
    apply from other patches. 422 for what cannot be.
    """
    validation = query.get("fieldValidation", "")
    causes = [*_dry_run_causes(query.getall("dryRun", [])), *_manager_causes(query.get("fieldManager", ""))]
    if validation not in _FIELD_VALIDATION:
        causes.append(queries.unsupported("fieldValidation", f'"{validation}"', "", "Ignore", "Strict", "Warn"))
    if "force" in query and kind == "PatchOptions" and not applies:
        causes.append(queries.forbidden("force", "may not be specified for non-apply patch"))
    if causes:
        raise queries.invalid_options(kind, *causes)
    return WriteOptions(
        user=base.user,
        dry_run="dryRun" in query,
        field_manager=query.get("fieldManager") or user_agent.partition("/")[0][:128] or "unknown",
        field_validation=_FIELD_VALIDATION[validation],
        force=queries.flag(query, "force"),
        warn=base.warn,
    )


def is_dry_run(query: MultiMapping[str], kind: str) -> bool:
    """Whether ``dryRun=All`` is asked for; 422 about options of ``kind`` for other values."""
    causes = _dry_run_causes(query.getall("dryRun", []))
    if causes:
        raise queries.invalid_options(kind, *causes)
    return "dryRun" in query


def _dry_run_causes(values: Sequence[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    return [queries.unsupported("dryRun", orjson.dumps(list(values)).decode(), "All")]


def _manager_causes(manager: str) -> list[Cause]:
    if len(manager.encode()) <= _LONGEST_MANAGER:
        return []
    return [Cause("FieldValueTooLong", "fieldManager", f"Too long: may not be more than {_LONGEST_MANAGER} bytes")]


def delete_options(query: MultiMapping[str], body: Object | None, base: WriteOptions) -> DeleteOptions:
    """Options of a deletion; the body's win over the query's. 400 for members of a wrong type."""
    found = dict(body or {})
    _check_types(found, _DELETE_OPTIONS)
    _check_types(found.get("preconditions") or {}, _PRECONDITIONS, "preconditions.")
    if "propagationPolicy" not in found and query.get("propagationPolicy"):
        found["propagationPolicy"] = query["propagationPolicy"]
    if found.get("gracePeriodSeconds") is None and query.get("gracePeriodSeconds"):
        found["gracePeriodSeconds"] = queries.integer(query, "gracePeriodSeconds")
    policy = found.get("propagationPolicy")
    if found.get("orphanDependents") is None and "orphanDependents" in query:
        found["orphanDependents"] = queries.flag(query, "orphanDependents")
    if policy is not None and found.get("orphanDependents") is not None:
        why = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        raise queries.invalid_options("DeleteOptions", Cause("FieldValueInvalid", "propagationPolicy", why))
    if policy is None and found.get("orphanDependents") is not None:
        policy = "Orphan" if found["orphanDependents"] else "Background"
    if policy is not None and policy not in _PROPAGATION:
        cause = queries.unsupported("propagationPolicy", f'"{policy}"', "Foreground", "Background", "Orphan", "nil")
        raise queries.invalid_options("DeleteOptions", cause)
    preconditions = found.get("preconditions") or {}
    return DeleteOptions(
        user=base.user,
        dry_run=is_dry_run(query, "DeleteOptions") or "All" in (found.get("dryRun") or ()),
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
