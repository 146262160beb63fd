"""Single calls about the books of jobs, tasks and nodes, asked of a mirror that is fed what they hold.

Upstream keeps a job as an object with methods; here its books follow from the PodGroup and the pods that the mirror has
been given, so a call is judged by what the mirror shows once it knows all that the call's outcome is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stromboli.api import core
from stromboli.scheduler.core import fit_errors, grouping, opening
from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, HyperNode, Job, Transaction
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import HyperNodeView
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.domain_functions import internal, job_of, judge, nonzero
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable

GROUP = "scheduling.k8s.io/group-name"
_ROOT_TIER = 99
_PHASES = {"Succeeded": "Succeeded", "Failed": "Failed", "Running": "Running", "Unknown": "Unknown"}
_OF_A_SESSION = frozenset({TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING})


# -- jobs ----------------------------------------------------------------------------------------------------------


def fed(mirror: Mirror, encoded: JsonObject, *more: JsonObject) -> Job:
    """The job of the vectors' encoding, in a mirror that has been given its PodGroup and pods, ``more`` included."""
    namespace, _, name = encoded["uid"].rpartition("/")
    tasks = [*(encoded.get("tasks") or {}).values(), *more]
    namespace = namespace or next((task["namespace"] for task in tasks if task.get("namespace")), "ns")
    group = encoded.get("podGroup") or {"spec": {"minMember": encoded.get("minAvailable", 0)}}
    metadata = {**(group.get("metadata") or {}), "name": name, "namespace": namespace}
    mirror.apply_pod_group(core.from_builtins(core.PodGroup, {**group, "metadata": metadata}))
    for task in tasks:
        feed(mirror, task, namespace, name)
    return mirror.jobs[f"{namespace}/{name}"]


def feed(mirror: Mirror, encoded: JsonObject, namespace: str, group: str) -> None:
    """Gives the mirror the pod of a task that belongs to a group, and brings the task to its status."""
    status = TaskStatus[encoded["status"].upper()]
    if encoded.get("namespace", "") not in ("", namespace) and encoded.get("job"):
        raise NotApplicable("puts a pod of another namespace into a job")
    mirror.apply_pod(_pod(encoded, namespace, group))
    task = mirror.tasks[f"{namespace}/{encoded['name']}"]
    if status in _OF_A_SESSION:
        mirror.ledger.set_status(task, status)


def _pod(encoded: JsonObject, namespace: str, group: str) -> core.Pod:
    document = dict(encoded.get("pod") or {})
    spec = {"priority": encoded["priority"], **document.pop("spec", {"containers": [_container(encoded)]})}
    if encoded.get("node") or encoded["status"] == "Bound":
        spec["nodeName"] = encoded.get("node") or "somewhere"
    if encoded["status"] == "Pending":
        spec.pop("nodeName", None)
    metadata = {"name": encoded["name"], "namespace": namespace, "uid": encoded["uid"]}
    annotations = {**(document.get("annotations") or {}), GROUP: group}
    labels = dict(document.get("labels") or {})
    if encoded.get("role"):
        annotations["volcano.sh/task-spec"] = encoded["role"]
    if encoded["status"] == "Releasing":
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phase = _PHASES.get(encoded["status"], "Pending")
    parts = {"metadata": {**metadata, "annotations": annotations, "labels": labels}, "spec": spec}
    return core.from_builtins(core.Pod, {**parts, "status": {"phase": phase}})


def _container(encoded: JsonObject) -> JsonObject:
    amounts = internal(encoded["resreq"] or {"milliCPU": 0, "memory": 0})
    listed = {name: f"{int(amount)}m" for name, amount in amounts.items() if name not in ("memory", "pods")}
    return {"name": "main", "resources": {"requests": {**listed, "memory": int(amounts.get("memory", 0))}}}


@judge("NewJobInfo")
def _new_job(case: JsonObject) -> Iterator[str]:
    mirror, want = Mirror(), case["result"]
    yield from book_differences(mirror, want, fed(mirror, {**want, "tasks": _by_name(case["args"].get("tasks") or ())}))


@judge("JobInfo.AddTaskInfo")
def _add_task(case: JsonObject) -> Iterator[str]:
    mirror = Mirror()
    yield from book_differences(mirror, case["recvAfter"], fed(mirror, case["recv"], case["args"]["ti"]))


