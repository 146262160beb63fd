"""What all models share: reading from and writing to the wire, and the vocabulary that schemas are described in.

A model reads any object that the API server stores: keys are camelCase, unknown keys are kept, ``null`` is absence
(spec 01 section 1.4). Types are strict, as in Kubernetes: ``"3"`` is no integer. Bounds, patterns and enumerations are
*described* by :class:`Schema` marks but not checked here, because the API server checks them by the CRD that is
generated from the marks, and a reader must cope with whatever is stored.

Writing leaves out what was never set (spec 01 section 1.3). A list, map or nested model that was not set but has
been filled since is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from stromboli.api.unreadable import Unreadable

# --- Schema marks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the API server, and the message when it does not hold."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What the CRD says about a field beyond its type. Names follow OpenAPI.

    ``default`` is the API server's; the model's own default is what code sees when the API server gave none.
    """

    required: bool = False
    default: str | int | bool | None = None
    format: str | None = None
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    min_items: int | None = None
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None
    int_or_string: bool = False
    rules: tuple[Rule, ...] = ()


REQUIRED = Schema(required=True)
ATOMIC = Schema(list_type="atomic")
SET = Schema(list_type="set")
ATOMIC_MAP = Schema(map_type="atomic")


def keyed(*keys: str) -> Schema:
    """A list that is a map by these members of its items."""
    return Schema(list_type="map", list_map_keys=keys)


SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

Int32 = Annotated[int, Schema(format="int32")]
Int64 = Annotated[int, Schema(format="int64")]
Count = Annotated[int, Schema(format="int32", minimum=0)]
"""A 32-bit integer of at least 0."""
Time = Annotated[str, Schema(format="date-time")]
"""An RFC 3339 time, kept as text."""
IntOrString = Annotated[int | str, Schema(int_or_string=True)]
Quantity = Annotated[int | float | str, Schema(int_or_string=True, pattern=QUANTITY)]
ResourceList = dict[str, Quantity]
"""Resource name to quantity."""

# --- Models ----------------------------------------------------------------------------------------------------------


class FieldError(NamedTuple):
    """One thing wrong with an object: where, such as ``spec.tasks[0].replicas``, and what."""

    path: str
    message: str

    def __str__(self) -> str:
        """``spec.tasks[0].replicas: must be an integer``."""
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidObject(Unreadable):
    """An object whose fields have wrong types. ``errors`` has one entry a field."""

    def __init__(self, kind: str, errors: list[FieldError]) -> None:
        """Say what kind of object it was and what is wrong."""
        super().__init__(f"{kind}: " + "; ".join(map(str, errors)))
        self.kind = kind
        self.errors = errors


class Model(BaseModel):
    """Base of all models; see the module's text for the contract."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", strict=True)

    map_type: ClassVar[str | None] = None
    """``x-kubernetes-map-type`` of the object in schemas."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules on the object in schemas."""

    @classmethod
    def from_wire(cls, data: Mapping[str, object]) -> Self:
        """Read an object as JSON or YAML gave it. Raises :class:`InvalidObject`."""
        try:
            return cls.model_validate(without_nulls(data))
        except ValidationError as error:
            raise InvalidObject(cls.__name__, field_errors(error)) from error

    def to_wire(self) -> dict[str, object]:
        """The object as plain data, without what was never set."""
        wire: dict[str, object] = {}
        aliases, given = _aliases(type(self)), self.model_fields_set
        for name, value in self.__dict__.items():
            set_here = name in given
            if value is None or not (set_here or value):
                continue
            if value.__class__ in _SCALARS:
                if set_here:
                    wire[aliases[name]] = value
            elif (dumped := _dump(value)) or set_here:
                wire[aliases[name]] = dumped
        if self.model_extra:
            wire.update((key, value) for key, value in self.model_extra.items() if value is not None)
        return wire


def field_errors(error: ValidationError) -> list[FieldError]:
    """What pydantic found, in the words and paths of Kubernetes; one entry a field."""
    found: dict[str, FieldError] = {}
    for item in error.errors(include_url=False, include_context=False):
        path = _path(item["loc"])
        what = _WORDS.get(item["type"])
        if path in found:  # a second branch of a union
            what = "must be a number or a string"
            found[path] = FieldError(path, f"{what}, not {_quote(item['input'])}")
        else:
            message = f"{what}, not {_quote(item['input'])}" if what else item["msg"]
            found[path] = FieldError(path, message)
    return list(found.values())


def without_nulls(value: object) -> object:
    """The data with every ``null`` member removed, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


_WORDS = {
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "missing": "is required",
}
_SCALARS = frozenset({str, int, float, bool})
_UNION_BRANCHES = frozenset({"int", "float", "str"})


def _path(location: tuple[int | str, ...]) -> str:
    # pydantic ends the location of a union's error with the branch it tried.
    steps = location[:-1] if location and location[-1] in _UNION_BRANCHES else location
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 64 else text[:61] + "..."


def _dump(value: object) -> object:
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, list):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items() if item is not None}
    return value.to_wire() if isinstance(value, Model) else value


@cache
def _aliases(model: type[Model]) -> dict[str, str]:
    return {name: field.alias or name for name, field in model.model_fields.items()}
