"""Checks of ``metadata`` that every kind shares, in the words of apimachinery."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.schemas.validating import bad, missing
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"
_RFC_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"

_BAD_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_BAD_RFC_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    f"validation is '{_RFC_1035}')"
)
_BAD_QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{_VALUE}')"
)

_FREE_NAMES = {kinds.ROLES, kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS}
_LABEL_NAMES = {kinds.NAMESPACES}
_ANNOTATIONS_LIMIT = 262144


def check(kind: Kind, new: Object, old: Object | None) -> list[Cause]:
    """Everything that is wrong with the metadata."""
    metadata = new["metadata"]
    causes: list[Cause] = []
    if old is None:
        causes += _name(kind, metadata)
    causes += label_causes("metadata.labels", metadata.get("labels") or {})
    causes += _annotations(metadata.get("annotations") or {})
    causes += _owners(metadata.get("ownerReferences") or [])
    causes += _finalizers(metadata.get("finalizers") or [])
    if old is not None and old["metadata"].get("deletionTimestamp"):
        causes += _new_finalizers(metadata.get("finalizers") or [], old["metadata"].get("finalizers") or [])
    return causes


def _name(kind: Kind, metadata: dict[str, Any]) -> Iterator[Cause]:
    name = metadata.get("name")
    if not name:
        yield missing("metadata.name", "name or generateName is required")
        return
    for problem in name_problems(kind, name):
        yield bad("metadata.name", name, problem)


def name_problems(kind: Kind, name: str) -> list[str]:
    """Why a name does not do for a kind."""
    if kind in _FREE_NAMES:
        return _path_problems(name)
    if kind == kinds.SERVICES:
        return _format_problems(name, _RFC_1035, _BAD_RFC_1035, 63)
    if kind in _LABEL_NAMES:
        return label_problems(name)
    return subdomain_problems(name)


def _path_problems(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def _format_problems(name: str, pattern: str, problem: str, longest: int) -> list[str]:
    problems = [] if re.fullmatch(pattern, name) else [problem]
    if len(name) > longest:
        problems.insert(0, f"must be no more than {longest} characters")
    return problems


def label_problems(name: str) -> list[str]:
    """Why a text is no RFC 1123 label."""
    return _format_problems(name, _LABEL, _BAD_LABEL, 63)


def subdomain_problems(name: str) -> list[str]:
    """Why a text is no RFC 1123 subdomain."""
    return _format_problems(name, _SUBDOMAIN, _BAD_SUBDOMAIN, 253)


def label_causes(path: str, labels: dict[str, str]) -> Iterator[Cause]:
    for key, value in sorted(labels.items()):
        for problem in qualified_problems(key):
            yield bad(path, key, problem)
        for problem in value_problems(value or ""):
            yield bad(path, value, problem)


def value_problems(value: str) -> list[str]:
    """Why a text is no value of a label."""
    return _format_problems(value, _VALUE, _BAD_VALUE, 63)


def qualified_problems(key: str) -> list[str]:
    """Why a text is no qualified name (``example.com/name``)."""
    prefix, slash, name = key.rpartition("/")
    problems = []
    if slash and not re.fullmatch(_SUBDOMAIN, prefix):
        problems.append(f"prefix part {_BAD_SUBDOMAIN}" if prefix else "prefix part must be non-empty")
    if not name:
        problems.append("name part must be non-empty")
    if len(name) > 63:
        problems.append("name part must be no more than 63 characters")
    if not re.fullmatch(_QUALIFIED, name):
        problems.append(_BAD_QUALIFIED)
    return problems


def _annotations(annotations: dict[str, str]) -> Iterator[Cause]:
    for key in sorted(annotations):
        for problem in qualified_problems(key.lower()):
            yield bad("metadata.annotations", key, problem)
    if sum(len(key) + len(value or "") for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        why = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield Cause("FieldValueTooLong", "metadata.annotations", why)


def _owners(owners: list[dict[str, Any]]) -> Iterator[Cause]:
    for owner in owners:
        for field, why in (("apiVersion", "version must not be empty"), ("kind", ""), ("name", ""), ("uid", "")):
            if not owner.get(field):
                path = f"metadata.ownerReferences.{field}"
                yield bad(path, owner.get(field, ""), why or f"{field} must not be empty")
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        why = 'Only one reference can have Controller set to true. Found "true" in references for {} and {}'
        yield bad("metadata.ownerReferences", "", why.format(*(_shown(owner) for owner in controllers[:2])))


def _shown(owner: dict[str, Any]) -> str:
    return f"{owner.get('kind')}/{owner.get('name')}"


def _finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for finalizer in finalizers:
        for problem in qualified_problems(finalizer):
            yield bad("metadata.finalizers", finalizer, problem)


def _new_finalizers(finalizers: list[str], old: list[str]) -> Iterator[Cause]:
    added = [one for one in finalizers if one not in old]
    if added:
        listed = ", ".join(f'"{one}"' for one in added)
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        yield Cause("FieldValueForbidden", "metadata.finalizers", why)
