"""nodegroup: queues are bound to groups of nodes (spec 06 section 22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api import core, names
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import Filter, Hooks, Plugin, Reach, Refusals, Scope, Score
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins import arguments, node_facts
from stromboli.scheduler.plugins.queue_hierarchy import parent_of
from stromboli.scheduler.plugins.selecting import ABSENT

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Queue, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

NO_LABEL = Reason("node group label not found", Code.UNRESOLVABLE)
NO_AFFINITY = Reason("node group affinity not specified", Code.UNRESOLVABLE)
UNSATISFIED = Reason("node does not satisfy the node group affinity", Code.UNRESOLVABLE)
REASONS = (NO_LABEL, NO_AFFINITY, UNSATISFIED)
REQUIRED_SCORE, PREFERRED_SCORE, AVOIDED_SCORE = 100.0, 50.0, -1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What a queue says about groups."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    @classmethod
    def of(cls, affinity: core.QueueAffinity | None) -> Rules:
        """The rules of a queue's ``spec.affinity``."""
        near = affinity.node_group_affinity if affinity else None
        away = affinity.node_group_anti_affinity if affinity else None
        return cls(
            near.required_during_scheduling_ignored_during_execution if near else (),
            near.preferred_during_scheduling_ignored_during_execution if near else (),
            away.required_during_scheduling_ignored_during_execution if away else (),
            away.preferred_during_scheduling_ignored_during_execution if away else (),
        )

    @property
    def any(self) -> bool:
        """Whether anything is said."""
        return bool(self.required or self.preferred or self.forbidden or self.avoided)

    def allow(self, group: str) -> bool:
        """Required and preferred groups allow, forbidden ones forbid, avoided ones allow again; others are forbidden.

        So a queue with only anti-affinity can use only the groups it avoids (quirk, kept).
        """
        allowed = group in self.required or group in self.preferred
        return (allowed and group not in self.forbidden) or group in self.avoided

    def score(self, group: str, *, ordered: bool) -> float:
        """The score of a node of this group; ``ordered`` makes the first preferred group the best."""
        if group in self.avoided:
            return AVOIDED_SCORE
        score = REQUIRED_SCORE if group in self.required else 0.0
        if group in self.preferred:
            count = len(self.preferred)
            score += PREFERRED_SCORE * (count - self.preferred.index(group)) / count if ordered else PREFERRED_SCORE
        return score


class NodeGroup(Plugin):
    """Filters and scores by the node's group and the queue's rules."""

    name: ClassVar[str] = "nodegroup"
    arguments_model = arguments.model(
        "NodeGroupArguments", strict=arguments.Boolean, enablePreferredOrder=arguments.Boolean
    )

    def open(self, view: View) -> Hooks:
        self._strict = policy.boolean(self.arguments, "strict", True)
        self._ordered = policy.boolean(self.arguments, "enablePreferredOrder", False)
        self._codes, self._groups = node_facts.of(view).labels.column(names.NODE_GROUP_NAME)
        inherits = bool(view.hierarchy.get(self.name))
        self._rules = {
            name: Rules.of(_affinity(queue, view.queues) if inherits else queue.resource.spec.affinity)
            for name, queue in view.queues.items()
        }
        return Hooks(
            filters=[Filter("node group", REASONS, self._refuse, scope=Scope.JOB, reach=Reach.NODE)],
            scores=[Score("nodegroup", self._rate, scope=Scope.JOB, reach=Reach.NODE)],
        )

    def _rules_of(self, task: Task) -> Rules:
        return self._rules.get(task.job.queue_name, Rules()) if task.job is not None else Rules()

    def _refuse(self, task: Task, rows: Rows) -> Refusals | None:
        rules = self._rules_of(task)
        without = 1 if rules.any or self._strict else 0
        verdicts = [(3 - 3 * rules.allow(group)) if rules.any else 2 for group in self._groups]
        return np.array([*verdicts, without], dtype=np.uint8)[self._codes[rows]]

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        rules = self._rules_of(task)
        if not rules.any:
            return None
        scores = [rules.score(group, ordered=self._ordered) for group in self._groups]
        return np.array([*scores, 0.0])[self._codes[rows]]


def _affinity(queue: Queue, queues: Mapping[str, Queue]) -> core.QueueAffinity | None:
    """The queue's own affinity, be it empty, else that of its nearest ancestor that has one."""
    seen: set[str] = set()
    at: Queue | None = queue
    while at is not None and at.name not in seen:
        if at.resource.spec.affinity is not None:
            return at.resource.spec.affinity
        seen.add(at.name)
        at = queues.get(parent_of(at))
    return None


assert ABSENT == -1, "nodes without a group take the last entry of the tables by group"
