"""Label and field selectors of lists and watches, as they come in query strings. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import selectors
from stromboli.localcluster import statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.storage import Object
from stromboli.localcluster.validation import metadata

_FALSE_WHEN_ABSENT = ("spec.unschedulable", "spec.hostNetwork")
_RENAMED = {"source": "source.component"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Both selectors of a request."""

    labels: selectors.LabelSelector = selectors.LabelSelector()
    fields: selectors.FieldSelector = selectors.FieldSelector()

    def matches(self, obj: Object) -> bool:
        """Whether an object is asked for."""
        for term in self.fields.requirements:
            if (field_text(obj, term.path) == term.value) is not term.equal:
                return False
        return not self.labels.requirements or self.labels.matches(obj["metadata"].get("labels") or {})


def field_text(obj: Object, path: str) -> str:
    """A field as selectors compare it; flags that are not set are ``false``, as in Go."""
    text = selectors.field_text(obj, _RENAMED.get(path, path))
    return "false" if not text and path in _FALSE_WHEN_ABSENT else text


def selection(served: ServedKind, label_selector: str = "", field_selector: str = "") -> Selection | None:
    """What two query parameters select; None for everything.

    400 when one cannot be read, or names a field that the kind cannot be selected by.
    """
    if not label_selector and not field_selector:
        return None
    try:
        labels = selectors.LabelSelector.parse(label_selector)
    except selectors.BadSelector as error:
        raise statuses.bad_request(f"unable to parse requirement: {error}") from error
    for requirement in labels.requirements:
        _check_requirement(requirement)
    try:
        fields = selectors.parse_field_selector(field_selector)
    except selectors.BadSelector as error:
        raise statuses.bad_request(f"invalid selector: '{field_selector}'; {error}") from error
    for term in fields.requirements:
        if not _is_selectable(served, term.path):
            raise statuses.bad_request(_unknown_field(served, term.path))
    return Selection(labels, fields)


def _check_requirement(requirement: selectors.Requirement) -> None:
    """400 for a key or a value that no label can have."""
    for problem in metadata.qualified_problems(requirement.key):
        raise statuses.bad_request(f'unable to parse requirement: <nil>: Invalid value: "{requirement.key}": {problem}')
    for index, value in enumerate(requirement.values):
        for problem in metadata.value_problems(value):
            place = f'values[{index}][{requirement.key}]: Invalid value: "{value}"'
            raise statuses.bad_request(f"unable to parse requirement: {place}: {problem}")


def _unknown_field(served: ServedKind, path: str) -> str:
    if served.selectable or served.is_custom:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _is_selectable(served: ServedKind, path: str) -> bool:
    if path == "metadata.namespace":
        return served.kind.namespaced
    return path == "metadata.name" or path in served.selectable
