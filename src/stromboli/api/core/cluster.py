"""Priority classes, quotas, disruption budgets, namespaces, services, events, leases and config maps."""

from __future__ import annotations

import msgspec

from stromboli.api.core.affinities import LabelSelector
from stromboli.api.core.meta import Object, ResourceList, Struct


class ObjectReference(Struct, frozen=True, kw_only=True):
    """``core/v1.ObjectReference``."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class PriorityClass(Object, frozen=True, kw_only=True):
    """A priority by name; its fields are at the top level."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class ScopedSelectorRequirement(Struct, frozen=True, kw_only=True):
    """A quota scope, an operator and values."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Struct, frozen=True, kw_only=True):
    """Requirements that must all hold."""

    match_expressions: tuple[ScopedSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a quota."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a quota."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True, kw_only=True):
    """A namespace's quota."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a budget; the two amounts are integers or percentages."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a budget."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = {}
    observed_generation: int = 0


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """A limit on voluntary disruptions of pods."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class NamespaceStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a namespace; phases are ``Active`` and ``Terminating``."""

    phase: str = ""


class Namespace(Object, frozen=True, kw_only=True):
    """A namespace."""

    status: NamespaceStatus = NamespaceStatus()


class ServicePort(Struct, frozen=True, kw_only=True):
    """A port of a service."""

    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None


class ServiceSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a service; ``cluster_ip`` of ``None`` (the text) makes it headless."""

    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False
    type: str = ""


class Service(Object, frozen=True, kw_only=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class EventSource(Struct, frozen=True, kw_only=True):
    """The component that reports an event."""

    component: str = ""
    host: str = ""


class Event(Object, frozen=True, kw_only=True):
    """A ``core/v1`` event; its fields are at the top level."""

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    action: str = ""


class LeaseSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a lease; times have microseconds on the wire."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Object, frozen=True, kw_only=True):
    """A lease, as leader election uses it."""

    spec: LeaseSpec = LeaseSpec()


class ConfigMap(Object, frozen=True, kw_only=True):
    """A config map's text data."""

    data: dict[str, str] = {}
