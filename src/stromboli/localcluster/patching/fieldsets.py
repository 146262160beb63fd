"""Sets of fields in the form of ``managedFields`` (FieldsV1), and the set algebra that field management needs. Pure.

A set is a tree of dicts. An entry's key is ``f:NAME``, ``k:{"key":"value"}`` or ``v:VALUE``; an empty dict, or one
with the key ``.``, says that the place itself is in the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import orjson

from stromboli.localcluster.schemas.structure import ANYTHING, Schema

FieldSet: TypeAlias = "dict[str, FieldSet]"

SELF = "."
_KEY_DEFAULTS = {"protocol": "TCP"}


class Difference(NamedTuple):
    """What a write did: places added or changed, and places that are gone."""

    changed: FieldSet
    removed: FieldSet


def fields_of(schema: Schema, value: Any) -> FieldSet:
    """Every place that ``value`` sets."""
    if isinstance(value, dict) and schema.map_type != "atomic":
        return {f"f:{name}": fields_of(schema.child(name) or ANYTHING, item) for name, item in value.items()}
    if isinstance(value, list):
        return {
            key: {SELF: {}, **fields_of(schema.items or ANYTHING, item)} if key.startswith("k:") else {}
            for key, item in keyed(schema, value).items()
        }
    return {}


def added(schema: Schema, value: Any) -> FieldSet:
    """Like :func:`fields_of`, for a place that an update adds: maps and keyed lists are in the set themselves."""
    fields = fields_of(schema, value)
    if fields and (schema.is_map or isinstance(value, list)):
        return {SELF: {}, **fields}
    if isinstance(value, dict) and fields:
        return {f"f:{name}": added(schema.child(name) or ANYTHING, item) for name, item in value.items()}
    return fields


def keyed(schema: Schema, items: list[Any]) -> dict[str, Any]:
    """Items of a set or of a keyed list by their key in a field set; nothing for lists that are replaced whole."""
    if schema.list_type == "set":
        return {f"v:{_text(item)}": item for item in items}
    if schema.list_type != "map":
        return {}
    return {key_of(schema, item): item for item in items if isinstance(item, dict)}


def key_of(schema: Schema, item: dict[str, Any]) -> str:
    """``k:{...}`` of one item; missing keys count with their default."""
    keys = {}
    for name in sorted(schema.list_keys):
        default = _key_default(schema, name)
        value = item.get(name, default)
        if value is not None:
            keys[name] = value
    return f"k:{_text(keys)}"


def _key_default(schema: Schema, name: str) -> Any:
    child = schema.items.child(name) if schema.items else None
    return child.default if child is not None and child.has_default else _KEY_DEFAULTS.get(name)


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def difference_of(schema: Schema, old: Any, new: Any) -> Difference:
    """What changed between two values of the same place."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    for key, child, before, after in _pairs(schema, old, new):
        if before is _ABSENT:
            changed[key] = _with_self(key, added(child, after))
        elif after is _ABSENT:
            removed[key] = _with_self(key, added(child, before))
        elif before != after:
            if _is_granular(child, before, after):
                below = difference_of(child, before, after)
                if below.changed:
                    changed[key] = below.changed
                if below.removed:
                    removed[key] = below.removed
            else:
                changed[key] = {}
    return Difference(changed, removed)


_ABSENT = object()


def _with_self(key: str, fields: FieldSet) -> FieldSet:
    return {SELF: {}, **fields} if key.startswith("k:") and fields else fields


