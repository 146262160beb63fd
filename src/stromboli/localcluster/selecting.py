"""Label and field selectors of lists and watches, as they come in query strings. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stromboli.localcluster import statuses
from stromboli.localcluster.catalog import ServedKind, dig
from stromboli.localcluster.storage import Object

_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,=!()<>]+)
      | (?P<key>[^\s,=!()<>]+)
        (?: \s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
          | \s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,=!()<>]*)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)

Labels = dict[str, str]
Test = Callable[[Labels], bool]


def parse_labels(text: str) -> list[Test]:
    """Tests of a label selector, all of which must hold. 400 when it cannot be read."""
    tests: list[Test] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise statuses.bad_request(f'unable to parse requirement: found "{text[position:]}" in label selector "{text}"')
        tests.append(_label_test(match))
        position = match.end()
    return tests


def _label_test(match: re.Match[str]) -> Test:
    if match["absent"]:
        absent = match["absent_key"]
        return lambda labels: absent not in labels
    key = match["key"]
    if match["set"]:
        values = {value.strip() for value in match["values"].split(",")}
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if not match["operator"]:
        return lambda labels: key in labels
    return _comparison(key, match["operator"], match["value"])


def _comparison(key: str, operator: str, value: str) -> Test:
    match operator:
        case "=" | "==":
            return lambda labels: labels.get(key) == value
        case "!=":
            return lambda labels: labels.get(key) != value
    try:
        bound = int(value)
    except ValueError as error:
        raise statuses.bad_request(f'values: Invalid value: "{value}": for \'Gt\', \'Lt\' operators, the value must be an integer') from error
    sign = 1 if operator == ">" else -1
    return lambda labels: _is_beyond(labels.get(key), bound, sign)


def _is_beyond(text: str | None, bound: int, sign: int) -> bool:
    try:
        return text is not None and sign * int(text) > sign * bound
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    path: str
    value: str
    equal: bool


def parse_fields(served: ServedKind, text: str) -> list[FieldTerm]:
    """Terms of a field selector. 400 when it cannot be read, or names a field the kind cannot be selected by."""
    terms = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if match is None:
            raise statuses.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        path, operator, value = match.groups()
        allowed = {"metadata.name", *served.selectable}
        if served.kind.namespaced:
            allowed.add("metadata.namespace")
        if path not in allowed:
            raise statuses.bad_request(f"field label not supported: {path}")
        terms.append(FieldTerm(path, value, operator != "!="))
    return terms


def field_text(obj: Object, path: str) -> str:
    """A field as selectors compare it: text, empty when it is not there."""
    if path == "status.podIP":
        path = "status.podIP"
    elif path == "source":
        path = "source.component"
    value = dig(obj, path)
    if isinstance(value, bool) or value is None:
        # Booleans that are not set are false to Go.
        return "true" if value else ("false" if value is False or path in _BOOLEANS else "")
    return str(value)


_BOOLEANS = ("spec.unschedulable", "spec.hostNetwork")


@dataclass(frozen=True, slots=True)
class Selection:
    """Both selectors of a request."""

    labels: tuple[Test, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    def matches(self, obj: Object) -> bool:
        """Whether an object is asked for."""
        for term in self.fields:
            if (field_text(obj, term.path) == term.value) != term.equal:
                return False
        if not self.labels:
            return True
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in self.labels)

    @property
    def name(self) -> str | None:
        """The one name that is asked for, if it is only one (lists then need not look at the others)."""
        return next((term.value for term in self.fields if term.path == "metadata.name" and term.equal), None)


def selection(served: ServedKind, label_selector: str = "", field_selector: str = "") -> Selection | None:
    """What two query parameters select; None for everything."""
    labels = parse_labels(label_selector) if label_selector else []
    fields = parse_fields(served, field_selector) if field_selector else []
    return Selection(tuple(labels), tuple(fields)) if labels or fields else None


def matching(selected: Selection | None, objects: Iterable[Object]) -> list[Object]:
    """The objects that are asked for."""
    return [obj for obj in objects if selected is None or selected.matches(obj)]
