"""The one form of a schema: a tree of :class:`Schema` nodes, made from generated models or from a CRD.

A node knows what every walker needs to ask: which fields there are, what a list's items are and how they are matched,
what else is allowed. Children may be made on first use, since some built-in types contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Constraints = Mapping[str, Any]
"""OpenAPI v3 keywords of a node that only validation reads (``minLength``, ``enum``, ``pattern``, ``anyOf``, ...)."""


@dataclass(frozen=True, eq=False)
class Schema:
    """One node; compared and hashed by identity."""

    type: str = ""
    """OpenAPI type; empty when anything goes."""
    load_properties: Callable[[], Mapping[str, Schema]] = dict
    load_items: Callable[[], Schema | None] = lambda: None
    load_additional: Callable[[], Schema | None] = lambda: None
    required: tuple[str, ...] = ()
    description: str = ""
    title: str = ""
    """Name of a built-in type (``V1Container``), for references in OpenAPI; empty for inline types."""
    go_type: str = ""
    """The type as Go's JSON decoder names it in errors (``v1.Container``, ``int32``)."""
    format: str = ""
    list_type: str = ""
    """``map``, ``set``, ``atomic`` or empty (atomic for server-side apply)."""
    list_keys: tuple[str, ...] = ()
    merge_key: str = ""
    """Key of a strategic merge; empty when the list is replaced."""
    merge_strategy: str = ""
    """``merge``, ``retainKeys``, ``merge,retainKeys`` or empty."""
    map_type: str = ""
    """``atomic`` or empty (granular)."""
    int_or_string: bool = False
    quantity: bool = False
    nullable: bool = False
    preserve_unknown: bool = False
    embedded: bool = False
    has_default: bool = False
    default: Any = None
    constraints: Constraints = field(default_factory=dict)
    rules: tuple[Mapping[str, Any], ...] = ()
    """``x-kubernetes-validations``."""
    source: Mapping[str, Any] | None = None
    """The OpenAPI form a CRD gave, as it is; None for built-in types."""

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """Known fields."""
        return self.load_properties()

    @cached_property
    def items(self) -> Schema | None:
        """What a list holds."""
        return self.load_items()

    @cached_property
    def additional(self) -> Schema | None:
        """What a map holds under free keys."""
        return self.load_additional()

    @cached_property
    def plain_text(self) -> bool:
        """Whether every text fits: the most frequent case, which type checks then need not look into."""
        return self.type == "string" and not self.quantity and self.format != "date-time"

    @property
    def is_map(self) -> bool:
        """Whether keys are free (``map[string]...``) rather than fields."""
        return self.additional is not None

    def child(self, name: str) -> Schema | None:
        """Schema of a field or of a map's value; None when it is unknown."""
        found = self.properties.get(name)
        return self.additional if found is None else found


ANYTHING = Schema(preserve_unknown=True)
"""A place where every value is kept and none is looked at."""
