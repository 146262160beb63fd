"""Single calls about tasks, jobs, sub-jobs, nodes and HyperNodes, asked of a mirror brought to the call's state.

Upstream's objects change step by step; here a mirror is fed what the call's receiver already holds and then the
argument, and what it shows is compared with the receiver afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import orjson

from stromboli.api import core
from stromboli.scheduler.core import grouping, opening
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, HyperNode, Job, Node, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import HyperNodeView
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable

Judge = Callable[[JsonObject], Iterable[str]]
JUDGES: dict[str, Judge] = {}


def judge(*names: str) -> Callable[[Judge], Judge]:
    """Registers the judge of upstream functions."""

    def register(function: Judge) -> Judge:
        JUDGES.update(dict.fromkeys(names, function))
        return function

    return register


# -- tasks ---------------------------------------------------------------------------------------------------------


@judge("NewTaskInfo")
def _new_task(case: JsonObject) -> Iterator[str]:
    pod = dict(case["args"]["pod"])
    meta = {"name": "unnamed", **pod.get("metadata", {})}
    pod["metadata"] = meta
    mirror = Mirror()
    mirror.apply_pod(core.from_builtins(core.Pod, pod))
    want, task = case["result"], mirror.tasks[f"{meta.get('namespace', '')}/{meta['name']}"]
    yield from differing_maps("task", _wanted_task(want), _found_task(task))
    yield from amounts("resreq", want["resreq"], mirror, task)


def _wanted_task(want: JsonObject) -> JsonObject:
    return {
        "job": want["job"],
        "status": want["status"],
        "node": want.get("node") or "",
        "preemptable": want["preemptable"],
        "priority": want["priority"],
        "bestEffort": bool(want.get("bestEffort")),
        "uid": want["uid"],
    }


def _found_task(task: Task) -> JsonObject:
    return {
        "job": task.job_id,
        "status": task.status.word,
        "node": task.node_name,
        "preemptable": task.preemptable,
        "priority": task.priority,
        "bestEffort": task.best_effort,
        "uid": task.uid,
    }


def amounts(where: str, want: JsonObject, mirror: Mirror, task: Task) -> Iterator[str]:
    """A task's request against a ``Resource`` of the vectors."""
    yield from differing_maps(where, internal(want), nonzero(mirror.columns.amounts(task.request)))


def internal(resource: JsonObject) -> dict[str, float]:
    """A ``Resource`` of the vectors as amounts by name, zeros left out."""
    scalars = resource.get("scalarResources") or {}
    return nonzero({"cpu": resource["milliCPU"], "memory": resource["memory"], **scalars})


def nonzero(found: dict[str, float]) -> dict[str, float]:
    """Without what is 0."""
    return {name: float(amount) for name, amount in found.items() if amount}


# -- nodes ---------------------------------------------------------------------------------------------------------

_PHASES = {"Running": "Running", "Pending": "Pending", "Bound": "Pending", "Releasing": "Running", "Unknown": "Unknown"}


@judge("NodeInfo.AddTask", "NodeInfo.RemoveTask")
def _node_tasks(case: JsonObject) -> Iterator[str]:
    mirror = Mirror()
    if "allocatable" not in case["recv"] or not internal(case["recv"]["allocatable"]):
        raise NotApplicable("a node put together by hand, whose idle does not follow from its allocatable")
    mirror.apply_node(_node(case["recv"]))
    for task in (case["recv"].get("tasks") or {}).values():
        mirror.apply_pod(_pod(task, case["recv"]["name"]))
    given = case["args"].get("task") or case["args"].get("ti")
    if case.get("result") is not None:
        raise NotApplicable("the call is refused by an error; a mirror takes what the API server says")
    if case["fn"].endswith("RemoveTask"):
        mirror.delete_pod(f"{given['namespace']}/{given['name']}")
    else:
        mirror.apply_pod(_pod(given, case["recv"]["name"]))
    want = case.get("recvAfter") or case["recv"]
    node = mirror.nodes_by_name[want["name"]]
    yield from differ("tasks", sorted(want.get("tasks") or {}), sorted(node.tasks))
    for what in ("idle", "used", "releasing", "pipelined"):
        found = mirror.columns.amounts(getattr(mirror.nodes, what)[node.row])
        yield from differing_maps(what, internal(want[what]), nonzero(found))


