"""Decoding plain objects."""

from __future__ import annotations

import pytest

from stromboli.kube import json


def test_who_manages_which_field_is_left_out() -> None:
    raw = b'{"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}, "spec": {"managedFields": 1}}'
    assert json.decode_without_managers(raw) == {"metadata": {"name": "a"}, "spec": {"managedFields": 1}}


@pytest.mark.parametrize("raw", [b'{"metadata": null}', b'{"metadata": []}', b"{}"])
def test_an_object_without_metadata_is_taken_as_it_is(raw: bytes) -> None:
    assert json.decode_without_managers(raw) == json.decode_object(raw)


@pytest.mark.parametrize("raw", [b"[]", b"{", b""])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"object|JSON|unexpected|EOF|column"):
        json.decode_without_managers(raw)
