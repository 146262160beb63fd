"""Flags of the admission server (spec 07 section 1.1, spec 08 section 13.3), and Stromboli's own additions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from stromboli.process import flags
from stromboli.process.flags import FlagError
from stromboli.process.options import ClientOptions, LoggingOptions
from stromboli.webhooks.context import DEFAULT_SCHEDULER
from stromboli.webhooks.endpoints import BY_PATH, Endpoint

DEFAULT_ADMISSION: Final = [
    "/jobs/mutate",
    "/jobs/validate",
    "/podgroups/mutate",
    "/pods/validate",
    "/pods/mutate",
    "/queues/mutate",
    "/queues/validate",
]
GATE_QUEUE_ADMISSION: Final = "SchedulingGatesQueueAdmission"
GATE_POD_LEVEL_RESOURCES: Final = "PodLevelResources"


@dataclass(kw_only=True)
class Options(ClientOptions, LoggingOptions):
    """Everything that can be said on the command line."""

    ca_cert_file: str = flags.text("", "PEM file of the authority that signed --tls-cert-file")
    tls_cert_file: str = flags.text("", "PEM file of the serving certificate; empty: certificates are made and renewed")
    tls_private_key_file: str = flags.text("", "PEM file of the serving certificate's private key")
    listen_address: str = flags.text("", "address that reviews are taken on; empty means every interface")
    port: int = flags.integer(8443, "port that reviews are taken on")
    webhook_url: str = flags.text(
        "", "URL under which the API server reaches this process, for clusters without Service"
    )
    webhook_namespace: str = flags.text("", "namespace of the Service under which the API server reaches this process")
    webhook_service_name: str = flags.text("", "name of that Service")
    enabled_admission: list[str] = flags.separated(DEFAULT_ADMISSION, "paths to serve")
    scheduler_name: list[str] = flags.repeated([DEFAULT_SCHEDULER], "schedulers whose pods are judged; repeatable")
    admission_conf: str = flags.text("", "file of resource groups for /pods/mutate; read again when it changes")
    enable_healthz: bool = flags.boolean(False, "serve /healthz, /livez and /readyz over HTTPS")
    healthz_address: str = flags.text(":11251", "address of the health endpoints")
    graceful_shutdown_time: float = flags.duration("30s", "time that reviews in flight get when the process stops")
    enable_queue_allocated_pods_check: bool = flags.boolean(False, "refuse to delete queues that hold pods")
    max_queue_depth: int = flags.integer(5, "levels of queues below root")
    enable_root_queue_protection: bool = flags.boolean(True, "refuse changes of the root queue's resources")
    # Stromboli's own
    enable_metrics: bool = flags.boolean(False, "serve /metrics (Stromboli's own)")
    metrics_address: str = flags.text(":8082", "address of /metrics (Stromboli's own)")
    certificate_dir: str = flags.text("", "directory for certificates that are made here (Stromboli's own)")
    certificate_secret: str = flags.text("", "Secret in --webhook-namespace for such certificates (Stromboli's own)")
    register_webhooks: bool = flags.boolean(
        False, "create the webhook configurations too; --webhook-url implies it (Stromboli's own)"
    )

    def check(self) -> None:
        """Raises ``FlagError`` for the first setting that cannot work."""
        self.check_logging()
        if not 1 <= self.port <= 65535:
            raise FlagError("the port should be in the range of 1 and 65535")
        if not (self.webhook_url or self.webhook_namespace or self.webhook_service_name):
            raise FlagError("failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty")
        if self.webhook_url and (
            urlsplit(self.webhook_url).scheme != "https" or not urlsplit(self.webhook_url).hostname
        ):
            raise FlagError(f'invalid argument "{self.webhook_url}" for --webhook-url: expected https://host[:port]')
        self._check_files()
        if self.certificate_secret and not self.webhook_namespace:
            raise FlagError("--certificate-secret needs --webhook-namespace")
        self.endpoints()

    def _check_files(self) -> None:
        files = {"cacert": self.ca_cert_file, "cert": self.tls_cert_file, "key": self.tls_private_key_file}
        if self.mounts_certificates and (missing := next((what for what, file in files.items() if not file), None)):
            raise FlagError(
                f"failed to read {missing} file (): give --ca-cert-file, --tls-cert-file and --tls-private-key-file, "
                "or none of them to have certificates made"
            )

    def endpoints(self) -> list[Endpoint]:
        """The endpoints to serve, in the order given, each once. Raises ``FlagError`` for an unknown path."""
        return [_endpoint(path) for path in dict.fromkeys(self.enabled_admission)]

    @property
    def creates_configurations(self) -> bool:
        """Whether webhook configurations are created here rather than by the chart."""
        return self.register_webhooks or bool(self.webhook_url)

    @property
    def mounts_certificates(self) -> bool:
        """Whether certificates come from files; all three are then needed."""
        return bool(self.ca_cert_file or self.tls_cert_file or self.tls_private_key_file)


def _endpoint(path: str) -> Endpoint:
    endpoint = BY_PATH.get(path)
    if endpoint is None:
        near = difflib.get_close_matches(path, BY_PATH, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(BY_PATH)}"
        raise FlagError(f"enabled admission {path} not found on the admission registered map{hint}")
    return endpoint
