import pytest
import yaml

from stromboli.api import manifests


def test_times_stay_text() -> None:
    assert manifests.document("at: 2026-06-24T09:17:58Z\nday: 2026-06-24") == {
        "at": "2026-06-24T09:17:58Z",
        "day": "2026-06-24",
    }


def test_numbers_booleans_and_nulls_are_what_they_look_like() -> None:
    assert manifests.document("a: 1\nb: true\nc: null\nd: 1.5\ne: '1'") == {
        "a": 1, "b": True, "c": None, "d": 1.5, "e": "1",
    }  # fmt: skip


def test_documents_come_one_by_one_with_the_empty_ones() -> None:
    assert list(manifests.documents("a: 1\n---\n---\nb: 2\n")) == [{"a": 1}, None, {"b": 2}]


def test_the_place_of_an_error_is_named() -> None:
    with pytest.raises(yaml.YAMLError, match="line 2"):
        manifests.document("a: 1\n b: 2\n c: [")


def test_python_objects_are_not_built() -> None:
    with pytest.raises(yaml.YAMLError):
        manifests.document("!!python/object/apply:os.system [ls]")
