"""Says of objects that cannot be used what is wrong with them: in an event on the object, and in the log.

Said once for as long as it is so, and again when it is so once more. Two sources: objects that the mirror leaves out
because they cannot be read, and queues that plugins set aside or take otherwise than they are written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from stromboli.api.kinds import NODES, POD_GROUPS, PODS, QUEUES, Kind
from stromboli.api.reasons import EventReason, WaitReason
from stromboli.scheduler.core.view import QueueFault

log = logging.getLogger(__name__)

KINDS: Mapping[str, Kind] = {kind.kind: kind for kind in (PODS, NODES, POD_GROUPS, QUEUES)}
"""What the mirror may leave out, by the word that it uses."""


class Events(Protocol):
    """Where warnings about objects go."""

    def about(self, kind: Kind, namespace: str, name: str, uid: str, reason: str, message: str) -> None:
        """Record a warning."""
        ...


class Directory(Protocol):
    """Who knows the UIDs of objects."""

    def uid_of(self, kind: Kind, namespace: str, name: str) -> str:
        """Empty for objects that are not known."""
        ...


class Faults:
    """What has been said and still holds."""

    def __init__(self, events: Events, directory: Directory) -> None:
        self._events = events
        self._directory = directory
        self._left_out: dict[tuple[str, str], str] = {}
        self._queues: frozenset[QueueFault] = frozenset()

    def left_out(self, problems: Mapping[tuple[str, str], str]) -> None:
        """What the mirror has left out, by kind and key (``namespace/name``, or ``name``)."""
        if problems == self._left_out:
            return
        for (word, key), text in problems.items():
            if self._left_out.get((word, key)) != text:
                self._say_unreadable(KINDS[word], key, text)
        self._left_out = dict(problems)

    def queues(self, faults: Iterable[QueueFault]) -> None:
        """What a cycle has found wrong with queues; the log has it already."""
        present = frozenset(faults)
        for fault in sorted(present - self._queues, key=lambda one: (one.name, one.message)):
            self._events.about(QUEUES, "", fault.name, fault.uid, WaitReason.QUEUE_MISCONFIGURED, fault.message)
        self._queues = present

    def _say_unreadable(self, kind: Kind, key: str, text: str) -> None:
        log.warning("%s", text)
        namespace, _, name = key.rpartition("/")
        uid = self._directory.uid_of(kind, namespace, name)
        self._events.about(kind, namespace, name, uid, EventReason.UNREADABLE, text)
