"""Says of objects that cannot be used what is wrong with them: in an event on the object, and in the log.

Said once for as long as it is so, and again when it is so once more. Two sources: objects that the mirror leaves out
because they cannot be read, and objects that plugins set aside or take otherwise than they are written: queues, task
topologies of PodGroups, Numatopologies, ConfigMaps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from stromboli.api.kinds import CONFIG_MAPS, NODES, NUMATOPOLOGIES, POD_GROUPS, PODS, QUEUES, Kind
from stromboli.api.reasons import EventReason, WaitReason
from stromboli.scheduler.core.view import Fault

log = logging.getLogger(__name__)

KINDS: Mapping[str, Kind] = {kind.kind: kind for kind in (PODS, NODES, POD_GROUPS, QUEUES, NUMATOPOLOGIES, CONFIG_MAPS)}
"""What something may be wrong with, by the word for it."""


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
        self._found: frozenset[Fault] = frozenset()

    def left_out(self, problems: Mapping[tuple[str, str], str]) -> None:
        """What the mirror has left out, by kind and key (``namespace/name``, or ``name``)."""
        if problems == self._left_out:
            return
        for (word, key), text in problems.items():
            if self._left_out.get((word, key)) != text:
                self._say_unreadable(KINDS[word], key, text)
        self._left_out = dict(problems)

    def found(self, faults: Iterable[Fault]) -> None:
        """What a cycle has found wrong with objects; the log has it already."""
        present = frozenset(faults)
        for fault in sorted(present - self._found, key=lambda one: (one.kind, one.namespace, one.name, one.message)):
            reason = WaitReason.QUEUE_MISCONFIGURED if fault.kind == QUEUES.kind else EventReason.UNREADABLE
            self._events.about(KINDS[fault.kind], fault.namespace, fault.name, fault.uid, reason, fault.message)
        self._found = present

    def _say_unreadable(self, kind: Kind, key: str, text: str) -> None:
        log.warning("%s", text)
        namespace, _, name = key.rpartition("/")
        uid = self._directory.uid_of(kind, namespace, name)
        self._events.about(kind, namespace, name, uid, EventReason.UNREADABLE, text)
