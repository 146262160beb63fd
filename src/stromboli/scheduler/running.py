"""The scheduler at work, while it leads: cycles over the mirror, and everything that carries out what they decide.

Cycles are strictly sequential. The next begins ``--schedule-period`` after the end of the one before; after a cycle in
which nothing happened the first object that comes or goes begins it at once. Decisions are handed to queues that work
beside the cycles; when the API server is slow these fill up and the next cycle waits, but the mirror never forgets what
it assumed.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping
from functools import partial

from stromboli.api import core
from stromboli.api.kinds import POD_GROUPS, PODS, QUEUES, Kind
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.events import Recorder
from stromboli.scheduler import extender_calling, garbage, holding
from stromboli.scheduler.accepting import Acceptance, Share
from stromboli.scheduler.backing_off import GangBackoff, Hold
from stromboli.scheduler.binding import Binder, PreBinders
from stromboli.scheduler.cache import Cache
from stromboli.scheduler.conditions import PodConditions
from stromboli.scheduler.core import calling, elsewhere, loads, overdrawing, reading
from stromboli.scheduler.core import cycle as core_cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import Bind, CycleResult, TaskRef
from stromboli.scheduler.device_binding import DeviceBinder
from stromboli.scheduler.device_maps import DeviceMaps
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.evicting import Evictor
from stromboli.scheduler.explaining import Explanations
from stromboli.scheduler.faultfinding import Faults
from stromboli.scheduler.feeding import Feed
from stromboli.scheduler.gating import GateRemover
from stromboli.scheduler.measuring import Measuring
from stromboli.scheduler.metrics import SchedulerMetrics
from stromboli.scheduler.node_loads import Loads
from stromboli.scheduler.node_locking import NodeLocks
from stromboli.scheduler.options import ON_POD_GROUPS, ON_PODS, Environment, Options
from stromboli.scheduler.placements import ByPodGroup, BySize, EachPod, Placements
from stromboli.scheduler.policies import Policies
from stromboli.scheduler.registering import Registry
from stromboli.scheduler.resyncing import Resync
from stromboli.scheduler.seeding import ensure_queues
from stromboli.scheduler.sharding import Shards, ShardWriter
from stromboli.scheduler.sparing import Sparing
from stromboli.scheduler.volume_binding import VolumeBinder, timeout_of
from stromboli.scheduler.writing import PATIENT_CYCLES, JobWriter, JobWrites, QueueWriter, by_job
from stromboli.telemetry import traces

log = logging.getLogger(__name__)

TRACER = traces.tracer(__name__)

SETTLE_SECONDS = 0.05
"""A change that ends an idle pause is seldom alone: pods of a gang come together."""


class CycleFailed(Exception):
    """A cycle ended in the middle, so the mirror may hold what was only tentative: start over from the API server."""


class Scheduler:
    """One scheduler. :meth:`run` it while it leads; everything it knows is rebuilt from the API server."""

    def __init__(
        self,
        client: Client,
        options: Options,
        registry: Registry,
        policies: Policies,
        metrics: SchedulerMetrics,
        *,
        environment: Environment | None = None,
        explanations: Explanations | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        environment = environment or Environment()
        self.mirror = Mirror(options.default_queue, ignored_provisioners=options.ignored_provisioners)
        self.feed = Feed()
        self.explanations = explanations or Explanations()
        self.cycles = 0
        """Cycles run so far."""
        self._client = client
        self._options = options
        self._registry = registry
        self._policies = policies
        self._clock = clock
        self._measuring = Measuring(metrics, self.mirror, options.default_queue)
        self._backoff = GangBackoff[str]()
        self._acceptance = Acceptance(
            options.scheduler_name, node_selector=options.node_selector, share=Share.of(environment.partition)
        )
        self.cache = Cache(client, self.mirror, self.feed, options, self._acceptance, witness=self)
        self._device_maps = DeviceMaps(client, self.mirror, self.feed, lambda: policies.current)
        self._recorder = Recorder(client, options.component, clock=clock)
        events, conditions = PodEvents(self._recorder), PodConditions(client, clock=clock)
        self._faults = Faults(events, self.cache)
        self._resync = Resync(client, self, clock=clock)
        volumes = VolumeBinder(client, self.mirror, timeout=self._volume_timeout, clock=clock)
        pre_binders = PreBinders(volumes, DeviceBinder(client), NodeLocks(client, clock=clock))
        self._placements = self._who_is_told(options.scheduled_events, events)
        self._binder = Binder(
            client,
            self,
            conditions,
            events,
            self._placements,
            pre_binder=pre_binders,
            batch=environment.bind_batch,
            clock=clock,
        )
        self._evictor = Evictor(client, self._resync, conditions, events, scheduler_name=options.component)
        self._jobs = JobWriter(
            client,
            conditions,
            events,
            on_written=lambda group: self.feed.submit(self.cache.apply_fetched, POD_GROUPS, group),
            on_refused=lambda job_id: self._unwritten(POD_GROUPS, *job_id.split("/", 1)),
            on_pod_refused=lambda task: self._resync.enqueue(task, undo=False),
            patience=PATIENT_CYCLES * options.schedule_period,
            clock=clock,
        )
        self._sparing = Sparing(self.mirror, self._known_group, is_busy=self._jobs.is_busy)
        self._queues = QueueWriter(
            client,
            field_manager=f"stromboli-scheduler-{options.component}",
            on_refused=lambda name: self._unwritten(QUEUES, "", name),
            clock=clock,
        )
        self._gates = GateRemover(client, workers=options.gate_removal_worker_num, clock=clock)
        self._loads = Loads(client, lambda: policies.current.metrics, self._node_names, clock=clock)
        self._shards = Shards(options.scheduler_sharding_name) if options.shards else None
        self._shard_writer = ShardWriter(client, options.scheduler_sharding_name, clock=clock)

    async def run(self) -> None:
        """Schedule until cancelled.

        Raises:
            CycleFailed: in an exception group; this scheduler must not be used any more.
            StartupError: a queue that must exist cannot be created, or (strict) the policy file became invalid.
        """
        await ensure_queues(self._client, self._options.default_queue, clock=self._clock)
        async with asyncio.TaskGroup() as tasks:
            for part in (
                *(self._recorder.run, self._binder.run, self._evictor.run, self._resync.run, self._jobs.run),
                *(self._queues.run, self._gates.run, self._shard_writer.run, self._loads.run),
                *(self.cache.run, self._policies.follow, self._device_maps.run, self._placements.run),
            ):
                tasks.create_task(part())
            with garbage.left_alone():
                await self.cache.wait_synced()
            while True:
                await self._pause(await self.cycle())

    async def cycle(self) -> CycleResult:
        """Run one cycle and hand over what it decided."""
        self.cycles += 1
        with TRACER.start_as_current_span("scheduling cycle", attributes={"cycle": self.cycles}) as span:
            result = await self._cycle()
            span.set_attributes({"binds": len(result.binds), "evictions": len(result.evictions)})
        return result

    async def _cycle(self) -> CycleResult:
        await self._device_maps.ready()
        async with self.feed.frozen():
            shard_status = self._shards.look(self.mirror.objects.all(core.NodeShard)) if self._shards else None
            started, known = self._clock.monotonic(), self.mirror.elsewhere.version
            result = await self._decide()
            self._measuring.cycle(result, self._clock.monotonic() - started, self._clock.time())
            self._report(result)
            self._sparing.spare(result, self._clock.time())
            writes = by_job(result, self._versions(result))
        if self.mirror.elsewhere.version != known:
            self._take_back(result, writes)
        for bind in result.binds:
            self._jobs.placed(bind.task)
        self._jobs.submit(writes)
        self._queues.submit(result.queues)
        self._gates.submit(result.gate_removals)
        self._shard_writer.submit(shard_status)
        await self._evictor.submit(result.evictions)
        await self._binder.submit(result.binds, cycle=self.cycles)
        return result

    def _take_back(self, result: CycleResult, writes: dict[str, JobWrites]) -> None:
        """Undo binds for which another scheduler has taken the room meanwhile; the next cycle decides anew."""
        self.mirror.take_in_elsewhere()
        taken = overdrawing.overdrawn(self.mirror, self._policies.current, result.binds)
        if not taken:
            return
        log.info("cycle %d: %d binds are taken back, others have had the room in their queues", self.cycles, len(taken))
        gone = {bind.task.uid for bind in taken}
        result.binds = [bind for bind in result.binds if bind.task.uid not in gone]
        for uid in gone:
            self.mirror.bind_failed(uid)
        for job_id in {bind.task.job_id for bind in taken}:
            unsaid = writes.pop(job_id, JobWrites())
            self._unwritten(POD_GROUPS, *job_id.split("/", 1))
            for pod in unsaid.pods.values():  # the mirror takes it for said; the server knows better
                self._resync.enqueue(pod.task, undo=False)
        for update in result.queues:
            self._unwritten(QUEUES, "", update.name)
        result.queues = []

    async def _decide(self) -> CycleResult:
        policy, session_id, now = self._policies.current, str(uuid.uuid4()), self._clock.time()
        held = self._backoff.held(now)
        decide = partial(
            core_cycle.run,
            self.mirror,
            holding.with_backoff(policy) if held else policy,
            now,
            session_id=session_id,
            plugins=self._registry.plugins,
            actions=self._registry.actions,
            clock=self._clock.monotonic,
            shard=self._shards.in_use if self._shards else None,
            shard_mode=self._options.scheduler_sharding_mode if self._shards else "none",
            options=self._cycle_options(held),
            speaks_for=self._acceptance.queue,
        )
        try:
            return await asyncio.to_thread(decide)
        except Exception as error:
            raise CycleFailed(f"cycle {self.cycles} failed: {type(error).__name__}: {error}") from error

    def _cycle_options(self, held: Mapping[str, Hold]) -> dict[str, object]:
        return {
            holding.OPTION: held,
            loads.OPTION: self._loads.known,
            calling.OPTION: extender_calling.call,
            elsewhere.PART: self._acceptance.is_partial,
            **self._options.of_cycles,
        }

    def _report(self, result: CycleResult) -> None:
        for problem in result.problems:
            if problem not in self.explanations.problems:
                log.error("cycle %d: %s", self.cycles, problem)
        for warning in result.warnings:
            if warning not in self.explanations.problems:
                log.warning("%s", warning)
        self._faults.left_out(self.mirror.problems)
        self._faults.found(result.faults)
        problems = [*result.problems, *result.warnings]
        self.explanations.record(self.cycles, result.reports, problems, self.mirror.jobs)

    def _versions(self, result: CycleResult) -> dict[str, str]:
        jobs = [self.mirror.jobs.get(update.job_id) for update in result.pod_groups]
        return {job.id: job.pod_group.metadata.resource_version for job in jobs if job is not None and job.pod_group}

    def _who_is_told(self, choice: str, events: PodEvents) -> Placements:
        """Of bound pods."""
        each, together = EachPod(events), ByPodGroup(events, self._group_uid, self._clock)
        ways: dict[str, Placements] = {ON_PODS: each, ON_POD_GROUPS: together}
        return ways.get(choice) or BySize(each, together, self._group_size)

    def _group_size(self, job_id: str) -> int:
        """Pods that belong to a PodGroup, or that it waits for."""
        job = self.mirror.jobs.get(job_id)
        return max(len(job.tasks), job.min_member) if job is not None and job.pod_group is not None else 0

    def _group_uid(self, job_id: str) -> str | None:
        job = self.mirror.jobs.get(job_id)
        return job.uid if job is not None and job.pod_group is not None else None

    async def _pause(self, result: CycleResult) -> None:
        period = self._options.schedule_period
        if did_something(result) or period <= SETTLE_SECONDS:
            await self._clock.sleep(period)
            return
        async with asyncio.TaskGroup() as tasks:
            over = tasks.create_task(self._clock.sleep(period))
            urgent = tasks.create_task(self.feed.wait_urgent())
            await asyncio.wait([over, urgent], return_when=asyncio.FIRST_COMPLETED)
            woken = not over.done()
            over.cancel()
            urgent.cancel()
        if woken:
            await self._clock.sleep(SETTLE_SECONDS)

    # Outcomes

    def bound(self, bind: Bind, cycle: int) -> None:
        """The API server accepted a bind; the watch will show it."""
        self._measuring.bound(bind, self._clock.time())
        self._backoff.settled(bind.task.job_id, bind.task.uid)

    def prepared(self, bind: Bind, seconds: float) -> None:
        """What a pod needed before its bind is there."""
        self._measuring.prepared(bind, seconds, self._clock.time())

    def refused(self, bind: Bind, cycle: int, error: Exception) -> None:
        """A bind failed: its gang stands back, and the truth about its pod is fetched."""
        self._backoff.refused(
            bind.task.job_id,
            bind.task.uid,
            cycle=cycle,
            now=self._clock.time(),
            error=f"{bind.task.name} on node {bind.node}: {error}",
        )
        self._resync.enqueue(bind.task)

    def took(self, seconds: float) -> None:
        """A bind request was answered."""
        self._measuring.bind_took(seconds)

    def pod_is(self, task: TaskRef, pod: core.Pod, *, undo: bool) -> None:
        """The server's word about a pod about which something was assumed."""
        if pod.spec.node_name:
            self._backoff.settled(task.job_id, task.uid)
        elif undo:
            self.feed.submit(self.mirror.bind_failed, task.uid)
        if undo and not pod.deleting:
            self.feed.submit(self.mirror.evict_failed, task.uid)
        self.feed.submit(self.cache.apply_fetched, PODS, pod)

    def pod_is_gone(self, task: TaskRef) -> None:
        """There is no such pod any more."""
        self._backoff.settled(task.job_id, task.uid)
        self.feed.submit(self.mirror.delete_pod, task.key, task.uid)

    def _volume_timeout(self) -> float:
        option = self._policies.current.option("predicates")
        return timeout_of(option.arguments if option else {})

    # Objects

    def _node_names(self) -> list[str]:
        return [node.name for node in self.mirror.node_list if node is not None]

    def added(self, obj: core.Object) -> None:
        """The mirror has a new object."""
        self._measuring.added(obj, self._clock.time())
        if not isinstance(obj, core.Pod) or not obj.spec.node_name:
            self.feed.hurry()

    def deleted(self, obj: core.Object) -> None:
        """The mirror has lost an object."""
        self._measuring.deleted(obj)
        self.feed.hurry()
        match obj:
            case core.Pod():
                job_id = reading.job_id_of(obj)
                self._backoff.settled(job_id, obj.uid)
                self._jobs.placed(TaskRef(obj.namespace, obj.name, obj.uid, job_id))
            case core.Queue():
                self._queues.forget(obj.name)

    def _known_group(self, job_id: str) -> core.PodGroup | None:
        known = self.cache.known(POD_GROUPS, *job_id.split("/", 1))
        return known if isinstance(known, core.PodGroup) else None

    def _unwritten(self, kind: Kind, namespace: str, name: str) -> None:
        # The mirror took the write for granted: it goes back to what the API server is known to hold, and the next
        # cycle sees the difference again.
        self.feed.submit(self.cache.apply_known, kind, namespace, name)
        if kind in (POD_GROUPS, QUEUES):
            struct = core.PodGroup if kind == POD_GROUPS else core.Queue
            self.feed.submit(self.mirror.unwritten, struct, f"{namespace}/{name}" if namespace else name)


def did_something(result: CycleResult) -> bool:
    """Whether a cycle decided anything."""
    return bool(result.binds or result.evictions or result.pod_groups or result.pods or result.gate_removals)
