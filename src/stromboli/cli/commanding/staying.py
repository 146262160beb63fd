"""The processes' client, for commands that stay and watch: the same target and credentials as every other command's.

:mod:`stromboli.cli.commanding.api` answers one request after the other; a view that stays needs informers, and these
need :class:`stromboli.kube.client.Client`. It takes a third of a second to load, so only commands that stay do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
from yarl import URL

from stromboli.cli.commanding.api import ssl_context
from stromboli.cli.commanding.kubeconfig import Target
from stromboli.kube.client import Client
from stromboli.kube.connecting import Connection, Credentials

READ_BUFFER_BYTES = 2**18
"""As the processes have it: watch lines are long."""


class _TargetCredentials(Credentials):
    """The credentials of a target; when the server refuses them, those that its kubeconfig gives by then."""

    def __init__(self, target: Target, find: Callable[[], Target]) -> None:
        super().__init__(None, self._find_again)
        self._target = target
        self._find = find

    async def header(self) -> str | None:
        """Value of the Authorization header."""
        return self._target.authorization or None

    async def _find_again(self) -> None:
        self._target = await asyncio.to_thread(self._find)  # it may run a plugin that takes its time


def client_for(target: Target, find: Callable[[], Target]) -> Client:
    """A client for the target; ``find`` looks for it again when its credentials have expired.

    To be called, used and closed in one event loop. Raises ConfigurationError.
    """
    base = URL(target.server)
    tls = ssl_context(target) if base.scheme == "https" else False
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls), trust_env=False, read_bufsize=READ_BUFFER_BYTES
    )
    connection = Connection(
        session=session,
        base=base,
        credentials=_TargetCredentials(target, find),
        server_hostname=target.server_name or None,
    )
    return Client(connection, user_agent="vcctl")
