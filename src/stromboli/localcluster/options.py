"""The command line of ``stromboli-localcluster``, and the settings that come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stromboli.localcluster.nodes.inventories import (
    DEFAULT_CAPACITY,
    InventoryError,
    NodeGroup,
    load_inventory,
    parse_pairs,
    unique,
)
from stromboli.localcluster.nodes.lifecycles import Settings as PodSettings
from stromboli.localcluster.storage import Object
from stromboli.process import flags
from stromboli.process.options import LoggingOptions

PROGRAM = "stromboli-localcluster"
AuthorizationMode = Literal["RBAC", "AlwaysAllow"]


class OptionError(ValueError):
    """A combination of flags that cannot be used; one line that names the flag and what it takes."""

    for_user = True


@dataclass(kw_only=True)
class Options(LoggingOptions):
    """The flags as they are given."""

    listen: str = flags.text("127.0.0.1:0", "address and port to serve on; port 0 takes a free one")
    data_dir: str = flags.text(".stromboli", "directory for the kubeconfig, certificates, keys and the token")
    state_file: str = flags.text("", "file that keeps the cluster's objects between runs; empty keeps nothing")
    nodes: str = flags.text("3", "number of simulated nodes, or a YAML file of Nodes and groups")
    node_name: str = flags.text("node-%d", "name template of the nodes: %d, %03d or {i} is the number")
    node_capacity: str = flags.text("", "capacity of each node, for example cpu=8,memory=32Gi,nvidia.com/gpu=8")
    node_label: list[str] = flags.repeated([], "key=value for each node; {i}, {i%4} and {i//8} stand for its number")
    node_taint: list[str] = flags.repeated([], "key=value:effect for each node")
    crds: str = flags.text("builtin", "definitions to install at start: builtin, none, or a directory")
    manifests: str = flags.text("", "directory of manifests to create at start")
    authorization_mode: str = flags.text("RBAC", "RBAC or AlwaysAllow")
    service_address: list[str] = flags.repeated(
        [], "NAMESPACE/NAME=HOST:PORT: where a Service that webhooks name really listens"
    )
    pod_run_seconds: float = flags.number(
        5, "run time of containers in pods that end and say nothing themselves; -1 runs them until deleted"
    )
    pod_start_delay: float = flags.number(0, "seconds from a pod's binding to its start")
    pod_stop_seconds: float = flags.number(0, "seconds a deleted pod takes to stop, within its grace period")
    default_scheduler: bool = flags.boolean(True, "place pods of default-scheduler on the first node that fits")
    controllers: bool = flags.boolean(True, "run the stand-ins of the core controllers")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Everything that shapes a cluster, checked."""

    host: str = "127.0.0.1"
    port: int = 0
    data_dir: Path | None = None
    """None: a temporary directory that goes with the cluster."""
    state_file: Path | None = None
    nodes: Sequence[Object] = ()
    crds: Path | Literal["builtin", "none"] = "builtin"
    manifests: Path | None = None
    authorization_mode: AuthorizationMode = "RBAC"
    service_addresses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    pods: PodSettings = PodSettings()
    default_scheduler: bool = True
    controllers: bool = True


def parse(arguments: Sequence[str]) -> Options:
    """Flags from a command line. Raises ``FlagError`` with one line; ``--help`` and ``--version`` end the process."""
    options = flags.parse(Options, arguments, program=PROGRAM)
    options.check_logging()
    return options


def settings(options: Options) -> ClusterSettings:
    """Check flags. Raises :class:`OptionError`."""
    host, port = _address(options.listen)
    return ClusterSettings(
        host=host,
        port=port,
        data_dir=Path(options.data_dir).absolute(),
        state_file=Path(options.state_file).absolute() if options.state_file else None,
        nodes=_nodes(options),
        crds=_crds(options.crds),
        manifests=Path(options.manifests) if options.manifests else None,
        authorization_mode=_mode(options.authorization_mode),
        service_addresses=dict(_service_address(text) for text in options.service_address),
        pods=PodSettings(
            run_seconds=options.pod_run_seconds,
            start_delay=max(options.pod_start_delay, 0),
            stop_seconds=max(options.pod_stop_seconds, 0),
        ),
        default_scheduler=options.default_scheduler,
        controllers=options.controllers,
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = "127.0.0.1", text
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise OptionError(f'invalid argument "{text}" for --listen: expected HOST:PORT, for example 127.0.0.1:6443')
    return host, int(port)


def _nodes(options: Options) -> Sequence[Object]:
    try:
        if options.nodes.isdigit():
            labels: dict[str, str] = {}
            for text in options.node_label:
                labels |= parse_pairs(text, "--node-label")
            group = NodeGroup(
                count=int(options.nodes),
                name=options.node_name,
                capacity={**DEFAULT_CAPACITY, **parse_pairs(options.node_capacity, "--node-capacity")},
                labels=labels,
                taints=[_taint(text) for text in options.node_taint],
            )
            return unique(list(group.nodes()))
        return load_inventory(Path(options.nodes))
    except InventoryError as error:
        raise OptionError(str(error)) from error


def _taint(text: str) -> Object:
    pair, colon, effect = text.rpartition(":")
    if not colon or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise OptionError(f'invalid argument "{text}" for --node-taint: expected key=value:NoSchedule')
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def _crds(text: str) -> Path | Literal["builtin", "none"]:
    if text == "builtin":
        return "builtin"
    if text == "none":
        return "none"
    if not Path(text).is_dir():
        raise OptionError(f'invalid argument "{text}" for --crds: expected builtin, none or a directory')
    return Path(text)


def _mode(text: str) -> AuthorizationMode:
    if text == "RBAC":
        return "RBAC"
    if text == "AlwaysAllow":
        return "AlwaysAllow"
    raise OptionError(f'invalid argument "{text}" for --authorization-mode: expected RBAC or AlwaysAllow')


def _service_address(text: str) -> tuple[tuple[str, str], str]:
    place, _, address = text.partition("=")
    namespace, slash, name = place.partition("/")
    host, colon, port = address.rpartition(":")
    if not (slash and namespace and name and colon and host and port.isdigit()):
        raise OptionError(f'invalid argument "{text}" for --service-address: expected NAMESPACE/NAME=HOST:PORT')
    return (namespace, name), address
