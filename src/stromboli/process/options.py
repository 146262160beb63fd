"""Groups of flags that the processes share; each process's options inherit the groups it has.

Defaults here are the common ones; a process overrides a field to change its default. Source: spec 08 section 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stromboli.process import flags


@dataclass(kw_only=True)
class ClientOptions:
    """How the process reaches the API server."""

    master: str = flags.text("", "address of the API server; overrides the kubeconfig")
    kubeconfig: str = flags.text(
        "", "path of a kubeconfig; empty means in-cluster credentials, $KUBECONFIG or ~/.kube/config"
    )
    kube_api_qps: float = flags.number(50.0, "requests per second to the API server")
    kube_api_burst: int = flags.integer(100, "burst of requests to the API server")


@dataclass(kw_only=True)
class LoggingOptions:
    """How much is logged, and how."""

    verbosity: int = flags.integer(0, "log verbosity; 4 and above is debug", short="v")
    log_format: str = flags.text("text", "text or json (Stromboli's own)")
    feature_gates: dict[str, bool] = flags.gates("feature gates to turn on or off")

    def check_logging(self) -> None:
        """Raises FlagError for an unknown form."""
        if self.log_format not in ("text", "json"):
            raise flags.FlagError(f'invalid argument "{self.log_format}" for --log-format: expected text or json')


@dataclass(kw_only=True)
class ServingOptions:
    """Health and metrics endpoints."""

    ca_cert_file: str = flags.text("", "CA certificate of the health endpoint; used when all three TLS files are given")
    tls_cert_file: str = flags.text("", "certificate of the health endpoint")
    tls_private_key_file: str = flags.text("", "private key of the health endpoint")
    healthz_address: str = flags.text(":11251", "address of /healthz, /livez and /readyz")
    enable_healthz: bool = flags.boolean(False, "serve health endpoints")
    listen_address: str = flags.text(":8080", "address of /metrics")
    enable_metrics: bool = flags.boolean(False, "serve /metrics")


@dataclass(kw_only=True)
class LeaderOptions:
    """Leader election through a Lease."""

    leader_elect: bool = flags.boolean(True, "work only while holding the lease")
    leader_elect_lease_duration: float = flags.duration("15s", "how long a lease is honoured after its last renewal")
    leader_elect_renew_deadline: float = flags.duration(
        "10s", "give up leading when the lease cannot be renewed for so long"
    )
    leader_elect_retry_period: float = flags.duration("2s", "pause between attempts to take or renew the lease")
    leader_elect_resource_lock: str = flags.text("leases", "kind of the lock object; leases is the only one")
    leader_elect_resource_name: str = flags.text("", "name of the lease")
    leader_elect_resource_namespace: str = flags.text("volcano-system", "namespace of the lease")
    lock_object_namespace: str = flags.text("", "deprecated: overrides --leader-elect-resource-namespace")

    @property
    def lease_namespace(self) -> str:
        """Namespace of the lease after the deprecated override."""
        return self.lock_object_namespace or self.leader_elect_resource_namespace

    def check_leadership(self) -> None:
        """Raises FlagError naming the first setting that cannot work (only when election is on)."""
        if not self.leader_elect:
            return
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            _positive(f"--leader-elect-{name.replace('_', '-')}", getattr(self, f"leader_elect_{name}"))
        if self.leader_elect_lease_duration <= self.leader_elect_renew_deadline:
            raise flags.FlagError("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline")
        for name in ("resource_lock", "resource_name"):
            _filled(f"--leader-elect-{name.replace('_', '-')}", getattr(self, f"leader_elect_{name}"))
        _filled("--leader-elect-resource-namespace", self.lease_namespace)


def _positive(flag: str, value: float) -> None:
    if value <= 0:
        raise flags.FlagError(f"{flag} must be greater than zero")


def _filled(flag: str, value: Any) -> None:
    if not value:
        raise flags.FlagError(f"{flag} must not be empty")
