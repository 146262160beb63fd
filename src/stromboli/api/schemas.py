"""Structural schemas (OpenAPI v3, as the API server wants them) from models.

A model's annotations give types; :class:`~stromboli.api.modelling.Schema` marks give the rest. Descriptions come from
docstrings: a model's first line, and the string below a field. They are read from source, so that importing the models
costs nothing for them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from dataclasses import fields
from functools import cache
from typing import Annotated, TypeAlias, Union, get_args, get_origin, get_type_hints

from stromboli.api.meta import Resource
from stromboli.api.modelling import Model, Rule, Schema

JsonSchema: TypeAlias = dict[str, object]

_SCALARS = {str: "string", int: "integer", bool: "boolean", float: "number"}
_WORDS = {
    "default": "default",
    "format": "format",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "min_items": "minItems",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
}


def schema_of(resource: type[Resource], *, descriptions: bool) -> JsonSchema:
    """Schema of a whole custom resource. Metadata is only named: the API server has its own schema for it."""
    schema = _object(resource, descriptions=descriptions)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["metadata"] = {"type": "object"}
    return schema


def _object(model: type[Model], *, descriptions: bool) -> JsonSchema:
    hints = get_type_hints(model, include_extras=True)
    notes = _field_notes(model) if descriptions else {}
    properties: dict[str, JsonSchema] = {}
    required: list[str] = []
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[1].alias or item[0]):
        alias = field.alias or name
        annotation, marks = _unpack(hints[name])
        properties[alias] = _field(annotation, marks, notes.get(name), descriptions=descriptions)
        if any(mark.required for mark in marks):
            required.append(alias)
    schema: JsonSchema = {}
    if descriptions:
        schema["description"] = _summary(model)
    schema |= {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if model.map_type:
        schema["x-kubernetes-map-type"] = model.map_type
    return schema | _rules(model.rules)


def _field(annotation: object, marks: list[Schema], note: str | None, *, descriptions: bool) -> JsonSchema:
    schema = _type(annotation, marks, descriptions=descriptions)
    for mark in marks:
        schema |= _described(mark)
    if note:
        schema["description"] = note
    return schema


def _type(annotation: object, marks: list[Schema], *, descriptions: bool) -> JsonSchema:
    if any(mark.int_or_string for mark in marks):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return _object(annotation, descriptions=descriptions)
    if isinstance(annotation, type) and annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list:
        return {"type": "array", "items": _nested(arguments[0], descriptions=descriptions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _nested(arguments[1], descriptions=descriptions)}
    raise TypeError(f"no schema for {annotation!r}; use str, int, bool, list, dict or a Model")


def _nested(annotation: object, *, descriptions: bool) -> JsonSchema:
    inner, marks = _unpack(annotation)
    return _field(inner, marks, None, descriptions=descriptions)


def _unpack(annotation: object) -> tuple[object, list[Schema]]:
    """The bare type and the marks of an annotation such as ``Annotated[Annotated[int, a] | None, b]``."""
    marks: list[Schema] = []
    while True:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            marks += [mark for mark in arguments[1:] if isinstance(mark, Schema)]
            annotation = arguments[0]
        elif origin in (Union, types.UnionType) and type(None) in arguments:
            (annotation,) = (item for item in arguments if item is not type(None))
        else:
            return annotation, marks


def _described(mark: Schema) -> JsonSchema:
    schema: JsonSchema = {
        _WORDS[field.name]: value
        for field in fields(mark)
        if field.name in _WORDS and (value := getattr(mark, field.name)) is not None
    }
    if mark.enum:
        schema["enum"] = [str(value) for value in mark.enum]
    if mark.list_map_keys:
        schema["x-kubernetes-list-map-keys"] = list(mark.list_map_keys)
    return schema


def _rules(rules: tuple[Rule, ...]) -> JsonSchema:
    if not rules:
        return {}
    return {"x-kubernetes-validations": [{"rule": rule.rule, "message": rule.message} for rule in rules]}


def _summary(model: type[Model]) -> str:
    return inspect.cleandoc(model.__doc__ or "").split("\n\n", 1)[0].replace("``", "`")


@cache
def _field_notes(model: type[Model]) -> dict[str, str]:
    """The strings below the fields of a model and its bases."""
    notes: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, Model) and base is not Model:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
            notes |= _notes(tree.body[0])
    return notes


def _notes(definition: ast.stmt) -> dict[str, str]:
    assert isinstance(definition, ast.ClassDef)
    notes = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                notes[name] = inspect.cleandoc(text)
    return notes
