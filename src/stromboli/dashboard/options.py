"""The command line of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stromboli.process import flags
from stromboli.process.options import ClientOptions, LoggingOptions, ServingOptions
from stromboli.telemetry.listening import Address, ListenError

PROGRAM: Final = "stromboli-dashboard"


@dataclass(kw_only=True)
class Options(ClientOptions, LoggingOptions):
    """Flags of the dashboard."""

    listen_address: str = flags.text(
        "127.0.0.1:8090", "address of the page; whoever reaches it sees names and messages of all namespaces"
    )
    allowed_hosts: list[str] = flags.separated(
        [], "names by which browsers reach the page, besides localhost and addresses: those of a proxy or a Service"
    )
    enable_healthz: bool = flags.boolean(False, "serve health endpoints")
    healthz_address: str = flags.text(":11251", "address of /healthz, /livez and /readyz")
    enable_metrics: bool = flags.boolean(False, "serve /metrics")
    metrics_address: str = flags.text(":8083", "address of /metrics")

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            FlagError: one line naming the flag, its value and what it takes.
        """
        self.check_logging()
        for name in ("listen_address", "healthz_address", "metrics_address"):
            try:
                Address.parse(getattr(self, name))
            except ListenError as error:
                raise flags.FlagError(f"--{name.replace('_', '-')}: {error}") from error

    @property
    def serving(self) -> ServingOptions:
        """Health and metrics, as all processes serve them."""
        return ServingOptions(
            enable_healthz=self.enable_healthz,
            healthz_address=self.healthz_address,
            enable_metrics=self.enable_metrics,
            listen_address=self.metrics_address,
        )
