"""How a plugin asks a service outside: the shell hands the cycle a caller, so that the core stays without I/O."""

from __future__ import annotations

from typing import Protocol

OPTION = "service-caller"
"""Key in the options of a cycle: a :class:`ServiceCaller`."""


class CallFailed(Exception):
    """The service did not answer, or not with success; the text says what was asked and what came back."""


class ServiceCaller(Protocol):
    """Sends one request and waits for the answer."""

    def __call__(self, url: str, body: bytes, timeout: float) -> bytes:
        """The body of the answer to a POST of JSON. ``timeout`` in seconds. Raises CallFailed."""
