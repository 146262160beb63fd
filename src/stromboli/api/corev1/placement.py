"""Affinity, tolerations and topology spread in pod templates. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api.meta import LabelSelector
from stromboli.api.modelling import ATOMIC, REQUIRED, Int32, Int64, Model


class NodeSelectorRequirement(Model):
    """One requirement of a node's label or field."""

    key: Annotated[str, REQUIRED] = ""
    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[list[str], ATOMIC] = []


class NodeSelectorTerm(Model):
    """Requirements of a node that must all hold."""

    map_type: ClassVar[str | None] = "atomic"

    match_expressions: Annotated[list[NodeSelectorRequirement], ATOMIC] = []
    match_fields: Annotated[list[NodeSelectorRequirement], ATOMIC] = []


class NodeSelector(Model):
    """Node selector terms of which one must hold."""

    map_type: ClassVar[str | None] = "atomic"

    node_selector_terms: Annotated[list[NodeSelectorTerm], ATOMIC, REQUIRED] = []


class PreferredSchedulingTerm(Model):
    """A node selector term with a weight."""

    preference: Annotated[NodeSelectorTerm, REQUIRED] = Field(default_factory=NodeSelectorTerm)
    weight: Annotated[Int32, REQUIRED] = 0


class NodeAffinity(Model):
    """Node selectors, required and preferred."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredSchedulingTerm], ATOMIC] = []
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Model):
    """A set of pods and the topology within which to be near or away."""

    label_selector: LabelSelector | None = None
    match_label_keys: Annotated[list[str], ATOMIC] = []
    mismatch_label_keys: Annotated[list[str], ATOMIC] = []
    namespace_selector: LabelSelector | None = None
    namespaces: Annotated[list[str], ATOMIC] = []
    topology_key: Annotated[str, REQUIRED] = ""


class WeightedPodAffinityTerm(Model):
    """A pod affinity term with a weight."""

    pod_affinity_term: Annotated[PodAffinityTerm, REQUIRED] = Field(default_factory=PodAffinityTerm)
    weight: Annotated[Int32, REQUIRED] = 0


class PodAffinity(Model):
    """Pods to be near to."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[WeightedPodAffinityTerm], ATOMIC] = []
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm], ATOMIC] = []


class PodAntiAffinity(Model):
    """Pods to be away from."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[WeightedPodAffinityTerm], ATOMIC] = []
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm], ATOMIC] = []


class Affinity(Model):
    """Scheduling constraints by node and by neighbouring pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Model):
    """A taint that the pod accepts."""

    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: Int64 | None = None
    value: str | None = None


class TopologySpreadConstraint(Model):
    """How evenly pods spread over a topology."""

    label_selector: LabelSelector | None = None
    match_label_keys: Annotated[list[str], ATOMIC] = []
    max_skew: Annotated[Int32, REQUIRED] = 0
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    topology_key: Annotated[str, REQUIRED] = ""
    when_unsatisfiable: Annotated[str, REQUIRED] = ""
