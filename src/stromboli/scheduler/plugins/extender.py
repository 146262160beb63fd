"""extender: decisions are put to an HTTP service (spec 06 section 28).

The plugin only makes requests and reads answers; sending is the business of the caller that the shell hands to the
cycle (``core.calling``). A verb that is not set is not asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from stromboli.api import durations
from stromboli.scheduler.core import calling, policy
from stromboli.scheduler.core.plugin import (
    Filter,
    Hooks,
    PlacementRefused,
    Plugin,
    Reach,
    Refusals,
    Scope,
    Score,
    Victims,
    Vote,
)
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins import arguments
from stromboli.scheduler.plugins import extender_documents as documents

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Node, Queue, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

T = TypeVar("T")
DEFAULT_TIMEOUT = 1.0
MOST_REASONS = 240
"""Refusals are bytes; after so many different ones in a cycle a general one stands for the rest."""
REFUSED = "the extender refused the node"
VERBS = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobEnqueued",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)


class BadAnswer(Exception):
    """The service answered with something that cannot be used."""


class Extender(Plugin):
    """Registers a hook for every verb that is set."""

    name: ClassVar[str] = "extender"
    arguments_model = arguments.model(
        "ExtenderArguments",
        extender__urlPrefix=arguments.Text,
        extender__httpTimeout=arguments.Duration,
        extender__ignorable=arguments.Boolean,
        extender__managedResources=list[arguments.Text],
        **{f"extender__{verb}Verb": arguments.Text for verb in VERBS},
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        self._read_arguments()
        if not self._opens():
            return Hooks()
        self._reasons: list[Reason] = []
        self._numbers: dict[tuple[str, int], int] = {}
        return Hooks(
            filters=self._filters(),
            scores=self._scores(),
            preemptable=self._preemptable if self._has("preemptable") else None,
            reclaimable=self._reclaimable if self._has("reclaimable") else None,
            job_enqueueable=self._enqueueable if self._has("jobEnqueueable") else None,
            job_enqueued=self._enqueued if self._has("jobEnqueued") else None,
            job_ready=self._ready if self._has("jobReady") else None,
            overused=self._overused if self._has("queueOverused") else None,
            on_allocate=self._allocated if self._has("allocateFunc") else None,
            on_deallocate=self._deallocated if self._has("deallocateFunc") else None,
            close=self._close if self._has("onSessionClose") else None,
        )

    def _read_arguments(self) -> None:
        given = self.arguments
        self._prefix = policy.text(given, "extender.urlPrefix", "").rstrip("/")
        self._ignorable = policy.boolean(given, "extender.ignorable", False)
        self._verbs = {verb: policy.text(given, f"extender.{verb}Verb", "") for verb in VERBS}
        managed = given.get("extender.managedResources")
        self._managed = frozenset(managed) if isinstance(managed, list) else frozenset()
        try:
            self._timeout = durations.seconds(policy.text(given, "extender.httpTimeout", ""))
        except ValueError:
            self._timeout = DEFAULT_TIMEOUT

    def _has(self, verb: str) -> bool:
        return bool(self._verbs[verb])

    # Asking

    def _ask(self, verb: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The decoded answer. Raises CallFailed or BadAnswer."""
        caller = self._view.options.get(calling.OPTION)
        if not callable(caller):
            raise calling.CallFailed(f"extender: nobody can call {self._prefix}: this process has no caller")
        url = f"{self._prefix}/{self._verbs[verb]}"
        answer = caller(url, json.dumps(body).encode(), self._timeout)
        try:
            document = json.loads(answer) if answer else {}
        except ValueError as error:
            raise BadAnswer(f"extender at {url}: the answer is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise BadAnswer(f"extender at {url}: the answer is no object")
        return document

    def _ask_or(self, verb: str, body: Mapping[str, object], failed: dict[str, Any]) -> dict[str, Any]:
        """As :meth:`_ask`; a failure is named and answered with ``failed``."""
        try:
            return self._ask(verb, body)
        except (calling.CallFailed, BadAnswer) as error:
            self._view.warn(str(error))
            return failed

    def _opens(self) -> bool:
        if not self._has("onSessionOpen"):
            return True
        try:
            self._ask("onSessionOpen", documents.of_session(self._view))
        except (calling.CallFailed, BadAnswer) as error:
            self._view.warn(str(error))
            return self._ignorable
        return True

    def _close(self) -> None:
        self._ask_or("onSessionClose", {}, {})

    # Nodes

    def is_interested(self, task: Task) -> bool:
        """Whether the service has a say about the task: a container names a managed resource, or all are managed."""
        spec = task.shape.pod.spec
        return not self._managed or any(
            not self._managed.isdisjoint((*container.resources.requests, *container.resources.limits))
            for container in (*spec.init_containers, *spec.containers)
        )

    def _refuse(self, task: Task, rows: Rows) -> Refusals | None:
        if not self.is_interested(task):
            return None
        answers = [self._refuse_one(task, self._view.node_list[row]) for row in rows.tolist()]
        return np.array(answers, dtype=np.uint8)

    def _refuse_one(self, task: Task, node: Node | None) -> int:
        if node is None:
            return 0
        body = {"task": self._task(task), "node": documents.of_node(node, self._view)}
        try:
            answer = self._ask("predicate", body)
        except (calling.CallFailed, BadAnswer) as error:
            return 0 if self._ignorable else self._reason(str(error), Code.ERROR)
        message = answer.get("status")
        return self._reason(str(message), _code(answer.get("code"))) if message else 0

    def _reason(self, text: str, code: Code) -> int:
        number = self._numbers.get((text, code))
        if number is None and len(self._reasons) >= MOST_REASONS and text != REFUSED:
            return self._reason(REFUSED, code)
        if number is None:
            self._reasons.append(Reason(text, code))
            number = self._numbers[text, code] = len(self._reasons)
        return number

    def _filters(self) -> list[Filter]:
        if not self._has("predicate"):
            return []
        return [Filter("extender", self._reasons, self._refuse, scope=Scope.TASK)]

    def _scores(self) -> list[Score]:
        if not self._has("prioritize"):
            return []
        return [Score("extender", self._rate, scope=Scope.TASK, reach=Reach.CLUSTER)]

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        if not self.is_interested(task):
            return None
        nodes = self._view.row_nodes(rows)
        body = {"task": self._task(task), "nodes": [documents.of_node(node, self._view) for node in nodes]}
        try:
            answer = self._ask("prioritize", body)
        except calling.CallFailed:
            if self._ignorable:
                return None
            raise
        scores, message = answer.get("nodeScore"), answer.get("errorMessage")
        if message or not isinstance(scores, dict):
            raise BadAnswer(f"extender: prioritize: {message or 'no scores'}")
        return np.array([float(scores.get(node.name, 0.0)) for node in nodes])

    def _task(self, task: Task) -> documents.Document:
        return documents.of_task(task, self._view.columns)

    # Victims

    def _preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Victims:
        return self._victims("preemptable", preemptor, candidates)

    def _reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Victims:
        return self._victims("reclaimable", reclaimer, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: Sequence[Task]) -> Victims:
        if not self.is_interested(evictor):
            return [], Vote.ABSTAIN
        body = {"evictor": self._task(evictor), "evictees": [self._task(task) for task in candidates]}
        failed = {"status": Vote.PERMIT if self._ignorable else Vote.REJECT}
        answer = self._ask_or(verb, body, failed)
        named = answer.get("victims") or ()
        wanted = {victim.get("uid", victim.get("UID")) for victim in named if isinstance(victim, dict)}
        return [task for task in candidates if task.uid in wanted], _vote(answer.get("status"))

    # Jobs and queues

    def _enqueueable(self, job: Job) -> Vote:
        failed = {"status": Vote.PERMIT if self._ignorable else Vote.REJECT}
        vote = _vote(self._ask_or("jobEnqueueable", self._job(job), failed).get("status"))
        if vote is Vote.REJECT:
            self._view.refuse(job, "ExtenderRejected", f"the extender at {self._prefix} does not admit the group yet")
        return vote

    def _enqueued(self, job: Job) -> None:
        self._ask_or("jobEnqueued", self._job(job), {})

    def _ready(self, job: Job) -> bool:
        return bool(self._ask_or("jobReady", self._job(job), {"status": self._ignorable}).get("status"))

    def _job(self, job: Job) -> Mapping[str, object]:
        return {"job": documents.of_job(job, self._view.columns)}

    def _overused(self, queue: Queue) -> bool:
        body = {"queue": documents.of_queue(queue, self._view.columns)}
        return bool(self._ask_or("queueOverused", body, {"overused": not self._ignorable}).get("overused"))

    # Accounting

    def _allocated(self, task: Task, _node: Node) -> None:
        error = self._tell("allocateFunc", task)
        if error:
            raise PlacementRefused(error)

    def _deallocated(self, task: Task, _node: Node) -> None:
        error = self._tell("deallocateFunc", task)
        if error:
            self._view.warn(error)

    def _tell(self, verb: str, task: Task) -> str:
        """The error with which the service answers, also when calls that fail are ignored; empty when it agrees."""
        if not self.is_interested(task):
            return ""
        try:
            return str(self._ask(verb, {"task": self._task(task)}).get("errorMessage") or "")
        except (calling.CallFailed, BadAnswer) as error:
            return "" if self._ignorable else str(error)


def _vote(status: object) -> Vote:
    return Vote(status) if isinstance(status, int) and status in (-1, 0, 1) else Vote.ABSTAIN


def _code(code: object) -> Code:
    """The code of a refusal; 0 and what is no code count as an error."""
    if isinstance(code, int) and code != Code.SUCCESS and code in tuple(Code):
        return Code(code)
    return Code.ERROR
