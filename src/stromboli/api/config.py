"""``config.volcano.sh/v1alpha1``: ColocationConfiguration (spec 01 section 14)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.api.meta import Condition, LabelSelector, Resource
from stromboli.api.modelling import REQUIRED, Model, Schema, keyed


class MemoryQos(Model):
    """Memory ratios in percent."""

    high_ratio: Annotated[int | None, Schema(default=100, minimum=0, maximum=100)] = None
    """Throttling ratio (memory.high)."""
    low_ratio: Annotated[int | None, Schema(default=0, minimum=0, maximum=100)] = None
    """Protection ratio (memory.low)."""
    min_ratio: Annotated[int | None, Schema(default=0, minimum=0, maximum=100)] = None
    """Guarantee ratio (memory.min)."""


class ColocationConfigurationSpec(Model):
    """What is configured, and for which pods of the namespace."""

    selector: LabelSelector | None = None
    """Pods; none when absent, all when empty."""
    memory_qos: MemoryQos | None = None
    """Memory ratios."""


class ColocationConfigurationStatus(Model):
    """Not written."""

    conditions: Annotated[list[Condition], keyed("type")] = []
    """Conditions."""


class ColocationConfiguration(Resource):
    """Quality of service of colocated pods."""

    KIND: ClassVar[Kind] = kinds.COLOCATION_CONFIGURATIONS

    spec: Annotated[ColocationConfigurationSpec, REQUIRED] = Field(default_factory=ColocationConfigurationSpec)
    status: ColocationConfigurationStatus = Field(default_factory=ColocationConfigurationStatus)
