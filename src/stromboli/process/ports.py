"""Ports for processes that are started on this machine and told where to listen."""

from __future__ import annotations

import contextlib
import random
import socket

_PORTS = range(12_000, 32_000)


def free_port() -> int:
    """A TCP port on loopback that is free now.

    Not one of those that systems give to outgoing connections (from 32768 or 49152 upwards): between this look and the
    start of who will listen there, some connection would take it now and then.
    """
    while True:
        port = random.choice(_PORTS)
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
