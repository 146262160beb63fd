"""Which objects of the cluster are this scheduler's business (spec 04 section 16). Pure.

A pod is taken when it is ours to schedule, or when it sits on a node of ours and so uses its resources. With hash
partitioning pods, PodGroups and nodes are shared among several schedulers, and what the others' pods hold is only added
up (``core.elsewhere``); with ``--node-selector`` only matching nodes are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stromboli.api.core import Node, Object, Pod, PodGroup
from stromboli.scheduler.options import Partition
from stromboli.scheduler.partitioning import Ring


@dataclass(frozen=True, slots=True)
class Share:
    """Own part of the keys; without a ring everything is ours."""

    own: str = ""
    ring: Ring | None = None

    @classmethod
    def of(cls, partition: Partition | None) -> Share:
        """The share of one member of a partition."""
        return cls(partition.own, Ring(partition.members)) if partition else cls()

    def holds(self, key: str) -> bool:
        """Whether a key is ours."""
        return self.ring is None or self.ring.owner(key) == self.own


class Acceptance:
    """The filters of one scheduler."""

    def __init__(
        self, scheduler_names: Iterable[str], *, node_selector: Iterable[str] = (), share: Share | None = None
    ) -> None:
        self._names = frozenset(scheduler_names)
        self._labels = tuple(_label_pairs(node_selector))
        self._share = share or Share()

    @property
    def is_partial(self) -> bool:
        """Whether there are jobs that are other schedulers' business."""
        return self._share.ring is not None

    def queue(self, name: str) -> bool:
        """Whether this scheduler is the one to say what a queue holds."""
        return self._share.holds(name)

    def pod(self, pod: Pod) -> bool:
        """Ours to schedule, or on a node of ours."""
        if self.schedules(pod):
            return True
        return bool(pod.spec.node_name) and self._share.holds(pod.spec.node_name)

    def schedules(self, pod: Pod) -> bool:
        """Names this scheduler, and belongs to our share of the pods."""
        return pod.spec.scheduler_name in self._names and self._share.holds(_owner_or_own_name(pod))

    def pod_group(self, group: PodGroup) -> bool:
        """Belongs to our share."""
        return self._share.holds(_owner_or_own_name(group))

    def node(self, node: Node) -> bool:
        """Belongs to our share and carries at least one of the wanted labels, when any are wanted."""
        labels = node.metadata.labels
        wanted = not self._labels or any(labels.get(key) == value for key, value in self._labels)
        return wanted and self._share.holds(node.name)


def _owner_or_own_name(obj: Object) -> str:
    owners = obj.metadata.owner_references
    return owners[0].name if owners else obj.name


def _label_pairs(entries: Iterable[str]) -> Iterable[tuple[str, str]]:
    """``key:value`` entries, both sides trimmed; entries without a value are ignored."""
    for entry in entries:
        key, _, value = entry.partition(":")
        if value.strip():
            yield key.strip(), value.strip()
