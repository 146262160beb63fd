"""A cluster whose owners replace what is evicted: cycle after cycle, decisions happen and evicted pods come back new.

What a pod's owner would make again is its *slot*: the evicted pod and its replacement share it. Evictions are kept as
pairs of slots, the one that went and those it went for, so that a test can see two taking turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from unittest.mock import patch

import msgspec

from stromboli.api import core, names
from stromboli.scheduler.core.journal import Act, Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.results import CycleResult, TaskRef
from stromboli.testing.builders import PodBuilder
from tests.scheduler.core.worlds import NOW, feed, run_cycle

Options = Callable[["Owners"], Mapping[str, object]]


@dataclass
class Owners:
    """What the scheduler decides happens at once, except that evicted pods take ``grace`` cycles to end."""

    mirror: Mirror
    policy: Policy
    pods: dict[str, PodBuilder]
    grace: int = 0
    step: float = 1.0
    """Seconds from cycle to cycle."""
    options: Options = lambda _owners: {}
    cycles: int = 0
    evictions: list[int] = field(default_factory=list)
    """How many pods each cycle has evicted."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a slot was evicted for another one."""
    _ending: list[tuple[int, TaskRef]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, mirror: Mirror, pods: Sequence[PodBuilder], policy: Policy, **how: object) -> Owners:
        """Delivers the pods to a mirror that knows their groups."""
        for one in pods:
            feed(mirror, one.build())
        return cls(mirror, policy, {one.name: one for one in pods}, **how)  # type: ignore[arg-type]

    def comes_to_rest(self, within: int) -> bool:
        """Runs cycles until three in a row decide nothing, which later ones could only repeat; whether they do."""
        quiet = 0
        for _ in range(within):
            quiet = 0 if self.cycle() or self._ending else quiet + 1
            if quiet == 3:
                return True
        return False

    def cycle(self) -> bool:
        """One cycle; whether it moved a pod."""
        with self._noting_pairs():
            now = NOW + self.cycles * self.step
            result = run_cycle(self.mirror, self.policy, now=now, options=self.options(self))
        assert not result.problems
        self.cycles += 1
        self._carry_out(result)
        self.evictions.append(len(result.evictions))
        return bool(result.binds or result.evictions)

    def placed(self) -> dict[str, str]:
        """Slot to node."""
        return {slot(name): one.spec.node_name for name, one in self.pods.items() if one.spec.node_name}

    @contextmanager
    def _noting_pairs(self) -> Iterator[None]:
        commit = Statement.commit

        def noting(statement: Statement) -> None:
            acts = [(operation.act, slot(operation.task.name)) for operation in statement.operations]
            claimants = [name for act, name in acts if act is not Act.EVICT] or ["nobody"]
            self.pairs.update((name, one) for act, name in acts if act is Act.EVICT for one in claimants)
            commit(statement)

        with patch.object(Statement, "commit", noting):
            yield

    def _carry_out(self, result: CycleResult) -> None:
        for bind in result.binds:
            self._change(bind.task.name, self.pods[bind.task.name].on(bind.node))
        for update in result.pods:
            if update.nominated_node:
                self._change(update.task.name, self.pods[update.task.name].nominated(update.nominated_node))
        for group in result.pod_groups:
            known = self.mirror.jobs[group.job_id].pod_group
            if known is not None:
                feed(self.mirror, msgspec.structs.replace(known, status=group.status))
        for eviction in result.evictions:
            name = eviction.task.name
            self._change(name, self.pods[name].deleting())
            self._ending.append((self.cycles + self.grace, eviction.task))
        for due, task in list(self._ending):
            if due <= self.cycles:
                self._ending.remove((due, task))
                self._replace(task)

    def _change(self, name: str, changed: PodBuilder) -> None:
        self.pods[name] = changed
        feed(self.mirror, changed.build())

    def _replace(self, gone: TaskRef) -> None:
        old = self.pods.pop(gone.name)
        self.mirror.delete_pod(gone.key, gone.uid)
        spec = msgspec.structs.replace(old.spec, node_name="")
        fresh = f"{slot(gone.name)}_{next(self._numbers)}"
        again = replace(old, name=fresh, deleted=None, spec=spec, status=core.PodStatus(phase="Pending"))
        self._change(fresh, again)


def slot(name: str) -> str:
    """What a pod and its replacements have in common."""
    return name.partition("_")[0]


def group_of(one: PodBuilder) -> str:
    """The PodGroup of a pod."""
    return one.annotations[names.GROUP_NAME]
