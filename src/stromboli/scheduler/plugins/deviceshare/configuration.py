"""The device configuration: which resources stand for which cards (spec 06 sections 31.2 and 32.1).

It is the text of a config map. What a document leaves out is taken from the built-in defaults; a document that cannot
be used leaves what was known before, or the defaults, in place, and is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from stromboli.api import core, names
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins.deviceshare.settings import Settings

FILE = "device-config.yaml"
_MEMORY = "deviceshare-configuration"


class BadConfiguration(ValueError):
    """A document that is no device configuration; one line that names the field."""


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class Instance(_Model):
    """A kind of MIG instance, and how many of it a card can be cut into."""

    name: str = ""
    memory: int = 0
    count: int = 0


class Geometry(_Model):
    """One way of cutting a card."""

    group: str = ""
    instances: tuple[Instance, ...] = Field(default=(), alias="geometries")


class ModelGeometries(_Model):
    """The ways of cutting cards of some models."""

    models: tuple[str, ...] = ()
    geometries: tuple[Geometry, ...] = Field(default=(), alias="allowedGeometries")


class Nvidia(_Model):
    """The ``nvidia`` section; the scheduler uses the resource names, the factor and the geometries."""

    resource_count_name: str = ""
    resource_memory_name: str = ""
    resource_memory_percentage_name: str = ""
    resource_core_name: str = ""
    resource_priority_name: str = ""
    overwrite_env: bool = False
    default_memory: int = 0
    default_cores: int = 0
    default_gpu_num: int = Field(default=0, alias="defaultGPUNum")
    device_split_count: int = 0
    device_memory_scaling: float = 0
    device_core_scaling: float = 0
    disable_core_limit: bool = False
    gpu_memory_factor: int = 0
    known_mig_geometries: tuple[ModelGeometries, ...] = ()


class Template(_Model):
    """A slice that an Ascend card can be cut into."""

    name: str = ""
    memory: int = 0
    ai_core: int = 0
    ai_cpu: int = Field(default=0, alias="aiCPU")


class Vnpu(_Model):
    """One kind of Ascend card."""

    common_word: str = ""
    chip_name: str = ""
    resource_name: str = ""
    resource_memory_name: str = ""
    memory_allocatable: int = 0
    memory_capacity: int = 0
    ai_core: int = 0
    ai_cpu: int = Field(default=0, alias="aiCPU")
    templates: tuple[Template, ...] = ()

    @field_validator("templates")
    @classmethod
    def _smallest_first(cls, templates: tuple[Template, ...]) -> tuple[Template, ...]:
        return tuple(sorted(templates, key=lambda template: template.memory))


class Vnpus(_Model):
    """The ``vnpus`` section: a mapping, or as formerly the list of entries itself."""

    hami_vnpu_core: bool = False
    configs: tuple[Vnpu, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: Any) -> Any:
        return {"configs": value} if isinstance(value, list) else value


class DeviceConfiguration(_Model):
    """A whole document."""

    nvidia: Nvidia = Nvidia()
    vnpus: Vnpus = Vnpus()

    def completed(self) -> DeviceConfiguration:
        """With the defaults for what the document does not say."""
        said = self.nvidia.model_dump(exclude_unset=True)
        nvidia = DEFAULTS.nvidia.model_copy(update={name: getattr(self.nvidia, name) for name in said})
        vnpus = self.vnpus if "vnpus" in self.model_fields_set else DEFAULTS.vnpus
        return DeviceConfiguration(nvidia=nvidia, vnpus=vnpus)


DEFAULTS = DeviceConfiguration(
    nvidia=Nvidia(
        resource_count_name=names.VGPU_NUMBER,
        resource_memory_name=names.VGPU_MEMORY,
        resource_core_name=names.VGPU_CORES,
        default_gpu_num=1,
        device_split_count=10,
        device_memory_scaling=1,
        device_core_scaling=1,
    ),
    vnpus=Vnpus(
        configs=(
            Vnpu(
                common_word="Ascend310P",
                chip_name="310P3",
                resource_name="huawei.com/Ascend310P",
                resource_memory_name="huawei.com/Ascend310P-memory",
                memory_allocatable=21527,
                memory_capacity=24576,
                ai_core=8,
                ai_cpu=7,
                templates=(
                    Template(name="vir01", memory=3072, ai_core=1, ai_cpu=1),
                    Template(name="vir02", memory=6144, ai_core=2, ai_cpu=2),
                    Template(name="vir04", memory=12288, ai_core=4, ai_cpu=4),
                ),
            ),
        )
    ),
)
"""What is used where there is no config map."""


def parse(text: str) -> DeviceConfiguration:
    """What a document says, and nothing else. Raises BadConfiguration."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadConfiguration(f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, Mapping):
        raise BadConfiguration("not a mapping with the sections nvidia and vnpus")
    try:
        return DeviceConfiguration.model_validate({key: part for key, part in document.items() if part is not None})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadConfiguration(f"{where}: {first['msg']}, got {first['input']!r}") from error


def of(view: View, settings: Settings) -> DeviceConfiguration:
    """The configuration in force, read again when the config map has changed."""
    found = view.objects.get(core.ConfigMap, settings.map_name, settings.map_namespace)
    text = found.data.get(FILE) if found is not None else None
    known = view.memory.get(_MEMORY)
    if isinstance(known, _Known) and known.text == text:
        if known.problem:
            view.warn(known.problem, found)
        return known.configuration
    before = known.configuration if isinstance(known, _Known) else DEFAULTS
    now = view.memory[_MEMORY] = _read(text, before, f"ConfigMap {settings.map_namespace}/{settings.map_name}")
    if now.problem:
        view.warn(now.problem, found)
    return now.configuration


class _Known:
    def __init__(self, text: str | None, configuration: DeviceConfiguration, problem: str = "") -> None:
        self.text, self.configuration, self.problem = text, configuration, problem


def _read(text: str | None, before: DeviceConfiguration, where: str) -> _Known:
    if text is None:
        return _Known(text, DEFAULTS)
    try:
        return _Known(text, parse(text).completed())
    except BadConfiguration as error:
        return _Known(text, before, f"{where}: {FILE} is not used: {error}")
