"""What is known of a job that waits, and the scheduler's core asked about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from stromboli.api import core
from stromboli.cli.rehearsing import claims, ladder, members
from stromboli.cli.rehearsing.engine import Rehearsal
from stromboli.cli.rehearsing.ladder import RoleFit
from stromboli.cli.rehearsing.policies import PLUGINS, Plugins
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.view import Sample

BIND_FAILURES = ("failed to bind", "execute preBind for pod")
"""How events about refused binds begin (spec 04 section 19)."""


@dataclass(frozen=True)
class Facts:
    """What is known of a job before the scheduler is asked."""

    job: JsonObject
    snapshot: Snapshot
    policy: Policy
    events: Sequence[JsonObject] = ()
    """Events about the job and its pods."""
    plugins: Plugins = field(default_factory=lambda: PLUGINS)
    """What the names of plugins in the policy stand for."""

    def rehearsal(self, snapshot: Snapshot, policy: Policy | None = None) -> Rehearsal:
        """The scheduler's core over a snapshot, under the policy of the facts or another one."""
        return Rehearsal(snapshot, policy or self.policy, self.plugins)

    @property
    def key(self) -> str:
        """``namespace/name`` of the job."""
        return "/".join(json.key_of(self.job))

    @property
    def phase(self) -> str:
        """The job's phase."""
        return members.phase_of(self.job)

    @property
    def word_of_status(self) -> str:
        """``Reason: message`` of the job's own state, as its controller has written them; empty when it has not."""
        return members.word_of_status(self.job)

    @property
    def group_key(self) -> str:
        """``namespace/name`` of the job's PodGroup, as it is or will be."""
        namespace, name = json.key_of(self.job)
        known = {(group.namespace, group.name) for group in self.snapshot.of(core.PodGroup)}
        return f"{namespace}/{name if (namespace, name) in known else members.group_name(self.job)}"

    @property
    def group(self) -> core.PodGroup | None:
        """The job's PodGroup."""
        return next((group for group in self.snapshot.of(core.PodGroup) if "/".join(group.key) == self.group_key), None)

    @property
    def admitted(self) -> bool:
        """Whether the job's pods may exist."""
        return self.group is not None and self.group.status.phase not in ("", "Pending")

    @property
    def pods(self) -> list[core.Pod]:
        """The job's pods that exist."""
        return [pod for pod in self.snapshot.of(core.Pod) if self.has(pod)]

    def has(self, pod: core.Pod) -> bool:
        """Whether the pod is one of the job's."""
        return f"{pod.namespace}/{pod.metadata.annotations.get(members.GROUP, '')}" == self.group_key

    @property
    def held_back(self) -> dict[str, list[str]]:
        """Tasks of an admitted job that depend on others and have no pods yet, with those others."""
        present = {members.role_of(pod) for pod in self.pods}
        tasks = members.dependencies(self.job) if self.admitted else {}
        return {task: others for task, others in tasks.items() if task not in present}

    @property
    def refused_pods(self) -> str:
        """What the API server said when it refused to create the job's pods, the first of its messages."""
        state = (self.job.get("status") or {}).get("state") or {}
        if state.get("reason") != "PodCreationFailed":
            return ""
        first, _, _ = str(state.get("message") or "").strip("[]").partition("), ")
        return first.partition(" (")[0]

    def told(self, *beginnings: str) -> list[str]:
        """Messages of events about the job and its pods that begin so, oldest first."""
        messages = (str(event.get("message")) for event in self.events)
        return [message for message in messages if message.startswith(beginnings)]


