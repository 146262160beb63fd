"""Single calls about claims: which filters of predicates are on, what tasks demand of device classes, and quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stromboli.api import core, durations, quantities
from stromboli.scheduler.core import devices, policy
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.devices import MARK, Claims, Demand
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.objects import ClusterObjects
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.plugins import built_in
from stromboli.scheduler.plugins.claim_filters import TIME_LIMIT, WEIGHT
from stromboli.scheduler.plugins.device_quotas import DeviceAccount, limits
from stromboli.scheduler.plugins.dra.allocator import STEPS_PER_SECOND
from stromboli.scheduler.plugins.dra.claiming import steps_of
from stromboli.scheduler.plugins.volumes.scoring import shape_of
from stromboli.scheduler.volume_binding import timeout_of
from tests.conformance.comparing import JsonObject, differ, differing_maps
from tests.conformance.domain_functions import judge
from tests.conformance.verdicts import NotApplicable

# -- predicates ----------------------------------------------------------------------------------------------------


@judge("defaultDynamicResourcesArgs", "setUpDynamicResourcesArgs")
def _time_limit(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    want = case.get("result") or (case.get("argsAfter") or args)["dra"]
    steps = steps_of((args.get("rawArgs") or {}).get(TIME_LIMIT))
    yield from differ("seconds", durations.seconds(want["filterTimeout"]), (steps or 0) / STEPS_PER_SECOND)


@judge("defaultVolumeBindingArgs", "setUpVolumeBindingArgs")
def _volume_binding(case: JsonObject) -> Iterator[str]:
    want = case.get("result") or (case.get("argsAfter") or case["args"])["vbArgs"]
    arguments = case["args"].get("rawArgs") or {}
    shape = [{"utilization": point.utilization, "score": point.score} for point in shape_of(arguments)]
    yield from differ("shape", want["shape"], shape)
    yield from differ("weight", want["weight"], policy.integer(arguments, WEIGHT, 1))
    yield from differ("timeout", want["bindTimeoutSeconds"], timeout_of(arguments))


SWITCHES = {
    "nodeAffinityEnable": "NodeAffinity",
    "nodePortEnable": "NodePorts",
    "nodeVolumeLimitsEnable": "NodeVolumeLimits",
    "podAffinityEnable": "PodAffinity",
    "podTopologySpreadEnable": "PodTopologySpread",
    "taintTolerationEnable": "TaintToleration",
    "volumeBindingEnable": "VolumeBinding",
    "volumeZoneEnable": "VolumeZone",
    "dynamicResourceAllocationEnable": "DynamicResourceAllocation",
}
FILTERS = {
    "node unschedulable": "NodeUnschedulable",
    "node affinity": "NodeAffinity",
    "node ports": "NodePorts",
    "taint toleration": "TaintToleration",
    "pod affinity": "InterPodAffinity",
    "volume limits": "NodeVolumeLimits",
    "volume zone": "VolumeZone",
    "topology spread": "PodTopologySpread",
    "volume binding": "VolumeBinding",
    "dynamic resources": "DynamicResources",
}
"""Filters here by their name upstream; the order in which reasons are told is compared by the sessions."""


@judge("PredicatesPlugin.InitPlugin")
def _filters(case: JsonObject) -> Iterator[str]:
    enabled = case["recv"]["enabledPredicates"]
    arguments = {f"predicate.{ours}Enable": enabled[theirs] for theirs, ours in SWITCHES.items()}
    wanted = Policy((), ((PluginOption("predicates", arguments=arguments),),))
    cycle = Cycle(Mirror(), wanted, 0.0, session_id="", plugins=built_in().factories, actions={})
    found = {filter_.name for _, filters in cycle.combination.filters for filter_ in filters}
    yield from differ(
        "filters", sorted(case["recvAfter"]["filterOrder"]), sorted(FILTERS[name] for name in found & FILTERS.keys())
    )


# -- demands -------------------------------------------------------------------------------------------------------


def demand_of(encoded: Mapping[str, JsonObject] | None) -> Demand:
    """A demand of the vectors' encoding: count and capacities by class."""
    found: Demand = {}
    for class_, amount in (encoded or {}).items():
        if amount["Count"]:
            found[MARK + class_] = float(amount["Count"])
        for dimension, quantity in (amount["Capacity"] or {}).items():
            found[f"{dimension}.{MARK}{class_}"] = float(quantities.parse(quantity))
    return found


