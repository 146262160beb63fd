"""Containers of pod templates. Fields are those of ``core/v1``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stromboli.api.corev1.environment import EnvFromSource, EnvVar
from stromboli.api.corev1.probes import Lifecycle, Probe
from stromboli.api.corev1.security import SecurityContext
from stromboli.api.modelling import ATOMIC, REQUIRED, SET, Int32, Model, ResourceList, Schema, keyed


class ContainerPort(Model):
    """A port of a container."""

    container_port: Annotated[Int32, REQUIRED] = 0
    host_ip: str | None = Field(default=None, alias="hostIP")
    host_port: Int32 | None = None
    name: str | None = None
    protocol: Annotated[str | None, Schema(default="TCP")] = None


class ContainerResizePolicy(Model):
    """Whether a resize of one resource restarts the container."""

    resource_name: Annotated[str, REQUIRED] = ""
    restart_policy: Annotated[str, REQUIRED] = ""


class ContainerRestartRuleOnExitCodes(Model):
    """A set of exit codes."""

    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[list[Int32], SET] = []


class ContainerRestartRule(Model):
    """What to do on certain exit codes."""

    action: Annotated[str, REQUIRED] = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ContainerResourceClaim(Model):
    """A device claim of the pod that the container uses."""

    name: Annotated[str, REQUIRED] = ""
    request: str | None = None


class ResourceRequirements(Model):
    """Requests, limits and device claims."""

    claims: Annotated[list[ContainerResourceClaim], keyed("name")] = []
    limits: ResourceList = {}
    requests: ResourceList = {}


class VolumeDevice(Model):
    """A block device in a container."""

    device_path: Annotated[str, REQUIRED] = ""
    name: Annotated[str, REQUIRED] = ""


class VolumeMount(Model):
    """A volume mounted in a container."""

    mount_path: Annotated[str, REQUIRED] = ""
    mount_propagation: str | None = None
    name: Annotated[str, REQUIRED] = ""
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(Model):
    """A container."""

    args: Annotated[list[str], ATOMIC] = []
    command: Annotated[list[str], ATOMIC] = []
    env: Annotated[list[EnvVar], keyed("name")] = []
    env_from: Annotated[list[EnvFromSource], ATOMIC] = []
    image: str | None = None
    image_pull_policy: str | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: Annotated[str, REQUIRED] = ""
    ports: Annotated[list[ContainerPort], keyed("containerPort", "protocol")] = []
    readiness_probe: Probe | None = None
    resize_policy: Annotated[list[ContainerResizePolicy], ATOMIC] = []
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: Annotated[list[ContainerRestartRule], ATOMIC] = []
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    tty: bool | None = None
    volume_devices: Annotated[list[VolumeDevice], keyed("devicePath")] = []
    volume_mounts: Annotated[list[VolumeMount], keyed("mountPath")] = []
    working_dir: str | None = None
