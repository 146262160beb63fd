"""Metadata, references, conditions and label selectors as the models carry them (spec 01 sections 3.7 and 3.8)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from stromboli.api.kinds import Kind
from stromboli.api.modelling import ATOMIC, REQUIRED, Int64, Model, Schema, Time

Scope: TypeAlias = Literal["Namespaced", "Cluster"]

_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class OwnerReference(Model):
    """The object that owns another, and is deleted before it."""

    map_type: ClassVar[str | None] = "atomic"

    api_version: Annotated[str, REQUIRED] = ""
    kind: Annotated[str, REQUIRED] = ""
    name: Annotated[str, REQUIRED] = ""
    uid: Annotated[str, REQUIRED] = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectReference(Model):
    """An object, by kind, name and UID."""

    map_type: ClassVar[str | None] = "atomic"

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class ObjectMeta(Model):
    """``metadata`` of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


class EmbeddedObjectMeta(Model):
    """``metadata`` of a template: the five members that survive pruning (spec 01 section 3.6)."""

    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    labels: dict[str, str] = {}
    name: str | None = None
    namespace: str | None = None


class LabelSelectorRequirement(Model):
    """One expression of a label selector."""

    key: Annotated[str, REQUIRED] = ""
    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[list[str], ATOMIC] = []


class LabelSelector(Model):
    """A label selector; an empty one matches everything, an absent one what the field says."""

    map_type: ClassVar[str | None] = "atomic"

    match_expressions: Annotated[list[LabelSelectorRequirement], ATOMIC] = []
    match_labels: dict[str, str] = {}


class Condition(Model):
    """``metav1.Condition``."""

    type: Annotated[str, REQUIRED, Schema(max_length=316, pattern=_CONDITION_TYPE)] = ""
    status: Annotated[str, REQUIRED, Schema(enum=("True", "False", "Unknown"))] = ""
    reason: Annotated[
        str,
        REQUIRED,
        Schema(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ] = ""
    message: Annotated[str, REQUIRED, Schema(max_length=32768)] = ""
    last_transition_time: Annotated[Time, REQUIRED] = ""
    observed_generation: Annotated[Int64 | None, Schema(minimum=0)] = None


class Resource(Model):
    """A custom resource: what has a kind and metadata. Identity is namespace, name and UID."""

    KIND: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """``metadata.uid``."""
        return self.metadata.uid

    @property
    def key(self) -> tuple[str, str]:
        """``(namespace, name)``."""
        return (self.metadata.namespace, self.metadata.name)

    def owner_reference(self) -> OwnerReference:
        """A controlling reference to this object, for what is made on its behalf."""
        return OwnerReference(
            api_version=self.KIND.api_version,
            kind=self.KIND.kind,
            name=self.name,
            uid=self.uid,
            controller=True,
            block_owner_deletion=True,
        )

    def to_wire(self) -> dict[str, object]:
        """The object as plain data; ``apiVersion`` and ``kind`` are always there, which items of lists lack."""
        return {"apiVersion": self.KIND.api_version, "kind": self.KIND.kind} | super().to_wire()