@judge("SchedulerCache.buildTaskDRAInfo")
def _demand(case: JsonObject) -> Iterator[str]:
    total, by_claim, _, error = case["results"]
    objects = ClusterObjects()
    for claim in case["recv"].get("resourceClaims") or ():
        objects.apply(core.from_builtins(core.ResourceClaim, claim))
    mirror, pod = Mirror(), core.from_builtins(core.Pod, case["args"]["pod"])
    mirror.apply_pod(pod)
    found = Claims(objects, capacities=True).of(mirror.tasks[f"{pod.namespace}/{pod.name}"])
    if error is not None:
        yield from differ("a claim that is not there demands", {}, found)
        return
    yield from differing_maps("claims", {key: demand_of(each) for key, each in (by_claim or {}).items()}, found)
    yield from differing_maps("total", demand_of(total), devices.total_of(found.values()))


@judge("JobInfo.GetMinDRAResources")
def _least(case: JsonObject) -> Iterator[str]:
    tasks: Mapping[str, JsonObject] = case["recv"]["tasks"]
    if case["recv"].get("taskMinAvailable"):
        raise NotApplicable("minimums of roles")
    mirror = Mirror()
    group = core.ObjectMeta(namespace="ns", name="job")
    mirror.apply_pod_group(
        core.PodGroup(metadata=group, spec=core.PodGroupSpec(min_member=case["recv"]["minAvailable"]))
    )
    objects = ClusterObjects()
    for key, task in tasks.items():
        claim, pod = _claiming(key, demand_of(task.get("draResreq")))
        objects.apply(claim)
        mirror.apply_pod(pod)
    found = Claims(objects, capacities=True).least(mirror.jobs["ns/job"])
    yield from differing_maps("least", demand_of(case["result"]), found)


def _claiming(key: str, demand: Demand) -> tuple[core.ResourceClaim, core.Pod]:
    """A pod of the job, and a claim of its that demands so many devices."""
    namespace, _, name = key.partition("/")
    requests = tuple(
        core.DeviceRequest(
            name=class_, exactly=core.ExactDeviceRequest(device_class_name=class_.removeprefix(MARK), count=int(count))
        )
        for class_, count in demand.items()
    )
    metadata = core.ObjectMeta(namespace=namespace, name=name, uid=name)
    claim = core.ResourceClaim(
        metadata=metadata, spec=core.ResourceClaimSpec(devices=core.DeviceClaim(requests=requests))
    )
    grouped = core.ObjectMeta(
        namespace=namespace, name=name, uid=name, annotations={"scheduling.k8s.io/group-name": "job"}
    )
    reference = core.PodResourceClaim(name="claim", resource_claim_name=name)
    return claim, core.Pod(metadata=grouped, spec=core.PodSpec(resource_claims=(reference,)))


# -- quotas --------------------------------------------------------------------------------------------------------


@judge("newDRAQuotaAttr")
def _quota(case: JsonObject) -> Iterator[str]:
    account = DeviceAccount(limits(case["args"]["capability"] or {}))
    yield from _same_account(case["result"], account)


@judge("addTaskDRAAllocated", "removeTaskDRAAllocated")
def _charge(case: JsonObject) -> Iterator[str]:
    before, after, task = case["args"]["attr"], case["argsAfter"]["attr"], case["args"]["task"]
    account = _account(before["dra"])
    account.claims.update(before["resourceClaimRefs"])
    (claim,) = task["resourceClaimKeys"]
    claims = {claim: demand_of(task["draResreq"])}
    if case["fn"] == "addTaskDRAAllocated":
        account.charge(claims)
    else:
        account.release(claims)
    yield from _same_account(after["dra"], account)
    yield from differing_maps("references", after["resourceClaimRefs"], +account.claims)


def _account(encoded: JsonObject) -> DeviceAccount:
    return DeviceAccount(
        demand_of(encoded["capability"]), demand_of(encoded["allocated"]), demand_of(encoded.get("inqueue"))
    )


def _same_account(want: JsonObject, account: DeviceAccount) -> Iterator[str]:
    yield from differing_maps("capability", demand_of(want["capability"]), account.limit)
    for name, amounts in (("allocated", account.allocated), ("inqueue", account.inqueue)):
        found = {key: amount for key, amount in amounts.items() if amount}
        yield from differing_maps(name, demand_of(want.get(name)), found)
