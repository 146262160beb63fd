"""The parts of a pod template that the local rules read."""

from __future__ import annotations

import msgspec

from stromboli.webhooks.shapes import JsonObject, ResourceList, Shape


class Named(Shape, frozen=True):
    """Anything that is referred to by name."""

    name: str = ""


class Requirements(Shape, frozen=True):
    """``resources`` of a container or pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[Named] = []


class Port(Shape, frozen=True):
    """One entry of a container's ``ports``."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class EnvVar(Shape, frozen=True):
    """One entry of a container's ``env``."""

    name: str = ""
    value: str = ""
    value_from: JsonObject | None = None


class VolumeMount(Shape, frozen=True):
    """One entry of a container's ``volumeMounts``."""

    name: str = ""
    mount_path: str = ""


class Probe(Shape, frozen=True):
    """A probe: its handlers, unread."""

    exec: JsonObject | None = None
    http_get: JsonObject | None = None
    tcp_socket: JsonObject | None = None
    grpc: JsonObject | None = None


class SecurityContext(Shape, frozen=True):
    """Identities of processes."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    fs_group: int | None = None


class Container(Shape, frozen=True):
    """A container or init container."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    restart_policy: str | None = None
    termination_message_policy: str = ""
    resources: Requirements = Requirements()
    ports: list[Port] = []
    env: list[EnvVar] = []
    volume_mounts: list[VolumeMount] = []
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: JsonObject | None = None
    security_context: SecurityContext | None = None


class Requirement(Shape, frozen=True):
    """One entry of ``matchExpressions``."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(Shape, frozen=True):
    """One alternative of a node affinity."""

    match_expressions: list[Requirement] = []


class NodeSelector(Shape, frozen=True):
    """Required node affinity."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredTerm(Shape, frozen=True):
    """Weighted node affinity."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Shape, frozen=True):
    """``affinity.nodeAffinity``."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredTerm] = []


class PodAffinityTerm(Shape, frozen=True):
    """One term of a pod affinity."""

    topology_key: str = ""


class WeightedPodAffinityTerm(Shape, frozen=True):
    """Weighted pod affinity."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Shape, frozen=True):
    """``affinity.podAffinity`` or ``affinity.podAntiAffinity``."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(Shape, frozen=True):
    """``affinity``."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Shape, frozen=True):
    """One entry of ``tolerations``."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SpreadConstraint(Shape, frozen=True):
    """One entry of ``topologySpreadConstraints``."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""


class DnsConfig(Shape, frozen=True):
    """``dnsConfig``."""

    nameservers: list[str] = []


class PodSpec(Shape, frozen=True):
    """``template.spec``."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    ephemeral_containers: list[JsonObject] = []
    volumes: list[JsonObject] = []
    resources: Requirements | None = None
    resource_claims: list[Named] = []
    restart_policy: str = "Always"
    dns_policy: str = "ClusterFirst"
    dns_config: DnsConfig | None = None
    host_network: bool = False
    host_users: bool | None = None
    node_selector: dict[str, str] = {}
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    service_account_name: str = ""
    priority_class_name: str = ""
    runtime_class_name: str | None = None
    preemption_policy: str | None = None
    active_deadline_seconds: int | None = None
    security_context: SecurityContext | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[SpreadConstraint] = []
    scheduling_gates: list[Named] = []


class TemplateMetadata(Shape, frozen=True):
    """``template.metadata``."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(Shape, frozen=True):
    """``template``."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()
