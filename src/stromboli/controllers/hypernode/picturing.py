"""Making the cluster look like a source's picture (spec 03 section 8.3).

Only HyperNodes that carry the source's label are touched, of those only what the source says, and nothing is written
that is there already; ``status`` belongs to somebody else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stromboli.api import kinds, names
from stromboli.controllers.hypernode.topologies import Discovered
from stromboli.kube import json
from stromboli.kube.applying import delete_if_present, merge_patch
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError, NotFound
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Create:
    """Make a HyperNode."""

    manifest: JsonObject


@dataclass(frozen=True, slots=True)
class Change:
    """Change a HyperNode."""

    name: str
    patch: JsonObject


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a HyperNode."""

    name: str
    uid: str


Operation: TypeAlias = Create | Change | Delete


def plan(source: str, found: Iterable[Discovered], present: Iterable[JsonObject]) -> Iterator[Operation]:
    """What makes the HyperNodes of ``source`` among ``present`` those that were ``found``."""
    own = {
        json.key_of(one)[1]: one
        for one in present
        if (json.metadata(one).get("labels") or {}).get(names.NETWORK_TOPOLOGY_SOURCE) == source
    }
    for one in found:
        labels = {**one.labels, names.NETWORK_TOPOLOGY_SOURCE: source}
        stored = own.pop(one.name, None)
        if stored is None:
            yield Create({"metadata": {"name": one.name, "labels": labels}, "spec": one.spec()})
        elif patch := _difference(stored, labels, one.spec()):
            yield Change(one.name, patch)
    for name, stored in own.items():
        yield Delete(name, json.uid_of(stored))


def _difference(stored: JsonObject, labels: JsonObject, spec: JsonObject) -> JsonObject:
    have = json.metadata(stored).get("labels") or {}
    changed = {key: value for key, value in labels.items() if have.get(key) != value}
    patch: JsonObject = {}
    if changed:
        patch["metadata"] = {"labels": changed}
    if difference := merge_patch(stored.get("spec") or {}, spec):
        patch["spec"] = difference
    if patch:
        patch.setdefault("metadata", {})["uid"] = json.uid_of(stored)
    return patch


class Painter:
    """Carries plans out, one object at a time; one that fails does not keep the others."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def paint(self, source: str, found: Sequence[Discovered]) -> bool:
        """Make the picture true; false when some of it could not be written."""
        selector = f"{names.NETWORK_TOPOLOGY_SOURCE}={source}"
        try:
            present = await self._client.list(kinds.HYPER_NODES, label_selector=selector)
        except KubeError as error:
            log.warning("HyperNodes of %s cannot be listed: %s", source, error)
            return False
        done = [await self._perform(operation) for operation in plan(source, found, present)]
        return all(done)

    async def _perform(self, operation: Operation) -> bool:
        try:
            match operation:
                case Create(manifest):
                    await self._client.create(kinds.HYPER_NODES, manifest)
                case Change(name, patch):
                    await self._client.patch(kinds.HYPER_NODES, name, patch)
                case Delete(name, uid):
                    await delete_if_present(self._client, kinds.HYPER_NODES, name, uid=uid)
        except NotFound:
            return True  # deleted meanwhile; the deletion asks for another look
        except KubeError as error:
            log.error("%s: %s", operation, error)
            return False
        return True
