"""Several watches as one stream of events, for views that depend on more than one kind."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from queue import SimpleQueue

from stromboli.api.kinds import Kind
from stromboli.cli.commanding.api import Api
from stromboli.kube import json
from stromboli.kube.errors import Gone, KubeError
from stromboli.kube.json import JsonObject

STOP_SECONDS = 2.0
STOP_STEP_SECONDS = 0.05
Change = tuple[Kind, str, JsonObject]
"""Kind, event type and object."""


def changes(api: Api, sources: Sequence[tuple[Kind, str]]) -> Generator[Change, None, None]:
    """Changes of cluster-wide lists from the resource versions on, for ever. Raises KubeError when a watch fails.

    An expired version is replaced by a new list, whose objects come as ``MODIFIED``. Close the generator
    (``contextlib.closing``): that ends the watches and waits for their threads.
    """
    arrived: SimpleQueue[Change | KubeError] = SimpleQueue()
    stopping = threading.Event()
    followers = [_Follower(Api(api.target), kind, version, arrived, stopping) for kind, version in sources]
    for follower in followers:
        follower.start()
    try:
        while True:
            change = arrived.get()
            if isinstance(change, KubeError):
                raise change
            yield change
    finally:
        stopping.set()
        for follower in followers:
            follower.stop()


class _Follower(threading.Thread):
    """Watches one kind."""

    def __init__(
        self,
        api: Api,
        kind: Kind,
        version: str,
        arrived: SimpleQueue[Change | KubeError],
        stopping: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._kind = kind
        self._version = version
        self._arrived = arrived
        self._stopping = stopping

    def run(self) -> None:
        """Watch until stopped or failed."""
        try:
            while not self._stopping.is_set():
                self._watch()
        except KubeError as error:
            self._arrived.put(error)
        finally:
            self._api.close()

    def stop(self) -> None:
        """End the watch, wherever it is: also one that is only being opened, hence the repetition."""
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_alive() and time.monotonic() < deadline:
            self._api.close()
            self.join(STOP_STEP_SECONDS)

    def _watch(self) -> None:
        try:
            for type_, obj in self._api.watch(self._kind, None, self._version):
                self._version = json.resource_version_of(obj) or self._version
                if type_ != "BOOKMARK":
                    self._arrived.put((self._kind, type_, obj))
        except Gone:
            found, self._version = self._api.snapshot(self._kind)
            for obj in found:
                self._arrived.put((self._kind, "MODIFIED", obj))
