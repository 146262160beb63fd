"""One scheduling cycle over a frozen mirror: open, actions, close (spec 04 sections 2, 24 and 29).

``run`` is a function of the mirror, the policy, the time and the seed; its result is data. Time for measuring comes
from a clock the caller passes, so that decisions never depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Required, TypedDict, Unpack

from stromboli.api import core
from stromboli.api.reasons import (
    EventReason,
    EventType,
    PodConditionReason,
    WaitReason,
    gang_unschedulable,
    next_step,
)
from stromboli.scheduler.core import admitting, closing, devices, near_misses, opening, victim_order
from stromboli.scheduler.core.accounting import Holding
from stromboli.scheduler.core.acting import Action
from stromboli.scheduler.core.combining import Combination, Member
from stromboli.scheduler.core.fit_errors import FitErrors, job_text
from stromboli.scheduler.core.journal import Journal, Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.records import Job, Node, Phase, Task
from stromboli.scheduler.core.results import Bind, CycleResult, Evict, PodGroupUpdate
from stromboli.scheduler.core.searching import Searches
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.stranding import GRACE_SECONDS, Stranding, stranding_of
from stromboli.scheduler.core.takings import Takings
from stromboli.scheduler.core.view import Condition, JobEvent, Refusal, View

Clock = Callable[[], float]
NO_HOOKS = Hooks()
_NOTES_KEPT = 4
_PROBLEMS_KEPT = 100


class Setting(TypedDict, total=False):
    """What a cycle is run with, apart from mirror, policy and time."""

    session_id: Required[str]
    plugins: Required[Mapping[str, type[Plugin]]]
    actions: Required[Mapping[str, Action]]
    seed: int | None
    """Absent or None: ties go to the first in node-list order."""
    clock: Clock
    """For measuring only; absent: everything takes no time."""
    shard: frozenset[str] | None
    """Names of the nodes of this scheduler; absent or None: all."""
    shard_mode: str
    """``none`` (when absent), ``soft`` or ``hard``."""
    options: Mapping[str, object] | None
    """Process options that plugins look at."""
    speaks_for: Callable[[str], bool]
    """Whether this scheduler is the one to write what a queue holds; absent: it is."""


def run(mirror: Mirror, policy: Policy, now: float, **setting: Unpack[Setting]) -> CycleResult:
    """Decides what is to be done now. A failing plugin or action is named in ``problems``; the cycle still closes."""
    cycle = Cycle(mirror, policy, now, **setting)
    for action in policy.actions:
        cycle.execute(action)
    return cycle.close()


class Cycle:
    """An open cycle: what actions work with.

    ``view`` and ``combination`` answer questions, statements of ``journal`` change things.
    """

    def __init__(self, mirror: Mirror, policy: Policy, now: float, **setting: Unpack[Setting]) -> None:
        plugins, seed, session_id = setting["plugins"], setting.get("seed"), setting["session_id"]
        self.mirror = mirror
        self.policy = policy
        self.now = now
        self.result = CycleResult(session_id)
        self.random = None if seed is None else Random(seed)
        """None: ties go to the first in node-list order."""
        self._clock = setting.get("clock", _no_time)
        self._actions = setting["actions"]
        self._speaks_for = setting.get("speaks_for", _everybody)
        started = self._clock()
        known = [plugins[option.name] for tier in policy.tiers for option in tier if option.name in plugins]
        mirror.shapes.read_annotations(opening.shape_annotations(known))
        mirror.prepare()
        self.view = self._make_view(setting)
        self._open_jobs()
        members = self._open_plugins(plugins)
        self._takings = Takings.kept_in(mirror.memory, now)
        self.combination = Combination(
            members, mirror.ledger.changes, tiers_agree=policy.tiers_agree_on_victims, takings=self._takings
        )
        # From here on shapes are final: nothing has been asked about any, and nothing is remembered by shape.
        mirror.tell_apart(self.combination.united("shape_labels"), self.combination.united("shape_annotations"))
        mirror.ignore(self.combination.united("own_resources"))
        self.journal = Journal(mirror.ledger, self.combination.books)
        self.searches = Searches(self.view, self.combination, mirror.ledger, self.complain)
        self._invalid: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}
        """Why jobs wait for which no node is to blame, by job id; written by ``note``."""
        self._withheld: dict[str, Refusal] = {}
        self._near_misses: dict[str, near_misses.NearMiss] = {}
        self.result.timings["open", ""] = self._clock() - started

    # Opening

    def _make_view(self, setting: Setting) -> View:
        mirror = self.mirror
        return View(
            session_id=setting["session_id"],
            now=self.now,
            columns=mirror.columns,
            nodes=mirror.nodes,
            node_list=mirror.node_list,
            nodes_by_name=mirror.nodes_by_name,
            jobs=mirror.session_jobs,
            job_table=mirror.job_table,
            queues=mirror.queues,
            total=mirror.nodes.total(mirror.nodes.allocatable),
            hyper_nodes=mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation),
            affine_shapes=mirror.shapes.affine(),
            objects=mirror.objects,
            shard=setting.get("shard"),
            shard_mode=setting.get("shard_mode", "none"),
            hierarchy={
                option.name: option.switches.hierarchy
                for tier in reversed(self.policy.tiers)
                for option in reversed(tier)
            },
            action_names=frozenset(self.policy.actions),
            configurations=dict(reversed(self.policy.configurations)),
            options=setting.get("options") or {},
            unsettled=self._unsettled,
            memory=mirror.memory,
            in_victim_order=lambda job, tasks: sorted(tasks, key=victim_order.key(self.combination, job)),
        )

    def _open_jobs(self) -> None:
        named = opening.tiers_by_name(self.view.hyper_nodes)
        for job in self.mirror.topology_jobs():
            opening.adjust_topology(job, self.view.hyper_nodes, named)
            if self.view.hyper_nodes.ready:
                opening.repair_hyper_nodes(job, self.view.hyper_nodes)

    def _open_plugins(self, plugins: Mapping[str, type[Plugin]]) -> list[list[Member]]:
        hooks = {}
        for tier in self.policy.tiers:
            for option in tier:
                hooks[option.name] = self._open_plugin(option, plugins)
        return [[Member(option, hooks[option.name]) for option in tier] for tier in self.policy.tiers]

    def _open_plugin(self, option: PluginOption, plugins: Mapping[str, type[Plugin]]) -> Hooks:
        plugin = plugins.get(option.name)
        if plugin is None:
            self.complain(f"plugin {option.name} is not known; it is skipped")
            return NO_HOOKS
        started = self._clock()
        try:
            return plugin(option.arguments).open(self.view)
        except Exception as error:  # one plugin's fault must not stop scheduling; it is named
            self.complain(f"plugin {option.name} could not be opened and is skipped: {error!r}")
            return NO_HOOKS
        finally:
            self.result.timings["plugin-open", option.name] = self._clock() - started

    # Acting

    def execute(self, name: str) -> None:
        """Executes one action by name; an action that fails is named, what it did so far stays."""
        action = self._actions.get(name)
        if action is None:
            self.complain(f"action {name} is not known; it is skipped")
            return
        started = self._clock()
        try:
            action(self, self.policy.arguments_of(name))
        except Exception as error:  # the cycle is closed even when an action fails
            self.complain(f"action {name} failed: {error!r}")
        finally:
            elapsed = self._clock() - started
            self.result.timings["action", name] = self.result.timings.get(("action", name), 0.0) + elapsed

    def complain(self, text: str) -> None:
        """Names a problem once; a flood of them is cut off."""
        problems = self.result.problems
        if text not in problems and len(problems) < _PROBLEMS_KEPT:
            self.result.problems.append(text)

    def statement(self) -> Statement:
        """A new, empty statement."""
        return self.journal.statement()

    def valid(self, job: Job) -> bool:
        """Whether the job can be scheduled as it is; the reason is kept for reports."""
        invalid = self.combination.job_valid(job)
        if invalid is not None:
            self._invalid[job.id] = invalid.message or invalid.reason
        return invalid is None

    def set_phase(self, job: Job, phase: Phase) -> None:
        """Moves a PodGroup to a phase within this cycle."""
        job.phase = phase
        self.mirror.job_table.phase[job.row] = phase
        self.mirror.ledger.touched[job.id] = job

    def record(self, task: Task, errors: FitErrors) -> None:
        """Remembers why a task found no node."""
        job, sub_job = task.job, task.sub_job
        assert job is not None
        job.fit_errors[task.uid] = errors
        if sub_job is not None:
            sub_job.failed_roles.add(task.role)

    def miss(self, job: Job, find: Callable[[], near_misses.NearMiss | None]) -> None:
        """Remembers where a task of the job that found no node came closest; what was nearer to the whole gang wins."""
        known = self._near_misses.get(job.id)
        if known is not None and known.placed >= job.ready_count + job.waiting_count:
            return
        found = find()
        if found is not None:
            self._near_misses[job.id] = found

    def note(self, job: Job, text: str) -> None:
        """Remembers, once, why a job waits when it is not for want of a node; only the first few are kept."""
        notes = self.notes.setdefault(job.id, [])
        if text not in notes and len(notes) < _NOTES_KEPT:
            notes.append(text)

    def withhold(self, job: Job, refusal: Refusal) -> None:
        """Remembers why the queue of a job gives it nothing more."""
        self.note(job, refusal.message)
        self._withheld.setdefault(job.id, refusal)

    def remove_gate(self, task: Task) -> None:
        """Asks for the queue-allocation gate of a pod to be removed."""
        self.result.gate_removals.append(closing.ref(task))
        self.combination.gate_removed(task)

    # Closing

    def close(self) -> CycleResult:
        """Works out statuses, ends what was only tentative and hands over the decisions."""
        started = self._clock()
        for name, hook in self.combination.close_hooks:
            self._close_plugin(name, hook)
        for job in self._unsettled():
            self._close_job(job)
        self._close_strays()
        self.journal.end_evictions()
        self._note_takings()
        self._end_tentative(TaskStatus.PIPELINED)
        self.result.queues = closing.queue_updates(
            self.mirror.queues,
            self.mirror.columns,
            self._held_devices(),
            self._held_otherwise(),
            now=self.now,
            speaks_for=self._speaks_for,
        )
        self._end_tentative(TaskStatus.ALLOCATED)
        for fault in self.journal.faults:
            self.complain(fault)
        self._hand_over()
        self.result.timings["close", ""] = self._clock() - started
        return self.result

    def _note_takings(self) -> None:
        decisions = self.journal.decisions
        binds = ((task.job, node) for task, node in decisions.binds if task.job is not None)
        self._takings.note(decisions.takings, binds, self.mirror.jobs)

    def _close_plugin(self, name: str, hook: Callable[[], None]) -> None:
        started = self._clock()
        try:
            hook()
        except Exception as error:  # one plugin's fault must not keep statuses from being written; it is named
            self.complain(f"plugin {name} failed at close: {error!r}")
        self.result.timings["plugin-close", name] = self._clock() - started

    def _unsettled(self) -> list[Job]:
        jobs = {**self.mirror.unsettled, **self.mirror.ledger.touched}
        return [job for job in jobs.values() if job.queue is not None and job.pod_group is not None]

    def _close_job(self, job: Job) -> None:
        group = job.pod_group
        assert group is not None
        conditions = [*self.view.conditions.get(job.id, ())]
        admission = admitting.condition_of(job, self.view.refusals.get(job.id), self.now)
        fit = None if self._denial(job) else near_misses.condition_of(job, self._near_misses.get(job.id), self.now)
        conditions.extend(condition for condition in (admission, fit) if condition is not None)
        status = closing.status_of(job, conditions, self.view.session_id, self.now)
        written = not closing.same_status(status, group.status)
        if written:
            self.result.pod_groups.append(PodGroupUpdate(job.id, job.uid, status))
            job.pod_group = core.PodGroup(metadata=group.metadata, spec=group.spec, status=status)
        self.set_phase(job, Phase[status.phase.upper()])
        self._close_tasks(job, group.status, written=written)

    def _close_tasks(self, job: Job, before: core.PodGroupStatus, *, written: bool) -> None:
        if job.phase in (Phase.UNKNOWN, Phase.PENDING, Phase.INQUEUE):
            self._close_waiting(job, before)
        elif written:
            self.view.events.append(JobEvent(job.id, job.uid, "Normal", "Scheduled", "pod group is ready"))
        self.result.pods.extend(closing.pod_updates(job, self._cause(job)))

    def _close_waiting(self, job: Job, before: core.PodGroupStatus) -> None:
        """Says why a group waits; one whose pods are all about to be bound waits for nothing, and warns of nothing."""
        pending, refusal = job.counts[TaskStatus.PENDING], self._refusal(job)
        if job.is_ready and job.tasks and not pending:
            return
        text = job_text(job)
        if job.tasks and not job.is_ready:
            self._warn(job, gang_unschedulable(pending, len(job.tasks), text))
            if any(item.type == "Unschedulable" and item.message.endswith(text) for item in before.conditions):
                self._recall(job)
        elif refusal is not None and not job.tasks:
            self._warn(job, refusal.message)
        miss = self._near_misses.get(job.id)
        notes = [*self.notes.get(job.id, ()), *([miss.message] if miss is not None else [])]
        told = closing.report(job, text, self._invalid.get(job.id, ""), tuple(notes))
        self.result.reports.append(replace(told, shortages=refusal.shortages) if refusal is not None else told)

    def _warn(self, job: Job, message: str) -> None:
        self.view.report(job, EventReason.UNSCHEDULABLE, message, EventType.WARNING)

    def _recall(self, job: Job) -> None:
        last = self.view.events[-1]
        self.mirror.said.recall(job.id, job.uid, last.type, last.message, self.now)

    def _refusal(self, job: Job) -> Refusal | None:
        """Why a job is not admitted, or gets nothing from its queue after that."""
        return self.view.refusals.get(job.id) if job.is_pending else self._withheld.get(job.id)

    def _cause(self, job: Job) -> closing.Cause:
        """Why a job gets nothing when no node is to blame for it, with the next step."""
        denial = self._denial(job)
        if denial is not None:
            # Autoscalers must not add nodes for pods that would be refused there as well.
            return closing.Cause(denial.message, PodConditionReason.SCHEDULER_ERROR)
        refusal = self._refusal(job)
        if refusal is None:
            return closing.Cause(next(iter(self.notes.get(job.id, ())), ""))
        if job.is_pending:
            return closing.Cause(refusal.message)
        return closing.Cause(f"{refusal.message}; {next_step(WaitReason(refusal.reason), in_vain=refusal.is_lasting)}")

    def _denial(self, job: Job) -> Condition | None:
        """What a plugin has said against placing a gang for which there is room."""
        return next((one for one in self.view.conditions.get(job.id, ()) if admitting.denies_fit(one)), None)

    def _close_strays(self) -> None:
        """Says why jobs are in no cycle, once; those that may still get what they miss are looked at again."""
        waiting: dict[str, Job] = {}
        for job in {**self.mirror.strays, **self.mirror.ledger.touched}.values():
            stranding = stranding_of(job, elsewhere=self.mirror.elsewhere.has_group(job.id))
            if stranding is None:
                continue
            if self.now - stranding.since < GRACE_SECONDS:
                waiting[job.id] = job
                continue
            self._close_stray(job, stranding)
        self.mirror.strays = waiting

    def _close_stray(self, job: Job, stranding: Stranding) -> None:
        self.result.pods.extend(closing.stranded_pods(job, stranding.message))
        self.result.reports.append(closing.report(job, stranding.message, ""))
        group = job.pod_group
        if group is None:
            return
        self._warn(job, stranding.message)
        refusal = Refusal(stranding.reason, stranding.message)
        condition = admitting.refused(job, refusal, self.now)
        if condition is not None:
            status = closing.with_conditions(group.status, [condition], self.view.session_id, self.now)
            self.result.pod_groups.append(PodGroupUpdate(job.id, job.uid, status))
            job.pod_group = core.PodGroup(metadata=group.metadata, spec=group.spec, status=status)

    def _held_devices(self) -> dict[str, devices.Demand]:
        """By queue; nothing is looked at where there are no claims."""
        objects = self.view.objects
        if not objects.all(core.ResourceClaim) or not self.view.feature("DynamicResourceAllocation", True):
            return {}
        claims = devices.Claims(objects, capacities=self.view.feature("DRAConsumableCapacity", False))
        return {name: devices.held_by(queue, claims) for name, queue in self.mirror.queues.items()}

    def _held_otherwise(self) -> dict[str, dict[str, float]]:
        try:
            return self.combination.held_otherwise()
        except Exception as error:  # what queues hold by requests is still worth writing; the fault is named
            self.complain(f"a plugin failed to tell what queues hold: {error!r}")
            return {}

    def _end_tentative(self, status: TaskStatus) -> None:
        for task in self.journal.placed.values():
            if task.status == status:
                self.journal.unplace(task)

    def _hand_over(self) -> None:
        mirror, result, decisions = self.mirror, self.result, self.journal.decisions
        result.binds = [self._bind(task, node) for task, node in decisions.binds]
        for task, reason in decisions.evictions:
            mirror.ledger.reweigh(task, Holding.EVICTED, Holding.RELEASING)
            result.evictions.append(Evict(closing.ref(task), reason, task.job.uid if task.job else ""))
        result.events = mirror.said.fresh(self.view.events, self.now)
        result.samples, result.warnings = self.view.samples, self.view.warnings
        result.faults = self.view.faults
        jobs = self._unsettled()
        for job in jobs:
            _forget(job)
        self.journal.forget_transactions()
        mirror.unsettled = {job.id: job for job in jobs if _may_change(job)}
        mirror.ledger.touched.clear()
        mirror.ledger.changes.clear()

    def _bind(self, task: Task, node: Node) -> Bind:
        extension = self.combination.bind_extension(task, node)
        if extension is not None and extension.annotations:
            task.annotations = {**task.annotations, **extension.annotations}
        return Bind(closing.ref(task), node.name, extension, task.annotations)


def _everybody(_queue: str) -> bool:
    return True


def _no_time() -> float:
    return 0.0


def _forget(job: Job) -> None:
    """Drops what is only known within a cycle."""
    job.fit_errors.clear()
    for sub_job in job.sub_jobs.values():
        sub_job.failed_roles.clear()


def _may_change(job: Job) -> bool:
    """Whether the next cycle may say something else about the job though no event arrives for it."""
    settled = job.phase in (Phase.INQUEUE, Phase.RUNNING, Phase.COMPLETED) and job.is_ready
    return not settled or bool(job.counts[TaskStatus.PENDING])
