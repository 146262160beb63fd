"""``matchConditions`` of webhooks: the part of CEL that such conditions are written in.

Understood: ``request.FIELD``, ``object``, ``oldObject``, member access, indexing, ``has(...)``, string and number
literals, lists, comparison, ``in``, ``&&``, ``||``, ``!``, ``size()``, and the string methods ``startsWith``,
``endsWith``, ``contains`` and ``matches``. Anything else (macros such as ``exists``, ``authorizer``) is a
:class:`ConditionError`, to which the webhook's failurePolicy applies, just as to an expression that fails on a real
server. Evaluation walks a parsed tree of permitted nodes only; nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from stromboli.localcluster.admission.webhooks.reviews import question
from stromboli.localcluster.extending import AdmissionRequest

_TOKENS = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(&&)|(\|\|)|(!(?!=))|(\btrue\b)|(\bfalse\b)|(\bnull\b)"""
)
_MAX_LENGTH = 10_000


class ConditionError(Exception):
    """A condition that cannot be evaluated."""


def hold(conditions: Sequence[Mapping[str, Any]], request: AdmissionRequest) -> bool:
    """Whether all conditions are true. One that is false decides even when another one fails."""
    if not conditions:
        return True
    asked = question(request)["request"]
    variables = {"request": asked, "object": asked["object"], "oldObject": asked["oldObject"]}
    failure: ConditionError | None = None
    for condition in conditions:
        try:
            if evaluate(str(condition.get("expression", "")), variables) is not True:
                return False
        except ConditionError as error:
            failure = failure or ConditionError(f"match condition {condition.get('name')!r}: {error}")
    if failure is not None:
        raise failure
    return True


def evaluate(expression: str, variables: Mapping[str, Any]) -> object:
    """The value of an expression. Raises :class:`ConditionError`."""
    return _value(_parsed(expression), variables)


@lru_cache(maxsize=256)
def _parsed(expression: str) -> ast.expr:
    if len(expression) > _MAX_LENGTH:
        raise ConditionError("expression is too long")

    def python(match: re.Match[str]) -> str:
        text, both, either, negated, true, false, _ = match.groups()
        if text:
            return str(text)
        return " and " if both else " or " if either else " not " if negated else _constant(true, false)

    try:
        return ast.parse(_TOKENS.sub(python, expression).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"cannot be parsed: {expression}") from error


def _constant(true: str | None, false: str | None) -> str:
    return " True " if true else " False " if false else " None "


def _value(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.List(elts=elements):
            return [_value(element, variables) for element in elements]
        case ast.Attribute(value=owner, attr=name):
            return _member(_value(owner, variables), name)
        case ast.Subscript(value=owner, slice=index):
            return _member(_value(owner, variables), _value(index, variables))
        case ast.BoolOp(op=operator, values=values):
            return _logical(isinstance(operator, ast.And), values, variables)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(_value(operand, variables))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _compared(operator, _value(left, variables), _value(right, variables))
        case ast.Call(func=ast.Name(id="has"), args=[ast.Attribute(value=owner, attr=name)]):
            container = _value(owner, variables)
            return isinstance(container, dict) and container.get(name) is not None
        case ast.Call(func=ast.Name(id="size"), args=[argument]):
            return _sized(_value(argument, variables))
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=arguments, keywords=[]):
            return _method(_value(owner, variables), method, [_value(argument, variables) for argument in arguments])
        case _:
            raise ConditionError(f"not supported here: {ast.unparse(node)}")


def _logical(conjunction: bool, values: Sequence[ast.expr], variables: Mapping[str, Any]) -> bool:
    """CEL's logic is commutative: a side that decides wins over a side that fails."""
    failure: ConditionError | None = None
    for value in values:
        try:
            if _truth(_value(value, variables)) is not conjunction:
                return not conjunction
        except ConditionError as error:
            failure = error
    if failure is not None:
        raise failure
    return conjunction


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ConditionError("no such overload: expected a bool")


def _member(owner: object, name: Any) -> Any:
    if isinstance(owner, dict) and name in owner:
        return owner[name]
    if isinstance(owner, list) and isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(owner):
        return owner[name]
    raise ConditionError(f"no such key: {name}")


def _compared(operator: ast.cmpop, left: Any, right: Any) -> bool:
    match operator:
        case ast.Eq():
            return bool(left == right)
        case ast.NotEq():
            return bool(left != right)
        case ast.In() if isinstance(right, list | dict):
            return left in right
        case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() if _ordered(left, right):
            below = left < right if isinstance(operator, ast.Lt | ast.GtE) else left <= right
            return bool(below if isinstance(operator, ast.Lt | ast.LtE) else not below)
        case _:
            raise ConditionError("no such overload")


def _ordered(left: object, right: object) -> bool:
    return all(isinstance(one, int | float) for one in (left, right)) or all(
        isinstance(one, str) for one in (left, right)
    )


def _sized(value: object) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise ConditionError("no such overload: size")


def _method(owner: object, method: str, arguments: Sequence[object]) -> Any:
    if method == "size" and not arguments:
        return _sized(owner)
    if not isinstance(owner, str) or len(arguments) != 1 or not isinstance(arguments[0], str):
        raise ConditionError(f"no such overload: {method}")
    text = arguments[0]
    match method:
        case "startsWith":
            return owner.startswith(text)
        case "endsWith":
            return owner.endswith(text)
        case "contains":
            return text in owner
        case "matches":
            return _searched(text, owner)
        case _:
            raise ConditionError(f"undeclared reference to '{method}'")


def _searched(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise ConditionError(f"not a regular expression: {pattern}") from error
