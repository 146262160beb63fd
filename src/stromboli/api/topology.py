"""``topology.volcano.sh/v1alpha1``: HyperNode (spec 01 section 11)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds, phases
from stromboli.api.kinds import Kind
from stromboli.api.meta import Condition, LabelSelector, Resource
from stromboli.api.modelling import REQUIRED, SUBDOMAIN, Int64, Model, Rule, Schema


class ExactMatch(Model):
    """A member by name."""

    name: Annotated[str, REQUIRED, Schema(min_length=1, max_length=253, pattern=SUBDOMAIN)] = ""
    """Name of the node or HyperNode."""


class RegexMatch(Model):
    """Members whose names contain a match."""

    pattern: Annotated[str, REQUIRED, Schema(min_length=1)] = ""
    """Regular expression, not anchored."""


class MemberSelector(Model):
    """Which members; exactly one way is used."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
            "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        ),
        Rule(
            "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        ),
    )

    exact_match: ExactMatch | None = None
    """By name."""
    regex_match: RegexMatch | None = None
    """By a pattern of names."""
    label_match: LabelSelector | None = None
    """By node labels; an empty selector matches nothing."""


class MemberSpec(Model):
    """Children of a HyperNode. Without selector there are none."""

    type: Annotated[str, REQUIRED, Schema(enum=tuple(phases.MemberType))] = ""
    """Whether the children are nodes or HyperNodes."""
    selector: MemberSelector | None = None
    """Which ones."""


class HyperNodeSpec(Model):
    """A domain and its children."""

    tier: Annotated[int, REQUIRED, Schema(minimum=0)] = 0
    """Tier; lower is closer."""
    tier_name: Annotated[str, Schema(max_length=253)] = ""
    """Name of the tier."""
    members: Annotated[list[MemberSpec], Schema(min_items=1)] = []
    """Children."""


class HyperNodeStatus(Model):
    """What the hypernode controller observed."""

    conditions: list[Condition] = []
    """Not written."""
    node_count: Annotated[Int64, Schema(minimum=0)] = 0
    """Number of children."""


class HyperNode(Resource):
    """A topology domain of nodes, or of other HyperNodes."""

    KIND: ClassVar[Kind] = kinds.HYPER_NODES

    spec: HyperNodeSpec = Field(default_factory=HyperNodeSpec)
    status: HyperNodeStatus = Field(default_factory=HyperNodeStatus)
