"""Pod templates. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stromboli.api.corev1.containers import Container, ResourceRequirements
from stromboli.api.corev1.placement import Affinity, Toleration, TopologySpreadConstraint
from stromboli.api.corev1.references import LocalObjectReference
from stromboli.api.corev1.security import PodSecurityContext
from stromboli.api.corev1.volumes import Volume
from stromboli.api.meta import EmbeddedObjectMeta
from stromboli.api.modelling import ATOMIC, ATOMIC_MAP, REQUIRED, Int32, Int64, Model, ResourceList, keyed


class EphemeralContainer(Container):
    """A container added to a running pod for debugging."""

    target_container_name: str | None = None


class HostAlias(Model):
    """An entry of the hosts file."""

    hostnames: Annotated[list[str], ATOMIC] = []
    ip: Annotated[str, REQUIRED] = ""


class PodDNSConfigOption(Model):
    """A resolver option."""

    name: str | None = None
    value: str | None = None


class PodDNSConfig(Model):
    """DNS settings of a pod."""

    nameservers: Annotated[list[str], ATOMIC] = []
    options: Annotated[list[PodDNSConfigOption], ATOMIC] = []
    searches: Annotated[list[str], ATOMIC] = []


class PodOS(Model):
    """The operating system of a pod."""

    name: Annotated[str, REQUIRED] = ""


class PodReadinessGate(Model):
    """A condition that must be true for the pod to be ready."""

    condition_type: Annotated[str, REQUIRED] = ""


class PodResourceClaim(Model):
    """A device claim, by name or from a template."""

    name: Annotated[str, REQUIRED] = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Model):
    """A reason not to schedule yet."""

    name: Annotated[str, REQUIRED] = ""


class WorkloadReference(Model):
    """The workload and pod group that the pod belongs to."""

    name: Annotated[str, REQUIRED] = ""
    pod_group: Annotated[str, REQUIRED] = ""
    pod_group_replica_key: str | None = None


class PodSpec(Model):
    """What a pod runs, where and how."""

    active_deadline_seconds: Int64 | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: Annotated[list[Container], keyed("name"), REQUIRED] = []
    dns_config: PodDNSConfig | None = None
    dns_policy: str | None = None
    enable_service_links: bool | None = None
    ephemeral_containers: Annotated[list[EphemeralContainer], keyed("name")] = []
    host_aliases: Annotated[list[HostAlias], keyed("ip")] = []
    host_ipc: bool | None = Field(default=None, alias="hostIPC")
    host_network: bool | None = None
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: Annotated[list[LocalObjectReference], keyed("name")] = []
    init_containers: Annotated[list[Container], keyed("name")] = []
    node_name: str | None = None
    node_selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    os: PodOS | None = None
    overhead: ResourceList = {}
    preemption_policy: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    readiness_gates: Annotated[list[PodReadinessGate], ATOMIC] = []
    resource_claims: Annotated[list[PodResourceClaim], keyed("name")] = []
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: Annotated[list[PodSchedulingGate], keyed("name")] = []
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: bool | None = Field(default=None, alias="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    tolerations: Annotated[list[Toleration], ATOMIC] = []
    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint], keyed("topologyKey", "whenUnsatisfiable")
    ] = []
    volumes: Annotated[list[Volume], keyed("name")] = []
    workload_ref: WorkloadReference | None = None


class PodTemplateSpec(Model):
    """Metadata and spec of pods to be made."""

    metadata: EmbeddedObjectMeta = Field(default_factory=EmbeddedObjectMeta)
    spec: PodSpec = Field(default_factory=PodSpec)
