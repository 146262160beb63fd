"""Cycles of the scheduler's core over a snapshot, each followed by what its decisions lead to in a cluster.

Bound pods run and do not end; evicted pods are gone, and those of vcjobs come back Pending; pods of a vcjob appear once
its PodGroup is admitted. Time passes one second a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from stromboli.api import core, names
from stromboli.cli.rehearsing import claims
from stromboli.cli.rehearsing.policies import ACTIONS, PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.cycle import Cycle, Setting, run
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Job, Phase
from stromboli.scheduler.core.results import Bind, CycleResult, JobReport
from stromboli.scheduler.core.view import Sample


@dataclass(frozen=True)
class QueueState:
    """What a queue holds and may hold after a cycle, as resource lists; without the entry nothing is said."""

    allocated: Mapping[str, str]
    share: float | None = None

    @property
    def amounts(self) -> str:
        """``cpu=4,memory=8Gi``; ``nothing`` for nothing."""
        held = [f"{name}={amount}" for name, amount in sorted(self.allocated.items()) if amount != "0"]
        return ",".join(held) or "nothing"

    @property
    def share_text(self) -> str:
        """Two digits; ``-`` where the policy says nothing."""
        return "-" if self.share is None else f"{self.share:.2f}"


@dataclass(frozen=True)
class Start:
    """A pod that was given a node."""

    pod: str
    node: str
    job: str
    """``namespace/podgroup``."""


@dataclass(frozen=True)
class Eviction:
    """A pod that was evicted, and by which action."""

    pod: str
    reason: str
    job: str


@dataclass(frozen=True)
class Round:
    """One cycle: what it decided, and how things stand afterwards."""

    number: int
    started: tuple[Start, ...]
    evicted: tuple[Eviction, ...]
    admitted: tuple[str, ...]
    """Jobs (``namespace/podgroup``) let in."""
    queues: Mapping[str, QueueState] = field(default_factory=dict)
    use: Mapping[str, float] = field(default_factory=dict)
    """Part of the cluster in use, by resource."""
    waiting: int = 0
    """Gangs that wait."""
    problems: tuple[str, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether nothing was decided."""
        return not (self.started or self.evicted or self.admitted)


