"""Tentative changes that can be undone exactly, and what is decided when they are committed (spec 04 section 26).

A ``Statement`` applies placements and evictions to the mirror at once and remembers them. ``commit`` hands them to
the cycle's decisions, ``discard`` undoes them newest first, with every plugin's accounting told of each step, so that
afterwards nothing differs from before. A ``Plan`` is what a discarded statement did, to be replayed.

Where the original puts a task back to Running when its eviction is undone, whatever it was, here it gets the status
that it had: an undone change leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from stromboli.scheduler.core.accounting import Holding, Ledger, holding_of
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Node, Task, Transaction
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.takings import Taking

AccountingHook = Callable[[Task, Node], None]
Books = tuple[AccountingHook | None, AccountingHook | None]
"""A plugin's ``on_allocate`` and ``on_deallocate``; one that refuses a placement has not changed anything.

One that fails in another way is taken to refuse where it can, and is passed over where nobody is asked; see
``Journal.faults``.
"""


class Act(Enum):
    """What an operation does to its task."""

    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"


class Operation(msgspec.Struct, frozen=True, gc=False):
    """One change, with what is needed to undo or repeat it."""

    act: Act
    task: Task
    node: Node
    eviction_occurred: bool = False
    reason: str = ""
    before: TaskStatus = TaskStatus.PENDING


Plan = Sequence[Operation]


@dataclass(slots=True)
class Decisions:
    """What statements have committed in this cycle, in order."""

    binds: list[tuple[Task, Node]] = field(default_factory=list)
    evictions: list[tuple[Task, str]] = field(default_factory=list)
    takings: list[Taking] = field(default_factory=list)


class Journal:
    """Where statements write: the ledger, the plugins' books and the cycle's decisions."""

    def __init__(self, ledger: Ledger, books: Sequence[Books] = ()) -> None:
        self.ledger = ledger
        self.decisions = Decisions()
        self.placed: dict[str, Task] = {}
        """Tasks that were Allocated or Pipelined at some time in this cycle, by UID."""
        self.faults: list[str] = []
        """What went wrong in books of plugins, each text once: a fault there ends neither the cycle nor the process."""
        self._books = books
        self._evicted: dict[Task, TaskStatus] = {}
        """Tasks whose eviction nobody has decided on yet, and in which status they were."""
        self._discarded: list[Task] = []

    def statement(self) -> Statement:
        """A new, empty statement."""
        return Statement(self)

    def place(self, task: Task, node: Node, status: TaskStatus) -> None:
        """Moves a Pending task to a node. Raises PlacementRefused and leaves everything as it was when it cannot."""
        if task.job is None:
            raise PlacementRefused(f"task {task.key} has no job")
        holding = holding_of(status)
        try:
            self.ledger.put(task, node, holding)
        except ValueError as error:
            raise PlacementRefused(str(error)) from error
        self.ledger.set_status(task, status)
        if self._books:
            self._tell_placed(task, node, holding)
        self.placed[task.uid] = task

    def _tell_placed(self, task: Task, node: Node, holding: Holding) -> None:
        for told, (on_allocate, _) in enumerate(self._books):
            if on_allocate is None:
                continue
            try:
                on_allocate(task, node)
            except PlacementRefused:
                self._unplace(task, node, holding, self._books[:told])
                raise
            except Exception as error:  # a plugin that cannot account for a placement must not half have it
                self._unplace(task, node, holding, self._books[:told])
                raise PlacementRefused(self._noted(on_allocate, error)) from error

    def unplace(self, task: Task) -> None:
        """The reverse of ``place``: the task is Pending, on no node."""
        node = task.node
        assert node is not None
        self._unplace(task, node, holding_of(task.status), self._books)

    def _unplace(self, task: Task, node: Node, holding: Holding, books: Sequence[Books]) -> None:
        self.ledger.take_off(task, holding)
        self.ledger.set_status(task, TaskStatus.PENDING)
        self._tell_removed(task, node, books)
        task.eviction_occurred = False

    def _tell_removed(self, task: Task, node: Node, books: Sequence[Books]) -> None:
        for _, on_deallocate in reversed(books):
            if on_deallocate is not None:
                try:
                    on_deallocate(task, node)
                except Exception as error:  # the others' books are to be right all the same
                    self._noted(on_deallocate, error)

    def _tell_restored(self, task: Task, node: Node) -> None:
        for on_allocate, _ in self._books:
            if on_allocate is not None:
                try:
                    on_allocate(task, node)
                except PlacementRefused:
                    pass  # nobody can refuse that a task stays where it is
                except Exception as error:  # the others' books are to be right all the same
                    self._noted(on_allocate, error)

    def _noted(self, hook: AccountingHook, error: Exception) -> str:
        name = getattr(type(getattr(hook, "__self__", None)), "name", "") or getattr(hook, "__module__", "?")
        text = f"plugin {name} failed to keep its books: {error!r}"
        if text not in self.faults:
            self.faults.append(text)
        return text

    def evict(self, task: Task) -> None:
        """Marks a task as being released."""
        node = task.node
        self._evicted[task] = task.status
        self.ledger.reweigh(task, holding_of(task.status), Holding.EVICTED)
        self.ledger.set_status(task, TaskStatus.RELEASING)
        if node is not None:
            self._tell_removed(task, node, self._books)

    def unevict(self, task: Task, status: TaskStatus) -> None:
        """The reverse of ``evict`` for a task that was in ``status``."""
        node = task.node
        self._evicted.pop(task, None)
        self.ledger.reweigh(task, Holding.EVICTED, holding_of(status))
        self.ledger.set_status(task, status)
        if node is not None:
            self._tell_restored(task, node)

    def remember(self, task: Task) -> None:
        """Notes where a task is before that is undone, for reports at the end of the cycle."""
        task.last_transaction = Transaction(task.status, task.node_name, task.eviction_occurred)
        self._discarded.append(task)

    def forget_transactions(self) -> None:
        """The cycle has ended."""
        for task in self._discarded:
            task.last_transaction = None
        self._discarded.clear()

    def bind(self, task: Task) -> None:
        """Decides that an Allocated task is to be bound to its node."""
        node = task.node
        assert node is not None
        self.ledger.set_status(task, TaskStatus.BINDING)
        task.last_transaction = None
        self.decisions.binds.append((task, node))

    def confirm_eviction(self, task: Task, reason: str) -> None:
        """Decides that a task marked by ``evict`` is to be evicted."""
        task.evicting = True
        task.last_transaction = None
        self._evicted.pop(task, None)
        self.decisions.evictions.append((task, reason))

    def end_evictions(self) -> None:
        """Undoes evictions that nobody has decided on, at the end of a cycle."""
        for task, before in reversed(list(self._evicted.items())):
            self.unevict(task, before)


class Statement:
    """A list of operations that take effect at once and are decided together."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.operations: list[Operation] = []

    def __len__(self) -> int:
        return len(self.operations)

    def allocate(self, task: Task, node: Node) -> None:
        """Gives a Pending task idle resources of a node. Raises PlacementRefused."""
        self._journal.place(task, node, TaskStatus.ALLOCATED)
        self.operations.append(Operation(Act.ALLOCATE, task, node))

    def pipeline(self, task: Task, node: Node, *, eviction_occurred: bool) -> None:
        """Lets a Pending task wait for resources of a node. Raises PlacementRefused."""
        self._journal.place(task, node, TaskStatus.PIPELINED)
        task.eviction_occurred = eviction_occurred
        self.operations.append(Operation(Act.PIPELINE, task, node, eviction_occurred))

    def evict(self, task: Task, reason: str) -> None:
        """Takes a task's resources away."""
        assert task.node is not None
        operation = Operation(Act.EVICT, task, task.node, reason=reason, before=task.status)
        self._journal.evict(task)
        self.operations.append(operation)

    def commit(self) -> None:
        """Decides what is here; pipelined tasks keep what they wait for until the end of the cycle."""
        for operation in self.operations:
            task = operation.task
            task.last_transaction = None
            if operation.act is Act.ALLOCATE:
                self._journal.bind(task)
            elif operation.act is Act.EVICT:
                self._journal.confirm_eviction(task, operation.reason)
        self._journal.decisions.takings.extend(_takings(self.operations))
        self.operations = []

    def discard(self) -> None:
        """Undoes everything, newest first; tasks remember where they could have been."""
        for operation in reversed(self.operations):
            task = operation.task
            self._journal.remember(task)
            if operation.act is Act.EVICT:
                self._journal.unevict(task, operation.before)
            else:
                self._journal.unplace(task)
        self.operations = []

    def merge(self, other: Statement) -> None:
        """Takes over the operations of another statement."""
        self.operations.extend(other.operations)
        other.operations = []

    def save(self) -> Plan:
        """What was done, to be replayed after a discard."""
        return tuple(self.operations)

    def replay(self, plan: Plan) -> None:
        """Does again what a plan did. Raises PlacementRefused at the first operation that is refused."""
        for operation in plan:
            match operation.act:
                case Act.ALLOCATE:
                    self.allocate(operation.task, operation.node)
                case Act.PIPELINE:
                    self.pipeline(operation.task, operation.node, eviction_occurred=operation.eviction_occurred)
                case Act.EVICT:
                    self.evict(operation.task, operation.reason)


def _takings(operations: Sequence[Operation]) -> list[Taking]:
    """Whoever is placed together with evictions is placed at the cost of those who are evicted; each cost once."""
    lost = dict.fromkeys((op.task.job, op.node) for op in operations if op.act is Act.EVICT)
    if not lost:
        return []
    takers = dict.fromkeys(op.task.job for op in operations if op.act is not Act.EVICT)
    return [
        Taking(taker, victim, node)
        for victim, node in lost
        for taker in takers
        if taker is not None and victim is not None and taker is not victim
    ]
