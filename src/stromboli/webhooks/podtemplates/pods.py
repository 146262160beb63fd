"""Rules for the pod around the containers: labels, policies, names, placement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stromboli.webhooks.errors import FieldError, duplicate, forbidden, invalid, required, unsupported
from stromboli.webhooks.naming import (
    dns_label_faults,
    dns_subdomain_faults,
    label_value_faults,
    qualified_name_faults,
)
from stromboli.webhooks.podtemplates import requirements
from stromboli.webhooks.podtemplates.containers import identity_faults, one_of
from stromboli.webhooks.podtemplates.shapes import (
    Affinity,
    NodeSelectorTerm,
    PodAffinity,
    PodSpec,
    Requirement,
    SpreadConstraint,
    Toleration,
)

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
LONGEST_DEADLINE: Final = 2**31 - 1
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def label_faults(labels: Mapping[str, str], field: str) -> Iterator[FieldError]:
    """Faults of label keys and values."""
    for key, value in sorted(labels.items()):
        yield from (invalid(field, key, fault) for fault in qualified_name_faults(key))
        yield from (invalid(field, value, fault) for fault in label_value_faults(value))


def annotation_faults(annotations: Mapping[str, str], field: str) -> Iterator[FieldError]:
    """Faults of annotation keys."""
    for key in sorted(annotations):
        yield from (invalid(field, key, fault) for fault in qualified_name_faults(key.lower()))


def spec_faults(spec: PodSpec, field: str, *, pod_level_resources: bool) -> Iterator[FieldError]:
    """Faults of everything in the pod spec that is not inside a container."""
    if pod_level_resources:
        yield from requirements.pod_faults(spec, f"{field}.resources")
    if spec.restart_policy and spec.restart_policy not in RESTART_POLICIES:
        # The API server lists these three in its own order.
        yield unsupported(f"{field}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    yield from one_of(spec.dns_policy, DNS_POLICIES, f"{field}.dnsPolicy")
    yield from label_faults(spec.node_selector, f"{field}.nodeSelector")
    yield from identity_faults(spec.security_context, f"{field}.securityContext")
    if spec.host_network and spec.host_users is False:
        yield forbidden(f"{field}.hostNetwork", "when `hostUsers` is false")
    yield from _affinity_faults(spec.affinity, f"{field}.affinity")
    if spec.dns_policy == "None" and not (spec.dns_config and spec.dns_config.nameservers):
        yield required(f"{field}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    yield from _gate_faults(spec, f"{field}.schedulingGates")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        yield from _spread_faults(constraint, f"{field}.topologySpreadConstraints[{index}]")
    yield from _name_faults(spec, field)
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration_faults(toleration, f"{field}.tolerations[{index}]")
    if spec.preemption_policy is not None and spec.preemption_policy not in PREEMPTION_POLICIES:
        yield unsupported(f"{field}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)


def _name_faults(spec: PodSpec, field: str) -> Iterator[FieldError]:
    subdomains = {"serviceAccountName": spec.service_account_name, "nodeName": spec.node_name}
    yield from _subdomain_faults(subdomains, field)
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= LONGEST_DEADLINE:
        detail = f"must be between 1 and {LONGEST_DEADLINE}, inclusive"
        yield invalid(f"{field}.activeDeadlineSeconds", deadline, detail)
    for name, value in (("hostname", spec.hostname), ("subdomain", spec.subdomain)):
        if value:
            yield from (invalid(f"{field}.{name}", value, fault) for fault in dns_label_faults(value))
    classes = {"priorityClassName": spec.priority_class_name, "runtimeClassName": spec.runtime_class_name or ""}
    yield from _subdomain_faults(classes, field)


def _subdomain_faults(values: Mapping[str, str], field: str) -> Iterator[FieldError]:
    for name, value in values.items():
        if value:
            yield from (invalid(f"{field}.{name}", value, fault) for fault in dns_subdomain_faults(value))


def _gate_faults(spec: PodSpec, field: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates):
        yield from (invalid(f"{field}[{index}]", gate.name, fault) for fault in qualified_name_faults(gate.name))
        if gate.name in seen:
            yield duplicate(f"{field}[{index}]", gate.name)
        seen.add(gate.name)


def _spread_faults(constraint: SpreadConstraint, field: str) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield invalid(f"{field}.maxSkew", constraint.max_skew, "must be greater than zero")
    if not constraint.topology_key:
        yield required(f"{field}.topologyKey", "can not be empty")
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.when_unsatisfiable not in actions:
        yield unsupported(f"{field}.whenUnsatisfiable", constraint.when_unsatisfiable, actions)


def _toleration_faults(toleration: Toleration, field: str) -> Iterator[FieldError]:
    if toleration.key:
        yield from (invalid(f"{field}.key", toleration.key, fault) for fault in qualified_name_faults(toleration.key))
    elif toleration.operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{field}.operator", toleration.operator, detail)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", toleration.effect, detail)
    match toleration.operator:
        case "Equal" | "":
            faults = label_value_faults(toleration.value)
            yield from (invalid(f"{field}.operator", toleration.value, fault) for fault in faults[:1])
        case "Exists":
            if toleration.value:
                yield invalid(f"{field}.operator", toleration.value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            pass  # Behind a gate of newer API servers, which judge them.
        case other:
            yield unsupported(f"{field}.operator", other, ("Equal", "Exists"))
    yield from one_of(toleration.effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"), f"{field}.effect")


def _affinity_faults(affinity: Affinity | None, field: str) -> Iterator[FieldError]:
    if affinity is None:
        return
    if (node := affinity.node_affinity) is not None:
        place = f"{field}.nodeAffinity"
        if (selector := node.required_during_scheduling_ignored_during_execution) is not None:
            if not selector.node_selector_terms:
                yield required(f"{place}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
            for index, term in enumerate(selector.node_selector_terms):
                yield from _term_faults(term, f"{place}.{_REQUIRED}.nodeSelectorTerms[{index}]")
        for index, preferred in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            yield from _weight_faults(preferred.weight, f"{place}.{_PREFERRED}[{index}]")
            yield from _term_faults(preferred.preference, f"{place}.{_PREFERRED}[{index}].preference")
    yield from _pod_affinity_faults(affinity.pod_affinity, f"{field}.podAffinity")
    yield from _pod_affinity_faults(affinity.pod_anti_affinity, f"{field}.podAntiAffinity")


def _pod_affinity_faults(affinity: PodAffinity | None, field: str) -> Iterator[FieldError]:
    if affinity is None:
        return
    empty = "can not be empty"
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        if not term.topology_key:
            yield required(f"{field}.{_REQUIRED}[{index}].topologyKey", empty)
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield from _weight_faults(weighted.weight, f"{field}.{_PREFERRED}[{index}]")
        if not weighted.pod_affinity_term.topology_key:
            yield required(f"{field}.{_PREFERRED}[{index}].podAffinityTerm.topologyKey", empty)


def _weight_faults(weight: int, field: str) -> Iterator[FieldError]:
    if not 1 <= weight <= 100:
        yield invalid(f"{field}.weight", weight, "must be in the range 1-100")


def _term_faults(term: NodeSelectorTerm, field: str) -> Iterator[FieldError]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _requirement_faults(requirement, f"{field}.matchExpressions[{index}]")


def _requirement_faults(requirement: Requirement, field: str) -> Iterator[FieldError]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case other:
            yield invalid(f"{field}.operator", other, "not a valid selector operator")
    yield from (invalid(f"{field}.key", requirement.key, fault) for fault in qualified_name_faults(requirement.key))
