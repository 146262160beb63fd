"""Persistent volume claims, as Job volumes and ephemeral volumes carry them. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api.meta import EmbeddedObjectMeta, LabelSelector
from stromboli.api.modelling import ATOMIC, REQUIRED, Model, ResourceList


class TypedLocalObjectReference(Model):
    """An object of the same namespace, by kind and name."""

    map_type: ClassVar[str | None] = "atomic"

    api_group: str | None = None
    kind: Annotated[str, REQUIRED] = ""
    name: Annotated[str, REQUIRED] = ""


class TypedObjectReference(Model):
    """An object, by kind, namespace and name."""

    api_group: str | None = None
    kind: Annotated[str, REQUIRED] = ""
    name: Annotated[str, REQUIRED] = ""
    namespace: str | None = None


class VolumeResourceRequirements(Model):
    """Requests and limits of a volume."""

    limits: ResourceList = {}
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Model):
    """A claim for storage."""

    access_modes: Annotated[list[str], ATOMIC] = []
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class PersistentVolumeClaimTemplate(Model):
    """What the claim of an ephemeral volume looks like."""

    metadata: EmbeddedObjectMeta | None = None
    spec: Annotated[PersistentVolumeClaimSpec, REQUIRED] = Field(default_factory=PersistentVolumeClaimSpec)
