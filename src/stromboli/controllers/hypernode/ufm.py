"""The source ``ufm``: asks NVIDIA's Unified Fabric Manager for the ports of a fabric, at intervals.

A manager that does not answer, or answers something else than ports, changes nothing. One that suddenly knows no
computer any more is asked again before it is believed: a restarting manager must not wipe out the topology.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
import orjson

from stromboli.controllers.hypernode.fabric import discover
from stromboli.controllers.hypernode.topologies import Publish, SourceError
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock

log = logging.getLogger(__name__)

PATH: Final = "/ufmRest/resources/ports"
TIMEOUT: Final = 30.0
LARGEST: Final = 100 * 1024 * 1024
EMPTY_ANSWERS: Final = 3
"""Answers without any computer, one after the other, until they are believed."""


class NoAnswer(Exception):
    """The manager did not say what its ports are."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the manager is, and who asks."""

    url: str
    username: str
    password: str
    verify: bool = True

    @classmethod
    def parse(cls, config: Mapping[str, object], credentials: Mapping[str, str]) -> Endpoint:
        """From ``config`` and the secret's texts. Raises :class:`SourceError`."""
        given = config.get("endpoint")
        if given is not None and not isinstance(given, str):
            raise SourceError(f"ufm: endpoint must be a text, not {given!r}")
        if not given:
            raise SourceError("UFM endpoint is not configured")
        username, password = credentials.get("username", ""), credentials.get("password", "")
        if not username or not password:
            raise SourceError("UFM authentication credentials are not configured")
        url = given if given.startswith(("http://", "https://")) else f"https://{given}"
        return cls(url.rstrip("/"), username, password, verify=config.get("insecureSkipVerify") is not True)

    def headers(self) -> dict[str, str]:
        """Basic authentication."""
        who = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {who}"}


class UfmSource:
    """Finds HyperNodes by asking a fabric manager every ``interval`` seconds."""

    def __init__(self, endpoint: Endpoint, interval: float, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._endpoint, self._interval, self._clock = endpoint, interval, clock
        self._empty = 0

    async def run(self, publish: Publish) -> None:
        """Ask at once, then at intervals."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._endpoint.headers()) as session:
            while True:
                await self._look(session, publish)
                await self._clock.sleep(self._interval)

    async def _look(self, session: aiohttp.ClientSession, publish: Publish) -> None:
        try:
            found = discover(await self._ports(session))
        except NoAnswer as error:
            log.error("UFM at %s: %s", self._endpoint.url, error)
            return
        self._empty = 0 if found else self._empty + 1
        if not found and self._empty < EMPTY_ANSWERS:
            log.warning("UFM at %s knows no computer; not believed yet (%d)", self._endpoint.url, self._empty)
            return
        await publish(found)

    async def _ports(self, session: aiohttp.ClientSession) -> list[Mapping[str, object]]:
        try:
            async with session.get(self._endpoint.url + PATH, ssl=self._endpoint.verify) as answer:
                if answer.status != 200:
                    raise NoAnswer(f"answered {answer.status}")
                body = await _read(answer)
            ports = orjson.loads(body)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        if not isinstance(ports, list) or not all(isinstance(port, dict) for port in ports):
            raise NoAnswer("answered something else than a list of ports")
        return ports


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > LARGEST:
            raise NoAnswer(f"answered more than {LARGEST} bytes")
    return bytes(body)