@judge("JobInfo.UpdateTaskStatus")
def _update_status(case: JsonObject) -> Iterator[str]:
    mirror, args = Mirror(), case["args"]
    job = fed(mirror, case["recv"])
    task = job.tasks[args["task"]["uid"]]
    mirror.ledger.set_status(task, TaskStatus[args["status"].upper()])
    yield from book_differences(mirror, case["recvAfter"], job)


@judge("JobInfo.SetPodGroup")
def _set_pod_group(case: JsonObject) -> Iterator[str]:
    want = case.get("recvAfter") or case["recv"]
    job = job_of(case["args"]["pg"])
    found = {
        "minAvailable": job.min_member,
        "taskMinAvailableTotal": job.role_total,
        "queue": job.queue_name,
        "preemptable": job.preemptable,
    }
    yield from differing_maps("job", {"queue": "default", **_filled(want, found)}, found)
    yield from differing_maps("taskMinAvailable", want.get("taskMinAvailable") or {}, dict(job.role_minimums))


def _filled(want: JsonObject, found: Mapping[str, object]) -> JsonObject:
    return {name: want[name] for name in found if want[name] != ""}


def _by_name(tasks: Iterable[JsonObject]) -> dict[str, JsonObject]:
    return {f"{task['namespace']}/{task['name']}": task for task in tasks}


def book_differences(mirror: Mirror, want: JsonObject, job: Job) -> Iterator[str]:
    """A job's tasks by status, sub-jobs and sums against those of the vectors."""
    by_status: dict[str, list[str]] = {}
    for task in job.tasks.values():
        by_status.setdefault(task.status.word, []).append(task.name)
    wanted = {status: sorted(_bare(tasks)) for status, tasks in (want.get("taskStatusIndex") or {}).items()}
    yield from differing_maps("taskStatusIndex", wanted, {status: sorted(names) for status, names in by_status.items()})
    counts = {TaskStatus(index).word: count for index, count in enumerate(job.counts) if count}
    yield from differing_maps("counts", {status: len(names) for status, names in wanted.items()}, counts)
    promised = [task.request for task in job.tasks.values() if task.status == TaskStatus.PIPELINED]
    allocated = job.allocated - sum(promised, start=job.allocated * 0)  # here promises count, as plugins see them
    total = sum((task.request for task in job.tasks.values()), start=job.allocated * 0)
    for what, found in (("allocated", allocated), ("totalRequest", total)):
        yield from differing_maps(what, internal(want[what]), _amounts(mirror, want, found))
    yield from _sub_job_differences(want, job)


def _amounts(mirror: Mirror, want: JsonObject, vector: Floats) -> dict[str, float]:
    """Amounts by name; without pod slots where the vectors' tasks were put together by hand and have none."""
    found = nonzero(mirror.columns.amounts(vector))
    if any("pods" not in internal(task["resreq"]) for task in want["tasks"].values()):
        found.pop("pods", None)
    return found


def _bare(tasks: Iterable[str]) -> list[str]:
    return [task.rpartition("/")[2] for task in tasks]


def _sub_job_differences(want: JsonObject, job: Job) -> Iterator[str]:
    def named(id_: str) -> str:
        return job.id if id_ == want["uid"] else id_

    wanted = {
        named(id_): {
            "gid": named(sub["gid"]),
            "minAvailable": sub["minAvailable"],
            "matchIndex": sub["matchIndex"],
            "tasks": sorted(_bare(sub["tasks"])),
        }
        for id_, sub in (want.get("subJobs") or {}).items()
    }
    found = {
        id_: {
            "gid": sub.group,
            "minAvailable": sub.minimum,
            "matchIndex": sub.match_index,
            "tasks": sorted(task.name for task in sub.tasks.values()),
        }
        for id_, sub in job.sub_jobs.items()
        if sub.tasks
    }
    yield from differing_maps("subJobs", wanted, found)


# -- topologies ----------------------------------------------------------------------------------------------------

_TOPOLOGY = {"WithNetworkTopology", "IsHardTopologyMode", "IsSoftTopologyMode", "ConvertToHardTopology"}


