"""The sources that there are, and making one from its settings."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from stromboli.api import kinds
from stromboli.api.core import Node
from stromboli.controllers.hypernode import fabric, labels
from stromboli.controllers.hypernode.configuration import SourceSettings
from stromboli.controllers.hypernode.labelled import Bell, LabelSource
from stromboli.controllers.hypernode.topologies import Source, SourceError
from stromboli.controllers.hypernode.ufm import Endpoint, UfmSource
from stromboli.kube.client import Client
from stromboli.kube.clocks import Clock
from stromboli.kube.errors import NotFound


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What sources may look at."""

    client: Client
    nodes: Iterable[Node]
    bell: Bell
    clock: Clock


Maker: TypeAlias = Callable[[SourceSettings, Surroundings], Awaitable[Source]]


async def make(settings: SourceSettings, around: Surroundings) -> Source:
    """The source of these settings. Raises :class:`SourceError`, and ``KubeError`` when its secret cannot be read."""
    maker = SOURCES.get(settings.source)
    if maker is None:
        raise SourceError(f"unsupported discoverer type: {settings.source}")
    return await maker(settings, around)


async def _label(settings: SourceSettings, around: Surroundings) -> Source:
    types = labels.parse_types(settings.config)
    return LabelSource(around.client, around.nodes, around.bell, types, clock=around.clock)


async def _ufm(settings: SourceSettings, around: Surroundings) -> Source:
    credentials = await _credentials(settings, around.client)
    return UfmSource(Endpoint.parse(settings.config, credentials), settings.seconds, clock=around.clock)


async def _credentials(settings: SourceSettings, client: Client) -> Mapping[str, str]:
    """Texts of the source's secret; none without one."""
    reference = settings.credentials.secret_ref if settings.credentials else None
    if reference is None or not reference.name:
        return {}
    try:
        secret = await client.get(kinds.SECRETS, reference.name, reference.namespace)
    except NotFound as error:
        named = f"{reference.namespace}/{reference.name}"
        raise SourceError(f"{settings.source}: credentials.secretRef names {named}, which does not exist") from error
    return {key: _text(settings.source, key, value) for key, value in (secret.get("data") or {}).items()}


def _text(source: str, key: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise SourceError(f"{source}: {key} in the secret is no text") from error


SOURCES: Final[dict[str, Maker]] = {labels.SOURCE: _label, fabric.SOURCE: _ufm}
"""Sources by the name that the configuration uses."""
