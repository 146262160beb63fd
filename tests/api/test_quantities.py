"""Quantities: exact, rounded away from zero, canonical."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import quantities
from stromboli.api.quantities import BadQuantity, Style

EXACT: dict[str, tuple[str | int | float, Fraction]] = {
    "plain": ("12", Fraction(12)),
    "integer from JSON": (12, Fraction(12)),
    "float from JSON": (0.5, Fraction(1, 2)),
    "signs": ("-1.5", Fraction(-3, 2)),
    "explicit plus": ("+2", Fraction(2)),
    "leading point": (".25", Fraction(1, 4)),
    "trailing point": ("3.", Fraction(3)),
    "nano": ("1n", Fraction(1, 10**9)),
    "micro": ("1u", Fraction(1, 10**6)),
    "milli": ("100m", Fraction(1, 10)),
    "kilo": ("2k", Fraction(2000)),
    "exa": ("3E", Fraction(3 * 10**18)),
    "exponent, small e": ("2e3", Fraction(2000)),
    "exponent, capital E": ("2E3", Fraction(2000)),
    "negative exponent": ("15e-1", Fraction(3, 2)),
    "kibi": ("1.5Ki", Fraction(1536)),
    "gibi": ("2Gi", Fraction(2 * 1024**3)),
    "finer than a nano is rounded up": ("0.1n", Fraction(1, 10**9)),
    "finer than a nano is rounded away from zero": ("-0.1n", Fraction(-1, 10**9)),
    "larger than 63 bits is capped": ("8Ei", Fraction(2**63 - 1)),
    "a silly exponent is capped": ("1e999999", Fraction(2**63 - 1)),
}


@pytest.mark.parametrize("name", EXACT)
def test_parse_is_exact(name: str) -> None:
    text, want = EXACT[name]
    assert quantities.parse(text) == want


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1 Gi", "1gi", "1K", "abc", "1.2.3", "--1", "1e", "0x10", "1e2.5", "nan", "9" * 300]
)
def test_what_is_no_quantity_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(BadQuantity, match="is not a quantity"):
        quantities.parse(text)
    assert not quantities.is_quantity(text)


def test_infinite_floats_and_booleans_are_no_quantities() -> None:
    assert not quantities.is_quantity(float("inf"))
    assert not quantities.is_quantity(True)
    assert not quantities.is_quantity(None)


ROUNDED: dict[str, tuple[str, int, int]] = {
    "whole": ("4", 4000, 4),
    "milli": ("4m", 4, 1),
    "fraction up": ("1.0001", 1001, 2),
    "fraction away from zero": ("-1.0001", -1001, -2),
    "nothing": ("0", 0, 0),
    "nano": ("1n", 1, 1),
    "binary": ("1Ki", 1_024_000, 1024),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_whole_numbers_are_rounded_away_from_zero(name: str) -> None:
    text, want_milli, want_value = ROUNDED[name]
    assert (quantities.milli(text), quantities.value(text)) == (want_milli, want_value)


CANONICAL = {
    "1000m": "1",
    "1500m": "1500m",
    "0.5": "500m",
    "1000": "1k",
    "1024": "1024",
    "1024Ki": "1Mi",
    "1.5Gi": "1536Mi",
    "2048Mi": "2Gi",
    "0.5Ki": "512",
    "1.1Ki": "1126400m",
    "0": "0",
    "0Gi": "0",
    "-2000": "-2k",
    "1e3": "1e3",
    "12000e3": "12e6",
    "1e1": "10",
    "100u": "100u",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    assert quantities.canonical(text) == CANONICAL[text]


styles: st.SearchStrategy[Style] = st.sampled_from(["decimal", "binary", "exponent"])
amounts = st.integers(-(10**27), 10**27).map(lambda nanos: Fraction(nanos, 10**9))


@given(amounts, styles)
def test_formatted_amounts_read_back_as_themselves(amount: Fraction, style: Style) -> None:
    assert quantities.parse(quantities.format(amount, style)) == amount


@given(amounts, styles)
def test_canonical_text_is_a_fixed_point(amount: Fraction, style: Style) -> None:
    text = quantities.format(amount, style)
    assert quantities.format(quantities.parse(text), quantities.style_of(text)) == text


@given(amounts)
def test_rounding_goes_away_from_zero_by_less_than_one(amount: Fraction) -> None:
    text = quantities.format(amount)
    assert 0 <= abs(quantities.value(text)) - abs(amount) < 1
    assert 0 <= abs(quantities.milli(text)) - abs(amount * 1000) < 1


@given(st.text(max_size=12))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    assert quantities.is_quantity(text) in (True, False)


def test_lists_are_equal_by_amount_not_by_text() -> None:
    assert quantities.equal({"cpu": "1000m", "memory": "1Gi"}, {"memory": "1024Mi", "cpu": 1})
    assert not quantities.equal({"cpu": "1"}, {"cpu": "1", "memory": "0"})
    assert not quantities.equal({"cpu": "1"}, {"cpu": "2"})
