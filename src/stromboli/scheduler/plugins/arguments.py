"""Models of plugin arguments, against which a policy file is checked when it is loaded.

Keys with dots are aliases; unknown keys are let through, because one policy file may serve several versions. Plugins
themselves read leniently (``core.policy``): a value of the wrong type that reaches a running cycle leaves the default.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictFloat, StrictInt, StrictStr, create_model

from stromboli.api import durations
from stromboli.scheduler.core.policy import Policy, parse_bool

if TYPE_CHECKING:
    from stromboli.scheduler.core.plugin import Plugin


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


def model_of(plugin: type[Plugin] | None) -> type[BaseModel] | None:
    """The model that a plugin declares as ``arguments_model``."""
    found = getattr(plugin, "arguments_model", None)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def unknown(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> Iterator[str]:
    """What is to be said of arguments that no plugin reads, with the nearest valid name."""
    for option in (option for tier in policy.tiers for option in tier):
        plugin = plugins.get(option.name)
        found = model_of(plugin)
        valid = [field.alias or name for name, field in found.model_fields.items()] if found else []
        for key in option.arguments:
            near = difflib.get_close_matches(key, valid, n=1)
            if key not in valid and near:
                yield f"{option.name}: argument {key!r} is not known; did you mean {near[0]!r}?"
            elif not valid and _is_ours(plugin):  # others may read what they do not declare
                yield f"{option.name}: argument {key!r} has no effect: the plugin takes none"


def _is_ours(plugin: type[Plugin] | None) -> bool:
    return plugin is not None and plugin.__module__.startswith(f"{__package__}.")
