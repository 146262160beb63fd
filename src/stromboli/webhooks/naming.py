"""Kubernetes' rules for names and labels, with the texts the API server uses for them (spec 07 sections 6 and 9).

Each function returns what is wrong, an empty list for a good name.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def dns_label_faults(name: str) -> list[str]:
    """What keeps ``name`` from being a lowercase RFC 1123 label of at most 63 bytes."""
    faults = _too_long(name, 63)
    if not _LABEL.fullmatch(name):
        faults.append(_LABEL_TEXT)
    return faults


def dns_subdomain_faults(name: str) -> list[str]:
    """What keeps ``name`` from being a lowercase RFC 1123 subdomain of at most 253 bytes."""
    faults = _too_long(name, 253)
    # Part by part: one expression for the whole would backtrack on hostile input.
    if not all(_LABEL.fullmatch(part) for part in name.split(".")):
        faults.append(_SUBDOMAIN_TEXT)
    return faults


def label_value_faults(value: str) -> list[str]:
    """What keeps ``value`` from being a label value: empty, or like a name of at most 63 bytes."""
    faults = _too_long(value, 63)
    if value and not _QUALIFIED.fullmatch(value):
        faults.append(_LABEL_VALUE_TEXT)
    return faults


def qualified_name_faults(name: str) -> list[str]:
    """What keeps ``name`` from being ``[<DNS subdomain>/]<name part>`` (spec 07 section 6)."""
    prefix, slash, part = name.rpartition("/")
    if "/" in prefix:
        return [
            "a qualified name "
            + _QUALIFIED_TEXT
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    faults = _prefix_faults(prefix) if slash else []
    if not part:
        faults.append("name part must be non-empty")
    elif len(part.encode()) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(part):
        faults.append("name part " + _QUALIFIED_TEXT)
    return faults


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {fault}" for fault in dns_subdomain_faults(prefix)]


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []
