"""The queue controller: watches queues, PodGroups and Commands, and carries out what :mod:`.planning` says.

State is written by server-side apply of nothing but ``status.state``, and only when it changes; the counters in a
queue's status are the scheduler's and the clients' business. Each queue is worked on by one worker at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any, NamedTuple, Protocol

from stromboli.api import kinds, names
from stromboli.api.core import PodGroup, Queue
from stromboli.api.phases import QueueAction as Action
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.queue import states
from stromboli.controllers.queue.planning import (
    Ask,
    MarkClosedByParent,
    Observed,
    Operation,
    ParentMissing,
    ParentShut,
    SetParent,
    SetState,
    plan,
)
from stromboli.controllers.reporting import Events
from stromboli.kube import json
from stromboli.kube.client import Client, PatchType
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Result
from stromboli.kube.controlling import Observer as WorkObserver
from stromboli.kube.errors import AlreadyExists, KubeError, NotFound
from stromboli.kube.events import EventType, Reference
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "queue-controller"
SYNC_TIMEOUT = 600.0
OPENING_PATIENCE = 180.0
"""Seconds for which a queue that is to open waits for its parent to open: about as long as retries would last."""
LONGEST_COUNTING_DELAY = 1.0
"""Seconds until the PodGroups of a queue are counted, at most, once one of them has changed."""
COUNTING_DELAY_OF_A_GROUP = 0.0005
"""What each PodGroup of the queue adds to that delay: some hundred times what it adds to the counting."""
SOON_COUNTED = 100
"""PodGroups that are counted without delay."""
BY_QUEUE = "group-queue"
BY_PARENT = "queue-parent"
COUNTED_PHASES = ("Pending", "Running", "Unknown", "Inqueue", "Completed")

WELL_KNOWN: tuple[JsonObject, ...] = (
    {"name": names.ROOT_QUEUE, "spec": {"weight": 1, "reclaimable": False}},
    {"name": names.DEFAULT_QUEUE, "spec": {"weight": 1, "reclaimable": True, "parent": names.ROOT_QUEUE}},
)
"""Queues that exist in every cluster. Whoever starts first makes them."""


class QueueKey(NamedTuple):
    """An action to carry out on a queue."""

    queue: str
    action: Action


class Numbers(Protocol):
    """Where the numbers of queues go."""

    def groups_counted(self, queue: str, by_phase: dict[str, int]) -> None:
        """PodGroups of a queue by phase."""
        ...

    def queue_gone(self, queue: str) -> None:
        """Forget the series of a queue."""
        ...


class QueueController:
    """Reconciles Queues. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        numbers: Numbers,
        *,
        workers: int = 5,
        max_requeue: int = 15,
        consume_commands: bool = True,
        observer: WorkObserver | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._events, self._numbers = client, events, numbers
        self._queues, self._groups = informers.queues, informers.pod_groups
        self._commands = informers.plain(kinds.COMMANDS)
        self._queues.store.add_index(BY_PARENT, _parents)
        self._groups.store.add_index(BY_QUEUE, _queues)
        self._locks: dict[str, asyncio.Lock] = {}
        self._counts: dict[str, int] = {}  # PodGroups, as they were counted last
        self._orphans: dict[str, str] = {}  # the missing parent that was told of, by queue
        self._to_open: dict[str, float] = {}  # until when (steady time) queues wait for their parents to open
        self._clock = clock
        retries = None if max_requeue < 0 else max_requeue
        self._controller: Controller[QueueKey] = Controller(
            NAME,
            self.reconcile,
            workers=workers,
            max_retries=retries,
            give_up=self._give_up,
            observer=observer,
            clock=clock,
        )
        self._consumer: Controller[Key] = Controller(
            f"{NAME}-commands", self.consume, workers=workers, max_retries=retries, clock=clock
        )
        self._consume_commands = consume_commands
        self._listen()

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        needed: list[Informer[Any]] = [
            self._queues,
            self._groups,
            *([self._commands] if self._consume_commands else []),
        ]
        await wait_all_synced(*needed, timeout=SYNC_TIMEOUT)
        await self.create_well_known()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run(), name=NAME)
            if self._consume_commands:
                tasks.create_task(self._consumer.run(), name=f"{NAME}-commands")

    async def create_well_known(self) -> None:
        """Make ``root`` and ``default`` where they are missing; losing the race to another process is fine."""
        for queue in WELL_KNOWN:
            if ("", queue["name"]) in self._queues.store:
                continue
            try:
                await self._client.create(kinds.QUEUES, {**_head(queue["name"]), "spec": queue["spec"]})
            except AlreadyExists:
                pass
            except KubeError as error:
                log.warning("queue %s could not be created, the scheduler will: %s", queue["name"], error)

    # -- from changes to keys ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._queues.add_handler(on_add=self._seen, on_update=self._changed, on_delete=self._gone)
        self._groups.add_handler(on_add=self._group_seen, on_update=self._group_changed, on_delete=self._group_seen)
        if self._consume_commands:
            self._commands.add_handler(on_add=self._command_seen)

    def ask(self, queue: str, action: Action = Action.SYNC_QUEUE) -> None:
        """Have an action carried out on a queue."""
        self._controller.enqueue(QueueKey(queue, action))

    def _seen(self, queue: Queue) -> None:
        self.ask(queue.name)
        self._ask_children(queue)

    def _changed(self, old: Queue, new: Queue) -> None:
        if old.spec.parent != new.spec.parent:
            self.ask(new.name)
        if old.status.state != new.status.state:
            self._seen(new)

    def _ask_children(self, queue: Queue) -> None:
        """Children look at their parent, so that no change of it is missed by one that comes late."""
        for child in self._queues.store.by_index(BY_PARENT, queue.name):
            self.ask(child.name)
            if queue.status.state not in states.SHUT and self._to_open.pop(child.name, 0.0) > self._clock.monotonic():
                self.ask(child.name, Action.OPEN_QUEUE)

    def _gone(self, queue: Queue) -> None:
        self._numbers.queue_gone(queue.name)
        self._locks.pop(queue.name, None)
        self._counts.pop(queue.name, None)
        self._orphans.pop(queue.name, None)
        self._to_open.pop(queue.name, None)

    def _group_seen(self, group: PodGroup) -> None:
        self._count_soon(_queue_of(group))

    def _group_changed(self, old: PodGroup, new: PodGroup) -> None:
        if _queue_of(old) != _queue_of(new):
            self._count_soon(_queue_of(old))
        if (_queue_of(old), old.status.phase) != (_queue_of(new), new.status.phase):
            self._count_soon(_queue_of(new))

    def _count_soon(self, queue: str) -> None:
        """Counting costs in proportion to the groups, so it waits in proportion to them."""
        groups = self._counts.get(queue, 0)
        delay = 0.0 if groups <= SOON_COUNTED else min(LONGEST_COUNTING_DELAY, groups * COUNTING_DELAY_OF_A_GROUP)
        self._controller.queue.add_after(QueueKey(queue, Action.SYNC_QUEUE), delay)

    def _command_seen(self, command: JsonObject) -> None:
        if _is_for_queues(command):
            self._consumer.enqueue(json.key_of(command))

    # -- from a key to writes ----------------------------------------------------------------------------------------

    async def consume(self, key: Key) -> Result | None:
        """Delete a Command, then have its action carried out: at most once."""
        command = self._commands.store.get(key)
        if command is None:
            return None
        namespace, name = key
        try:
            await self._client.delete(kinds.COMMANDS, name, namespace, uid=json.uid_of(command))
        except NotFound:
            return None
        aimed = command["target"]
        present = self._queues.store.get(("", str(aimed["name"])))
        if present is not None and aimed.get("uid") and aimed["uid"] != present.uid:
            log.info(
                "command %s for queue %s is for an earlier queue of that name", command.get("action"), present.name
            )
            return None
        self.ask(str(aimed["name"]), states.action_of(str(command.get("action") or "")))
        return None

    async def reconcile(self, key: QueueKey) -> Result | None:
        """Carry out one action on one queue. Raises to be called again."""
        async with self._locks.setdefault(key.queue, asyncio.Lock()):
            queue = self._queues.store.get(("", key.queue))
            if queue is None:
                self._locks.pop(key.queue, None)
                return None
            await self._carry_out(self._observe(queue), key.action)
        return None

    async def _carry_out(self, view: Observed, action: Action) -> None:
        """Nothing is tried again for want of a parent: that asks for its children when it appears or opens."""
        if view.parent is not None:
            self._orphans.pop(view.queue.name, None)
        try:
            for operation in plan(view, action):
                await self._perform(view.queue, action, operation)
        except ParentMissing as error:
            self._tell_missing(view.queue, action, error)
        except ParentShut as error:
            self._tell_shut(view.queue, action, error)

    def _tell_missing(self, queue: Queue, action: Action, error: ParentMissing) -> None:
        """Once for each parent that is missed, however often the queue is looked at."""
        if self._orphans.get(queue.name) == queue.spec.parent:
            return
        self._orphans[queue.name] = queue.spec.parent
        log.warning("%s", error)
        self._tell(queue, EventType.WARNING, action, str(error))

    def _tell_shut(self, queue: Queue, action: Action, error: ParentShut) -> None:
        """The queue opens with its parent, if that opens soon; the wish of a day ago is nobody's any more."""
        log.warning("%s", error)
        self._tell(queue, EventType.WARNING, action, str(error))
        self._to_open[queue.name] = self._clock.monotonic() + OPENING_PATIENCE

    def _observe(self, queue: Queue) -> Observed:
        groups = self._groups.store.by_index(BY_QUEUE, queue.name)
        counted = Counter(group.status.phase or "Pending" for group in groups)
        self._counts[queue.name] = len(groups)
        self._numbers.groups_counted(queue.name, {phase: counted[phase] for phase in COUNTED_PHASES})
        return Observed(
            queue=queue,
            parent=self._queues.store.get(("", queue.spec.parent or names.ROOT_QUEUE)),
            children=self._queues.store.by_index(BY_PARENT, queue.name),
            empty=not groups,
        )

    async def _perform(self, queue: Queue, action: Action, operation: Operation) -> None:
        match operation:
            case SetParent(parent):
                await self._client.patch(kinds.QUEUES, queue.name, {"spec": {"parent": parent}})
            case SetState(state, told):
                await self._write_state(queue, action, str(state), told=told)
            case MarkClosedByParent(name, value):
                notes = {names.CLOSED_BY_PARENT: "true" if value else "false"}
                await self._client.patch(kinds.QUEUES, name, {"metadata": {"annotations": notes}})
            case Ask(name, wanted):
                self.ask(name, wanted)

    async def _write_state(self, queue: Queue, action: Action, state: str, *, told: bool) -> None:
        try:
            await self._client.patch(
                kinds.QUEUES,
                queue.name,
                {**_head(queue.name), "status": {"state": state}},
                type=PatchType.APPLY,
                subresource="status",
                field_manager=names.QUEUE_FIELD_MANAGER,
            )
        except KubeError as error:
            if told and action is Action.CLOSE_QUEUE:
                self._tell(queue, EventType.WARNING, action, f"Close queue failed for {error}")
            elif told:
                self._tell(
                    queue,
                    EventType.WARNING,
                    action,
                    f"Update queue status from {queue.status.state} to {state} failed for {error}",
                )
            raise
        if told and action is Action.CLOSE_QUEUE:
            self._tell(queue, EventType.NORMAL, action, "Close queue succeed")

    async def _give_up(self, key: QueueKey, error: Exception) -> None:
        queue = self._queues.store.get(("", key.queue))
        if queue is not None:
            text = f"{key.action} queue failed for {error}"
            self._tell(queue, EventType.WARNING, key.action, text)

    def _tell(self, queue: Queue, type: EventType, action: Action, text: str) -> None:
        self._events.event(Reference.to(kinds.QUEUES, "", queue.name, queue.uid), type, str(action), text)


def _head(name: str) -> JsonObject:
    return {"apiVersion": kinds.QUEUES.api_version, "kind": kinds.QUEUES.kind, "metadata": {"name": name}}


def _queue_of(group: PodGroup) -> str:
    return group.spec.queue or names.DEFAULT_QUEUE


def _queues(group: PodGroup) -> tuple[str, ...]:
    return (_queue_of(group),)


def _parents(queue: Queue) -> tuple[str, ...]:
    return () if queue.name == names.ROOT_QUEUE else (queue.spec.parent or names.ROOT_QUEUE,)


def _is_for_queues(command: JsonObject) -> bool:
    aimed = command.get("target")
    return (
        isinstance(aimed, dict)
        and (aimed.get("apiVersion"), aimed.get("kind")) == (kinds.QUEUES.api_version, kinds.QUEUES.kind)
        and bool(aimed.get("name"))
    )
