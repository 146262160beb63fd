"""What the PodGroup of ordinary pods looks like. Pure.

A group belongs to the controller of its pods, or to the pod itself, and is named after that owner's UID. Everything in
it follows from a pod and the annotations of the pod's owners (spec 03 section 3.3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from stromboli.api import kinds, names, quantities
from stromboli.api.core import Pod, PodGroup, to_builtins
from stromboli.controllers import usage
from stromboli.controllers.podgroup.resolving import Gang
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)

_FROM_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_FROM_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_OWN_PREFIX = names.bare_pod_group_name("")
_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Owners:
    """What the owners of a pod say. ``replicas`` is what its controller may have now; None when that has no limit."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    replicas: int | None = None


def merged(annotations: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Annotations of several owners; the first that has a key wins."""
    found: dict[str, str] = {}
    for each in annotations:
        found = {**each, **found}
    return found


def group_name(pod: Pod) -> str:
    """Name of the PodGroup a pod would get."""
    controller = pod.controller
    return names.bare_pod_group_name(controller.uid if controller else pod.uid)


def is_ours(pod: Pod, schedulers: frozenset[str]) -> bool:
    """Whether the pod waits for, or has, a PodGroup from this controller."""
    named = pod.metadata.annotations.get(names.GROUP_NAME)
    return pod.spec.scheduler_name in schedulers and (not named or named.startswith(_OWN_PREFIX))


def keys(pod: Pod) -> tuple[str, ...]:
    """Names of PodGroups that the pod has a say in: the one it has, if any, else the one it would get."""
    return (pod.metadata.annotations.get(names.GROUP_NAME) or group_name(pod),)


def is_of_a_kind(group: PodGroup) -> bool:
    """Whether a group is one that is made here: named after its owner."""
    return group.controller is not None and group.name == names.bare_pod_group_name(group.controller.uid)


def reservation(pod: Pod, group: PodGroup) -> JsonObject:
    """A merge patch that lets go of what a group reserves for pods that have all finished; empty if it does not."""
    wanted, present = min_resources(pod, group.spec.min_member), group.spec.min_resources
    if present is not None and quantities.equal(present, wanted):
        return {}
    return {"spec": {"minResources": {**dict.fromkeys(present or {}), **wanted}}}


def representative(pods: Sequence[Pod]) -> Pod:
    """The pod a group is modelled on: one that still has to run if there is any, the newest of those."""
    return max(pods, key=lambda pod: (not finished(pod), not pod.deleting, pod.created, pod.name))


def finished(pod: Pod) -> bool:
    """Whether the pod will never run again."""
    return pod.status.phase in _FINISHED


def build(pod: Pod, owners: Owners, gang: Gang | None = None) -> JsonObject:
    """The PodGroup to create for ``pod``, as one of ``gang`` if it belongs to one."""
    minimum = min_member(owners, 1 if gang is None else gang.size.pods)
    spec: JsonObject = {"minMember": minimum, "minResources": min_resources(pod, minimum, gang)}
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    if names.POD_QUEUE_NAME in pod.metadata.annotations:
        spec["queue"] = pod.metadata.annotations[names.POD_QUEUE_NAME]
    topology = network_topology(pod.metadata.annotations)
    if topology is not None:
        spec["networkTopology"] = topology
    return {
        "apiVersion": kinds.POD_GROUPS.api_version,
        "kind": kinds.POD_GROUPS.kind,
        "metadata": {
            "name": group_name(pod) if gang is None else gang.name,
            "namespace": pod.namespace,
            "ownerReferences": _owner_references(pod) if gang is None else [dict(gang.owner)],
            "labels": {key: pod.metadata.labels[key] for key in _FROM_LABELS if key in pod.metadata.labels},
            "annotations": _annotations(pod, owners),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _owner_references(pod: Pod) -> list[object]:
    if pod.controller is not None:
        return [to_builtins(owner) for owner in pod.metadata.owner_references]
    own = {"apiVersion": kinds.PODS.api_version, "kind": kinds.PODS.kind, "name": pod.name, "uid": pod.uid}
    return [{**own, "controller": True, "blockOwnerDeletion": True}]


def _annotations(pod: Pod, owners: Owners) -> dict[str, str]:
    given = pod.metadata.annotations
    notes = {key: value for key, value in owners.annotations.items() if key.startswith(names.INHERITED_PREFIX)}
    notes |= {key: given[key] for key in _FROM_ANNOTATIONS if key in given}
    budget = next((key for key in _BUDGETS if key in given), None)
    if budget is not None:
        notes[budget] = given[budget]
    return notes


def min_member(owners: Owners, default: int = 1) -> int:
    """Gang size: the owners' annotation, but never more than the controller may have pods now; without it ``default``.

    The cap lets a rolling update pass: a new ReplicaSet that may only have one pod yet must not wait for two.
    """
    text = owners.annotations.get(names.GROUP_MIN_MEMBER)
    if text is None:
        return default
    try:
        wanted = int(text, 10)
    except ValueError:
        return 1
    if not 0 <= wanted < 2**31:
        return 1
    return wanted if owners.replicas is None else min(wanted, max(owners.replicas, 1))


def min_resources(pod: Pod, minimum: int, gang: Gang | None = None) -> JsonObject:
    """Usage of the gang where it says what that is, else of ``minimum`` pods like this one.

    A finished pod holds nothing but its place in the object count.
    """
    if gang is not None and gang.size.resources is not None and minimum == gang.size.pods and not finished(pod):
        return dict(usage.to_wire(gang.size.resources))
    used: usage.Usage = {"count/pods": Fraction(1)} if finished(pod) else usage.of_pod(pod.spec)
    return dict(usage.to_wire(usage.total([(minimum, used)])))


def network_topology(annotations: Mapping[str, str]) -> JsonObject | None:
    """Topology from a pod's annotations; either of the two is enough."""
    mode, tier = annotations.get(names.NETWORK_TOPOLOGY_MODE), annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    found: JsonObject = {"mode": mode.lower() if mode is not None and mode.lower() in ("hard", "soft") else "hard"}
    try:
        if tier is not None:
            found["highestTierAllowed"] = int(tier, 10)
    except ValueError:
        log.warning("annotation %s: %r is not a whole number", names.NETWORK_TOPOLOGY_HIGHEST_TIER, tier)
    return found


def changes(pod: Pod, owners: Owners, group: PodGroup, gang: Gang | None = None) -> JsonObject:
    """A merge patch of what this controller owns in a group: gang size, its resources, and its own annotations.

    Queue, topology and whatever others have added are left alone.
    """
    wanted = build(pod, owners, gang)
    spec: JsonObject = {}
    resources, present = wanted["spec"]["minResources"], group.spec.min_resources
    if group.spec.min_member != wanted["spec"]["minMember"]:
        spec["minMember"] = wanted["spec"]["minMember"]
    if present is None or not quantities.equal(present, resources):
        spec["minResources"] = {**dict.fromkeys(present or {}), **resources}
    meta: JsonObject = {}
    for field_name, have in (("labels", group.metadata.labels), ("annotations", group.metadata.annotations)):
        missing = {key: value for key, value in wanted["metadata"][field_name].items() if have.get(key) != value}
        if missing:
            meta[field_name] = missing
    return {**({"spec": spec} if spec else {}), **({"metadata": meta} if meta else {})}
