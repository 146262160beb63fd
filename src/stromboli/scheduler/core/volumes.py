"""Which volumes a pod's claims can have on a node (spec 04 section 21, spec 06 section 17.9). Pure.

:func:`claims_of` sorts a pod's claims into bound, unbound immediate and unbound delayed ones; :func:`plan` says for the
delayed ones which existing volumes they would take on a node and which must be provisioned there, or why neither is
possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stromboli.api import core, quantities, selectors
from stromboli.scheduler.core.objects import ClusterObjects, Key

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_STORAGE = "node(s) did not have enough free storage"


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


@dataclass(frozen=True, slots=True)
class Choice:
    """What a delayed claim is to get: an existing volume, or (None) one provisioned on a node."""

    volume: str | None
    node: str


@dataclass(slots=True)
class Choices:
    """What is decided about delayed claims and not written yet."""

    by_claim: dict[Key, Choice] = field(default_factory=dict)
    taken: dict[str, Key] = field(default_factory=dict)
    """Volumes by name, and the claim that gets each."""

    def add(self, claim: Key, choice: Choice) -> None:
        """One more decision."""
        self.by_claim[claim] = choice
        if choice.volume is not None:
            self.taken[choice.volume] = claim

    def remove(self, claim: Key) -> Choice | None:
        """Takes a decision back."""
        choice = self.by_claim.pop(claim, None)
        if choice is not None and choice.volume is not None and self.taken.get(choice.volume) == claim:
            del self.taken[choice.volume]
        return choice


NO_CHOICES = Choices()


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
        if not reaches(volume, node):
            raise VolumeProblem(WRONG_NODE)


def plan(
    delayed: Iterable[core.PersistentVolumeClaim],
    node: core.Node,
    objects: ClusterObjects,
    choices: Choices = NO_CHOICES,
    *,
    check_storage: bool = False,
    among: Iterable[core.PersistentVolume] | None = None,
) -> VolumePlan:
    """Volumes for delayed claims on a node, the smallest claim served first, as far as ``choices`` leave a choice.

    With ``check_storage`` a volume is provisioned only where its driver has said that there is room for it. ``among``
    are the volumes that come into question, if that is known.

    Raises:
        VolumeProblem: some claim can have none there.
    """
    static: list[tuple[core.PersistentVolume, core.PersistentVolumeClaim]] = []
    provision: list[core.PersistentVolumeClaim] = []
    used: set[str] = set()
    present = list(objects.all(core.PersistentVolume).values() if among is None else among)
    for claim in by_size(delayed):
        volume = _volume(claim, node, objects, choices, [each for each in present if each.name not in used])
        if volume is not None:
            used.add(volume.name)
            static.append((volume, claim))
        else:
            _check_provisioning(claim, node, objects, choices, check_storage=check_storage)
            provision.append(claim)
    return VolumePlan(tuple(static), tuple(provision))


def by_size(claims: Iterable[core.PersistentVolumeClaim]) -> list[core.PersistentVolumeClaim]:
    """Claims in the order in which they are served."""
    return sorted(claims, key=size_of)


def _volume(
    claim: core.PersistentVolumeClaim,
    node: core.Node,
    objects: ClusterObjects,
    choices: Choices,
    present: Iterable[core.PersistentVolume],
) -> core.PersistentVolume | None:
    """The volume that a claim gets on a node; None when one would have to be provisioned."""
    choice = choices.by_claim.get(claim.key)
    if choice is not None and choice.volume is not None:
        volume = objects.get(core.PersistentVolume, choice.volume)
        if volume is None or not suits(volume, claim) or not reaches(volume, node):
            raise VolumeProblem(NO_VOLUME)
        return volume
    if choice is not None or SELECTED_NODE in claim.metadata.annotations:
        return None
    free = (each for each in present if choices.taken.get(each.name, claim.key) == claim.key)
    fitting = (each for each in free if suits(each, claim) and reaches(each, node))
    return min(fitting, key=lambda each: preference(each, claim), default=None)


def preference(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> tuple[bool, int, str]:
    """The least is taken: a volume that waits for this claim, then the smallest."""
    return (volume.spec.claim_ref is None, capacity_of(volume), volume.name)


def suits(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Whether a claim could have a volume, wherever the pod is."""
    spec, wanted = volume.spec, claim.spec
    return (
        spec.storage_class_name == (wanted.storage_class_name or "")
        and _is_free_for(volume, claim)
        and not volume.deleting
        and set(wanted.access_modes) <= set(spec.access_modes)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (spec.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and selectors.matches_selector(wanted.selector, volume.metadata.labels, absent=True)
        and capacity_of(volume) >= size_of(claim)
    )


def _is_free_for(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is None:
        return volume.status.phase in ("", "Available")
    named = (reference.namespace, reference.name) == claim.key
    return named and reference.uid in ("", claim.uid)


def reaches(volume: core.PersistentVolume, node: core.Node) -> bool:
    """Whether a volume can be used from a node."""
    affinity = volume.spec.node_affinity
    return affinity is None or affinity.required is None or selectors.matches_node_selector(affinity.required, node)


def _check_provisioning(
    claim: core.PersistentVolumeClaim,
    node: core.Node,
    objects: ClusterObjects,
    choices: Choices,
    *,
    check_storage: bool,
) -> None:
    """Raises VolumeProblem when no volume can be provisioned for a claim on a node."""
    choice = choices.by_claim.get(claim.key)
    elsewhere = {claim.metadata.annotations.get(SELECTED_NODE), choice.node if choice else None} - {None, node.name}
    class_ = provisioning_class(claim, objects)
    if elsewhere or class_ is None:
        raise VolumeProblem(NO_VOLUME)
    terms = topology_terms(class_)
    if terms is not None and not any(selectors.matches_node_term(term, node) for term in terms):
        raise VolumeProblem(NO_VOLUME)
    if check_storage:
        rooms = storage_terms(claim, class_, objects)
        if rooms is not None and not any(_covers(term, node) for term in rooms):
            raise VolumeProblem(NO_STORAGE)


def provisioning_class(claim: core.PersistentVolumeClaim, objects: ClusterObjects) -> core.StorageClass | None:
    """The class that could provision a volume for a claim, if there is one."""
    class_ = objects.get(core.StorageClass, claim.spec.storage_class_name or "")
    return None if class_ is None or class_.provisioner in ("", NO_PROVISIONER) else class_


def topology_terms(class_: core.StorageClass) -> list[core.NodeSelectorTerm] | None:
    """Where a class can provision, as node selector terms; None: everywhere."""
    terms = [_topology_term(term) for term in class_.allowed_topologies]
    return None if not terms or any(map(matches_everything, terms)) else terms


def _topology_term(term: core.TopologySelectorTerm) -> core.NodeSelectorTerm:
    items = term.match_label_expressions
    return core.NodeSelectorTerm(
        match_expressions=tuple(core.Requirement(key=item.key, operator="In", values=item.values) for item in items)
    )


def storage_terms(
    claim: core.PersistentVolumeClaim, class_: core.StorageClass, objects: ClusterObjects
) -> list[core.NodeSelectorTerm] | None:
    """Where a driver has room for a claim; an empty term is everywhere. None: the driver does not tell."""
    driver = objects.get(core.CSIDriver, class_.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    return [
        _as_term(room.node_topology)
        for room in objects.all(core.CSIStorageCapacity).values()
        if room.storage_class_name == class_.name and room.node_topology is not None and _room(room) >= size_of(claim)
    ]


def room_on(claim: core.PersistentVolumeClaim, node: core.Node, objects: ClusterObjects) -> int | None:
    """How much the class of a claim can still provision on a node, in bytes; None when its driver does not tell."""
    rooms = [
        _bytes({"storage": room.capacity})
        for room in objects.all(core.CSIStorageCapacity).values()
        if room.storage_class_name == (claim.spec.storage_class_name or "")
        and room.capacity is not None
        and room.node_topology is not None
        and _covers(_as_term(room.node_topology), node)
    ]
    return max(rooms, default=None)


def _covers(term: core.NodeSelectorTerm, node: core.Node) -> bool:
    return matches_everything(term) or selectors.matches_node_term(term, node)


def matches_everything(term: core.NodeSelectorTerm) -> bool:
    """Whether a term made here is one without conditions; in a node selector such a term matches nothing."""
    return not term.match_expressions and not term.match_fields


def _as_term(selector: core.LabelSelector) -> core.NodeSelectorTerm:
    pairs = (core.Requirement(key=key, operator="In", values=(value,)) for key, value in selector.match_labels.items())
    return core.NodeSelectorTerm(match_expressions=(*pairs, *selector.match_expressions))


def _room(room: core.CSIStorageCapacity) -> int:
    """The largest volume that can still be made; nothing when the driver does not say."""
    amount = room.capacity if room.maximum_volume_size is None else room.maximum_volume_size
    return _bytes({} if amount is None else {"storage": amount})


def size_of(claim: core.PersistentVolumeClaim) -> int:
    """What a claim asks for, in bytes."""
    return _bytes(claim.spec.resources.requests)


def capacity_of(volume: core.PersistentVolume) -> int:
    """What a volume holds, in bytes."""
    return _bytes(volume.spec.capacity)


def _bytes(resources: core.ResourceList) -> int:
    try:
        return quantities.value(resources.get("storage", 0))
    except ValueError:
        return 0