@judge(*(f"SubJobInfo.{name}" for name in _TOPOLOGY))
def _sub_job_topology(case: JsonObject) -> Iterator[str]:
    """Hard, soft or neither, as the session that adjusts the topology comes to see it."""
    root = int(case["args"].get("maxTier", _ROOT_TIER))
    job = job_of({"spec": {}})
    sub_job = job.sub_jobs["ns/j"] = grouping.make(job, grouping.Place("ns/j", "ns/j"))
    encoded = case["recv"].get("networkTopology")
    sub_job.topology = None if encoded is None else core.from_builtins(core.NetworkTopology, encoded)
    _adjust(job, root)
    soft = sub_job.topology is not None and sub_job.hard_tier == root and encoded.get("highestTierAllowed") != root
    hard = sub_job.hard_tier is not None and not soft
    match case["fn"].rpartition(".")[2]:
        case "WithNetworkTopology":
            yield from differ("with topology", case["result"], opening.has_topology(job))
        case "IsSoftTopologyMode":
            yield from differ("soft", case["result"], soft)
        case "IsHardTopologyMode":
            want, tier = case["results"]
            yield from differ("hard", [want, tier if want else None], [hard, sub_job.hard_tier if hard else None])
        case _:
            after = (case.get("recvAfter") or case["recv"]).get("networkTopology") or {}
            tier = after.get("highestTierAllowed") if after.get("mode") == "hard" else None
            yield from differ("tier", tier, sub_job.hard_tier)


@judge("JobInfo.ContainsHardTopology")
def _contains_hard(case: JsonObject) -> Iterator[str]:
    encoded = case["recv"]
    modes = [encoded, *(encoded.get("subJobs") or {}).values()]
    if any((one.get("networkTopology") or {}).get("mode") == "soft" for one in modes):
        raise NotApplicable("soft topologies are hard here as soon as a session has opened")
    job = job_of(encoded.get("podGroup") or {"spec": {}})
    if encoded.get("networkTopology"):
        job.topology = core.from_builtins(core.NetworkTopology, encoded["networkTopology"])
    for id_, sub in (encoded.get("subJobs") or {}).items():
        made = job.sub_jobs[id_] = grouping.make(job, grouping.Place(id_, sub["gid"]))
        topology = sub.get("networkTopology")
        made.topology = None if topology is None else core.from_builtins(core.NetworkTopology, topology)
    _adjust(job, _ROOT_TIER)
    yield from differ("contains hard", case["result"], opening.has_hard_topology(job))


def _adjust(job: Job, root: int) -> None:
    by_name = {ROOT_HYPER_NODE: HyperNode(ROOT_HYPER_NODE, root)}
    opening.adjust_topology(job, HyperNodeView(ready=True, by_name=by_name, rows={}, tiers=[]), {})


@judge("JobInfo.DefaultSubJobID")
def _default_sub_job(case: JsonObject) -> Iterator[str]:
    job = fed(Mirror(), {**case["recv"], "tasks": {}})
    found = grouping.place_of(job, {}).id
    yield from differ("default sub-job", case["result"], case["recv"]["uid"] if found == job.id else found)


@judge("SubJobInfo.getTaskHighestPriority")
def _highest_priority(case: JsonObject) -> Iterator[str]:
    mirror = Mirror()
    by_priority = case["recv"].get("taskPriorities") or {}
    tasks = {
        name: {"name": name, "uid": name, "priority": int(priority), "status": "Pending", "resreq": None}
        for priority, names in by_priority.items()
        for name in names or ()
    }
    job = fed(mirror, {"uid": "ns/j", "tasks": tasks})
    found = max((sub_job.priority for sub_job in job.sub_jobs.values()), default=0)
    yield from differ("highest priority", case["result"], found)


# -- reasons -------------------------------------------------------------------------------------------------------


@judge("JobInfo.TaskSchedulingReason")
def _task_reason(case: JsonObject) -> Iterator[str]:
    encoded, uid = case["recv"], next(iter(case["args"].values()))
    job = _with_errors(encoded)
    task = job.tasks.get(uid)
    if task is None:
        raise NotApplicable("asks about a task that the job does not have")
    told = fit_errors.outlook(task)
    yield from differ("reason", case["results"], [told.reason, told.message or fit_errors.job_text(job), *_node(told)])


def _node(told: fit_errors.Outlook) -> list[str]:
    return [told.nominated_node]


@judge("JobInfo.FitError")
def _job_text(case: JsonObject) -> Iterator[str]:
    yield from differ("text", case["result"], fit_errors.job_text(_with_errors(case["recv"])))


def _with_errors(encoded: JsonObject) -> Job:
    job = fed(Mirror(), encoded)
    for task in (encoded.get("tasks") or {}).values():
        if task["status"] == "Pending" and task.get("node"):  # as it was before a statement was discarded
            job.tasks[task["uid"]].last_transaction = Transaction(TaskStatus.ALLOCATED, task["node"], False)
    for uid, errors in (encoded.get("nodesFitErrors") or {}).items():
        counts: dict[str, int] = {}
        for node in errors["nodes"].values():
            for status in node["status"]:
                counts[status["reason"]] = counts.get(status["reason"], 0) + 1
        job.fit_errors[uid] = FitErrors(len(errors["nodes"]), counts)
    return job


