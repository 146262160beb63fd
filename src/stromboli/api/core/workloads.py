"""Workloads that own pods, as far as generated PodGroups need them."""

from __future__ import annotations

from stromboli.api.core.affinities import LabelSelector
from stromboli.api.core.meta import Object, Struct
from stromboli.api.core.pods import PodTemplate


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a deployment, replica set or stateful set. Absent ``replicas`` means 1."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    service_name: str = ""


class WorkloadStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a workload."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0


class Deployment(Object, frozen=True, kw_only=True):
    """A deployment."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(Object, frozen=True, kw_only=True):
    """A replica set."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class StatefulSet(Object, frozen=True, kw_only=True):
    """A stateful set."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicationControllerSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a replication controller; its selector is a plain map."""

    replicas: int | None = None
    selector: dict[str, str] = {}


class ReplicationController(Object, frozen=True, kw_only=True):
    """A replication controller."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: WorkloadStatus = WorkloadStatus()
