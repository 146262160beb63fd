"""Filters and scores the slow way: one pod, one node, plain numbers, straight from the specification.

Nothing here knows shapes, rows, columns or caches; it is what the array code is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import core, quantities

DEFAULT_CPU, DEFAULT_MEMORY = 100, 200 * 1024 * 1024
MIB = 1024 * 1024


@dataclass
class Cluster:
    """Nodes, and which pods are where."""

    nodes: dict[str, core.Node]
    placed: dict[str, list[core.Pod]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    services: Sequence[tuple[str, Mapping[str, str]]] = ()
    """Namespace and selector."""

    def on(self, node: str) -> list[core.Pod]:
        """Pods on a node."""
        return self.placed.get(node, [])

    def everywhere(self) -> list[tuple[core.Node, core.Pod]]:
        """All pods with their nodes."""
        return [(node, pod) for name, node in self.nodes.items() for pod in self.on(name)]


# -- labels -------------------------------------------------------------------------------------------------------


def requirement_holds(requirement: core.Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            try:
                have, bound = int(value or ""), int(requirement.values[0])
            except (ValueError, IndexError):
                return False
            return have > bound if requirement.operator == "Gt" else have < bound
    return False


def selector_matches(selector: core.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    pairs = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return pairs and all(requirement_holds(one, labels) for one in selector.match_expressions)


def term_matches_node(term: core.NodeSelectorTerm, node: core.Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = all(
        len(one.values) == 1
        and one.key == "metadata.name"
        and one.operator in ("In", "NotIn")
        and (one.values[0] == node.name) == (one.operator == "In")
        for one in term.match_fields
    )
    return fields and all(requirement_holds(one, node.metadata.labels) for one in term.match_expressions)


# -- filters ------------------------------------------------------------------------------------------------------


def node_affinity_holds(pod: core.Pod, node: core.Node) -> bool:
    if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(term_matches_node(term, node) for term in required.node_selector_terms)


def tolerates(pod: core.Pod, taint: core.Taint, *, effects: Sequence[str] | None = None) -> bool:
    for toleration in pod.spec.tolerations:
        if effects is not None and toleration.effect not in effects:
            continue
        if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
            continue
        if toleration.operator == "Exists":
            return True
        if toleration.operator in ("", "Equal") and toleration.key and toleration.value == taint.value:
            return True
    return False


def is_cordoned_for(pod: core.Pod, node: core.Node) -> bool:
    cordon = core.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    return node.spec.unschedulable and not tolerates(pod, cordon)


def is_repelled(pod: core.Pod, node: core.Node) -> bool:
    return any(taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, taint) for taint in node.spec.taints)


def host_ports(pod: core.Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port > 0
    ]


def ports_clash(pod: core.Pod, others: Sequence[core.Pod]) -> bool:
    return any(
        protocol == used_protocol and port == used_port and (ip == used_ip or "0.0.0.0" in (ip, used_ip))
        for ip, protocol, port in host_ports(pod)
        for other in others
        for used_ip, used_protocol, used_port in host_ports(other)
    )


def is_full(cluster: Cluster, node: core.Node) -> bool:
    return quantities.value(node.status.allocatable.get("pods", 0)) <= len(cluster.on(node.name))


# -- affinity between pods ----------------------------------------------------------------------------------------


def term_means(term: core.PodAffinityTerm, owner: core.Pod, other: core.Pod, cluster: Cluster) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        inside = owner.namespace == other.namespace
    else:
        labels = cluster.namespaces.get(other.namespace, {})
        inside = other.namespace in term.namespaces or selector_matches(term.namespace_selector, labels)
    return inside and selector_matches(term.label_selector, other.metadata.labels)


def required(pod: core.Pod, side: str) -> tuple[core.PodAffinityTerm, ...]:
    affinity = getattr(pod.spec.affinity, side) if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def preferred(pod: core.Pod) -> list[tuple[int, core.PodAffinityTerm]]:
    found: list[tuple[int, core.PodAffinityTerm]] = []
    for side, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1)):
        affinity = getattr(pod.spec.affinity, side) if pod.spec.affinity else None
        terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
        found.extend((sign * weighted.weight, weighted.pod_affinity_term) for weighted in terms)
    return found


def same_domain(left: core.Node, right: core.Node, key: str) -> bool:
    value = left.metadata.labels.get(key)
    return value is not None and right.metadata.labels.get(key) == value


def affinity_refusal(pod: core.Pod, node: core.Node, cluster: Cluster) -> str | None:
    near = required(pod, "pod_affinity")
    if near and not _near_enough(pod, near, node, cluster):
        return "node(s) didn't match pod affinity rules"
    for term in required(pod, "pod_anti_affinity"):
        for where, other in cluster.everywhere():
            if same_domain(node, where, term.topology_key) and term_means(term, pod, other, cluster):
                return "node(s) didn't match pod anti-affinity rules"
    for where, other in cluster.everywhere():
        for term in required(other, "pod_anti_affinity"):
            if same_domain(node, where, term.topology_key) and term_means(term, other, pod, cluster):
                return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


def _near_enough(pod: core.Pod, terms: Sequence[core.PodAffinityTerm], node: core.Node, cluster: Cluster) -> bool:
    if any(term.topology_key not in node.metadata.labels for term in terms):
        return False
    friends = [
        (where, other)
        for where, other in cluster.everywhere()
        if all(term_means(term, pod, other, cluster) for term in terms)
    ]
    if all(any(same_domain(node, where, term.topology_key) for where, _ in friends) for term in terms):
        return True
    counted = any(term.topology_key in where.metadata.labels for term in terms for where, _ in friends)
    return not counted and all(term_means(term, pod, pod, cluster) for term in terms)


def affinity_raw(pod: core.Pod, node: core.Node, cluster: Cluster) -> tuple[int, bool]:
    """The sum of weights, and whether any preference met any pod anywhere."""
    score, touched = 0, False
    for where, other in cluster.everywhere():
        for weight, term in preferred(pod):
            if term_means(term, pod, other, cluster) and term.topology_key in where.metadata.labels:
                touched = True
                score += weight if same_domain(node, where, term.topology_key) else 0
        for weight, term in preferred(other):
            if term_means(term, other, pod, cluster) and term.topology_key in where.metadata.labels:
                touched = True
                score += weight if same_domain(node, where, term.topology_key) else 0
    return score, touched


# -- topology spread ----------------------------------------------------------------------------------------------


def constraints(pod: core.Pod, when: str) -> list[core.TopologySpreadConstraint]:
    return [one for one in pod.spec.topology_spread_constraints if one.when_unsatisfiable == when]


def spread_counts(constraint: core.TopologySpreadConstraint, owner: core.Pod, other: core.Pod) -> bool:
    selector = constraint.label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    mine, theirs = owner.metadata.labels, other.metadata.labels
    keys = all(theirs.get(key) == mine[key] for key in constraint.match_label_keys if key in mine)
    return other.namespace == owner.namespace and keys and selector_matches(selector, theirs)


def _included(pod: core.Pod, node: core.Node, constraint: core.TopologySpreadConstraint, keys: Sequence[str]) -> bool:
    if any(key not in node.metadata.labels for key in keys):
        return False
    if (constraint.node_affinity_policy or "Honor") == "Honor" and not node_affinity_holds(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not is_repelled(pod, node)


def _counts(
    pod: core.Pod, constraint: core.TopologySpreadConstraint, keys: Sequence[str], cluster: Cluster
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in cluster.nodes.values():
        if _included(pod, node, constraint, keys):
            value = node.metadata.labels[constraint.topology_key]
            matching = [
                one for one in cluster.on(node.name) if not one.deleting and spread_counts(constraint, pod, one)
            ]
            counts[value] = counts.get(value, 0) + len(matching)
    return counts


def spread_refusal(pod: core.Pod, node: core.Node, cluster: Cluster) -> str | None:
    must = constraints(pod, "DoNotSchedule")
    keys = [one.topology_key for one in must]
    for constraint in must:
        value = node.metadata.labels.get(constraint.topology_key)
        if value is None:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        counts = _counts(pod, constraint, keys, cluster)
        least = min(counts.values(), default=0) if len(counts) >= (constraint.min_domains or 1) else 0
        own = 1 if spread_counts(constraint, pod, pod) else 0
        if counts.get(value, 0) + own - least > constraint.max_skew:
            return "node(s) didn't match pod topology spread constraints"
    return None


# -- the whole filter ---------------------------------------------------------------------------------------------


def refusals(pod: core.Pod, node: core.Node, cluster: Cluster) -> list[str]:
    """Texts for which predicates refuses a node; aborting ones end the list."""
    found = ["node(s) pod number exceeded"] if is_full(cluster, node) else []
    stable = (
        ("node(s) were unschedulable", is_cordoned_for(pod, node)),
        ("node(s) didn't match Pod's node affinity/selector", not node_affinity_holds(pod, node)),
        ("node(s) had untolerated taint(s)", is_repelled(pod, node)),
    )
    for text, refused in stable:
        if refused:
            return [*found, text]
    if ports_clash(pod, cluster.on(node.name)):
        found.append("node(s) didn't have free ports for the requested pod ports")
    for refusal in (affinity_refusal(pod, node, cluster), spread_refusal(pod, node, cluster)):
        if refusal in ("node(s) didn't match pod affinity rules", _UNLABELLED):
            return [*found, refusal]
        if refusal is not None:
            found.append(refusal)
    return found


_UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"


# -- scores -------------------------------------------------------------------------------------------------------


def requests(pod: core.Pod, name: str) -> int:
    whole = quantities.milli if name != "memory" else quantities.value
    return sum(whole(one.resources.requests[name]) for one in pod.spec.containers if name in one.resources.requests)


def nonzero(pod: core.Pod, name: str) -> int:
    default = DEFAULT_CPU if name == "cpu" else DEFAULT_MEMORY
    whole = quantities.milli if name == "cpu" else quantities.value
    return sum(whole(one.resources.requests.get(name, _raw(name, default))) for one in pod.spec.containers)


def _raw(name: str, amount: int) -> str:
    return f"{amount}m" if name == "cpu" else str(amount)


def room(node: core.Node, name: str) -> int:
    whole = quantities.milli if name != "memory" else quantities.value
    return whole(node.status.allocatable.get(name, 0))


def requested_score(pod: core.Pod, node: core.Node, cluster: Cluster, *, least: bool) -> int:
    scores = []
    for name in ("cpu", "memory"):
        capacity = room(node, name)
        if capacity > 0:
            taken = nonzero(pod, name) + sum(nonzero(one, name) for one in cluster.on(node.name))
            good = max(capacity - taken, 0) if least else min(taken, capacity)
            scores.append(good * 100 // capacity)
    return sum(scores) // len(scores) if scores else 0


def balanced_score(pod: core.Pod, node: core.Node, cluster: Cluster) -> int:
    names = ["cpu", "memory"]
    if requests(pod, "nvidia.com/gpu") > 0:
        names.append("nvidia.com/gpu")
    if not any(requests(pod, name) for name in names):
        return 0
    fractions = []
    for name in names:
        if room(node, name) > 0:
            taken = requests(pod, name) + sum(requests(one, name) for one in cluster.on(node.name))
            fractions.append(min(1.0, taken / room(node, name)))
    if len(fractions) < 2:
        deviation = 0.0
    elif len(fractions) == 2:
        deviation = abs(fractions[0] - fractions[1]) / 2
    else:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((one - mean) ** 2 for one in fractions) / len(fractions))
    return int((1 - deviation) * 100)


def node_affinity_score(pod: core.Pod, node: core.Node) -> int:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return sum(one.weight for one in terms if one.weight and term_matches_node(one.preference, node))


def taint_counts(pod: core.Pod, node: core.Node) -> int:
    return sum(
        taint.effect == "PreferNoSchedule" and not tolerates(pod, taint, effects=("", "PreferNoSchedule"))
        for taint in node.spec.taints
    )


def image_score(pod: core.Pod, node: core.Node, cluster: Cluster) -> int:
    def name_of(container: core.Container) -> str:
        return container.image if ":" in container.image.rpartition("/")[2] else f"{container.image}:latest"

    def sizes(one: core.Node) -> dict[str, int]:
        return {name: image.size_bytes for image in one.status.images for name in image.names}

    total = 0
    for container in pod.spec.containers:
        name = name_of(container)
        having = sum(name in sizes(one) for one in cluster.nodes.values())
        total += int(sizes(node).get(name, 0) * having / len(cluster.nodes))
    most = 1000 * MIB * len(pod.spec.containers)
    clamped = min(max(total, 23 * MIB), most)
    return int(100 * (clamped - 23 * MIB) / (most - 23 * MIB))


def preferences(pod: core.Pod, cluster: Cluster) -> list[core.TopologySpreadConstraint]:
    """The pod's own; a pod that has no constraints at all is spread as far as services select it."""
    if pod.spec.topology_spread_constraints:
        return constraints(pod, "ScheduleAnyway")
    selecting = [
        selector
        for namespace, selector in cluster.services
        if selector and namespace == pod.namespace and selector.items() <= pod.metadata.labels.items()
    ]
    together = {key: value for selector in selecting for key, value in selector.items()}
    return [
        core.TopologySpreadConstraint(
            max_skew=skew,
            topology_key=key,
            when_unsatisfiable="ScheduleAnyway",
            label_selector=core.LabelSelector(match_labels=together),
        )
        for key, skew in (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
        if together
    ]


def spread_scores(pod: core.Pod, nodes: Sequence[core.Node], cluster: Cluster) -> list[int]:
    should = preferences(pod, cluster)
    if not should:
        return [0] * len(nodes)
    keys = [one.topology_key for one in should] if pod.spec.topology_spread_constraints else []
    counted = [all(key in node.metadata.labels for key in keys) for node in nodes]
    raw: list[float] = []
    for node, takes_part in zip(nodes, counted, strict=True):
        score = 0.0
        for one in should if takes_part else ():
            key = one.topology_key
            if key not in node.metadata.labels:
                continue
            taking_part = [other.metadata.labels for other, c in zip(nodes, counted, strict=True) if c]
            values = {labels[key] for labels in taking_part if key in labels}
            count = _counts(pod, one, [key, *keys], cluster).get(node.metadata.labels[key], 0)
            score += count * math.log(len(values) + 2) + (one.max_skew - 1)
        raw.append(round(score))
    known = [score for score, takes_part in zip(raw, counted, strict=True) if takes_part]
    if not known:
        return [0] * len(nodes)
    low, high = min(known), max(known)
    return [
        0 if not takes_part else 100 if high == 0 else int(100 * (high + low - score) / high)
        for score, takes_part in zip(raw, counted, strict=True)
    ]


DEFAULT_WEIGHTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "balancedresource": 1,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}


