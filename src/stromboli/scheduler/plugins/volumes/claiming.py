"""Volumes for claims: where a pod's bound claims can be used, and where the others can get a volume (spec 06 section
17.9).

Whether a node will do is worked out per content of the claims, for all nodes at once: every volume that a claim could
have is a list of rows from which it is reached, and the best free one per row is a minimum over those lists. An answer
is asked for again on the rows from which a volume is reached that was given away or taken back.

What a cycle decides is promised (``plugins.promises``) until the shell has bound the claims, so that no volume is given
twice; pods that share a claim share its volume.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from stromboli.api import core
from stromboli.scheduler.core import volumes
from stromboli.scheduler.core.extensions import BindExtension, VolumeGrant
from stromboli.scheduler.core.plugin import PlacementRefused, Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.volumes import Choice, Choices, PodClaims, VolumeProblem
from stromboli.scheduler.plugins.promises import Holder, Promises

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import Key
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.selecting import NodeLabels

WRONG_NODE = Reason(volumes.WRONG_NODE, Code.UNRESOLVABLE)
VOLUME_MISSING = Reason(volumes.VOLUME_MISSING, Code.UNRESOLVABLE)
NO_VOLUME = Reason(volumes.NO_VOLUME, Code.UNRESOLVABLE)
NO_STORAGE = Reason(volumes.NO_STORAGE, Code.UNRESOLVABLE)
_FITS, _NO_VOLUME, _NO_STORAGE = range(3)

_PROMISES = "volume-promises"
_NOTHING = np.iinfo(np.int64).max

_FEW = 16
"""More stale rows than this are worked out together with all others."""
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")

Given: TypeAlias = npt.NDArray[np.int64]
"""Per row the number of the volume that a claim would get, or ``_NOTHING``."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What there is for a delayed claim: what is promised to it, else the volumes that it could have, best first."""

    choice: Choice | None
    suiting: tuple[core.PersistentVolume, ...]


@dataclass(slots=True)
class _Answers:
    """About claims of one content: per row the refusal, and when it was asked for."""

    wanted: tuple[_Wanted, ...]
    refusals: Refusals
    asked: npt.NDArray[np.int64]


class _Volumes:
    """The persistent volumes of a class: numbered, and by the rows from which they are reached."""

    def __init__(self) -> None:
        self.all: list[core.PersistentVolume] = []
        self.everywhere: list[core.PersistentVolume] = []
        self.by_row: defaultdict[int, list[core.PersistentVolume]] = defaultdict(list)
        self.claimed: defaultdict[Key, list[core.PersistentVolume]] = defaultdict(list)

    def add(self, volume: core.PersistentVolume, rows: Rows | None) -> None:
        """One more volume."""
        self.all.append(volume)
        reference = volume.spec.claim_ref
        if reference is not None:
            self.claimed[reference.namespace, reference.name].append(volume)
        if rows is None:
            self.everywhere.append(volume)
        else:
            for row in rows.tolist():
                self.by_row[row].append(volume)


