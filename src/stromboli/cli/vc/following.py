"""Several watches as one stream of events, for views that depend on more than one kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from stromboli.api.kinds import Kind
from stromboli.cli.commanding.api import Api
from stromboli.kube import json
from stromboli.kube.errors import Gone, KubeError
from stromboli.kube.json import JsonObject

Change = tuple[Kind, str, JsonObject]
"""Kind, event type and object."""


def changes(api: Api, sources: Sequence[tuple[Kind, str]]) -> Iterator[Change]:
    """Changes of cluster-wide lists from the resource versions on, for ever. Raises KubeError when a watch fails.

    An expired version is replaced by a new list, whose objects come as ``MODIFIED``.
    """
    arrived: SimpleQueue[Change | KubeError] = SimpleQueue()
    for kind, version in sources:
        follower = Api(api.target)
        threading.Thread(target=_follow, args=(follower, kind, version, arrived), daemon=True).start()
    while True:
        change = arrived.get()
        if isinstance(change, KubeError):
            raise change
        yield change


def _follow(api: Api, kind: Kind, version: str, arrived: SimpleQueue[Change | KubeError]) -> None:
    try:
        while True:
            try:
                for type_, obj in api.watch(kind, None, version):
                    version = json.resource_version_of(obj) or version
                    if type_ != "BOOKMARK":
                        arrived.put((kind, type_, obj))
            except Gone:
                found, version = api.snapshot(kind)
                for obj in found:
                    arrived.put((kind, "MODIFIED", obj))
    except KubeError as error:
        arrived.put(error)