def _node(encoded: JsonObject) -> core.Node:
    resource = encoded["allocatable"]
    scalars = dict(resource.get("scalarResources") or {})
    pods = scalars.pop("pods", 0)
    listed: dict[str, str | int | float] = {name: f"{int(amount)}m" for name, amount in scalars.items()}
    listed |= {"cpu": f"{int(resource['milliCPU'])}m", "memory": int(resource["memory"]), "pods": int(pods)}
    return core.Node(metadata=core.ObjectMeta(name=encoded["name"]), status=core.NodeStatus(allocatable=listed))


def _pod(task: JsonObject, node: str) -> core.Pod:
    if task["status"] not in _PHASES:
        raise NotApplicable(f"puts a task on a node in the session-only status {task['status']}")
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if task["status"] == "Releasing" else {}
    meta = {**task.get("pod", {}), "name": task["name"], "namespace": task["namespace"], "uid": task["uid"], **deleted}
    spec = {**meta.pop("spec", {}), "nodeName": node}
    return core.from_builtins(core.Pod, {"metadata": meta, "spec": spec, "status": {"phase": _PHASES[task["status"]]}})


# -- jobs and sub-jobs ---------------------------------------------------------------------------------------------


def job_of(group: JsonObject) -> Job:
    """A job with this PodGroup."""
    mirror = Mirror()
    meta = {"name": "j", "namespace": "ns", **(group.get("metadata") or {})}
    mirror.apply_pod_group(core.from_builtins(core.PodGroup, {"metadata": meta, "spec": group.get("spec") or {}}))
    if mirror.problems:
        raise AssertionError(str(mirror.problems))
    return mirror.jobs[f"{meta['namespace']}/{meta['name']}"]


@judge("JobInfo.ParseMinMemberInfo")
def _role_minimums(case: JsonObject) -> Iterator[str]:
    job, want = job_of(case["args"]["pg"]), case.get("recvAfter") or case["recv"]
    yield from differing_maps("taskMinAvailable", want.get("taskMinAvailable") or {}, dict(job.role_minimums))
    yield from differ("taskMinAvailableTotal", want["taskMinAvailableTotal"], job.role_total)


def _policy_job(policies: list[JsonObject], min_member: int = 0) -> Job:
    return job_of({"spec": {"minMember": min_member, "subGroupPolicy": policies}})


@judge("getSubJobMatchValues")
def _match_values(case: JsonObject) -> Iterator[str]:
    job = _policy_job([{"name": "p", **case["args"]["policy"]}])
    pod = core.from_builtins(core.Pod, {"metadata": case["args"]["pod"].get("metadata") or {}})
    yield from differ("values", tuple(case["result"] or ()), grouping.place_of(job, pod.metadata.labels).values)


@judge("NewSubJobInfo")
def _new_sub_job(case: JsonObject) -> Iterator[str]:
    args, want = case["args"], case["result"]
    values = tuple(args.get("matchValues") or ())
    if args.get("policy") is None or not values:
        raise NotApplicable("makes a sub-job without policy or values, which does not happen here")
    policy = core.from_builtins(core.SubGroupPolicy, args["policy"])
    place = grouping.Place(args["uid"], args["gid"], policy, values)
    sub_job = grouping.make(_policy_job([args["policy"]]), place)
    topology = None if sub_job.topology is None else dict(core.to_builtins(sub_job.topology))
    found = {
        "uid": sub_job.id,
        "gid": sub_job.group,
        "minAvailable": sub_job.minimum,
        "matchIndex": sub_job.match_index,
        "priority": sub_job.priority,
        "networkTopology": topology,
    }
    yield from differing_maps("sub-job", {name: want.get(name) for name in found}, found)


