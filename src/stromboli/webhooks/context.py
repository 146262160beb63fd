"""What an admission decision may look at besides the object: the request, the settings, the cluster.

Decisions are pure functions of these. The process backs :class:`Cluster` with informers, tests with
:class:`KnownCluster`; nothing here ever asks the API server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from stromboli.webhooks.admission_configuration import ResourceGroup
from stromboli.webhooks.errors import FieldError
from stromboli.webhooks.families import Family
from stromboli.webhooks.shapes import JsonObject, Queue

DEFAULT_SCHEDULER = "volcano"


class Operation(StrEnum):
    """The operations that endpoints tell apart; a review may carry any other string."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Cluster(Protocol):
    """Read-only view of what exists. Answers come from a cache and may lag behind the API server."""

    def queue(self, name: str) -> Queue | None:
        """The queue of that name."""

    def queues(self) -> Iterable[Queue]:
        """All queues."""

    def children(self, parent: str) -> Collection[Queue]:
        """The queues that name ``parent`` as their parent, by name. Not to be kept."""

    def family(self, parent: str) -> Family:
        """The same queues with what they claim together. Not to be kept."""

    def namespace_annotations(self, name: str) -> Mapping[str, str] | None:
        """Annotations of a namespace, or ``None`` where it is not known."""


class TemplateRules(Protocol):
    """Judges pod templates (spec 07 section 9)."""

    def faults(self, name: str, namespace: str, template: JsonObject) -> list[FieldError]:
        """What is wrong with a task's pod template; paths start at ``template`` or ``metadata``."""


class AnyTemplate:
    """Template rules that accept everything."""

    def faults(self, name: str, namespace: str, template: JsonObject) -> list[FieldError]:
        """Nothing is wrong."""
        return []


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of spec 07 section 1.1 that decisions depend on."""

    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    max_queue_depth: int = 5
    enable_queue_allocated_pods_check: bool = False
    enable_root_queue_protection: bool = True
    scheduling_gates_queue_admission: bool = False
    pod_level_resources: bool = True


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster given as data."""

    known_queues: Mapping[str, Queue] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def queue(self, name: str) -> Queue | None:
        """The queue of that name."""
        return self.known_queues.get(name)

    def queues(self) -> Iterable[Queue]:
        """All queues."""
        return self.known_queues.values()

    def children(self, parent: str) -> Collection[Queue]:
        """The queues that name ``parent`` as their parent, by name."""
        return sorted((queue for queue in self.queues() if queue.spec.parent == parent), key=lambda queue: queue.name)

    def family(self, parent: str) -> Family:
        """The same queues with what they claim together."""
        return Family.of(self.children(parent))

    def namespace_annotations(self, name: str) -> Mapping[str, str] | None:
        """Annotations of a namespace, or ``None`` where it is not known."""
        return self.namespaces.get(name)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything one decision may look at besides the objects."""

    operation: str
    name: str = ""
    namespace: str = ""
    settings: Settings = field(default_factory=Settings)
    cluster: Cluster = field(default_factory=KnownCluster)
    templates: TemplateRules = field(default_factory=AnyTemplate)
    groups: Sequence[ResourceGroup] | None = None
    """Groups of the admission configuration file, ``None`` where no file is loaded."""
