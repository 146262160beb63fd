"""Strategic merge patch: lists of built-in kinds merge by key, and directives say what to delete or keep.

Directives: ``$patch: replace|delete|merge``, ``$retainKeys``, ``$deleteFromPrimitiveList/FIELD`` and
``$setElementOrder/FIELD``.
"""

from __future__ import annotations

from typing import Any

from stromboli.localcluster.schemas.structure import ANYTHING, Schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


class BadPatch(ValueError):
    """A directive that cannot be followed; the message says which."""


def merged(schema: Schema, present: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``present`` with ``patch`` merged in. Raises :class:`BadPatch`."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadPatch(f"Unknown patch type found: {directive}")
    result = _retained(present, patch)
    for name, wanted in patch.items():
        if not name.startswith("$"):
            _merge_field(schema.child(name) or ANYTHING, result, name, wanted, patch)
    for name in patch:
        if name.startswith(_DELETE):
            _delete_items(result, name.removeprefix(_DELETE), patch[name])
        elif name.startswith(_ORDER):
            field = name.removeprefix(_ORDER)
            _order(schema.child(field) or ANYTHING, result, field, patch[name], patch.get(field))
    return result


def _retained(present: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(present)
    kept = patch[_RETAIN]
    if not isinstance(kept, list):
        raise BadPatch(f"{_RETAIN} must be a list of field names")
    return {name: value for name, value in present.items() if name in kept}


def _merge_field(schema: Schema, result: dict[str, Any], name: str, wanted: Any, patch: dict[str, Any]) -> None:
    present = result.get(name)
    match wanted:
        case None:
            result.pop(name, None)
        case dict():
            result[name] = merged(schema, present if isinstance(present, dict) else {}, wanted)
        case list() if schema.merge_strategy or f"{_ORDER}{name}" in patch:
            result[name] = _merge_list(schema, present if isinstance(present, list) else [], wanted)
        case _:
            result[name] = _without_directives(wanted)


def _without_directives(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [item for item in value if not (isinstance(item, dict) and _PATCH in item)]
    return value


def _merge_list(schema: Schema, present: list[Any], wanted: list[Any]) -> list[Any]:
    if not schema.merge_key:
        return present + [item for item in wanted if item not in present]
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in wanted):
        return [item for item in wanted if _PATCH not in item]
    result = list(present)
    for item in wanted:
        _merge_item(schema, result, item)
    return result


def _merge_item(schema: Schema, result: list[Any], item: Any) -> None:
    key = schema.merge_key
    if not isinstance(item, dict) or key not in item:
        raise BadPatch(f"map: {item} does not contain declared merge key: {key}")
    place = next((n for n, one in enumerate(result) if isinstance(one, dict) and one.get(key) == item[key]), None)
    if item.get(_PATCH) == "delete":
        result[:] = [one for one in result if not (isinstance(one, dict) and one.get(key) == item[key])]
    elif place is None:
        result.append(merged(schema.items or ANYTHING, {}, item))
    else:
        result[place] = merged(schema.items or ANYTHING, result[place], item)


def _delete_items(result: dict[str, Any], field: str, unwanted: Any) -> None:
    if isinstance(result.get(field), list):
        result[field] = [item for item in result[field] if item not in unwanted]


def _order(schema: Schema, result: dict[str, Any], field: str, order: Any, patched: Any) -> None:
    """Sort as the patch wants; items it does not name keep their place among those they stood behind."""
    present = result.get(field)
    if not isinstance(present, list) or not isinstance(order, list):
        return
    key = schema.merge_key

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    named = sorted(
        (item for item in present if identity(item) in wanted), key=lambda item: wanted.index(identity(item))
    )
    result[field] = [named.pop(0) if identity(item) in wanted else item for item in present]