@judge("convertSoftToHardTopology")
def _soft_to_hard(case: JsonObject) -> Iterator[str]:
    given = case["args"]["job"]
    group = given.get("podGroup")
    if group is None:
        raise NotApplicable("a job without PodGroup is in no session here")
    want = (case.get("argsAfter") or case["args"])["job"]
    job = job_of(group)
    job.topology = _topology(given.get("networkTopology"))
    job.sub_jobs = {}
    for sub_id, sub_job in (given.get("subJobs") or {}).items():
        place = grouping.Place(sub_id, sub_job["gid"])
        made = job.sub_jobs[sub_id] = grouping.make(job, place)
        made.topology = _topology(sub_job.get("networkTopology"))
    root = HyperNode(ROOT_HYPER_NODE, int(case["args"]["maxTier"]))
    opening.adjust_topology(job, HyperNodeView(ready=True, by_name={ROOT_HYPER_NODE: root}, rows={}, tiers=[]), {})
    yield from differ("tier of the job", _hard_tier(want.get("networkTopology")), job.hard_tier)
    for sub_id, sub_job in (want.get("subJobs") or {}).items():
        tier = _hard_tier(sub_job.get("networkTopology"))
        yield from differ(f"tier of {sub_id}", tier, job.sub_jobs[sub_id].hard_tier)


def _topology(encoded: JsonObject | None) -> core.NetworkTopology | None:
    return None if encoded is None else core.from_builtins(core.NetworkTopology, encoded)


def _hard_tier(topology: JsonObject | None) -> int | None:
    if topology is None or topology.get("mode") != "hard":
        return None
    tier = topology.get("highestTierAllowed")
    return None if tier is None else int(tier)


_COUNTS: dict[str, Callable[[Job], object]] = {
    "JobInfo.IsReady": lambda job: job.is_ready,
    "JobInfo.IsPipelined": lambda job: job.is_pipelined,
    "JobInfo.IsStarving": lambda job: job.is_starving,
    "JobInfo.PendingBestEffortTaskNum": lambda job: job.pending_best_effort,
}


@judge(*_COUNTS)
def _job_counts(case: JsonObject) -> Iterator[str]:
    recv = case["recv"]
    job = job_of({"spec": {"minMember": recv["minAvailable"]}})
    for status, tasks in (recv.get("taskStatusIndex") or {}).items():
        job.counts[TaskStatus[status.upper()]] = len(tasks)
    pending = (recv.get("taskStatusIndex") or {}).get("Pending") or ()
    job.pending_best_effort = sum(bool(recv["tasks"][key].get("bestEffort")) for key in pending)
    yield from differ(case["fn"], case["result"], _COUNTS[case["fn"]](job))


@judge("SubJobInfo.IsPipelined")
def _sub_job_pipelined(case: JsonObject) -> Iterator[str]:
    recv = case["recv"]
    sub_job = grouping.make(job_of({"spec": {"minMember": recv["minAvailable"]}}), grouping.Place("ns/j", "ns/j"))
    for status, tasks in (recv.get("taskStatusIndex") or {}).items():
        sub_job.counts[TaskStatus[status.upper()]] = len(tasks)
    pending = (recv.get("taskStatusIndex") or {}).get("Pending") or {}
    sub_job.pending_best_effort = sum(bool(task.get("bestEffort")) for task in pending.values())
    yield from differ("pipelined", case["result"], sub_job.is_pipelined)


# -- HyperNodes ----------------------------------------------------------------------------------------------------


