"""Protobuf bodies: decoded to the object that JSON would have been."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.localcluster.protobuf.decoding import BadMessage, decode
from stromboli.localcluster.protobuf.messages import messages, wire_types


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while True:
        out += bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
        number >>= 7
        if not number:
            return out


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def entry(key: str, value: bytes | str) -> bytes:
    return field(1, key) + field(2, value)


METADATA = field(1, field(1, "n") + field(2, "") + field(11, entry("a", "b")) + field(8, field(1, 1767225600)))

CASES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "empty texts are left out, times and maps are read": (
        envelope("v1", "ConfigMap", METADATA + field(2, entry("k", "v"))),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"k": "v"},
            "metadata": {"name": "n", "labels": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        },
    ),
    "bytes become base64": (
        envelope("v1", "Secret", field(2, entry("k", b"\x00\x01")) + field(5, 1)),
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": "AAE="}, "immutable": True},
    ),
    "quantities are texts, lists repeat": (
        envelope(
            "v1", "ResourceQuota", field(2, field(1, entry("cpu", field(1, "500m"))) + field(2, "A") + field(2, "B"))
        ),
        {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"cpu": "500m"}, "scopes": ["A", "B"]}},
    ),
    "groups are found by their first part": (
        envelope("rbac.authorization.k8s.io/v1", "Role", field(2, field(1, "get"))),
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [{"verbs": ["get"]}]},
    ),
    "options are of no group": (
        envelope("v1", "DeleteOptions", field(1, 5) + field(4, "Orphan")),
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5, "propagationPolicy": "Orphan"},
    ),
    "inline structs are flat and negative numbers negative": (
        envelope("v1", "Pod", field(2, field(1, field(1, "v") + field(2, field(2, b""))) + field(25, -3))),
        {"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "priority": -3}},
    ),
    "an integer or a text": (
        envelope(
            "policy/v1",
            "PodDisruptionBudget",
            field(2, field(1, field(1, 1) + field(3, "50%")) + field(3, field(1, 0) + field(2, 4))),
        ),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "spec": {"minAvailable": "50%", "maxUnavailable": 4},
        },
    ),
    "unknown numbers are skipped": (
        envelope("v1", "Namespace", field(999, "x") + METADATA[:0]),
        {"apiVersion": "v1", "kind": "Namespace"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name: str) -> None:
    body, want = CASES[name]
    assert decode(body) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"{}", "prefix"),
        (envelope("v1", "Nothing", b""), 'kind "Nothing" of version "v1" is not known'),
        (envelope("v1", "Pod", b"\x0a\xff"), "damaged|cut short"),
        (envelope("v1", "Pod", b"\x0b"), "wire type 3"),
        (envelope("v1", "ConfigMap", field(1, field(1, b"\xff"))), "damaged"),
    ],
)
def test_damaged_messages_are_told(body: bytes, want: str) -> None:
    with pytest.raises(BadMessage, match=want):
        decode(body)


@given(st.binary(max_size=60))
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    try:
        assert isinstance(decode(envelope("v1", "Pod", raw)), dict)
    except BadMessage:
        pass


def test_every_type_in_the_table_is_known() -> None:
    known = messages()
    scalars = {"string", "bytes", "bool", "int32", "int64", "uint32", "double"}
    unknown = {
        found.type
        for fields in known.values()
        for found in fields.values()
        if found.type not in scalars and found.type not in known
    }
    assert {
        name for name in unknown if name.split(".")[0] in ("core", "meta", "apps", "batch", "rbac", "policy")
    } == set()


def test_exact_types_of_fields() -> None:
    types = wire_types()
    assert types["ResourceRequirements", "limits"] == "resource.Quantity"
    assert types["ServicePort", "targetPort"] == "intstr.IntOrString"
    assert types["PodSpec", "activeDeadlineSeconds"] == "int64" and types["PodSpec", "priority"] == "int32"


def test_a_message_where_a_number_belongs_is_a_bad_message() -> None:
    with pytest.raises(BadMessage):
        decode(envelope("v1", "Pod", b"\x11\x00\x00-\x00\x00\x00\x00\x00"))