# -- the cache -----------------------------------------------------------------------------------------------------


@judge("SchedulerCache.AddPod")
def _add_pod(case: JsonObject) -> Iterator[str]:
    mirror = _cache(case["recv"])
    mirror.apply_pod(core.from_builtins(core.Pod, case["args"]["obj"]))
    yield from _cache_differences(mirror, case)


@judge("SchedulerCache.AddPodGroupV1beta1", "SchedulerCache.UpdatePodGroupV1beta1")
def _add_pod_group(case: JsonObject) -> Iterator[str]:
    mirror = _cache(case["recv"])
    _same_name(case)
    mirror.apply_pod_group(core.from_builtins(core.PodGroup, list(case["args"].values())[-1]))
    yield from _cache_differences(mirror, case)


@judge("SchedulerCache.AddQueueV1beta1", "SchedulerCache.UpdateQueueV1beta1")
def _add_queue(case: JsonObject) -> Iterator[str]:
    mirror = _cache(case["recv"])
    name = _same_name(case)
    if "Update" in case["fn"] and name not in mirror.queues:
        raise NotApplicable("updates a queue that was never added; a mirror takes what the API server says")
    mirror.apply_queue(core.from_builtins(core.Queue, list(case["args"].values())[-1]))
    yield from _cache_differences(mirror, case)


def _same_name(case: JsonObject) -> str:
    names = {obj.get("metadata", {}).get("name", "") for obj in case["args"].values()}
    if not all(names):
        raise NotApplicable("an object without a name, or of another kind")
    if len(names) > 1:
        raise NotApplicable("an update changes the name of an object, which cannot happen")
    return str(names.pop())


@judge("SchedulerCache.DeleteQueueV1beta1")
def _delete_queue(case: JsonObject) -> Iterator[str]:
    mirror = _cache(case["recv"])
    mirror.delete_queue(case["args"]["obj"]["metadata"]["name"])
    yield from _cache_differences(mirror, case)


@judge("SchedulerCache.AddOrUpdateNode")
def _add_node(case: JsonObject) -> Iterator[str]:
    mirror = _cache(case["recv"])
    mirror.apply_node(core.from_builtins(core.Node, case["args"]["node"]))
    yield from _cache_differences(mirror, case)


@judge("SchedulerCache.RemoveNode")
def _remove_node(case: JsonObject) -> Iterator[str]:
    mirror, name = _cache(case["recv"]), str(next(iter(case["args"].values())))
    if name not in case["recv"]["nodes"]:
        raise NotApplicable("the call is refused by an error; a mirror takes what the API server says")
    mirror.delete_node(name)
    yield from _cache_differences(mirror, case)


def _cache(encoded: JsonObject) -> Mirror:
    mirror = Mirror()
    for name, priority in (encoded.get("priorityClasses") or {}).items():
        mirror.apply_priority_class(core.from_builtins(core.PriorityClass, {**priority, "metadata": {"name": name}}))
    for queue in (encoded.get("queues") or {}).values():
        mirror.apply_queue(core.from_builtins(core.Queue, queue["queue"]))
    for name in encoded.get("nodeList") or encoded.get("nodes") or ():
        mirror.apply_node(_cache_node(name, encoded["nodes"][name]))
    for job in (encoded.get("jobs") or {}).values():
        fed(mirror, job)
    return mirror


def _cache_node(name: str, encoded: JsonObject) -> core.Node:
    amounts = internal(encoded["allocatable"] or {"milliCPU": 0, "memory": 0})
    listed: dict[str, str | int | float] = {"cpu": f"{int(amounts.get('cpu', 0))}m"}
    listed |= {name: int(amounts[name]) for name in ("memory", "pods") if name in amounts}
    scalars = amounts.keys() - {"cpu", "memory", "pods"}
    listed |= {name: f"{int(amounts[name])}m" for name in scalars}
    return core.Node(metadata=core.ObjectMeta(name=name), status=core.NodeStatus(allocatable=listed))


