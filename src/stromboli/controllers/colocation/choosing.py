"""Which configuration a pod has, and how it is told. Pure.

A pod carries its configuration in two annotations. One that once had a configuration and has none any more keeps an
empty one, which makes the node agent put things back; one that never had any is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stromboli.api import core, names
from stromboli.api.core import LabelSelector, Pod, timestamp
from stromboli.api.selectors import matches_selector
from stromboli.kube import json
from stromboli.kube.json import JsonObject

EMPTY = "{}"


def selects(configuration: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a configuration is for pods of these labels; without a selector, or with a bad one, it is for none."""
    given = (configuration.get("spec") or {}).get("selector")
    if given is None:
        return False
    try:
        return matches_selector(core.from_builtins(LabelSelector, given), labels, absent=False)
    except core.UndecodableObject:
        return False


def choose(configurations: Iterable[JsonObject], labels: Mapping[str, str]) -> JsonObject | None:
    """The configuration for pods of these labels: the newest, and of equally new ones the first by name."""
    fitting = [one for one in configurations if selects(one, labels)]
    return min(fitting, key=lambda one: (-_created(one), json.key_of(one)[1])) if fitting else None


def text_of(configuration: Mapping[str, Any]) -> str:
    """What the node agent reads: the configuration without its selector and without zeros."""
    spec = {key: value for key, value in (configuration.get("spec") or {}).items() if key != "selector"}
    return json.encode(_without_zeros(spec)).decode()


def changes(pod: Pod, configuration: JsonObject | None) -> dict[str, str | None]:
    """Annotations to set (None: to remove) so that the pod says what it should."""
    present = pod.metadata.annotations
    if configuration is None:
        if not {names.COLOCATION_CONFIG, names.COLOCATION_CONFIG_NAME} & present.keys():
            return {}
        wanted: dict[str, str | None] = {names.COLOCATION_CONFIG_NAME: None, names.COLOCATION_CONFIG: EMPTY}
    else:
        name = json.key_of(configuration)[1]
        wanted = {names.COLOCATION_CONFIG_NAME: name, names.COLOCATION_CONFIG: text_of(configuration)}
    return {key: value for key, value in wanted.items() if not _same(present.get(key), value)}


def _same(present: str | None, wanted: str | None) -> bool:
    """Texts are compared by what they say as JSON: the order of keys and blanks mean nothing."""
    if present is None or wanted is None or present == wanted:
        return present == wanted
    try:
        return json.decode_object(present.encode()) == json.decode_object(wanted.encode())
    except ValueError:
        return False


def _without_zeros(spec: Mapping[str, Any]) -> JsonObject:
    return {
        key: _without_zeros(value) if isinstance(value, Mapping) else value
        for key, value in spec.items()
        if value or isinstance(value, Mapping)
    }


def _created(configuration: Mapping[str, Any]) -> float:
    return timestamp(json.metadata(configuration).get("creationTimestamp"))