@judge("HyperNodesInfo.UpdateHyperNode", "SchedulerCache.updateHyperNode")
def _update_hyper_node(case: JsonObject) -> Iterator[str]:
    mirror = _hyper_nodes(case)
    mirror.apply_hyper_node(core.from_builtins(core.HyperNode, case["args"]["hn"]))
    yield from _tree_differences(case, mirror)


@judge("SchedulerCache.deleteHyperNode")
def _delete_hyper_node(case: JsonObject) -> Iterator[str]:
    mirror = _hyper_nodes(case)
    mirror.delete_hyper_node(str(next(iter(case["args"].values()))))
    yield from _tree_differences(case, mirror)


@judge("GetMembers")
def _members(case: JsonObject) -> Iterator[str]:
    mirror = Mirror()
    for node in case["args"]["nodes"] or ():
        mirror.apply_node(core.from_builtins(core.Node, node))
    member = {"type": "Node", "selector": case["args"]["selector"]}
    document = {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [member]}}
    mirror.apply_hyper_node(core.from_builtins(core.HyperNode, document))
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    existing = {node.name for node in _nodes(mirror)}
    want = sorted(set(case["result"] or ()) & existing)
    yield from differ("members", want, sorted(_names(mirror, view, "h")))


@judge("NewHyperNodeInfo")
def _new_hyper_node(case: JsonObject) -> Iterator[str]:
    if case["args"].get("opts"):
        raise NotApplicable("sets a parent by hand")
    mirror, name = Mirror(), case["args"]["hn"]["metadata"]["name"]
    if name == ROOT_HYPER_NODE:
        raise NotApplicable("makes the virtual root by hand")
    mirror.apply_hyper_node(core.from_builtins(core.HyperNode, case["args"]["hn"]))
    known = mirror.hyper_nodes.view([], 0).by_name[name]
    yield from differ("tier", case["result"]["tier"], known.tier)
    yield from differ("tier name", case["result"].get("tierName") or "", known.tier_name)


@judge(
    "HyperNodesInfo.Ready",
    "HyperNodesInfo.HyperNodesInfo",
    "HyperNodesInfo.HyperNodesSetByTier",
    "HyperNodesInfo.RealNodesSet",
)
def _tree(case: JsonObject) -> Iterator[str]:
    mirror, want = _hyper_nodes(case), case["result"]
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    known = {name: entry for name, entry in view.by_name.items() if name != ROOT_HYPER_NODE}
    match case["fn"].rpartition(".")[2]:
        case "Ready":
            yield from differ("ready", want, view.ready)
        case "HyperNodesInfo":
            yield from differing_maps("hyperNodes", want, {name: _described(entry) for name, entry in known.items()})
        case "HyperNodesSetByTier":
            tiers = {tier: sorted(names) for tier, names in want.items()}
            found = {str(tier): sorted(n for n, entry in known.items() if entry.tier == tier) for tier in view.tiers}
            yield from differing_maps("tiers", tiers, {tier: names for tier, names in found.items() if names})
        case _:
            sets = {name: sorted(_names(mirror, view, name)) for name in known}
            yield from differing_maps(
                "realNodes", _filled({n: sorted(nodes) for n, nodes in want.items()}), _filled(sets)
            )


def _described(known: HyperNode) -> str:
    parent = "" if known.parent == ROOT_HYPER_NODE else known.parent
    return f"Name: {known.name}, Tier: {known.tier}, TierName: {known.tier_name}, Parent: {parent}"


