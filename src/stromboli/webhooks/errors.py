"""What admission finds wrong with an object, as data.

A :class:`FieldError` names the field, the kind of fault, the value and a detail. How errors read to a client depends on
the endpoint (spec 07 section 6): most print as ``<path>: Invalid value: <value>: <detail>``, the fragments of the Job
endpoint are sentences of their own. Both keep field and reason, which the client gets as ``status.details.causes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Final, TypeAlias

Value: TypeAlias = str | int | float | bool | None | list[object] | dict[str, object]

MAX_CAUSES: Final = 50
"""A tenant's object may have thousands of faults; the answer does not."""

MAX_FAULTS: Final = 1000
"""No more are looked for: their texts alone are longer than any answer."""

_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


class Reason(StrEnum):
    """Kinds of fault, spelled as the API server spells them in ``status.details.causes[].reason``."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TYPE_INVALID = "FieldValueTypeInvalid"


_LABELS: Final = {
    Reason.INVALID: "Invalid value",
    Reason.REQUIRED: "Required value",
    Reason.DUPLICATE: "Duplicate value",
    Reason.NOT_FOUND: "Not found",
    Reason.NOT_SUPPORTED: "Unsupported value",
    Reason.FORBIDDEN: "Forbidden",
    Reason.TYPE_INVALID: "Invalid type",
}
_WITHOUT_VALUE: Final = {Reason.REQUIRED, Reason.FORBIDDEN, Reason.TYPE_INVALID}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault.

    The wording and the order of messages are fixed by the endpoints, which often say the first fault of several, and
    not always where it is. Causes have no such history: they name every fault, and its exact place.
    """

    field: str
    reason: Reason
    value: Value = None
    detail: str = ""
    sentence: str | None = None
    """What the client reads instead of the formatted error."""
    place: str = ""
    """Path of the field in the object, where ``field`` is only what messages call it."""
    said: bool = True
    """Whether the message says it; what is not said is a cause only."""

    @property
    def path(self) -> str:
        """Where the fault is."""
        return self.place or self.field

    @property
    def text(self) -> str:
        """The error as the client reads it."""
        return self.formatted if self.sentence is None else self.sentence

    @property
    def formatted(self) -> str:
        """``<field>: <label>[: <value>][: <detail>]``."""
        parts = [self.field, self.description]
        return ": ".join(part for part in parts if part)

    @property
    def description(self) -> str:
        """The formatted error without its field, as causes carry it."""
        parts = [_LABELS[self.reason]]
        if self.reason not in _WITHOUT_VALUE:
            parts.append(show(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)


def invalid(field: str, value: Value, detail: str) -> FieldError:
    """The value is of the right type but not acceptable."""
    return FieldError(field, Reason.INVALID, value, detail)


def required(field: str, detail: str = "") -> FieldError:
    """The value is missing or empty."""
    return FieldError(field, Reason.REQUIRED, None, detail)


def duplicate(field: str, value: Value) -> FieldError:
    """The value must be unique and is not."""
    return FieldError(field, Reason.DUPLICATE, value)


def not_found(field: str, value: Value, detail: str = "") -> FieldError:
    """The value refers to something that does not exist."""
    return FieldError(field, Reason.NOT_FOUND, value, detail)


def unsupported(field: str, value: Value, supported: Iterable[str]) -> FieldError:
    """The value is not one of a closed list."""
    return FieldError(
        field, Reason.NOT_SUPPORTED, value, "supported values: " + ", ".join(quote(item) for item in supported)
    )


def forbidden(field: str, detail: str) -> FieldError:
    """The field may not be set here."""
    return FieldError(field, Reason.FORBIDDEN, None, detail)


def wrong_type(field: str, detail: str) -> FieldError:
    """The value has a type the field cannot hold."""
    return FieldError(field, Reason.TYPE_INVALID, None, detail)


def sentence(field: str, text: str, reason: Reason = Reason.INVALID) -> FieldError:
    """A fault whose wording is fixed by the endpoint."""
    return FieldError(field, reason, sentence=text)


def unsaid(faults: Iterable[FieldError]) -> Iterator[FieldError]:
    """The faults as causes that the message does not say."""
    return (replace(fault, said=False) for fault in faults)


def first_said(faults: Iterable[FieldError]) -> Iterator[FieldError]:
    """The faults, of which the message says only the first."""
    waiting = iter(faults)
    yield from islice(waiting, 1)
    yield from unsaid(waiting)


def some(faults: Iterable[FieldError]) -> list[FieldError]:
    """The first :data:`MAX_FAULTS`; the search ends there."""
    return list(islice(faults, MAX_FAULTS))


def concatenated(errors: Sequence[FieldError]) -> str:
    """All texts one after the other; separators are part of the sentences."""
    return "".join(error.text for error in errors)


def trimmed(errors: Sequence[FieldError]) -> str:
    """All texts one after the other, without blanks around the whole."""
    return concatenated(errors).strip()


def listed(errors: Sequence[FieldError]) -> str:
    """One error is its text; several are ``[<e1>, <e2>]`` with identical texts once (spec 07 section 6)."""
    texts = list(dict.fromkeys(error.text for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def causes(errors: Sequence[FieldError]) -> list[dict[str, str]]:
    """The errors, said or not, as ``status.details.causes``, at most :data:`MAX_CAUSES` of them."""
    return [
        {
            "reason": error.reason.value,
            "field": error.path,
            "message": error.description if error.sentence is None else error.sentence.strip(),
        }
        for error in errors[:MAX_CAUSES]
    ]


def show(value: Value) -> str:
    """A value as it stands in a message: strings quoted, numbers bare, nothing as ``null``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case list() if not value:
            return "[]"
        case list() | dict():
            return quote(str(value))
        case _:
            return str(value)


def quote(text: str) -> str:
    """Double-quoted with escapes for quotes, backslashes and what cannot be printed."""
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