class Rehearsal:
    """The cluster of a snapshot, taken forward cycle by cycle."""

    def __init__(self, snapshot: Snapshot, policy: Policy, plugins: Plugins = PLUGINS) -> None:
        self.mirror = snapshot.mirror()
        self.now = snapshot.taken
        self.rounds: list[Round] = []
        self.samples: list[Sample] = []
        """What the latest cycle measured."""
        self.reports: dict[str, JobReport] = {}
        """What the latest cycle said of the jobs that wait, by id."""
        self._policy = policy
        self._plugins = plugins
        self._options = snapshot.options
        self._shard, self._shard_mode = snapshot.shard, snapshot.shard_mode
        self._templates = {template.key: template for template in snapshot.of(core.ResourceClaimTemplate)}
        self._pods: dict[str, core.Pod] = {pod.uid: pod for pod in snapshot.of(core.Pod)}
        self._awaited: dict[str, list[core.Pod]] = {}
        for pod in snapshot.awaited:
            key = f"{pod.namespace}/{pod.metadata.annotations.get(names.GROUP_NAME, '')}"
            self._awaited.setdefault(key, []).append(pod)
        self._let_in()

    def open(self) -> Cycle:
        """An open cycle, for questions to the policy; nothing is executed."""
        return Cycle(self.mirror, self._policy, self.now, **self._setting("question"))

    def cycle(self) -> Round:
        """Run one cycle and let its consequences happen."""
        pending = {job.id for job in self.mirror.session_jobs.values() if job.is_pending}
        result = run(self.mirror, self._policy, self.now, **self._setting(f"rehearsal-{len(self.rounds) + 1}"))
        self.samples = result.samples
        self.reports = {report.job_id: report for report in result.reports}
        admitted = tuple(sorted(key for key in pending if not self._still_pending(key)))
        self._happen(result)
        self.now += 1.0
        done = self._round(result, admitted)
        self.rounds.append(done)
        return done

    def _setting(self, session_id: str) -> Setting:
        return Setting(
            session_id=session_id,
            plugins=self._plugins,
            actions=ACTIONS,
            options=self._options,
            shard=self._shard,
            shard_mode=self._shard_mode,
        )

    def settle(self, most: int) -> Sequence[Round]:
        """Run until a cycle decides nothing, or ``most`` cycles have run; answers all rounds."""
        while len(self.rounds) < most and not (self.rounds and self.rounds[-1].quiet):
            self.cycle()
        return self.rounds

    def placed(self, job_id: str) -> dict[str, str]:
        """Pods of a job that have a node, with it."""
        job = self.mirror.jobs.get(job_id)
        return {task.name: task.node_name for task in job.tasks.values() if task.node_name} if job else {}

    def condition(self, job_id: str, type_: str) -> core.PodGroupCondition | None:
        """A condition of a job's PodGroup as the latest cycle left it."""
        job = self.mirror.jobs.get(job_id)
        group = job.pod_group if job else None
        return next((item for item in group.status.conditions if item.type == type_), None) if group else None

    def _still_pending(self, key: str) -> bool:
        job = self.mirror.jobs.get(key)
        return job is None or job.is_pending

    def _happen(self, result: CycleResult) -> None:
        for bind in result.binds:
            self._start(bind)
        for eviction in result.evictions:
            self._evict(eviction.task.uid)
        self._let_in()

    def _let_in(self) -> None:
        for key in list(self._awaited):
            job = self.mirror.jobs.get(key)
            if job is not None and not job.is_pending:
                for pod in self._awaited.pop(key):
                    self._appear(pod)

    def _appear(self, pod: core.Pod) -> None:
        pod, made = claims.furnished(pod, self._templates)
        for claim in made:
            self.mirror.apply_object(claim)
        self._pods[pod.uid] = pod
        self.mirror.apply_pod(pod)

    def _start(self, bind: Bind) -> None:
        uid, node = bind.task.uid, bind.node
        pod = self._pods[uid]
        for claim in claims.written(self.mirror.objects, pod, bind.extension.devices if bind.extension else ()):
            self.mirror.apply_object(claim)
        running = msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, node_name=node),
            status=msgspec.structs.replace(pod.status, phase="Running"),
        )
        self._pods[uid] = running
        self.mirror.apply_pod(running)

    def _evict(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        self.mirror.delete_pod(f"{pod.namespace}/{pod.name}", uid)
        for claim, is_gone in claims.given_back(self.mirror.objects, pod):
            if is_gone:
                self.mirror.delete_object(core.ResourceClaim, claim.key, claim.uid)
            else:
                self.mirror.apply_object(claim)
        if names.JOB_NAME not in pod.metadata.labels:
            return
        again = msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, uid=f"{uid}+", deletion_timestamp=None),
            spec=msgspec.structs.replace(pod.spec, node_name=""),
            status=core.PodStatus(phase="Pending"),
        )
        self._appear(again)

    def _round(self, result: CycleResult, admitted: tuple[str, ...]) -> Round:
        return Round(
            number=len(self.rounds) + 1,
            started=tuple(Start(bind.task.key, bind.node, bind.task.job_id) for bind in result.binds),
            evicted=tuple(
                Eviction(eviction.task.key, eviction.reason, eviction.task.job_id) for eviction in result.evictions
            ),
            admitted=admitted,
            queues=self._queues(result),
            use=self._use(),
            waiting=sum(not job.is_ready for job in self.mirror.session_jobs.values() if not _is_over(job)),
            problems=tuple(result.problems),
        )

    def _queues(self, result: CycleResult) -> dict[str, QueueState]:
        shares = {dict(sample.labels).get("queue_name"): sample.value for sample in result.samples
                  if sample.name == "queue_share"}  # fmt: skip
        held = self._held_with_descendants()
        return {
            name: QueueState(amounts.write(self.mirror.columns.amounts(amount)), shares.get(name))
            for name, amount in sorted(held.items())
        }

    def _held_with_descendants(self) -> dict[str, Floats]:
        """What each queue holds, those below it included."""
        queues = self.mirror.queues
        held = {name: queue.allocated.copy() for name, queue in queues.items()}
        for queue in queues.values():
            seen, above = {queue.name}, queue.resource.spec.parent or names.ROOT_QUEUE
            while above in held and above not in seen:  # a circle of parents has no top
                held[above] += queue.allocated
                seen.add(above)
                above = queues[above].resource.spec.parent or names.ROOT_QUEUE
        return held

    def _use(self) -> dict[str, float]:
        nodes, columns = self.mirror.nodes, self.mirror.columns
        total = columns.amounts(nodes.allocatable[nodes.live].sum(axis=0))
        used = columns.amounts(nodes.used[nodes.live].sum(axis=0))
        return {name: used.get(name, 0.0) / amount for name, amount in total.items() if amount}


def _is_over(job: Job) -> bool:
    return job.phase is Phase.COMPLETED
