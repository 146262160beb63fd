"""Applying a step's patch to its template (spec 03 section 5.6). Pure.

What a patch says replaces what the template says, except where lists have names in them: tasks, volumes, containers,
environment variables and the like are merged entry by entry. Fields that the API server fills in where a patch is
silent (``queue: default``, ``maxRetry: 3``) are not taken for wishes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stromboli.api import names
from stromboli.kube.json import JsonObject

_FILLED_IN: Final[Mapping[str, object]] = {"queue": names.DEFAULT_QUEUE, "maxRetry": 3}


@dataclass(frozen=True, slots=True)
class _Shape:
    """How an object is merged: ``lists`` by the member that names an entry, ``maps`` key by key, ``objects`` by shape
    of their own. Everything else is replaced."""

    lists: Mapping[str, tuple[str, _Shape]] = field(default_factory=dict)
    maps: frozenset[str] = frozenset()
    objects: Mapping[str, _Shape] = field(default_factory=dict)


_WHOLE: Final = _Shape()
_CONTAINER: Final = _Shape(
    lists={"env": ("name", _WHOLE), "volumeMounts": ("mountPath", _WHOLE), "ports": ("containerPort", _WHOLE)},
    objects={"resources": _Shape(maps=frozenset({"requests", "limits"}))},
)
_POD: Final = _Shape(
    lists={
        "containers": ("name", _CONTAINER),
        "initContainers": ("name", _CONTAINER),
        "volumes": ("name", _WHOLE),
        "tolerations": ("key", _WHOLE),
        "hostAliases": ("ip", _WHOLE),
        "imagePullSecrets": ("name", _WHOLE),
    }
)
_META: Final = _Shape(maps=frozenset({"labels", "annotations"}))
_TASK: Final = _Shape(objects={"template": _Shape(objects={"metadata": _META, "spec": _POD})})
_JOB: Final = _Shape(lists={"tasks": ("name", _TASK), "volumes": ("mountPath", _WHOLE)}, maps=frozenset({"plugins"}))


def patched(template: Mapping[str, Any], patch: Mapping[str, Any] | None) -> JsonObject:
    """The job spec that a template's spec becomes by ``patch`` (``patch.jobSpec`` as stored). Neither is changed."""
    wishes = {
        key: value
        for key, value in (patch or {}).items()
        if value is not None and not (key in _FILLED_IN and value == _FILLED_IN[key])
    }
    return _merged(template, wishes, _JOB)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any], shape: _Shape) -> JsonObject:
    result = copy.deepcopy(dict(old))
    for key, value in new.items():
        before = result.get(key)
        if key in shape.lists and isinstance(value, list) and isinstance(before, list):
            name, inner = shape.lists[key]
            result[key] = _merged_list(before, value, name, inner)
        elif key in shape.maps and isinstance(value, dict) and isinstance(before, dict):
            result[key] = {**before, **copy.deepcopy(value)}
        elif key in shape.objects and isinstance(value, dict) and isinstance(before, dict):
            result[key] = _merged(before, value, shape.objects[key])
        elif value is not None:
            result[key] = copy.deepcopy(value)
    return result


def _merged_list(old: list[Any], new: list[Any], name: str, shape: _Shape) -> list[Any]:
    """Entries of the same name are merged in their place; others are added at the end."""
    result = list(old)
    places = {_name(entry, name): place for place, entry in enumerate(result)}
    for entry in new:
        place = places.get(_name(entry, name))
        if place is None:
            places[_name(entry, name)] = len(result)
            result.append(copy.deepcopy(entry))
        elif shape is _WHOLE:
            result[place] = copy.deepcopy(entry)
        else:
            result[place] = _merged(result[place], entry, shape)
    return result


def _name(entry: object, name: str) -> object:
    found = entry.get(name) if isinstance(entry, dict) else None
    return found if found is None or isinstance(found, str | int) else str(found)
