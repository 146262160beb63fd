"""References to objects of the same namespace. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from stromboli.api.modelling import Model, Schema


class LocalObjectReference(Model):
    """An object of the same namespace, by name."""

    map_type: ClassVar[str | None] = "atomic"

    name: Annotated[str | None, Schema(default="")] = None