@judge("HyperNodeInfoMap.GetLCAHyperNode", "HyperNodeInfoMap.GetAncestors")
def _kinship(case: JsonObject) -> Iterator[str]:
    by_name = {
        name: HyperNode(name, entry["tier"], "", entry.get("parent") or "", set(entry.get("children") or ()))
        for name, entry in case["recv"].items()
    }
    for name, entry in case["recv"].items():  # a parent may be known from its members alone
        for member in entry["hyperNode"].get("spec", {}).get("members") or ():
            child = by_name.get(member["selector"].get("exactMatch", {}).get("name", ""))
            if member["type"] == "HyperNode" and child is not None and not child.parent:
                child.parent = name
    view, args = HyperNodeView(ready=True, by_name=by_name, rows={}, tiers=[]), case["args"]
    if case["fn"].endswith("GetAncestors"):
        yield from differ("ancestors", case["result"], view.ancestors(args["name"]))
    else:
        found = view.lowest_common_ancestor(args["hypernode"], args["jobHyperNode"])
        yield from differ("lowest common ancestor", case["result"], found)


def _info(encoded: JsonObject) -> JsonObject:
    found: JsonObject = encoded.get("hyperNodesInfo", encoded)
    return found


def _hyper_nodes(case: JsonObject) -> Mirror:
    """A mirror with the HyperNodes of the receiver and every node that any of its sets names."""
    before, after = _info(case["recv"]), _info(case.get("recvAfter") or case["recv"])
    mirror = Mirror()
    labels: JsonObject = before.get("clusterNodes") or {}
    named = {name for sets in (before, after) for names in (sets.get("realNodes") or {}).values() for name in names}
    for name in sorted({*labels, *named}):
        metadata = core.ObjectMeta(name=name, labels=labels.get(name) or {})
        mirror.apply_node(core.Node(metadata=metadata, status=core.NodeStatus(allocatable={"cpu": 1})))
    for known in (before.get("hyperNodes") or {}).values():
        if known["hyperNode"].get("spec"):  # the others are placeholders
            mirror.apply_hyper_node(core.from_builtins(core.HyperNode, known["hyperNode"]))
    return mirror


def _tree_differences(case: JsonObject, mirror: Mirror) -> Iterator[str]:
    want = _info(case.get("recvAfter") or case["recv"])
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    yield from differ("ready", want["ready"], view.ready)
    if not want["ready"]:
        return  # what a tree that cannot be used looks like is nobody's business
    # A HyperNode that is only named by a parent is a placeholder here, always; upstream forgets it after a deletion.
    tree = {
        name: _tree_entry(known)
        for name, known in view.by_name.items()
        if name != ROOT_HYPER_NODE and (known.tier or name in want["hyperNodes"])
    }
    yield from differing_maps("hyperNodes", {n: _wanted_entry(k) for n, k in want["hyperNodes"].items()}, tree)
    found = {name: sorted(_names(mirror, view, name)) for name in view.rows if name != ROOT_HYPER_NODE}
    sets = {name: sorted(nodes) for name, nodes in want["realNodes"].items()}
    yield from differing_maps("realNodes", _filled(sets), _filled(found))


def _filled(sets: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without empty sets: whether a HyperNode without nodes has an entry makes no difference to anybody."""
    return {name: nodes for name, nodes in sets.items() if nodes}


def _wanted_entry(known: JsonObject) -> JsonObject:
    return {"tier": known["tier"], "parent": known.get("parent") or "", "children": sorted(known.get("children") or ())}


def _tree_entry(known: HyperNode) -> JsonObject:
    parent = "" if known.parent == ROOT_HYPER_NODE else known.parent
    return {"tier": known.tier, "parent": parent, "children": sorted(known.children)}


def _nodes(mirror: Mirror) -> list[Node]:
    return [node for node in mirror.node_list if node is not None]


def _names(mirror: Mirror, view: HyperNodeView, name: str) -> list[str]:
    by_row = {node.row: node.name for node in _nodes(mirror)}
    return [by_row[row] for row in view.rows.get(name, ()) if row in by_row]


def differences(case: JsonObject) -> list[str] | None:
    """What differs, or None when nobody judges this function."""
    found = JUDGES.get(case.get("fn") or case["source"]["func"])
    if found is None:
        return None
    # A judge may keep parts of the case; the case itself must stay as it was read.
    return list(found(orjson.loads(orjson.dumps(case))))
