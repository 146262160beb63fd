"""CEL rules of CRD schemas (``x-kubernetes-validations``), evaluated by the ``cel`` library.

``self`` is the value the rule stands at, ``oldSelf`` the value before; a rule that names ``oldSelf`` is a transition
rule and holds only where both exist. Kubernetes' own CEL libraries (quantities, IPs, ...) are not there: a rule that
needs one fails to evaluate and refuses the object, saying so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.statuses import Cause

SKIPPED = Cause(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
"""What is added when schema errors keep rules from being checked."""

_NO_VALUE = object()


@lru_cache(maxsize=512)
def has_rules(schema: Schema) -> bool:
    """Whether there is any rule in the tree."""
    return _mentions_rules(schema.source)


def _mentions_rules(source: object) -> bool:
    # The OpenAPI form is searched, not the nodes: most schemas have no rules, and making all nodes takes a while.
    if isinstance(source, Mapping):
        return "x-kubernetes-validations" in source or any(map(_mentions_rules, source.values()))
    return isinstance(source, list) and any(map(_mentions_rules, source))


def check(schema: Schema, value: Any, old: Any = _NO_VALUE, path: str = "") -> Iterator[Cause]:
    """Causes of every rule that does not hold."""
    for rule in schema.rules:
        if "oldSelf" not in rule["rule"] or old is not _NO_VALUE:
            yield from _check(schema, rule, value, old, path)
    if isinstance(value, dict):
        for name, item in value.items():
            child = schema.child(name)
            if child is not None and child.source is not None and has_rules(child):
                before = old.get(name, _NO_VALUE) if isinstance(old, dict) else _NO_VALUE
                yield from check(child, item, before, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.items is not None and has_rules(schema.items):
        for index, item in enumerate(value):
            yield from check(schema.items, item, _NO_VALUE, f"{path}[{index}]")


def _check(schema: Schema, rule: Mapping[str, Any], value: Any, old: Any, path: str) -> Iterator[Cause]:
    field = path + rule.get("fieldPath", "")
    variables = {"self": value} | ({} if old is _NO_VALUE else {"oldSelf": old})
    try:
        holds = _program(rule["rule"]).execute(variables)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        yield _cause(schema, rule, field, f"rule {rule['rule']!r} cannot be evaluated: {error}")
        return
    if holds is not True:
        yield _cause(schema, rule, field, rule.get("message") or f"failed rule: {rule['rule']}")


def _cause(schema: Schema, rule: Mapping[str, Any], field: str, why: str) -> Cause:
    reason = rule.get("reason", "FieldValueInvalid")
    return Cause(reason, field, f'Invalid value: "{schema.type}": {why}')


@lru_cache(maxsize=512)
def _program(rule: str) -> Any:
    # A late import: the package brings a terminal toolkit along, and few definitions have rules.
    import cel

    return cel.compile(rule)


def unreadable(schema: Schema) -> Iterator[tuple[str, str]]:
    """Rules that do not compile, with the reason."""
    if not has_rules(schema):
        return
    for rule in schema.rules:
        try:
            _program(rule["rule"])
        except (ValueError, TypeError) as error:
            yield rule["rule"], str(error)
    for child in (*schema.properties.values(), schema.items, schema.additional):
        if child is not None and child.source is not None:
            yield from unreadable(child)
