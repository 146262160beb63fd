"""The source ``label``: looks at the nodes again whenever their labels, or HyperNodes, may have changed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from stromboli.api import kinds
from stromboli.api.core import Node
from stromboli.controllers.hypernode.labels import (
    SUFFIX_ALPHABET,
    SUFFIX_LENGTH,
    Existing,
    Suffix,
    TopologyType,
    discover,
    watched_labels,
)
from stromboli.controllers.hypernode.topologies import Publish
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError

log = logging.getLogger(__name__)

PAUSE: Final = 1.0
"""Seconds between two looks, however much changes."""
RETRY: Final = 5.0


class Bell:
    """Tells whoever listens that nodes or HyperNodes have changed. Handlers of informers cannot be taken back; this
    can."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Sequence[Node]], None]] = []

    def add(self, listener: Callable[[Sequence[Node]], None]) -> None:
        """Be told: with the states of a node before and after, or without nodes when a HyperNode was deleted."""
        self._listeners.append(listener)

    def remove(self, listener: Callable[[Sequence[Node]], None]) -> None:
        """Be told no more."""
        self._listeners.remove(listener)

    def ring(self, *nodes: Node) -> None:
        """Tell."""
        for listener in list(self._listeners):
            listener(nodes)


def random_suffix() -> str:
    """Five characters that no word is made of."""
    return "".join(random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))


class LabelSource:
    """Finds HyperNodes by labels of nodes."""

    def __init__(
        self,
        client: Client,
        nodes: Iterable[Node],
        bell: Bell,
        types: Sequence[TopologyType],
        *,
        suffix: Suffix = random_suffix,
        pause: float = PAUSE,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._nodes, self._bell, self._types = client, nodes, bell, types
        self._keys, self._suffix, self._pause, self._clock = watched_labels(types), suffix, pause, clock
        self._changed = asyncio.Event()

    async def run(self, publish: Publish) -> None:
        """Look at once, and again after every change."""
        self._bell.add(self._heard)
        try:
            while True:
                self._changed.clear()
                if not await self._look(publish):
                    self._clock.call_later(RETRY, self._changed.set)
                await self._clock.sleep(self._pause)
                await self._changed.wait()
        finally:
            self._bell.remove(self._heard)

    async def _look(self, publish: Publish) -> bool:
        """One look. False when it has to be repeated."""
        try:
            # Read anew: a cache that does not show a HyperNode just made would have it made twice, as names are random.
            stored = await self._client.list(kinds.HYPER_NODES)
        except KubeError as error:
            log.warning("label discovery: HyperNodes cannot be listed: %s", error)
            return False
        existing = [Existing(json.key_of(one)[1], json.metadata(one).get("labels") or {}) for one in stored]
        return await publish(discover(self._types, self._nodes, existing, self._suffix))

    def _heard(self, nodes: Sequence[Node]) -> None:
        before_and_after = {self._relevant(node) for node in nodes}
        if len(before_and_after) != 1 or (len(nodes) == 1 and before_and_after != {()}):
            self._changed.set()

    def _relevant(self, node: Node) -> tuple[tuple[str, str], ...]:
        """The labels of a node that matter."""
        return tuple((key, value) for key, value in sorted(node.metadata.labels.items()) if key in self._keys)
