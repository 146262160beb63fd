"""Single calls of plugins' own functions, asked of the plugins opened over a small mirror, and of gang bundles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from stromboli.api import core
from stromboli.scheduler.actions import bundles, domains
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks
from stromboli.scheduler.core.policy import PluginOption
from stromboli.scheduler.core.records import HyperNode, Task
from stromboli.scheduler.core.view import HyperNodeView
from stromboli.scheduler.plugins.extender import Extender
from stromboli.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit, Strategies, Strategy, is_prefix
from stromboli.scheduler.plugins.tdm import BadWindow, Window
from tests.conformance.accounting_functions import fed
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.domain_functions import internal, job_of, judge, nonzero
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable
from tests.scheduler.core.worlds import open_cycle, policy

FIT = "resource-strategy-fit"

# -- resource-strategy-fit -----------------------------------------------------------------------------------------


@judge("Score")
def _score(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    given = {"resources": args["weight"]["resources"], "resourceStrategyFitWeight": args["weight"]["weight"]}
    mirror, task = _node_with(args["node"], args["task"])
    (score,) = _opened(mirror, ResourceStrategyFit, given).scores
    found = score.rate(task, np.array([0], dtype=np.intp))
    assert found is not None
    yield from differ("score", round(float(case["result"]), 6), round(float(found[0]), 6))


@judge("checkNodeResourceIsProportional")
def _proportional(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    rates = {f"{name}.{what}": rate for name, two in args["proportional"].items() for what, rate in two.items()}
    given = {"enable": True, "resources": ",".join(args["proportional"]), "resourceProportion": rates}
    node = {**args["node"], "allocatable": args["node"]["idle"], "used": None}
    mirror, task = _node_with(node, args["task"])
    (check,) = _opened(mirror, ResourceStrategyFit, {"proportional": given}).filters
    refusals = check.refuse(task, np.array([0], dtype=np.intp))
    refused = 0 if refusals is None else int(refusals[0])
    reason = check.reasons[refused - 1].text if refused else ""
    yield from differ("reason", case["results"][0]["reason"], reason)


@judge("calculateWeight")
def _strategies(case: JsonObject) -> Iterator[str]:
    if FIT not in case["id"]:
        raise NotApplicable("weights of nodeorder are no value of their own here")
    given = case["args"]["args"] or {}
    listed = given.get("resources") or {}
    if not all(isinstance(one, dict) for one in listed.values()):
        raise NotApplicable("strategies that are no mappings are refused with the whole policy here")
    strategies = Strategies({name: Strategy.model_validate(one) for name, one in listed.items()})
    want = case["result"]["resources"]
    asked = {name: name[:-1] if is_prefix(name) else name for name in {*want, *listed}}
    found = {name: strategies.of(resource) for name, resource in asked.items()}
    yield from differing_maps("strategies", want, {n: one.model_dump() for n, one in found.items() if one is not None})


@judge("findResourceConfigWithPrefix")
def _by_prefix(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    listed = {name: Strategy.model_validate(one) for name, one in (args["resources"] or {}).items()}
    found = Strategies(listed).of(args["resourceName"]) if listed else None
    want, known = case["results"]
    yield from differ("strategy", want if known else None, None if found is None else found.model_dump())


def _node_with(node: JsonObject, asked: JsonObject) -> tuple[Mirror, Task]:
    """One node on which as much is used, and a task that is not on it."""
    mirror = Mirror()
    mirror.apply_node(
        core.from_builtins(
            core.Node, {"metadata": {"name": "n"}, "status": {"allocatable": _listed(node["allocatable"])}}
        )
    )
    if node["used"] is not None:
        mirror.apply_pod(_pod("filler", node["used"], {}, "n"))
    mirror.apply_pod(_pod("asking", asked["resreq"], (asked.get("pod") or {}).get("annotations") or {}, ""))
    return mirror, mirror.tasks["ns/asking"]


def _pod(name: str, amounts: JsonObject, annotations: JsonObject, node: str) -> core.Pod:
    return core.from_builtins(
        core.Pod,
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": annotations},
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": _listed(amounts)}}],
                **({"nodeName": node} if node else {}),
            },
            "status": {"phase": "Running" if node else "Pending"},
        },
    )


def _listed(amounts: JsonObject | None) -> dict[str, str | int]:
    found = internal(amounts or {"milliCPU": 0, "memory": 0})
    return {name: int(amount) if name in ("memory", "pods") else f"{int(amount)}m" for name, amount in found.items()}


def _opened(mirror: Mirror, plugin: type[Any], given: Mapping[str, object]) -> Hooks:
    option = PluginOption(plugin.name, arguments=dict(given))
    view = open_cycle(mirror, policy(option)).view
    hooks: Hooks = plugin(dict(given)).open(view)
    return hooks


# -- extender ------------------------------------------------------------------------------------------------------


@judge("extenderPlugin.hasManagedResources", "extenderPlugin.hasResourcesInList", "extenderPlugin.IsInterested")
def _interested(case: JsonObject) -> Iterator[str]:
    args, managed = case["args"], case["recv"]["config"].get("managedResources") or []
    if "resources" in args:
        containers = [{"name": "c", "resources": {"requests": args["resources"] or {}}}]
    else:
        containers = args.get("containers") or (args.get("task", {}).get("pod") or {}).get("spec", {}).get("containers")
    inits = (args.get("task", {}).get("pod") or {}).get("spec", {}).get("initContainers") or []
    if not managed and not case["fn"].endswith("IsInterested"):
        raise NotApplicable("without managed resources everything is of interest, whatever the lists say")
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": containers, "initContainers": inits}}
    mirror = Mirror()
    mirror.apply_pod(core.from_builtins(core.Pod, pod))
    plugin = Extender({"extender.managedResources": managed})
    plugin.open(open_cycle(mirror, policy(PluginOption("gang"))).view)
    yield from differ("interested", case["result"], plugin.is_interested(mirror.tasks["ns/p"]))


# -- tdm -----------------------------------------------------------------------------------------------------------


@judge("parseRevocableZone")
def _window(case: JsonObject) -> Iterator[str]:
    start, end, error = case["results"]
    try:
        window = Window.parse(case["args"]["rzRaw"])
    except BadWindow:
        yield from differ("error", error is not None, True)
        return
    yield from differ("error", error is not None, False)
    opens, closes = (datetime.fromisoformat(time) for time in (start, end))
    yield from differ("start", opens.hour * 60 + opens.minute, window.start)
    yield from differ("lasts", (closes - opens).total_seconds(), float(window.seconds))


# -- HyperNode records ---------------------------------------------------------------------------------------------


@judge("Recorder.UpdateDecisionToJob")
def _record(case: JsonObject) -> Iterator[str]:
    args, recv = case["args"], case["recv"] or {}
    by_name = {
        name: HyperNode(name, one["tier"], "", one.get("parent") or "") for name, one in args["hyperNodes"].items()
    }
    encoded, after = args["job"], (case.get("argsAfter") or args)["job"]
    chosen = (recv.get("jobDecisions") or {}).get(encoded["uid"])
    if chosen is None:
        raise NotApplicable("nothing is recorded here without a decision")
    job = job_of({"spec": {"minMember": 1}})
    job.allocated_hyper_node = encoded.get("allocatedHyperNode") or ""
    sub_jobs = {id_: SimpleNamespace(**_record_of(one)) for id_, one in (encoded.get("subJobs") or {}).items()}
    job.sub_jobs = cast(Any, sub_jobs)
    decided = ((recv.get("subJobDecisions") or {}).get(encoded["uid"]) or {}).get(chosen) or {}
    view = HyperNodeView(ready=True, by_name=by_name, rows={}, tiers=[])
    cycle = SimpleNamespace(view=SimpleNamespace(hyper_nodes=view))
    domains.record(cast(Cycle, cycle), job, domains.Decision(chosen, dict(decided)))
    yield from differ("job", after.get("allocatedHyperNode") or "", job.allocated_hyper_node)
    for id_, one in (after.get("subJobs") or {}).items():
        yield from differ(id_, one.get("allocatedHyperNode") or "", sub_jobs[id_].allocated_hyper_node)


def _record_of(encoded: JsonObject) -> dict[str, str]:
    return {
        "allocated_hyper_node": encoded.get("allocatedHyperNode") or "",
        "nominated_hyper_node": encoded.get("nominatedHyperNode") or "",
    }


# -- bundles -------------------------------------------------------------------------------------------------------


@judge("CreateJobBundles")
def _bundles(case: JsonObject) -> Iterator[str]:
    encoded = case["args"]["job"]
    if encoded.get("subJobs"):
        raise NotApplicable("sub-jobs put together by hand")
    states = {uid: state for state, uids in encoded["taskStatusIndex"].items() for uid in uids}
    tasks = {uid: {**one, "name": uid, "status": states[uid]} for uid, one in encoded["tasks"].items()}
    spec = {"minMember": encoded["minAvailable"], "minTaskMember": encoded.get("taskMinAvailable") or {}}
    mirror = Mirror()
    job = fed(mirror, {"uid": "ns/j", "tasks": tasks, "podGroup": {"spec": spec}})
    candidates = [job.tasks[one["uid"]] for one in case["args"]["localTasks"]]
    found = [_described(mirror, one) for one in bundles.bundles_of(job, candidates, mirror.columns.width)]
    want = [
        {
            "tasks": [task["uid"] for task in one["tasks"]],
            "whole": bool(one["type"]),
            "local": internal(one["localRes"]),
            "global": internal(one["globalRes"]),
        }
        for one in case["result"]
    ]
    yield from differ("bundles", want, found)


def _described(mirror: Mirror, bundle: bundles.Bundle) -> JsonObject:
    def amounts(vector: Iterable[float]) -> dict[str, float]:
        found = nonzero(mirror.columns.amounts(np.asarray(vector)))
        return {name: amount for name, amount in found.items() if name != "pods"}  # the vectors' tasks have no slots

    return {
        "tasks": [task.uid for task in bundle.tasks],
        "whole": bundle.whole,
        "local": amounts(bundle.gain),
        "global": amounts(bundle.cost),
    }
