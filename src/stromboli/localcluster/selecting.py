"""Label and field selectors of lists and watches, as they come in query strings. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import selectors
from stromboli.localcluster import statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.storage import Object

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
        fields = selectors.parse_field_selector(field_selector)
    except selectors.BadSelector as error:
        raise statuses.bad_request(f"unable to parse requirement: {error}") from error
    for term in fields.requirements:
        if not _is_selectable(served, term.path):
            raise statuses.bad_request(f"field label not supported: {term.path}")
    return Selection(labels, fields)


def _is_selectable(served: ServedKind, path: str) -> bool:
    if path == "metadata.namespace":
        return served.kind.namespaced
    return path == "metadata.name" or path in served.selectable
