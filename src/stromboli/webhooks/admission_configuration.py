"""The admission configuration file: groups of pods and the nodes they belong on (spec 07 section 15).

The file is YAML with one list, ``resourceGroups``. Unknown keys are ignored, as the original does; a file of
comments only is a valid, empty configuration.
"""

from __future__ import annotations

from typing import Any

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

JsonObject = dict[str, Any]


class ConfigurationError(Exception):
    """A file that cannot be used; the text names the field and the next step."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class GroupObject(_Model):
    """Which pods belong to a group."""

    key: str = ""
    value: tuple[str, ...] = ()

    @field_validator("key", mode="before")
    @classmethod
    def _absent_key(cls, value: object) -> object:
        return "" if value is None else value

    def annotations(self) -> dict[str, str]:
        """The values read as small YAML maps; for a repeated key the first wins, what is no map is skipped."""
        found: dict[str, str] = {}
        for text in self.value:
            for key, value in _small_map(text).items():
                found.setdefault(key, value)
        return found


class ResourceGroup(_Model):
    """One group: whom it matches and what such pods are given."""

    name: str = Field(default="", alias="resourceGroup")
    object: GroupObject = GroupObject()
    scheduler_name: str = Field(default="", alias="schedulerName")
    tolerations: tuple[JsonObject, ...] = ()
    labels: dict[str, str] = {}
    affinity: str = ""

    @field_validator("tolerations", mode="after")
    @classmethod
    def _both_spellings(cls, value: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        return tuple(_toleration(item) for item in value)

    def affinity_object(self) -> JsonObject | None:
        """The affinity, or ``None`` where none is given or the text is not a JSON object."""
        try:
            value = orjson.loads(self.affinity)
        except orjson.JSONDecodeError:
            return None
        return value if isinstance(value, dict) else None


class AdmissionConfiguration(_Model):
    """The whole file."""

    resource_groups: tuple[ResourceGroup, ...] = Field(default=(), alias="resourceGroups")

    @field_validator("resource_groups", mode="before")
    @classmethod
    def _absent_groups(cls, value: object) -> object:
        return () if value is None else value


def parse(text: str) -> AdmissionConfiguration:
    """Read the text of a configuration file; raises :class:`ConfigurationError`."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"not valid YAML: {' '.join(str(error).split())}") from error
    return from_document({} if document is None else document)


def from_document(document: object) -> AdmissionConfiguration:
    """Read a parsed configuration file; raises :class:`ConfigurationError`."""
    try:
        return AdmissionConfiguration.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise ConfigurationError(
            f"{field}: {first['msg'].lower()}; correct the file, it is read again by itself"
        ) from error


def _small_map(text: str) -> dict[str, str]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        return {}
    return {str(key): item for key, item in value.items()}


def _toleration(item: JsonObject) -> JsonObject:
    known = {key: item[key] for key in ("key", "operator", "value", "effect") if item.get(key)}
    # The original reads only the lower-case spelling and drops the other without a word.
    seconds = item.get("tolerationSeconds", item.get("tolerationseconds"))
    return known if seconds is None else {**known, "tolerationSeconds": seconds}
