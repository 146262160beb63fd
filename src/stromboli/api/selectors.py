"""Selectors: labels, fields, node selector terms, and tolerations against taints. Kubernetes' rules.

A label selector exists in two forms, structured (``matchLabels`` and ``matchExpressions``) and text such as
``a=b,c!=d,e in (x,y),!f``; both become a :class:`LabelSelector`. Bad selectors raise :class:`BadSelector` when they are
made, never when they match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from stromboli.api import core

Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_TOKEN = re.compile(r"\s*(?P<token>==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_INT64 = re.compile(r"[+-]?[0-9]+")


class BadSelector(ValueError):
    """A selector that cannot be evaluated; the message says which part."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One test of a label. ``NotIn`` and ``DoesNotExist`` hold for an absent label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers of values that do not go with the operator."""
        if not self.key:
            raise BadSelector("a requirement has no key; name the label to test")
        wrong = _wrong_values(self.operator, self.values)
        if wrong:
            raise BadSelector(f"{self.key}: operator {self.operator!r} {wrong}")

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels pass the test."""
        present = labels.get(self.key)
        match self.operator:
            case "In":
                return present is not None and present in self.values
            case "NotIn":
                return present is None or present not in self.values
            case "Exists":
                return present is not None
            case "DoesNotExist":
                return present is None
            case "Gt" | "Lt":
                if present is None or not _INT64.fullmatch(present):
                    return False
                ours, theirs = int(present), int(self.values[0])
                return ours > theirs if self.operator == "Gt" else ours < theirs

    def __str__(self) -> str:
        """The requirement in text form."""
        match self.operator:
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case "NotIn" if len(self.values) == 1:
                return f"{self.key}!={self.values[0]}"
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read the text form. Raises :class:`BadSelector`."""
        return cls(tuple(_Parser(text).requirements()))

    @classmethod
    def of(cls, selector: core.LabelSelector) -> LabelSelector:
        """Compile the structured form. Raises :class:`BadSelector`, for Gt and Lt too, which labels do not have."""
        exact = [Requirement(key, "In", (value,)) for key, value in sorted(selector.match_labels.items())]
        return cls((*exact, *(_label_requirement(item) for item in selector.match_expressions)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """The text form."""
        return ",".join(map(str, self.requirements))


def matches_selector(selector: core.LabelSelector | None, labels: Mapping[str, str], *, absent: bool) -> bool:
    """Whether a structured selector matches. ``absent`` is the answer for no selector; a bad one matches nothing."""
    if selector is None:
        return absent
    compiled = _compiled(selector)
    return compiled is not None and compiled.matches(labels)


@lru_cache(maxsize=8192)
def _compiled(selector: core.LabelSelector) -> LabelSelector | None:
    try:
        return LabelSelector.of(selector)
    except BadSelector:
        return None


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One test of a field path such as ``spec.nodeName``."""

    path: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Field tests that must all hold; an absent field is the empty text."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, obj: Mapping[str, object]) -> bool:
        """Whether a wire object (plain dicts) passes all tests."""
        return all((field_text(obj, item.path) == item.value) is item.equal for item in self.requirements)

    def __str__(self) -> str:
        """The text form."""
        escape = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})
        return ",".join(
            f"{item.path}{'=' if item.equal else '!='}{item.value.translate(escape)}" for item in self.requirements
        )


def parse_field_selector(text: str) -> FieldSelector:
    """Read ``path=value``, ``path==value`` and ``path!=value``, joined by commas. Raises :class:`BadSelector`."""
    return FieldSelector(tuple(_field_requirement(part) for part in _unescaped_parts(text) if part))


def field_text(obj: Mapping[str, object], path: str) -> str:
    """The text of a field of a wire object; booleans as ``true`` and ``false``, an absent field as the empty text."""
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- Nodes -----------------------------------------------------------------------------------------------------------


def matches_node_selector(selector: core.NodeSelector, node: core.Node) -> bool:
    """Whether some term matches. A term that cannot be evaluated matches nothing."""
    return any(matches_node_term(term, node) for term in selector.node_selector_terms)


def matches_node_term(term: core.NodeSelectorTerm, node: core.Node) -> bool:
    """Whether all expressions hold; an empty term matches nothing. The only field is ``metadata.name``."""
    if not term.match_expressions and not term.match_fields:
        return False
    try:
        return all(node_requirement(item).matches(node.metadata.labels) for item in term.match_expressions) and all(
            _field_matches(item, node) for item in term.match_fields
        )
    except BadSelector:
        return False


def node_requirement(item: core.Requirement) -> Requirement:
    """Compile one expression of a node selector term. Raises :class:`BadSelector`."""
    return Requirement(item.key, _operator(item), item.values)


# --- Taints ----------------------------------------------------------------------------------------------------------


def tolerates(toleration: core.Toleration, taint: core.Taint) -> bool:
    """Whether one toleration accepts one taint. An empty key needs ``Exists`` and accepts every key."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def untolerated(
    taints: Iterable[core.Taint],
    tolerations: Iterable[core.Toleration],
    effects: Iterable[str] = ("NoSchedule", "NoExecute"),
) -> core.Taint | None:
    """The first taint of the given effects that no toleration accepts."""
    accepted, wanted = tuple(tolerations), frozenset(effects)
    return next(
        (taint for taint in taints if taint.effect in wanted and not any(tolerates(item, taint) for item in accepted)),
        None,
    )


# --- Inner -----------------------------------------------------------------------------------------------------------

_LABEL_OPERATORS: dict[str, Operator] = {
    "In": "In",
    "NotIn": "NotIn",
    "Exists": "Exists",
    "DoesNotExist": "DoesNotExist",
}
_NODE_OPERATORS: dict[str, Operator] = {**_LABEL_OPERATORS, "Gt": "Gt", "Lt": "Lt"}


def _wrong_values(operator: Operator, values: tuple[str, ...]) -> str:
    match operator:
        case "In" | "NotIn":
            return "" if values else "needs at least one value"
        case "Exists" | "DoesNotExist":
            return "takes no values" if values else ""
        case "Gt" | "Lt":
            return "" if len(values) == 1 and _INT64.fullmatch(values[0]) else "needs exactly one integer"


def _label_requirement(item: core.Requirement) -> Requirement:
    operator = _LABEL_OPERATORS.get(item.operator)
    if operator is None:
        known = ", ".join(_LABEL_OPERATORS)
        raise BadSelector(f"{item.key}: operator {item.operator!r} is not one of {known}")
    return Requirement(item.key, operator, item.values)


def _operator(item: core.Requirement) -> Operator:
    operator = _NODE_OPERATORS.get(item.operator)
    if operator is None:
        raise BadSelector(f"{item.key}: operator {item.operator!r} is not one of {', '.join(_NODE_OPERATORS)}")
    return operator


def _field_matches(item: core.Requirement, node: core.Node) -> bool:
    if item.key != "metadata.name" or item.operator not in ("In", "NotIn") or len(item.values) != 1:
        raise BadSelector(f"matchFields: {item.key} {item.operator} needs metadata.name, In or NotIn, and one value")
    return (node.name == item.values[0]) is (item.operator == "In")


def _compares(toleration: core.Toleration, taint: core.Taint) -> bool:
    if not _INT64.fullmatch(toleration.value) or not _INT64.fullmatch(taint.value):
        return False
    ours, theirs = int(toleration.value), int(taint.value)
    return theirs > ours if toleration.operator == "Gt" else theirs < ours


class _Parser:
    """Reads the text form of label selectors, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match["token"] for match in _TOKEN.finditer(text)]
        self._next = 0

    def requirements(self) -> Iterator[Requirement]:
        if not self._text.strip():
            return
        yield self._requirement()
        while self._peek():
            self._expect(",")
            yield self._requirement()

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._word(), "DoesNotExist")
        key = self._word()
        match self._peek():
            case "" | ",":
                return Requirement(key, "Exists")
            case "=" | "==":
                self._take()
                return Requirement(key, "In", (self._value(),))
            case "!=":
                self._take()
                return Requirement(key, "NotIn", (self._value(),))
            case ">" | "<" as sign:
                self._take()
                return Requirement(key, "Gt" if sign == ">" else "Lt", (self._word(),))
            case "in" | "notin" as word:
                self._take()
                return Requirement(key, "In" if word == "in" else "NotIn", self._set())
            case other:
                raise self._error(f"{other!r} after {key!r}")

    def _set(self) -> tuple[str, ...]:
        self._expect("(")
        values = [self._value()]
        while self._peek() == ",":
            self._take()
            values.append(self._value())
        self._expect(")")
        return tuple(sorted(set(values)))

    def _value(self) -> str:
        return "" if self._peek() in ("", ",", ")") else self._word()

    def _word(self) -> str:
        token = self._peek()
        if not token or token in "=!(),<>" or token in ("==", "!="):
            raise self._error(f"{token!r} where a name should be" if token else "it ends too early")
        return self._take()

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._error(f"{self._peek()!r} where {token!r} should be")
        self._take()

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _error(self, what: str) -> BadSelector:
        return BadSelector(f"label selector {self._text!r}: {what}; write for example a=b,c!=d,e in (x,y),!f")


def _unescaped_parts(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def _field_requirement(part: str) -> FieldRequirement:
    match = re.fullmatch(r"\s*([^=!\\]+?)\s*(!=|==|=)\s*((?:[^=\\]|\\.)*?)\s*", part)
    if match is None:
        raise BadSelector(f"field selector {part!r} is not of the form path=value or path!=value")
    path, sign, value = match.groups()
    return FieldRequirement(path, re.sub(r"\\(.)", r"\1", value), equal=sign != "!=")
