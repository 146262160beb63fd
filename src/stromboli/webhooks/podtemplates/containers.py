"""Rules for containers: names, images, ports, environment, probes, mounts and volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.webhooks.errors import FieldError, duplicate, forbidden, invalid, not_found, required, unsupported
from stromboli.webhooks.naming import dns_label_faults
from stromboli.webhooks.podtemplates import requirements
from stromboli.webhooks.podtemplates.shapes import Container, EnvVar, PodSpec, Port, Probe, SecurityContext
from stromboli.webhooks.shapes import JsonObject

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
LARGEST_ID: Final = 2**31 - 1
_ENV_NAME_TEXT: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_PROBES: Final = ("liveness_probe", "readiness_probe", "startup_probe")


def all_faults(spec: PodSpec, field: str) -> Iterator[FieldError]:
    """Faults of volumes, containers and init containers, in the API server's order."""
    yield from volume_faults(spec.volumes, f"{field}.volumes")
    if not spec.containers:
        yield required(f"{field}.containers")
    names: set[str] = set()
    host_ports: set[str] = set()
    volumes = {str(volume.get("name", "")) for volume in spec.volumes}
    for index, container in enumerate(spec.containers):
        place = f"{field}.containers[{index}]"
        yield from _faults(container, place, spec, names, volumes)
        yield from _host_port_faults(container, place, spec, host_ports)
    for index, container in enumerate(spec.init_containers):
        place = f"{field}.initContainers[{index}]"
        yield from _faults(container, place, spec, names, volumes)
        yield from _init_faults(container, place)
    if spec.ephemeral_containers:
        yield forbidden(f"{field}.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _faults(
    container: Container, field: str, spec: PodSpec, names: set[str], volumes: set[str]
) -> Iterator[FieldError]:
    yield from _name_faults(container.name, f"{field}.name", names)
    if not container.image.strip():
        yield required(f"{field}.image")
    yield from one_of(container.image_pull_policy, PULL_POLICIES, f"{field}.imagePullPolicy")
    yield from one_of(container.termination_message_policy, MESSAGE_POLICIES, f"{field}.terminationMessagePolicy")
    yield from _port_faults(container.ports, f"{field}.ports")
    for index, variable in enumerate(container.env):
        yield from _env_faults(variable, f"{field}.env[{index}]")
    yield from _mount_faults(container, field, volumes)
    for attribute in _PROBES:
        yield from _probe_faults(getattr(container, attribute), f"{field}.{_camel(attribute)}")
    claims = {claim.name for claim in spec.resource_claims}
    yield from requirements.container_faults(container.resources, f"{field}.resources", claims)
    yield from identity_faults(container.security_context, f"{field}.securityContext")


def _name_faults(name: str, field: str, names: set[str]) -> Iterator[FieldError]:
    if not name:
        yield required(field)
        return
    yield from (invalid(field, name, fault) for fault in dns_label_faults(name))
    if name in names:
        yield duplicate(field, name)
    names.add(name)


def one_of(value: str, supported: tuple[str, ...], field: str) -> Iterator[FieldError]:
    """A fault for a given value outside a closed list; nothing given is left to the API server's default."""
    if value and value not in supported:
        yield unsupported(field, value, sorted(supported))


def _port_faults(ports: list[Port], field: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{field}[{index}]"
        if port.name in names:
            yield duplicate(f"{place}.name", port.name)
        if port.name:
            names.add(port.name)
        if port.container_port == 0:
            yield required(f"{place}.containerPort")
        elif not 1 <= port.container_port <= 65535:
            yield invalid(f"{place}.containerPort", port.container_port, "must be between 1 and 65535, inclusive")
        if port.host_port and not 1 <= port.host_port <= 65535:
            yield invalid(f"{place}.hostPort", port.host_port, "must be between 1 and 65535, inclusive")
        yield from one_of(port.protocol, PROTOCOLS, f"{place}.protocol")


def _host_port_faults(container: Container, field: str, spec: PodSpec, taken: set[str]) -> Iterator[FieldError]:
    for index, port in enumerate(container.ports):
        place = f"{field}.ports[{index}].hostPort"
        # On the host's network the API server sets the host port to the container's where none is given.
        host_port = port.host_port or (port.container_port if spec.host_network else 0)
        if spec.host_network and host_port != port.container_port:
            yield invalid(place, host_port, "must match `containerPort` when `hostNetwork` is true")
        if not host_port:
            continue
        key = f"{port.protocol or 'TCP'}/{port.host_ip}/{host_port}"
        if key in taken:
            yield duplicate(place, key)
        taken.add(key)


def _env_faults(variable: EnvVar, field: str) -> Iterator[FieldError]:
    if not variable.name:
        yield required(f"{field}.name")
    elif "=" in variable.name or not (variable.name.isascii() and variable.name.isprintable()):
        yield invalid(f"{field}.name", variable.name, _ENV_NAME_TEXT)
    if variable.value_from is not None and variable.value:
        yield invalid(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")


def _mount_faults(container: Container, field: str, volumes: set[str]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        place = f"{field}.volumeMounts[{index}]"
        if not mount.name:
            yield required(f"{place}.name")
        elif mount.name not in volumes:
            yield not_found(f"{place}.name", mount.name)
        if not mount.mount_path:
            yield required(f"{place}.mountPath")
        elif mount.mount_path in paths:
            yield invalid(f"{place}.mountPath", mount.mount_path, "must be unique")
        paths.add(mount.mount_path)


def _probe_faults(probe: Probe | None, field: str) -> Iterator[FieldError]:
    if probe is None:
        return
    handlers = [
        handler for handler in (probe.exec, probe.http_get, probe.tcp_socket, probe.grpc) if handler is not None
    ]
    if not handlers:
        yield required(field, "must specify a handler type")


def _init_faults(container: Container, field: str) -> Iterator[FieldError]:
    if container.restart_policy is not None and container.restart_policy != "Always":
        yield unsupported(f"{field}.restartPolicy", container.restart_policy, ["Always"])
    if container.restart_policy == "Always":
        return
    for attribute in ("lifecycle", *_PROBES):
        if getattr(container, attribute) is not None:
            yield forbidden(
                f"{field}.{_camel(attribute)}", "may not be set for init containers without restartPolicy=Always"
            )


def identity_faults(context: SecurityContext | None, field: str) -> Iterator[FieldError]:
    """Faults of user and group numbers."""
    if context is None:
        return
    identities = {"runAsUser": context.run_as_user, "runAsGroup": context.run_as_group, "fsGroup": context.fs_group}
    for name, number in identities.items():
        if number is not None and not 0 <= number <= LARGEST_ID:
            yield invalid(f"{field}.{name}", number, f"must be between 0 and {LARGEST_ID}, inclusive")


def volume_faults(volumes: list[JsonObject], field: str) -> Iterator[FieldError]:
    """Faults of volume names and sources; a volume without source is an empty directory."""
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        place, name = f"{field}[{index}]", str(volume.get("name", ""))
        sources = sorted(member for member, value in volume.items() if isinstance(value, dict))
        # Which of several sources is named follows the API server: all but the first in its own order.
        for source in sorted(sources, key=_source_order)[1:]:
            yield forbidden(f"{place}.{source}", "may not specify more than 1 volume type")
        yield from _name_faults(name, f"{place}.name", names)


_SOURCES: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos",
    "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip


def _source_order(source: str) -> int:
    return _SOURCES.index(source) if source in _SOURCES else len(_SOURCES)


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(part.title() for part in rest)