@dataclass(frozen=True)
class Trial:
    """The scheduler's core asked about a job: an open cycle for questions, and a whole one for what it would say."""

    facts: Facts
    cycle: Cycle
    job: Job
    fitting: Sequence[RoleFit]
    after: Rehearsal
    """The cluster after one cycle."""
    samples: Sequence[Sample]
    """What a cycle that does nothing measures."""

    @classmethod
    def of(cls, facts: Facts) -> Trial:
        """Ask about the job of the facts."""
        snapshot = with_pods(facts)
        still = facts.rehearsal(snapshot, replace(facts.policy, actions=()))
        still.cycle()
        after = facts.rehearsal(_with_old_word(facts, snapshot))
        after.cycle()
        cycle = facts.rehearsal(snapshot).open()
        job = cycle.mirror.jobs[facts.group_key]
        return cls(facts, cycle, job, ladder.fits(cycle, job), after, still.samples)

    @property
    def refused_pod(self) -> tuple[str, str]:
        """The first pod that the cycle found no node for, and why; empty when there is none."""
        report = self.after.reports.get(self.facts.group_key)
        return next(iter(report.tasks.items()), ("", "")) if report else ("", "")

    @property
    def word_of_queue(self) -> str:
        """What the cycle noted about the queue that gives the job nothing more."""
        report = self.after.reports.get(self.facts.group_key)
        return next((note for note in report.notes if note.startswith("queue ")), "") if report else ""

    def placeable(self) -> int:
        """Pods of the job for which the scheduler finds nodes one after the other, if they need not start at once."""
        group = self.facts.group
        assert group is not None
        spec = msgspec.structs.replace(group.spec, min_member=1, min_task_member={}, sub_group_policy=())
        loose = with_pods(self.facts).with_objects(msgspec.structs.replace(group, spec=spec))
        alone = self.facts.rehearsal(loose)
        before = len(alone.placed(self.facts.group_key))
        alone.cycle()
        return len(alone.placed(self.facts.group_key)) - before


def _with_old_word(facts: Facts, snapshot: Snapshot) -> Snapshot:
    """The snapshot in which what is written about the group is old: the scheduler holds new numbers back for a while,
    and who asks wants those of now.
    """
    group = facts.group
    if group is None:
        return snapshot
    conditions = tuple(msgspec.structs.replace(one, last_transition_time=None) for one in group.status.conditions)
    status = msgspec.structs.replace(group.status, conditions=conditions)
    return snapshot.with_objects(msgspec.structs.replace(group, status=status))


def with_pods(facts: Facts) -> Snapshot:
    """The snapshot with the pods that the job is going to have, so that nodes can be asked about them.

    Of an admitted job only those count that exist: that the others do not may be what it waits for.
    """
    if facts.group is None:
        return facts.snapshot
    awaited = tuple(pod for pod in facts.snapshot.awaited if not facts.has(pod))
    snapshot = replace(facts.snapshot, awaited=awaited)
    return snapshot if facts.admitted else snapshot.with_objects(*_coming(facts))


def alone(facts: Facts) -> Facts:
    """The same job, as far as it has come, in the cluster without any other work: nothing is written about it there."""
    objects: list[core.Object] = [_unplaced(pod) for pod in facts.pods]
    if facts.group is not None:
        status = msgspec.structs.replace(facts.group.status, conditions=())
        objects.append(msgspec.structs.replace(facts.group, status=status))
    return replace(facts, snapshot=facts.snapshot.without_work().with_objects(*objects), events=())


def _unplaced(pod: core.Pod) -> core.Pod:
    """The pod before it had a node; one that is done needs none any more."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return pod
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=None),
        spec=msgspec.structs.replace(pod.spec, node_name=""),
        status=msgspec.structs.replace(pod.status, phase="Pending"),
    )


def _coming(facts: Facts) -> Iterator[core.Object]:
    """Pods that the job is going to have, with their claims."""
    present = {pod.key for pod in facts.snapshot.of(core.Pod)}
    templates = {template.key: template for template in facts.snapshot.of(core.ResourceClaimTemplate)}
    name = facts.group_key.partition("/")[2]
    for pod in members.pods(facts.job, list(facts.snapshot.of(core.PriorityClass))):
        if pod.key not in present:
            coming, made = claims.furnished(_in_group(pod, name), templates)
            yield from (coming, *made)


def _in_group(pod: core.Pod, name: str) -> core.Pod:
    notes = {**pod.metadata.annotations, members.GROUP: name}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=notes))