@dataclass(slots=True)
class VolumeClaims:
    """Answers about nodes for pods with volume claims, and the books of what is promised."""

    view: View
    labels: NodeLabels
    bound_reasons: list[Reason] = field(default_factory=lambda: [WRONG_NODE, VOLUME_MISSING])
    delayed_reasons: list[Reason] = field(default_factory=lambda: [NO_VOLUME, NO_STORAGE])
    _promises: Promises[Choice] = field(init=False)
    _choices: Choices = field(init=False)
    _claims: dict[str, PodClaims] = field(default_factory=dict)
    _answers: dict[bytes, _Answers] = field(default_factory=dict)
    _by_shape: dict[int, tuple[int, _Answers]] = field(default_factory=dict)
    """Which answers a shape has, and at which version of the promises that was so."""
    _stamps: npt.NDArray[np.int64] = field(init=False)
    _reached: dict[core.NodeSelector, Rows] = field(default_factory=dict)
    _by_class: dict[str, _Volumes] | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _granted: dict[str, tuple[VolumeGrant, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._promises = promises_of(self.view)
        self._stamps = np.zeros(self.view.nodes.count, dtype=np.int64)
        self._choices = Choices()
        for key, choice in self._promises.items():
            self._choices.add(key, choice)

    # Questions

    @staticmethod
    def concerns(task: Task) -> bool:
        """Whether the pod has claims."""
        return volumes.has_claims(task.shape.pod.spec.volumes)

    def waits(self, task: Task) -> bool:
        """Whether some claim of the pod is to be bound once the pod has a node."""
        try:
            return self.concerns(task) and bool(self._of(task).delayed)
        except VolumeProblem:
            return False

    def prepare(self, task: Task) -> str | None:
        """Why the pod's claims cannot be tried on any node."""
        try:
            claims = self._of(task) if self.concerns(task) else None
        except VolumeProblem as problem:
            return str(problem)
        return volumes.UNBOUND_IMMEDIATE if claims is not None and claims.immediate else None

    def refuse_bound(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows from which the volume of a bound claim is not reached. All of them when the claims cannot be tried."""
        problem = self.prepare(task)
        if problem is not None:
            reason = Reason(problem, Code.UNRESOLVABLE)
            if reason not in self.bound_reasons:
                self.bound_reasons.append(reason)
            return np.full(len(rows), self.bound_reasons.index(reason) + 1, dtype=np.uint8)
        bound = self._of(task).bound
        if not bound:
            return None
        refusals = np.zeros(len(rows), dtype=np.uint8)
        for claim in bound:
            volume = self.view.objects.get(core.PersistentVolume, claim.spec.volume_name)
            if volume is None:
                refusals[refusals == 0] = 2
            else:
                refusals[(refusals == 0) & ~self._reaches(volume, rows)] = 1
        return refusals

    def refuse_delayed(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows on which some claim that waits for its pod could get no volume."""
        answers = self._about(task)
        stale = rows[answers.asked[rows] != self._stamps[rows]]
        claims = volumes.by_size(self._of(task).delayed) if len(stale) else []
        if len(stale) > _FEW:
            answers.refusals = self._try(list(zip(claims, answers.wanted, strict=True)))
            answers.asked[:] = self._stamps
        else:
            for row in stale.tolist():
                answers.refusals[row] = self._try_one(claims, row)
                answers.asked[row] = self._stamps[row]
        return answers.refusals[rows]

    def _about(self, task: Task) -> _Answers:
        known = self._by_shape.get(task.shape.index)
        if known is None or known[0] != self._promises.version:
            known = (self._promises.version, self._answers_about(volumes.by_size(self._of(task).delayed)))
            self._by_shape[task.shape.index] = known
        return known[1]

    def _answers_about(self, delayed: Sequence[core.PersistentVolumeClaim]) -> _Answers:
        choices = [self._choices.by_claim.get(claim.key) for claim in delayed]
        content = [
            (claim.spec, claim.metadata.annotations.get(volumes.SELECTED_NODE), choice, self._waiting_for(claim))
            for claim, choice in zip(delayed, choices, strict=True)
        ]
        key = _ENCODER.encode(content)
        answers = self._answers.get(key)
        if answers is None:
            count = self.view.nodes.count
            wanted = tuple(
                _Wanted(choice, tuple(self._suiting(claim, choice)))
                for claim, choice in zip(delayed, choices, strict=True)
            )
            answers = _Answers(wanted, np.zeros(count, dtype=np.uint8), np.full(count, -1, dtype=np.int64))
            self._answers[key] = answers
        return answers

    def _waiting_for(self, claim: core.PersistentVolumeClaim) -> list[str]:
        """Volumes that nobody but this claim can have."""
        return [each.name for each in self._of_class(claim.spec.storage_class_name or "").claimed.get(claim.key, ())]

    def _try_one(self, delayed: Iterable[core.PersistentVolumeClaim], row: int) -> int:
        """The refusal of one row."""
        node = self.view.node_list[row]
        if node is None or node.resource is None:
            return _FITS
        try:
            self._plan(delayed, node, node.resource)
        except VolumeProblem as problem:
            return _NO_STORAGE if str(problem) == volumes.NO_STORAGE else _NO_VOLUME
        return _FITS

    def _plan(
        self, delayed: Iterable[core.PersistentVolumeClaim], node: Node, resource: core.Node
    ) -> volumes.VolumePlan:
        delayed = list(delayed)
        classes = [self._of_class(name) for name in {claim.spec.storage_class_name or "" for claim in delayed}]
        among = [volume for each in classes for volume in (*each.by_row[node.row], *each.everywhere)]
        return volumes.plan(
            delayed,
            resource,
            self.view.objects,
            self._choices,
            check_storage=self._checks_storage,
            among=among,
        )

    def _try(self, delayed: Iterable[tuple[core.PersistentVolumeClaim, _Wanted]]) -> Refusals:
        """As ``core.volumes.plan``, for all rows at once."""
        rows: Rows = np.arange(self.view.nodes.count)
        refusals = np.zeros(len(rows), dtype=np.uint8)
        given: list[Given] = []
        for claim, each in delayed:
            if each.choice is not None and each.choice.volume is not None:
                served = self._reaches_promised(claim, each.choice.volume, rows)
                given.append(np.where(served, self._numbers.get(each.choice.volume, _NOTHING), _NOTHING))
                refusals[(refusals == 0) & ~served] = _NO_VOLUME
                continue
            given.append(self._best(claim, each.suiting, given, len(rows)))
            left = (refusals == 0) & (given[-1] == _NOTHING)
            refusals[left] = self._provisioning(claim, each.choice, rows[left])
        return refusals

    def _reaches_promised(self, claim: core.PersistentVolumeClaim, name: str, rows: Rows) -> Bools:
        volume = self.view.objects.get(core.PersistentVolume, name)
        if volume is None or not volumes.suits(volume, claim):
            return np.zeros(len(rows), dtype=bool)
        return self._reaches(volume, rows)

    def _best(
        self,
        claim: core.PersistentVolumeClaim,
        suiting: Iterable[core.PersistentVolume],
        given: Sequence[Given],
        count: int,
    ) -> Given:
        """Per row the volume that the claim would get."""
        best: Given = np.full(count, _NOTHING, dtype=np.int64)
        everywhere = 0
        free = [volume for volume in suiting if self._is_free(volume, claim)]
        for rank, volume in enumerate(free):
            reached = self._rows_of(volume)
            if reached is None:
                everywhere += 1
                reached = np.arange(count)
            for numbers in given:
                reached = reached[numbers[reached] != self._numbers[volume.name]]
            best[reached] = np.minimum(best[reached], rank)
            if everywhere > len(given):
                break  # every row has one by now, and later volumes are worse
        found = np.array([*(self._numbers[volume.name] for volume in free), _NOTHING], dtype=np.int64)
        return found[np.minimum(best, len(free))]

    def _is_free(self, volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
        return self._choices.taken.get(volume.name, claim.key) == claim.key

    def _suiting(self, claim: core.PersistentVolumeClaim, choice: Choice | None) -> list[core.PersistentVolume]:
        """Volumes that the claim could have, best first."""
        if choice is not None or volumes.SELECTED_NODE in claim.metadata.annotations:
            return []
        found = self._of_class(claim.spec.storage_class_name or "").all
        suiting = [volume for volume in found if volumes.suits(volume, claim)]
        return sorted(suiting, key=lambda volume: volumes.preference(volume, claim))

    def _provisioning(self, claim: core.PersistentVolumeClaim, choice: Choice | None, rows: Rows) -> Refusals:
        """Rows on which no volume can be provisioned for a claim."""
        class_ = volumes.provisioning_class(claim, self.view.objects)
        if class_ is None:
            return np.full(len(rows), _NO_VOLUME, dtype=np.uint8)
        possible = np.ones(len(rows), dtype=bool)
        selected = claim.metadata.annotations.get(volumes.SELECTED_NODE)
        for name in {selected, choice.node if choice is not None else None} - {None}:
            node = self.view.nodes_by_name.get(name or "")
            possible &= rows == (node.row if node is not None else -1)
        terms = volumes.topology_terms(class_)
        if terms is not None:
            possible &= self.labels.matches_any(terms, rows)
        refusals = np.where(possible, _FITS, _NO_VOLUME).astype(np.uint8)
        rooms = volumes.storage_terms(claim, class_, self.view.objects) if self._checks_storage else None
        if rooms is not None and not any(map(volumes.matches_everything, rooms)):
            refusals[possible & ~self.labels.matches_any(rooms, rows)] = _NO_STORAGE
        return refusals

    @property
    def _checks_storage(self) -> bool:
        return bool(self.view.options.get("csi-storage")) and self.view.feature("CSIStorage", False)

    def plan_on(self, task: Task, node: Node) -> volumes.VolumePlan | None:
        """What the pod's claims would get on a node; None when they cannot be served there, or wait for nothing."""
        if not self.waits(task) or node.resource is None:
            return None
        try:
            return self._plan(self._of(task).delayed, node, node.resource)
        except VolumeProblem:
            return None

    # Books

    def placed(self, task: Task, node: Node) -> None:
        """Promises volumes to a task's claims. Raises PlacementRefused and changes nothing when it cannot."""
        if not self.waits(task) or node.resource is None:
            return
        delayed = self._of(task).delayed
        try:
            plan = self._plan(delayed, node, node.resource)
        except VolumeProblem as problem:
            raise PlacementRefused(str(problem)) from problem
        chosen = [(claim, Choice(volume.name, node.name)) for volume, claim in plan.static]
        chosen += [(claim, Choice(None, node.name)) for claim in plan.provision]
        holder = Holder.of(task, node)
        for claim, choice in chosen:
            if self._promises.add(claim, choice, holder):
                self._choices.add(claim.key, choice)
                self._changed(choice)
        self._granted[task.uid] = tuple(VolumeGrant(claim.name, claim.uid, choice.volume) for claim, choice in chosen)

    def removed(self, task: Task, node: Node) -> None:
        """Takes back what was promised to a task; volumes of an evicted pod stay with their claims."""
        if task.uid not in self._granted or task.status == TaskStatus.RELEASING:
            return
        for grant in self._granted.pop(task.uid):
            key = (task.namespace, grant.claim)
            choice = self._promises.drop(key, Holder.of(task, node))
            if choice is not None:
                self._choices.remove(key)
                self._changed(choice)

    def extension(self, task: Task) -> BindExtension | None:
        """What the shell is to bind before the task."""
        grants = self._granted.get(task.uid)
        return BindExtension(volumes=grants) if grants else None

    def _changed(self, choice: Choice) -> None:
        """Answers about rows from which the volume is reached do not hold any more."""
        volume = self.view.objects.get(core.PersistentVolume, choice.volume) if choice.volume is not None else None
        if volume is not None:
            rows = self._rows_of(volume)
            self._stamps[slice(None) if rows is None else rows] += 1

    # What there is

    def _of(self, task: Task) -> PodClaims:
        """The claims of a pod. Raises VolumeProblem."""
        known = self._claims.get(task.uid)
        if known is None:
            known = self._claims[task.uid] = volumes.claims_of(
                task.namespace, task.name, task.uid, task.shape.pod.spec.volumes, self.view.objects
            )
        return known

    def _of_class(self, name: str) -> _Volumes:
        if self._by_class is None:
            self._by_class = {}
            for number, volume in enumerate(self.view.objects.all(core.PersistentVolume).values()):
                self._numbers[volume.name] = number
                class_ = self._by_class.setdefault(volume.spec.storage_class_name, _Volumes())
                class_.add(volume, self._rows_of(volume))
        return self._by_class.setdefault(name, _Volumes())

    def _reaches(self, volume: core.PersistentVolume, rows: Rows) -> Bools:
        reached = self._rows_of(volume)
        return np.ones(len(rows), dtype=bool) if reached is None else np.isin(rows, reached)

    def _rows_of(self, volume: core.PersistentVolume) -> Rows | None:
        """Rows from which a volume is reached; None for all."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return None
        selector = affinity.required
        rows = self._reached.get(selector)
        if rows is None:
            every: Rows = np.arange(self.view.nodes.count)
            rows = self._reached[selector] = np.nonzero(self.labels.matches_any(selector.node_selector_terms, every))[0]
        return rows


def promises_of(view: View) -> Promises[Choice]:
    """Choices that are made and not carried out yet, at the beginning of this cycle."""
    promises = view.memory.setdefault(_PROMISES, Promises[Choice]())
    assert isinstance(promises, Promises)
    promises.tidy(view, lambda key: view.objects.get(core.PersistentVolumeClaim, key[1], key[0]), volumes.is_bound)
    return promises
