"""The mirror of the cluster: fed by watch events in any order, read by cycles without copying.

Nothing here fails because of what an object contains or because another object has not arrived: pods before their node
or PodGroup wait in placeholders, objects that cannot be read are left out and named in ``problems`` until a readable
version comes, and identity is namespace, name and UID, so a re-created object is another one.

The mirror must not be changed while a cycle runs. What a cycle commits stays here as an assumption: tasks it bound are
``Binding`` until a pod event confirms them or ``bind_failed`` reverts them, tasks it evicted are ``Releasing`` until
they go or ``evict_failed``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from stromboli.api import core
from stromboli.api.requests import DEFAULT_RULES, RequestRules
from stromboli.scheduler.core import amounts, grouping, reading
from stromboli.scheduler.core.accounting import Holding, Ledger, holding_of, is_on_node
from stromboli.scheduler.core.attaching import Attachments
from stromboli.scheduler.core.columns import Columns, Floats
from stromboli.scheduler.core.elsewhere import Claimant, Elsewhere
from stromboli.scheduler.core.hypernodes import HyperNodes
from stromboli.scheduler.core.objects import ClusterObjects
from stromboli.scheduler.core.records import Job, Node, Queue, Shape, Task
from stromboli.scheduler.core.repeating import Repeats
from stromboli.scheduler.core.shaping import Shapes
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES, EVICTABLE_STATUSES, TaskStatus
from stromboli.scheduler.core.tables import JobTable, NodeTable

Problem = tuple[str, str]
"""(kind, ``namespace/name``)"""

_SHAPES_KEPT = 1024
"""Shapes of pods that are gone are looked for before a cycle once there are more shapes than this, or than twice those
in use."""
_DEAD_ROWS_KEPT = 8
"""Rows of deleted nodes are removed before a cycle once there are more than this."""


class Mirror:
    """Tasks, jobs, queues and nodes of a cluster, with all sums kept current."""

    def __init__(
        self,
        default_queue: str = "default",
        rules: RequestRules = DEFAULT_RULES,
        *,
        ignored_provisioners: Iterable[str] = (),
    ) -> None:
        self.default_queue = default_queue
        self.rules = rules
        self.columns = Columns()
        self.nodes = NodeTable(self.columns.width)
        self.job_table = JobTable(self.columns.width)
        self.ledger = Ledger(self.columns, self.nodes, self.job_table)
        self.shapes = Shapes(self.columns, rules)
        self.objects = ClusterObjects()
        self.attachments = Attachments(self.objects, ignored_provisioners)
        self.elsewhere = Elsewhere(self.attachments.of, rules, default_queue)
        self.hyper_nodes = HyperNodes()
        self.node_list: list[Node | None] = []
        """Nodes by row."""
        self.nodes_by_name: dict[str, Node] = {}
        """Placeholders included."""
        self.jobs: dict[str, Job] = {}
        """By id, those without PodGroup or queue included; see ``session_jobs``."""
        self.queues: dict[str, Queue] = {}
        self.tasks: dict[str, Task] = {}
        """By ``namespace/name``."""
        self.problems: dict[Problem, str] = {}
        """Objects that were left out, and why, in one line each."""
        self.unsettled: dict[str, Job] = {}
        """Jobs whose status the next cycle must work out again even if nothing about them changes."""
        self.session_jobs: dict[str, Job] = {}
        """Jobs that take part in cycles: with a PodGroup and an existing queue."""
        self.said = Repeats()
        """Events about jobs that wait."""
        self.strays: dict[str, Job] = {}
        """Jobs in no cycle about which the next cycle may have to say so; see ``core.stranding``."""
        self.memory: dict[str, object] = {}
        """What plugins keep from one cycle to the next; see ``View.memory``."""
        self._with_topology: dict[str, Job] = {}
        self._by_uid: dict[str, Task] = {}
        self._priorities: dict[str, core.PriorityClass] = {}
        self._next_queue_index = 0
        self._told_elsewhere = (0, 0, 0)
        self._shape_epoch = 0
        self._shapes_kept = _SHAPES_KEPT

    # Pods

    def apply_pod(self, pod: core.Pod) -> None:
        """A pod was added or changed."""
        with self._isolating("Pod", f"{pod.namespace}/{pod.name}"):
            existing = self.tasks.get(f"{pod.namespace}/{pod.name}")
            if existing is not None and existing.uid != pod.uid:
                self._remove_task(existing)
                existing = None
            if existing is not None and self._is_ahead(existing, pod):
                return
            shape = self._shape(pod)
            status = self._status(existing, pod)
            if existing is not None and _is_further_on(existing, pod, shape):
                self._move(existing, pod, status)
                return
            evicting = existing is not None and existing.evicting
            if existing is not None:
                self._remove_task(existing)
            task = Task(pod.namespace, pod.name, pod.uid, shape)
            reading.fill_task(task, pod)
            task.evicting = evicting
            self._add_task(task, status, pod.spec.node_name)

    def delete_pod(self, key: str, uid: str | None = None) -> None:
        """A pod is gone; with ``uid`` only if that is still the one known under this ``namespace/name``."""
        self.problems.pop(("Pod", key), None)
        task = self.tasks.get(key)
        if task is not None and uid in (None, task.uid):
            self._remove_task(task)

    def bind_failed(self, uid: str) -> None:
        """The binding of a task was refused: it is Pending again, unless its pod has shown otherwise since."""
        task = self._by_uid.get(uid)
        if task is not None and task.status == TaskStatus.BINDING:
            self.ledger.take_off(task, Holding.HELD)
            self.ledger.set_status(task, TaskStatus.PENDING)

    def evict_failed(self, uid: str) -> None:
        """The eviction of a task was refused: it is Running again, unless its pod has shown otherwise since."""
        task = self._by_uid.get(uid)
        if task is not None and task.evicting:
            task.evicting = False
            if task.status == TaskStatus.RELEASING and not task.deleting:
                self.ledger.reweigh(task, Holding.RELEASING, Holding.HELD)
                self.ledger.set_status(task, TaskStatus.RUNNING)

    def task_by_uid(self, uid: str) -> Task | None:
        """The task of a pod."""
        return self._by_uid.get(uid)

    @staticmethod
    def _is_ahead(task: Task, pod: core.Pod) -> bool:
        """Whether we know more than the event: our binding is on its way (spec 04 section 17)."""
        pending = pod.status.phase in ("Pending", "")
        return task.status in ALLOCATED_STATUSES and not pod.spec.node_name and pending

    @staticmethod
    def _status(existing: Task | None, pod: core.Pod) -> TaskStatus:
        status = reading.status_of(pod)
        if existing is not None and existing.evicting and status in EVICTABLE_STATUSES:
            return TaskStatus.RELEASING
        return status

    def _shape(self, pod: core.Pod) -> Shape:
        attached = self.attachments.of(pod, pod.uid)
        shape = self.shapes.of(pod, pod.metadata.labels, pod.metadata.annotations, attached)
        self._fit_width()
        return shape

    def _add_task(self, task: Task, status: TaskStatus, node_name: str) -> None:
        task.status = status
        self.tasks[task.key] = task
        self._by_uid[task.uid] = task
        self.attachments.joined(task)
        if node_name:
            task.node_name = node_name
            if is_on_node(status):
                self.ledger.put(task, self._node(node_name), holding_of(status))
        if task.job_id:
            job = self._job(task.job_id)
            self._group(job, task)
            self.ledger.join(task, job)

    def _move(self, task: Task, pod: core.Pod, status: TaskStatus) -> None:
        """Takes in what a pod that asks for the same, on the same node, has come to; most events are of this kind."""
        reading.fill_task(task, pod)
        task.eviction_occurred, task.last_transaction, task.order_key = False, None, None
        old = task.status
        if task.node is not None and is_on_node(status):
            self.ledger.reweigh(task, holding_of(old), holding_of(status))
        elif task.node is not None:
            node = task.node
            self.ledger.take_off(task, holding_of(old))
            task.node_name = node.name
            self._forget_node_if_unused(node)
        elif task.node_name and is_on_node(status):
            self.ledger.put(task, self._node(task.node_name), holding_of(status))
        self.ledger.set_status(task, status)
        if task.job is not None:
            self.ledger.changes.append(task.job)
            self.ledger.touched[task.job.id] = task.job

    def _remove_task(self, task: Task) -> None:
        node, job = task.node, task.job
        if node is not None:
            self.ledger.take_off(task, holding_of(task.status))
            self._forget_node_if_unused(node)
        self.ledger.leave(task)
        self.attachments.left(task)
        del self.tasks[task.key]
        del self._by_uid[task.uid]
        if job is not None:
            self._prune_sub_jobs(job)
            self._forget_job_if_unused(job)

    def _reweigh(self) -> None:
        """Brings tasks and nodes up to date with what is known about CSI volumes by now."""
        for task in self.attachments.stale_tasks():
            attached = self.attachments.of(task.shape.pod, task.uid)
            if attached != task.shape.attached:
                shape = self.shapes.of(task.shape.pod, task.labels, task.annotations, attached)
                self._fit_width()
                self.ledger.reshape(task, shape)
        for name in self.attachments.changed_nodes(self.nodes_by_name):
            node = self.nodes_by_name[name]
            if node.resource is not None:
                self._set_capacity(node, self._allocatable(node.resource))

    def _renew_shapes(self) -> None:
        """Gives all tasks shapes of the present epoch. They weigh the same: only labels and annotations differ."""
        if self._shape_epoch == self.shapes.epoch:
            return
        for task in self.tasks.values():
            task.shape = self.shapes.again(task.shape, task.labels, task.annotations)
        self._forget_unused_shapes()
        self._shape_epoch = self.shapes.epoch

    def _forget_unused_shapes(self) -> None:
        self.shapes.prune(task.shape for task in self.tasks.values())
        self._shapes_kept = max(_SHAPES_KEPT, 2 * len(self.shapes))

    # Nodes

    def apply_node(self, resource: core.Node) -> None:
        """A node was added or changed."""
        with self._isolating("Node", resource.name):
            vector = self._allocatable(resource)
            node = self._node(resource.name)
            known = node.row >= 0
            if known and self._same_capacity(node, resource):
                self.nodes.touch(node.row)
            else:
                self._set_capacity(node, vector)
            if not known or node.labels != resource.metadata.labels:
                self.hyper_nodes.nodes_changed()
            if known and not _looks_the_same(node, resource):
                self.nodes.looks += 1
            node.resource, node.uid = resource, resource.uid
            node.labels, node.taints = resource.metadata.labels, resource.spec.taints
            node.images = reading.image_sizes(resource)

    def delete_node(self, name: str, uid: str | None = None) -> None:
        """A node is gone; tasks that name it are remembered until it comes back or they go."""
        self.problems.pop(("Node", name), None)
        node = self.nodes_by_name.get(name)
        if node is None or node.row < 0 or uid not in (None, node.uid):
            return
        self.nodes.kill(node.row)
        self.node_list[node.row] = None
        node.row, node.uid, node.resource = -1, "", None
        node.labels, node.taints, node.images = {}, (), {}
        self.hyper_nodes.nodes_changed()
        self._forget_node_if_unused(node)

    def _allocatable(self, resource: core.Node) -> Floats:
        listed = amounts.read(resource.status.allocatable, self.rules)
        for name, added in reading.oversubscription(resource.metadata.annotations).items():
            listed[name] = listed.get(name, 0.0) + added
        listed.update(self.attachments.limits(resource.name))
        vector = self.columns.vector(amounts.bounded(listed))
        self._fit_width()
        return vector

    @staticmethod
    def _same_capacity(node: Node, resource: core.Node) -> bool:
        old = node.resource
        return (
            old is not None
            and old.status.allocatable == resource.status.allocatable
            and reading.oversubscription(old.metadata.annotations)
            == reading.oversubscription(resource.metadata.annotations)
        )

    def _set_capacity(self, node: Node, vector: Floats) -> None:
        if node.row < 0:
            node.row = self.nodes.append()
            self.node_list.append(node)
        self.nodes.reset(node.row, vector)
        node.ports.clear()
        for task in node.tasks.values():
            self.ledger.weigh(task, node, holding_of(task.status))

    def _node(self, name: str) -> Node:
        node = self.nodes_by_name.get(name)
        if node is None:
            node = self.nodes_by_name[name] = Node(name)
        return node

    def _forget_node_if_unused(self, node: Node) -> None:
        if node.row < 0 and not node.tasks:
            self.nodes_by_name.pop(node.name, None)

    # PodGroups and queues

    def apply_pod_group(self, group: core.PodGroup) -> None:
        """A PodGroup was added or changed."""
        with self._isolating("PodGroup", f"{group.namespace}/{group.name}"):
            least = group.spec.min_resources
            minimum = None if least is None else amounts.read_together(least, self.rules)
            job = self._job(f"{group.namespace}/{group.name}")
            old = job.pod_group
            reading.fill_job(job, group, self.default_queue)
            job.order_key = (job.created, job.id)
            job.priority = self._priority(group.spec.priority_class_name)
            self._fill_table(job, minimum)
            if old is None or old.spec.sub_group_policy != group.spec.sub_group_policy or _differs(old, group):
                self._regroup(job)
            self._note_topology(job)
            self._link(job)
            self.ledger.touched[job.id] = job

    def delete_pod_group(self, key: str, uid: str | None = None) -> None:
        """A PodGroup is gone: its tasks stay, but are in no cycle until it comes back."""
        self.problems.pop(("PodGroup", key), None)
        job = self.jobs.get(key)
        if job is None or job.pod_group is None or uid not in (None, job.uid):
            return
        self._unlink(job)
        self.ledger.touched[job.id] = job
        job.pod_group = job.topology = None
        job.sub_groups = {}
        self._regroup(job)
        self._note_topology(job)
        self._forget_job_if_unused(job)

    def apply_queue(self, resource: core.Queue) -> None:
        """A queue was added or changed."""
        with self._isolating("Queue", resource.name):
            for listed in (resource.spec.capability, resource.spec.deserved, resource.spec.guarantee.resource):
                self.columns.vector(amounts.read(listed, self.rules))
            self._fit_width()
            queue = self.queues.get(resource.name)
            if queue is not None:
                queue.resource = resource
                queue.reclaimable = resource.spec.reclaimable is not False
                queue.created = resource.created
                queue.order_key = (queue.created, queue.name)
                return
            self.queues[resource.name] = Queue(self._next_queue_index, resource, np.zeros(self.columns.width))
            self._next_queue_index += 1
            for job in self.jobs.values():
                if job.pod_group is not None and job.queue_name == resource.name:
                    self._link(job)

    def delete_queue(self, name: str, uid: str | None = None) -> None:
        """A queue is gone: its jobs are in no cycle until it comes back."""
        self.problems.pop(("Queue", name), None)
        queue = self.queues.get(name)
        if queue is None or uid not in (None, queue.resource.uid):
            return
        for job in list(queue.jobs.values()):
            self._unlink(job)
            self.ledger.touched[job.id] = job
        del self.queues[name]

    def unwritten(self, kind: type[core.Object], key: str) -> None:
        """What a cycle said about a PodGroup or queue could not be written: the next one is to say it again."""
        if kind is core.PodGroup:
            self.said.forget(key)
        elif key in self.queues:
            self.queues[key].decided = None

    def apply_priority_class(self, resource: core.PriorityClass) -> None:
        """A priority class was added or changed."""
        self._priorities[resource.name] = resource
        self._reprioritise()

    def delete_priority_class(self, name: str, uid: str | None = None) -> None:
        """A priority class is gone."""
        known = self._priorities.get(name)
        if known is not None and uid in (None, known.uid):
            del self._priorities[name]
            self._reprioritise()

    def _reprioritise(self) -> None:
        for job in self.jobs.values():
            if job.pod_group is not None:
                job.priority = self._priority(job.pod_group.spec.priority_class_name)

    def _priority(self, class_name: str) -> int:
        named = self._priorities.get(class_name)
        if named is not None:
            return named.value
        default = [known.value for known in self._priorities.values() if known.global_default]
        return default[-1] if default else 0

    def _job(self, id_: str) -> Job:
        job = self.jobs.get(id_)
        if job is None:
            job = self.jobs[id_] = Job(id_, self.job_table)
        return job

    def _fill_table(self, job: Job, minimum: Mapping[str, float] | None) -> None:
        vector = self.columns.vector(minimum or {})
        self._fit_width()
        table, row = self.job_table, job.row
        table.minimum[row, : len(vector)] = vector
        table.has_minimum[row] = minimum is not None
        table.minimum_named[row] = False
        table.minimum_named[row, [self.columns.intern(name) for name in minimum or {}]] = True
        table.min_member[row] = job.min_member
        table.phase[row] = job.phase

    def _link(self, job: Job) -> None:
        queue = self.queues.get(job.queue_name)
        if job.queue is queue and queue is not None:
            return
        self._unlink(job)
        if queue is not None:
            self.ledger.activate(job, queue)
            self.session_jobs[job.id] = job

    def _unlink(self, job: Job) -> None:
        self.ledger.deactivate(job)
        self.session_jobs.pop(job.id, None)

    def _forget_job_if_unused(self, job: Job) -> None:
        if job.pod_group is None and not job.tasks:
            self.jobs.pop(job.id, None)
            self.job_table.release(job.row)
            self.unsettled.pop(job.id, None)
            self.strays.pop(job.id, None)
            self.said.forget(job.id)
            self.ledger.touched.pop(job.id, None)

    def open_jobs(self) -> list[Job]:
        """Jobs of the session that an action may have to do something for: not admitted, or with tasks to place.

        Jobs that no longer change are not among them, so that a cycle costs what is going on, not what exists.
        """
        jobs = {**self.unsettled, **self.ledger.touched}
        return [job for job in jobs.values() if job.queue is not None and job.pod_group is not None]

    def topology_jobs(self) -> list[Job]:
        """Jobs of the session that may be confined to HyperNodes."""
        return [job for job in self._with_topology.values() if job.queue is not None]

    def _note_topology(self, job: Job) -> None:
        spec = job.pod_group.spec if job.pod_group is not None else None
        if spec is not None and (spec.network_topology is not None or spec.sub_group_policy):
            self._with_topology[job.id] = job
        else:
            self._with_topology.pop(job.id, None)
            job.hard_tier = None

    # Sub-jobs

    def _group(self, job: Job, task: Task) -> None:
        place = grouping.place_of(job, task.labels)
        sub_job = job.sub_jobs.get(place.id)
        if sub_job is None:
            sub_job = job.sub_jobs[place.id] = grouping.make(job, place)
        task.sub_job = sub_job

    def _regroup(self, job: Job) -> None:
        """Rebuilds the sub-jobs of a job from its tasks, keeping what is recorded about HyperNodes."""
        old = job.sub_jobs
        tasks = list(job.tasks.values())
        for task in tasks:
            self.ledger.leave(task)
        job.sub_jobs = {}
        for task in tasks:
            self._group(job, task)
            self.ledger.join(task, job)
        for id_, sub_job in job.sub_jobs.items():
            if id_ in old:
                sub_job.allocated_hyper_node = old[id_].allocated_hyper_node
                sub_job.nominated_hyper_node = old[id_].nominated_hyper_node

    @staticmethod
    def _prune_sub_jobs(job: Job) -> None:
        for id_ in [id_ for id_, sub_job in job.sub_jobs.items() if not sub_job.tasks]:
            del job.sub_jobs[id_]

    # HyperNodes and everything else

    def apply_hyper_node(self, resource: core.HyperNode) -> None:
        """A HyperNode was added or changed."""
        self.hyper_nodes.apply(resource)

    def delete_hyper_node(self, name: str, uid: str | None = None) -> None:
        """A HyperNode is gone."""
        self.hyper_nodes.delete(name, uid)

    def apply_object(self, obj: core.Object) -> None:
        """An object that only plugins look at: volumes, claims, quotas, budgets, services, namespaces, ..."""
        self.shapes.select_on(_selected_by(obj))
        self.objects.apply(obj)
        self._notice(obj)

    def delete_object(self, type_: type[core.Object], key: tuple[str, str], uid: str | None = None) -> None:
        """The reverse of ``apply_object``."""
        gone = self.objects.delete(type_, key, uid)
        if gone is not None:
            self._notice(gone)

    def _notice(self, obj: core.Object) -> None:
        self.attachments.notice(obj)
        self.elsewhere.notice(obj)

    # What plugins ask for

    def tell_apart(self, labels: frozenset[str], annotations: frozenset[str]) -> None:
        """Pods that differ in these labels or annotations get different shapes from now on.

        Asked for when plugins have opened and nobody has been asked about a shape yet.
        """
        self.shapes.select_on(labels)
        self.shapes.read_annotations(annotations)
        self._renew_shapes()

    def ignore(self, resources: frozenset[str]) -> None:
        """Somebody else accounts for these resources: they weigh nothing any more, here and in objects to come."""
        new = resources.difference(self.rules.ignored)
        if not new:
            return
        self.rules = replace(self.rules, ignored=frozenset({*self.rules.ignored, *new}))
        columns = [column for name in new if (column := self.columns.get(name)) is not None]
        self.elsewhere.rules = self.rules
        self.shapes.ignore(self.rules, columns)
        self.nodes.clear_columns(columns)
        self.job_table.clear_columns(columns)
        for queue in self.queues.values():
            queue.allocated[columns] = queue.pending[columns] = queue.elsewhere[columns] = 0.0

    # Between cycles

    def prepare(self) -> None:
        """Tidies up before a cycle: dead rows go, tasks get shapes of the present epoch and with their volumes."""
        self._reweigh()
        self.take_in_elsewhere()
        self._renew_shapes()
        if len(self.shapes) > self._shapes_kept:
            self._forget_unused_shapes()
        dead = self.nodes.count - int(self.nodes.live.sum())
        if dead > max(_DEAD_ROWS_KEPT, self.nodes.count // 16) or len(self.nodes.log) > 1_000_000:
            self.nodes.compact()
            self.node_list = [node for node in self.node_list if node is not None]
            for row, node in enumerate(self.node_list):
                if node is not None:
                    node.row = row
        self.ledger.changes.clear()
        self.nodes.log.clear()

    def take_in_elsewhere(self) -> None:
        """Tells queues what is held in them elsewhere by now."""
        self.elsewhere.reweigh()
        now = (self.elsewhere.version, self._next_queue_index, len(self.rules.ignored))
        if now == self._told_elsewhere or not self.elsewhere.version:
            return
        self._told_elsewhere = now
        for name in self.elsewhere.resources():
            self.columns.intern(name)
        self._fit_width()
        claimants: dict[str, list[Claimant]] = {}
        for queue_name, claimant in self.elsewhere.claimants():
            claimants.setdefault(queue_name, []).append(claimant)
        for queue in self.queues.values():
            queue.elsewhere = self.columns.vector(self.elsewhere.held_in(queue.name))
            queue.claimants = claimants.get(queue.name, ())

    def _fit_width(self) -> None:
        width = self.columns.width
        if width == self.job_table.allocated.shape[1]:
            return
        self.nodes.widen(width)
        self.job_table.widen(width)
        self.shapes.widen()
        for queue in self.queues.values():
            queue.allocated = np.pad(queue.allocated, (0, width - len(queue.allocated)))
            queue.pending = np.pad(queue.pending, (0, width - len(queue.pending)))
            queue.elsewhere = np.pad(queue.elsewhere, (0, width - len(queue.elsewhere)))

    @contextmanager
    def _isolating(self, kind: str, key: str) -> Iterator[None]:
        """Keeps what is wrong with one object from reaching anything else."""
        try:
            yield
        except (ValueError, ArithmeticError, TypeError) as error:
            self.problems[kind, key] = f"{kind} {key} is left out: {error}"
        else:
            self.problems.pop((kind, key), None)


def _selected_by(obj: core.Object) -> Iterable[str]:
    """Label keys by which an object selects pods: default spreading looks at services and workloads."""
    if isinstance(obj, core.Service | core.ReplicationController):
        return obj.spec.selector
    if isinstance(obj, core.ReplicaSet | core.StatefulSet) and obj.spec.selector is not None:
        selector = obj.spec.selector
        return (*selector.match_labels, *(requirement.key for requirement in selector.match_expressions))
    return ()


def _differs(old: core.PodGroup, new: core.PodGroup) -> bool:
    """Whether the default sub-job of the group would be another."""
    return old.spec.min_member != new.spec.min_member or old.spec.network_topology != new.spec.network_topology


def _is_further_on(task: Task, pod: core.Pod, shape: Shape) -> bool:
    """Whether a pod differs from what is known about it in nothing but how far it has come."""
    return (
        task.shape is shape
        and task.node_name == pod.spec.node_name
        and task.labels == pod.metadata.labels
        and task.annotations == pod.metadata.annotations
        and not task.gated
        and not pod.spec.scheduling_gates
        and task.created == pod.created
    )


def _looks_the_same(node: Node, resource: core.Node) -> bool:
    old = node.resource
    return (
        old is not None
        and (node.labels, node.taints) == (resource.metadata.labels, resource.spec.taints)
        and old.spec.unschedulable == resource.spec.unschedulable
        and old.status.images == resource.status.images
    )
