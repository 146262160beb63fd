"""Calls of the extender plugin over HTTP (spec 06 section 28). Cycles run in a thread, so a call may block."""

from __future__ import annotations

import urllib.error
import urllib.request

from stromboli.scheduler.core.calling import CallFailed

LARGEST_ANSWER = 10 * 2**20
"""Bytes; a larger answer is an error."""
_SCHEMES = ("http://", "https://")


def call(url: str, body: bytes, timeout: float) -> bytes:
    """A ``core.calling.ServiceCaller``: POSTs JSON and gives back the answer's body. Raises CallFailed."""
    if not url.startswith(_SCHEMES):
        raise CallFailed(f"extender: {url!r} is no HTTP address; set extender.urlPrefix")
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            if response.status != 200:
                raise CallFailed(_failure(url, response.status))
            answer: bytes = response.read(LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        raise CallFailed(_failure(url, error.code)) from error
    except OSError as error:
        raise CallFailed(f"extender at URL {url} cannot be reached: {error}") from error
    if len(answer) > LARGEST_ANSWER:
        raise CallFailed(f"extender at URL {url}: http: request body too large")
    return answer


def _failure(url: str, code: int) -> str:
    address, _, verb = url.rpartition("/")
    return f"failed {verb} with extender at URL {address}, code {code}"
