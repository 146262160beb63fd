from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks import errors
from stromboli.webhooks.errors import FieldError


@dataclass
class Case:
    error: FieldError
    want: str


TEXTS = {
    "invalid text": Case(errors.invalid("spec.a", "x", "must be y"), 'spec.a: Invalid value: "x": must be y'),
    "invalid number": Case(errors.invalid("spec.a", 0, "too small"), "spec.a: Invalid value: 0: too small"),
    "invalid nothing": Case(errors.invalid("spec.a", None, "empty"), "spec.a: Invalid value: null: empty"),
    "invalid empty list": Case(errors.invalid("spec.a", [], "empty"), "spec.a: Invalid value: []: empty"),
    "invalid switch": Case(errors.invalid("spec.a", True, "no"), "spec.a: Invalid value: true: no"),
    "required": Case(errors.required("spec.a"), "spec.a: Required value"),
    "required with detail": Case(errors.required("spec.a", "give it"), "spec.a: Required value: give it"),
    "duplicate": Case(errors.duplicate("spec.a", "c"), 'spec.a: Duplicate value: "c"'),
    "not found": Case(errors.not_found("spec.a", "v"), 'spec.a: Not found: "v"'),
    "unsupported": Case(
        errors.unsupported("spec.a", "x", ["a", "b"]), 'spec.a: Unsupported value: "x": supported values: "a", "b"'
    ),
    "forbidden": Case(errors.forbidden("spec.a", "not here"), "spec.a: Forbidden: not here"),
    "a sentence stands alone": Case(errors.sentence("spec.a", " oh no;"), " oh no;"),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_the_text_of_an_error(case: Case) -> None:
    assert case.error.text == case.want


def test_values_are_quoted_with_escapes() -> None:
    assert errors.quote('a"b\\c\n\x01é\u2028') == '"a\\"b\\\\c\\n\\x01é\\u2028"'


def test_one_error_is_listed_bare_and_several_in_brackets_once_each() -> None:
    first, second = errors.required("a"), errors.required("b")
    assert errors.listed([first]) == "a: Required value"
    assert errors.listed([first, second, first]) == "[a: Required value, b: Required value]"


def test_causes_carry_field_reason_and_message_without_the_field() -> None:
    found = errors.causes([errors.required("spec.a", "give it"), errors.sentence("spec.b", " oh no;")])
    assert found == [
        {"reason": "FieldValueRequired", "field": "spec.a", "message": "Required value: give it"},
        {"reason": "FieldValueInvalid", "field": "spec.b", "message": "oh no;"},
    ]


def test_causes_are_bounded() -> None:
    assert len(errors.causes([errors.required("a")] * 1000)) == errors.MAX_CAUSES


@given(st.text())
def test_a_quoted_text_is_one_printable_line(text: str) -> None:
    assert errors.quote(text).isprintable()