def _is_granular(schema: Schema, before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return schema.map_type != "atomic" and bool(before) and bool(after)
    both_lists = isinstance(before, list) and isinstance(after, list)
    return both_lists and schema.list_type in ("map", "set")


def _pairs(schema: Schema, old: Any, new: Any) -> Iterator[tuple[str, Schema, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*new, *old]):
            yield f"f:{name}", schema.child(name) or ANYTHING, old.get(name, _ABSENT), new.get(name, _ABSENT)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = keyed(schema, old), keyed(schema, new)
        for key in dict.fromkeys([*after, *before]):
            yield key, schema.items or ANYTHING, before.get(key, _ABSENT), after.get(key, _ABSENT)


# Algebra


def _is_member(fields: FieldSet) -> bool:
    return not fields or SELF in fields


def _below(fields: FieldSet) -> FieldSet:
    return {key: child for key, child in fields.items() if key != SELF}


def _node(member: bool, below: FieldSet) -> FieldSet | None:
    if below:
        return {SELF: {}, **below} if member else below
    return {} if member else None


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Places in either set."""
    result = dict(one)
    for key, fields in other.items():
        if key not in result:
            result[key] = fields
        elif key != SELF:
            mine = result[key]
            member = _is_member(mine) or _is_member(fields)
            result[key] = _node(member, union(_below(mine), _below(fields))) or {}
    return result


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """Places in ``one`` that are not in ``other``."""
    return _combined(one, other, keep_common=False)


def common(one: FieldSet, other: FieldSet) -> FieldSet:
    """Places in both sets."""
    return _combined(one, other, keep_common=True)


def _combined(one: FieldSet, other: FieldSet, *, keep_common: bool) -> FieldSet:
    result: FieldSet = {}
    for key, mine in _below(one).items():
        theirs = other.get(key)
        if theirs is None:
            if not keep_common:
                result[key] = mine
            continue
        member = _is_member(mine) and (_is_member(theirs) == keep_common)
        node = _node(member, _combined(_below(mine), _below(theirs), keep_common=keep_common))
        if node is not None:
            result[key] = node
    return result


def released(previous: FieldSet, kept: FieldSet) -> FieldSet:
    """Places of ``previous`` that nothing in ``kept`` needs: a container stays as long as anything in it is kept."""
    result: FieldSet = {}
    for key, mine in _below(previous).items():
        if key not in kept:
            result[key] = mine
        elif below := released(mine, kept[key]):
            result[key] = below
    return result


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The places of a set as conflicts name them: ``.spec.containers[name="a"].image``."""
    for key, below in fields.items():
        if key == SELF:
            continue
        place = prefix + _step(key)
        if _is_member(below):
            yield place
        yield from paths(below, place)


def _step(key: str) -> str:
    kind, _, rest = key.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            parts = (f"{name}={_text(value)}" for name, value in sorted(orjson.loads(rest).items()))
            return f"[{','.join(parts)}]"
        case _:
            return f"[={rest}]"


# Using sets on values


def merged(schema: Schema, live: Any, wanted: Any) -> Any:
    """``live`` with everything that ``wanted`` says put in, by the rules of server-side apply."""
    if isinstance(live, dict) and isinstance(wanted, dict) and schema.map_type != "atomic":
        result = dict(live)
        for name, value in wanted.items():
            result[name] = merged(schema.child(name) or ANYTHING, live.get(name), value)
        return result
    if isinstance(live, list) and isinstance(wanted, list) and schema.list_type in ("map", "set"):
        items = keyed(schema, live)
        for key, item in keyed(schema, wanted).items():
            items[key] = merged(schema.items or ANYTHING, items.get(key), item)
        return list(items.values())
    return wanted


def pruned(schema: Schema, value: Any, unwanted: FieldSet) -> Any:
    """``value`` without the places of a set; a container that empties stays when it is no member itself."""
    if isinstance(value, dict):
        result = {}
        for name, item in value.items():
            fields = unwanted.get(f"f:{name}")
            kept = item if fields is None else _pruned_child(schema.child(name) or ANYTHING, item, fields)
            if kept is not _ABSENT:
                result[name] = kept
        return result
    if isinstance(value, list):
        items = keyed(schema, value)
        kept_items = (
            item if key not in unwanted else _pruned_child(schema.items or ANYTHING, item, unwanted[key])
            for key, item in items.items()
        )
        return [item for item in kept_items if item is not _ABSENT] if items else value
    return value


def _pruned_child(schema: Schema, item: Any, fields: FieldSet) -> Any:
    below = _below(fields)
    left = pruned(schema, item, below) if below else item
    if not _is_member(fields):
        return left if left or not item else _ABSENT
    return _ABSENT
