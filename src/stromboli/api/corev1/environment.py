"""Environment variables of containers and where their values come from. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from stromboli.api.modelling import REQUIRED, Model, Quantity, Schema


class ConfigMapKeySelector(Model):
    """A key of a ConfigMap."""

    map_type: ClassVar[str | None] = "atomic"

    key: Annotated[str, REQUIRED] = ""
    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class FileKeySelector(Model):
    """A key of an environment file in a volume."""

    map_type: ClassVar[str | None] = "atomic"

    key: Annotated[str, REQUIRED] = ""
    optional: Annotated[bool | None, Schema(default=False)] = None
    path: Annotated[str, REQUIRED] = ""
    volume_name: Annotated[str, REQUIRED] = ""


class ObjectFieldSelector(Model):
    """A field of the pod itself."""

    map_type: ClassVar[str | None] = "atomic"

    api_version: str | None = None
    field_path: Annotated[str, REQUIRED] = ""


class ResourceFieldSelector(Model):
    """A request or limit of a container."""

    map_type: ClassVar[str | None] = "atomic"

    container_name: str | None = None
    divisor: Quantity | None = None
    resource: Annotated[str, REQUIRED] = ""


class SecretKeySelector(Model):
    """A key of a Secret."""

    map_type: ClassVar[str | None] = "atomic"

    key: Annotated[str, REQUIRED] = ""
    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class EnvVarSource(Model):
    """Where an environment variable's value comes from; exactly one is set."""

    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Model):
    """An environment variable, by value or by source."""

    name: Annotated[str, REQUIRED] = ""
    value: str | None = None
    value_from: EnvVarSource | None = None


class ConfigMapEnvSource(Model):
    """A ConfigMap as a source of environment variables."""

    map_type: ClassVar[str | None] = "atomic"

    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class SecretEnvSource(Model):
    """A Secret as a source of environment variables."""

    map_type: ClassVar[str | None] = "atomic"

    name: Annotated[str | None, Schema(default="")] = None
    optional: bool | None = None


class EnvFromSource(Model):
    """A ConfigMap or Secret whose keys all become environment variables."""

    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None
