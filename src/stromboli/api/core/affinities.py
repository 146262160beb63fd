"""Where pods may go: selectors, affinity, tolerations and spreading as pods carry them, taints as nodes do."""

from __future__ import annotations

from stromboli.api.core.meta import Struct


class Requirement(Struct, frozen=True, kw_only=True):
    """One expression of a label selector or node selector: key, operator, values."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True, kw_only=True):
    """``metav1.LabelSelector`` as data; :mod:`stromboli.api.selectors` evaluates it."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()

    def __hash__(self) -> int:
        """By content, so that selectors and the affinities made of them can be compiled and interned once."""
        return hash((frozenset(self.match_labels.items()), self.match_expressions))


class NodeSelectorTerm(Struct, frozen=True, kw_only=True):
    """Requirements that must all hold. A term without any matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Struct, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True, kw_only=True):
    """A node selector term with a weight of 1 to 100."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True, kw_only=True):
    """Required and preferred node selectors."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True, kw_only=True):
    """Pods to be near to, or away from, within one value of ``topology_key``."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True, kw_only=True):
    """A pod affinity term with a weight of 1 to 100."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True, kw_only=True):
    """Required and preferred terms; affinity and anti-affinity have the same form."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Struct, frozen=True, kw_only=True):
    """``spec.affinity`` of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, frozen=True, kw_only=True):
    """A taint that a pod accepts. An empty effect means all effects, an empty key with ``Exists`` all taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Taint(Struct, frozen=True, kw_only=True):
    """A mark that keeps pods off a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class TopologySpreadConstraint(Struct, frozen=True, kw_only=True):
    """How evenly pods spread over the values of ``topology_key``."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
