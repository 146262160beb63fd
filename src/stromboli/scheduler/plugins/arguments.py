"""Models of plugin arguments, against which a policy file is checked when it is loaded.

Keys with dots are aliases; unknown keys are let through, because one policy file may serve several versions. Plugins
themselves read leniently (``core.policy``): a value of the wrong type that reaches a running cycle leaves the default.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictFloat, StrictInt, StrictStr, create_model

from stromboli.api import durations
from stromboli.scheduler.core.policy import parse_bool


def _boolean(value: object) -> object:
    parsed = parse_bool(value) if isinstance(value, str) else value
    if not isinstance(parsed, bool):
        raise ValueError("expected true or false")
    return parsed


def _duration(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("expected a duration such as 90s, 5m or 1h30m")
    durations.parse(value)
    return value


Boolean = Annotated[bool, BeforeValidator(_boolean)]
Number = StrictFloat | StrictInt
Integer = StrictInt
Text = StrictStr
Duration = Annotated[str, BeforeValidator(_duration)]


class ArgumentsModel(BaseModel):
    """Base of all argument models."""

    model_config = ConfigDict(extra="allow")


def model(name: str, **fields: object) -> type[ArgumentsModel]:
    """A model with optional fields; a field's name holds ``__`` where the key has a dot."""
    definitions = {key.replace("__", "."): (kind, None) for key, kind in fields.items()}
    return create_model(name, __base__=ArgumentsModel, **definitions)  # type: ignore[call-overload, no-any-return]
