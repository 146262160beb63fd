"""The configuration of discovery: one ConfigMap, read whenever it changes (spec 03 section 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import yaml

from stromboli.api import durations, names
from stromboli.api.modelling import InvalidObject, Model

DEFAULT_INTERVAL: Final = 3600.0


class BadConfiguration(Exception):
    """A ConfigMap that cannot be used; one line that says what is wrong."""


class SecretRef(Model):
    """A secret."""

    name: str = ""
    namespace: str = ""


class Credentials(Model):
    """Who asks a source."""

    secret_ref: SecretRef | None = None


class SourceSettings(Model):
    """One source: its name, whether it is used, how often it is asked, and what it needs to know."""

    source: str = ""
    enabled: bool = False
    interval: str | int | None = None
    credentials: Credentials | None = None
    config: dict[str, object] = {}

    @property
    def seconds(self) -> float:
        """The interval; an hour where none is given. Raises ``ValueError`` for a text that is no duration."""
        given = self.interval
        nanoseconds = durations.parse(given) if isinstance(given, str) else given or 0
        return nanoseconds / durations.SECOND if nanoseconds > 0 else DEFAULT_INTERVAL


class DiscoveryConfiguration(Model):
    """The whole file."""

    network_topology_discovery: list[SourceSettings] = []


def parse(data: Mapping[str, str] | None) -> tuple[SourceSettings, ...]:
    """Enabled sources in order, from a ConfigMap's data; none when there is no ConfigMap.

    Raises:
        BadConfiguration: the key is missing, or what is there cannot be read.
    """
    if data is None:
        return ()
    if names.CONTROLLER_CONFIG_KEY not in data:
        raise BadConfiguration(f"config key not found in ConfigMap: {names.CONTROLLER_CONFIG_KEY}")
    try:
        found = _read(yaml.safe_load(data[names.CONTROLLER_CONFIG_KEY]))
        for settings in found:
            _ = settings.seconds
    except (yaml.YAMLError, ValueError) as error:
        text = " ".join(str(error).split())
        raise BadConfiguration(f"failed to parse config: {text}") from error
    return tuple(settings for settings in found if settings.enabled)


def _read(document: object) -> list[SourceSettings]:
    if document is None:
        return []
    if not isinstance(document, dict):
        raise InvalidObject("it must be a map with the key networkTopologyDiscovery", [])
    return DiscoveryConfiguration.from_wire(document).network_topology_discovery