def _cache_differences(mirror: Mirror, case: JsonObject) -> Iterator[str]:
    want = case.get("recvAfter") or case["recv"]
    jobs = want.get("jobs") or {}
    found = {job.id for job in mirror.jobs.values() if job.pod_group is not None or job.tasks}
    yield from differ("jobs", sorted(jobs), sorted(found))
    for id_ in sorted(found & jobs.keys()):
        yield from book_differences(mirror, jobs[id_], mirror.jobs[id_])
    yield from differ("queues", sorted(want.get("queues") or {}), sorted(mirror.queues))
    nodes = {name for name, node in mirror.nodes_by_name.items() if node.row >= 0 or node.tasks}
    yield from differ("nodes", sorted(want.get("nodes") or {}), sorted(nodes))
    for name in sorted(nodes & (want.get("nodes") or {}).keys()):
        yield from _node_differences(mirror, name, want["nodes"][name])


# -- nodes ---------------------------------------------------------------------------------------------------------


@judge("NewNodeInfo")
def _new_node(case: JsonObject) -> Iterator[str]:
    document = case["args"]["node"]
    if document is None:
        raise NotApplicable("a node without Node object has no amounts here")
    mirror = Mirror()
    node = core.from_builtins(core.Node, document)
    mirror.apply_node(node)
    yield from _node_differences(mirror, node.name, case["result"])


def _node_differences(mirror: Mirror, name: str, want: JsonObject) -> Iterator[str]:
    node = mirror.nodes_by_name[name]
    yield from differ(f"tasks of {name}", sorted(want.get("tasks") or {}), sorted(node.tasks))
    if node.row < 0:
        return
    for what in ("allocatable", "idle", "used", "releasing", "pipelined"):
        found = nonzero(mirror.columns.amounts(getattr(mirror.nodes, what)[node.row]))
        yield from differing_maps(f"{what} of {name}", internal(want[what]), found)


# -- HyperNodes ----------------------------------------------------------------------------------------------------


@judge("HyperNodeInfo.Tier")
def _tier(case: JsonObject) -> Iterator[str]:
    mirror, name = Mirror(), case["recv"]["name"]
    if name == ROOT_HYPER_NODE:
        raise NotApplicable("makes the virtual root by hand")
    mirror.apply_hyper_node(core.from_builtins(core.HyperNode, case["recv"]["hyperNode"]))
    yield from differ("tier", case["result"], mirror.hyper_nodes.view([], 0).by_name[name].tier)


def _tree(mirror: Mirror, sets: Mapping[str, Iterable[str]], tiers: Mapping[str, Iterable[str]]) -> HyperNodeView:
    """A tree over nodes that are made for it."""
    members = {name: list(nodes) for name, nodes in sets.items()}
    for node in sorted({node for nodes in members.values() for node in nodes}):
        mirror.apply_node(_cache_node(node, {"allocatable": {"milliCPU": 1000, "memory": 0}}))
    by_tier = {name: int(tier) for tier, names in tiers.items() for name in names}
    by_name = {name: HyperNode(name, by_tier.get(name, 1)) for name in {*members, *by_tier}}
    mirror.hyper_nodes.install(by_name, members, {known.tier for known in by_name.values()})
    return mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)


@judge("FindHyperNodeForNode")
def _hyper_node_of(case: JsonObject) -> Iterator[str]:
    args, mirror = case["args"], Mirror()
    if sorted(args["hyperNodesTiers"]) != sorted(int(tier) for tier in args["hyperNodesSetByTier"] or {}):
        raise NotApplicable("the list of tiers is not that of the tree")
    sets = {name: [node["name"] for node in nodes] for name, nodes in (args["hyperNodes"] or {}).items()}
    view = _tree(mirror, sets, args["hyperNodesSetByTier"] or {})
    node = mirror.nodes_by_name.get(args["nodeName"])
    found = "" if node is None else view.lowest_of_row.get(node.row, "")
    yield from differ("HyperNode", case["result"], found)


@judge("GetRealNodesByHyperNode")
def _real_nodes(case: JsonObject) -> Iterator[str]:
    args, mirror = case["args"], Mirror()
    for name in sorted(args["allNodes"]):
        mirror.apply_node(_cache_node(name, {"allocatable": {"milliCPU": 1000, "memory": 0}}))
    mirror.hyper_nodes.install({name: HyperNode(name, 1) for name in args["hyperNodes"]}, args["hyperNodes"], {1})
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    found = {name: sorted(_names(mirror, view.rows[name])) for name in args["hyperNodes"] if len(view.rows[name])}
    want = {name: sorted(names) for name, names in case["results"][1].items() if names}
    yield from differing_maps("real nodes", want, found)


def _names(mirror: Mirror, rows: Iterable[int]) -> list[str]:
    return [node.name for row in rows if (node := mirror.node_list[row]) is not None]
