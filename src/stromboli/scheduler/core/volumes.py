"""Which volumes a pod's claims can have on a node (spec 04 section 21, spec 06 section 17.9). Pure.

:func:`claims_of` sorts a pod's claims into bound, unbound immediate and unbound delayed ones; :func:`plan` says for the
delayed ones which existing volumes they would take on a node and which must be provisioned there, or why neither is
possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from stromboli.api import core, quantities, selectors
from stromboli.scheduler.core.objects import ClusterObjects

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"


class VolumeProblem(Exception):
    """The claims of a pod cannot be served; the text is the reason that users see."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims by what is still to be done about them."""

    bound: tuple[core.PersistentVolumeClaim, ...] = ()
    immediate: tuple[core.PersistentVolumeClaim, ...] = ()
    delayed: tuple[core.PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What binding the delayed claims on a node takes."""

    static: tuple[tuple[core.PersistentVolume, core.PersistentVolumeClaim], ...] = ()
    provision: tuple[core.PersistentVolumeClaim, ...] = ()


def has_claims(volumes: Iterable[core.Volume]) -> bool:
    """Whether any of a pod's volumes is a claim."""
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in volumes)


def claim_names(pod_name: str, volumes: Iterable[core.Volume]) -> Iterator[tuple[str, bool]]:
    """Names of a pod's claims, and whether each is an ephemeral one."""
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            yield f"{pod_name}-{volume.name}", True


def claims_of(
    namespace: str, pod_name: str, pod_uid: str, volumes: Iterable[core.Volume], objects: ClusterObjects
) -> PodClaims:
    """The pod's claims.

    Raises:
        VolumeProblem: a claim is missing, lost, being deleted, or an ephemeral one of somebody else.
    """
    bound, immediate, delayed = [], [], []
    for name, ephemeral in claim_names(pod_name, volumes):
        claim = _checked(objects.get(core.PersistentVolumeClaim, name, namespace), name, pod_uid, ephemeral=ephemeral)
        if is_bound(claim):
            bound.append(claim)
        elif not claim.spec.volume_name and _is_delayed(claim, objects):
            delayed.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(immediate), tuple(delayed))


def _checked(
    claim: core.PersistentVolumeClaim | None, name: str, pod_uid: str, *, ephemeral: bool
) -> core.PersistentVolumeClaim:
    if claim is None:
        if ephemeral:
            raise VolumeProblem(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        raise VolumeProblem(f'persistentvolumeclaim "{name}" not found')
    if claim.status.phase == "Lost":
        raise VolumeProblem(
            f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.deleting:
        raise VolumeProblem(f'persistentvolumeclaim "{name}" is being deleted')
    if ephemeral and all(owner.uid != pod_uid for owner in claim.metadata.owner_references):
        raise VolumeProblem(f'persistentvolumeclaim "{name}" was not created for this pod')
    return claim


def is_bound(claim: core.PersistentVolumeClaim) -> bool:
    """Whether the binding of a claim is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _is_delayed(claim: core.PersistentVolumeClaim, objects: ClusterObjects) -> bool:
    class_ = objects.get(core.StorageClass, claim.spec.storage_class_name or "")
    return class_ is not None and class_.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def check_bound(claims: Iterable[core.PersistentVolumeClaim], node: core.Node, objects: ClusterObjects) -> None:
    """Raises VolumeProblem when a bound claim's volume is missing or cannot be reached from the node."""
    for claim in claims:
        volume = objects.get(core.PersistentVolume, claim.spec.volume_name)
        if volume is None:
            raise VolumeProblem(VOLUME_MISSING)
        if not _reaches(volume, node):
            raise VolumeProblem(WRONG_NODE)


def plan(
    delayed: Iterable[core.PersistentVolumeClaim],
    node: core.Node,
    objects: ClusterObjects,
    taken: Collection[str] = (),
) -> VolumePlan:
    """Volumes for delayed claims on a node, the smallest claim served first; ``taken`` volumes are somebody else's.

    Raises:
        VolumeProblem: some claim can have none there.
    """
    static: list[tuple[core.PersistentVolume, core.PersistentVolumeClaim]] = []
    provision: list[core.PersistentVolumeClaim] = []
    used = set(taken)
    volumes = objects.all(core.PersistentVolume)
    for claim in sorted(delayed, key=_size):
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is not None and selected != node.name:
            raise VolumeProblem(NO_VOLUME)
        volume = None if selected else _smallest(claim, node, volumes, used)
        if volume is not None:
            used.add(volume.name)
            static.append((volume, claim))
        elif _can_provision(claim, node, objects):
            provision.append(claim)
        else:
            raise VolumeProblem(NO_VOLUME)
    return VolumePlan(tuple(static), tuple(provision))


def _smallest(
    claim: core.PersistentVolumeClaim,
    node: core.Node,
    volumes: Mapping[tuple[str, str], core.PersistentVolume],
    used: Collection[str],
) -> core.PersistentVolume | None:
    fitting = [volume for volume in volumes.values() if volume.name not in used and _fits(volume, claim, node)]
    return min(fitting, key=lambda volume: (_capacity(volume), volume.name), default=None)


def _fits(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim, node: core.Node) -> bool:
    spec, wanted = volume.spec, claim.spec
    return (
        not volume.deleting
        and _is_free_for(volume, claim)
        and spec.storage_class_name == (wanted.storage_class_name or "")
        and set(wanted.access_modes) <= set(spec.access_modes)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (spec.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and selectors.matches_selector(wanted.selector, volume.metadata.labels, absent=True)
        and _capacity(volume) >= _size(claim)
        and _reaches(volume, node)
    )


def _is_free_for(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is None:
        return volume.status.phase in ("", "Available")
    named = (reference.namespace, reference.name) == claim.key
    return named and reference.uid in ("", claim.uid)


def _reaches(volume: core.PersistentVolume, node: core.Node) -> bool:
    affinity = volume.spec.node_affinity
    return affinity is None or affinity.required is None or selectors.matches_node_selector(affinity.required, node)


def _can_provision(claim: core.PersistentVolumeClaim, node: core.Node, objects: ClusterObjects) -> bool:
    class_ = objects.get(core.StorageClass, claim.spec.storage_class_name or "")
    if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
        return False
    terms = class_.allowed_topologies
    return not terms or any(_term_matches(term, node.metadata.labels) for term in terms)


def _term_matches(term: core.TopologySelectorTerm, labels: Mapping[str, str]) -> bool:
    return all(labels.get(item.key) in item.values for item in term.match_label_expressions)


def _size(claim: core.PersistentVolumeClaim) -> int:
    return _bytes(claim.spec.resources.requests)


def _capacity(volume: core.PersistentVolume) -> int:
    return _bytes(volume.spec.capacity)


def _bytes(resources: core.ResourceList) -> int:
    try:
        return quantities.value(resources.get("storage", 0))
    except ValueError:
        return 0
