"""Amounts as people read them, and lists with nonsense in them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stromboli.dashboard import amounts

TEXTS = {
    "nothing": (0, "cpu", "0"),
    "a tenth of a cpu": (0.1, "cpu", "0.1"),
    "thirds are cut": (1 / 3, "cpu", "0.33"),
    "tens have one digit": (12.25, "cpu", "12.2"),
    "thousands are grouped": (12345, "cpu", "12,345"),
    "bytes": (512, "memory", "512"),
    "gibibytes": (1.5 * 1024**3, "memory", "1.5 Gi"),
    "huge pages are bytes": (2 * 1024**2, "hugepages-2Mi", "2 Mi"),
    "devices are not": (2048, "nvidia.com/gpu", "2,048"),
    "more than there are prefixes for": (5000 * 1024.0**6, "memory", "5,000 Ei"),
    "absent": (None, "cpu", ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    value, resource, want = TEXTS[name]
    assert amounts.text(value, resource) == want


PARTS = {
    "of nothing, nothing": (0, 0, 0.0),
    "of nothing, something": (1, 0, 1.0),
    "of no amount": (1, None, 1.0),
    "half": (2, 4, 0.5),
    "more than all": (9, 4, 1.0),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    used, of, want = PARTS[name]
    assert amounts.part(used, of) == want


def test_what_cannot_be_read_counts_as_nothing_and_hides_nothing() -> None:
    lists: list[dict[str, object]] = [{"cpu": "1", "memory": "lots"}, {"cpu": "500m", "x": None}, {"cpu": [1]}]
    assert amounts.total(lists) == {"cpu": Fraction(3, 2), "memory": 0, "x": 0}


def test_resources_come_in_the_order_in_which_people_look_for_them() -> None:
    assert amounts.ordered({"pods", "a.example/b", "memory", "nvidia.com/gpu"}) == [
        "cpu",
        "memory",
        "a.example/b",
        "nvidia.com/gpu",
    ]