def node_order(
    pod: core.Pod, nodes: Sequence[core.Node], cluster: Cluster, weights: Mapping[str, int] = DEFAULT_WEIGHTS
) -> list[float]:
    """The sum of nodeorder's scores, for candidates."""
    taints = [taint_counts(pod, node) for node in nodes]
    most = max(taints, default=0)
    affinity = [affinity_raw(pod, node, cluster) for node in nodes]
    low, high = min((one for one, _ in affinity), default=0), max((one for one, _ in affinity), default=0)
    spread = spread_scores(pod, nodes, cluster)
    scores = []
    for at, node in enumerate(nodes):
        each = {
            "leastrequested": requested_score(pod, node, cluster, least=True),
            "mostrequested": requested_score(pod, node, cluster, least=False),
            "nodeaffinity": node_affinity_score(pod, node),
            "podaffinity": int(100 * (affinity[at][0] - low) / (high - low)) if affinity[at][1] and high > low else 0,
            "balancedresource": balanced_score(pod, node, cluster),
            "tainttoleration": 100 if most == 0 else 100 - 100 * taints[at] // most,
            "imagelocality": image_score(pod, node, cluster),
            "podtopologyspread": spread[at],
        }
        scores.append(float(sum(weights[name] * score for name, score in each.items())))
    return scores


def bin_pack(pod: core.Pod, node: core.Node, cluster: Cluster, weights: Mapping[str, int], weight: int) -> float:
    """The score of binpack."""
    total, score = 0, 0.0
    for name, own in weights.items():
        amount = requests(pod, name)
        if not amount:
            continue
        total += own
        capacity = room(node, name)
        used = amount + sum(requests(one, name) for one in cluster.on(node.name))
        if capacity and own:
            if used > capacity:
                return 0.0
            score += own * used / capacity
    return score / total * 100 * weight if total else 0.0
