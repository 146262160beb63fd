"""Single calls of the device drivers, asked of the families of the deviceshare plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stromboli.api import core
from stromboli.scheduler.core.columns import Columns
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.results import TaskRef
from stromboli.scheduler.core.shaping import Shapes
from stromboli.scheduler.plugins.deviceshare import configuration, encoding, exclusive, gpushare, hami, vgpu_cards
from stromboli.scheduler.plugins.deviceshare.configuration import (
    DEFAULTS,
    DeviceConfiguration,
    Geometry,
    Instance,
    Vnpu,
)
from stromboli.scheduler.plugins.deviceshare.families import SPREAD, Choice, Devices, DoesNotFit, Share
from stromboli.scheduler.plugins.deviceshare.gpushare import GpuShareDevices
from stromboli.scheduler.plugins.deviceshare.hami import HamiDevices
from stromboli.scheduler.plugins.deviceshare.mig import BadInstance, Cuts, Place
from stromboli.scheduler.plugins.deviceshare.requests import ContainerRequest, ResourceNames
from stromboli.scheduler.plugins.deviceshare.settings import Settings
from stromboli.scheduler.plugins.deviceshare.vgpu import VgpuDevices
from stromboli.scheduler.plugins.deviceshare.vgpu_cards import Card, CardFacts, Held, Holder
from tests.conformance.comparing import differ, differing_maps
from tests.conformance.domain_functions import judge
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable

NVIDIA = DEFAULTS.nvidia
RESOURCES = ResourceNames(NVIDIA.resource_count_name, NVIDIA.resource_memory_name, "", NVIDIA.resource_core_name)


def task_of(document: JsonObject | None) -> Task:
    """The task of a pod as the vectors have it."""
    pod = core.from_builtins(core.Pod, document or {})
    shape = Shapes(Columns()).of(pod, pod.metadata.labels, pod.metadata.annotations)
    task = Task(pod.namespace, pod.name, pod.uid, shape)
    task.labels, task.annotations = pod.metadata.labels, pod.metadata.annotations
    return task


# -- the plugin ----------------------------------------------------------------------------------------------------


@judge("New")
def _arguments(case: JsonObject) -> Iterator[str]:
    if "deviceshare" not in case["id"]:
        raise NotApplicable("no counterpart of New")
    settings, want = Settings.read(case["args"]["arguments"]), case["result"]
    yield from differ("policy", want["schedulePolicy"], settings.policy)
    yield from differ("weight", want["scheduleWeight"], settings.weight)


@judge("podKey")
def _pod_key(case: JsonObject) -> Iterator[str]:
    meta = case["args"]["pod"]["metadata"]
    yield from differ("key", case["result"], TaskRef(meta["namespace"], meta["name"], meta["uid"], "").key)


@judge("podMatchesRule")
def _matches(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    found = exclusive.matches(task_of(args["pod"]).labels, args["rule"].get("labels") or {})
    yield from differ("matches", case["result"], found)


@judge("matchingRules")
def _matching(case: JsonObject) -> Iterator[str]:
    rules = tuple(rule["labels"] for rule in case["args"]["rules"] or ())
    found = sorted(exclusive.matching(task_of(case["args"]["pod"]).labels, rules))
    yield from differ("rules", case["result"] or [], found)


@judge("loadGPUExclusiveConfig")
def _load_rules(case: JsonObject) -> Iterator[str]:
    want = [rule["labels"] for rule in (case["result"] or {}).get("rules") or ()]
    yield from differ("rules", want, list(exclusive.rules_of(case["args"]["args"])))


@judge("parseExclusiveRules")
def _parse_rules(case: JsonObject) -> Iterator[str]:
    want = [rule["labels"] for rule in case["result"] or ()]
    yield from differ("rules", want, list(exclusive.parse(case["args"]["raw"])))


@judge("exclusiveGPUDevices.capGPUs", "exclusiveGPUDevices.restoreGPUs")
def _cap(case: JsonObject) -> Iterator[str]:
    """Limits as they are for a pod that the given cards are reserved against, or for one with none reserved."""
    after = (case.get("recvAfter") or case["recv"])["inner"]["device"]
    reserved = frozenset(case["args"].get("gpuIndices") or ())
    given = case["args"].get("saved") or case.get("result") or {}
    for card in _cards(case["recv"]["inner"], limits={int(index): limit for index, limit in given.items()}):
        index = str(card.facts.index)
        yield from differ(f"limit of {index}", after[index]["number"], card.limit(reserved))


# -- configuration -------------------------------------------------------------------------------------------------


@judge(
    "TestParseDeviceConfig",
    "TestParseVNPUsLegacyArrayFormat",
    "TestParseVNPUsNewWrapperFormat",
    "TestParseVNPUsWrapperWithEmptyConfigs",
)
def _parse_configuration(case: JsonObject) -> Iterator[str]:
    found = _encoded(configuration.parse(case["input"]["yaml"]))
    want = case["observed"]["config"]
    yield from differing_maps("nvidia", want["nvidiaConfig"], found["nvidiaConfig"])
    yield from differing_maps("vnpus", {"configs": [], **want["vnpUs"]}, found["vnpUs"])


@judge("Config.VNPUConfigs")
def _vnpu_configs(case: JsonObject) -> Iterator[str]:
    wire = [_vnpu_document(entry) for entry in case["recv"]["vnpUs"]["configs"]]
    known = DeviceConfiguration.model_validate({"vnpus": {"configs": wire}})
    yield from differ("configs", case["result"], _encoded(known)["vnpUs"]["configs"])


def _vnpu_document(entry: JsonObject) -> JsonObject:
    templates = [
        {("aiCPU" if key == "aicpu" else key): part for key, part in template.items()}
        for template in entry.get("templates") or ()
    ]
    renamed = {("aiCPU" if key == "aicpu" else key): part for key, part in entry.items()}
    return {**renamed, "templates": templates}


def _encoded(parsed: DeviceConfiguration) -> JsonObject:
    """The vectors' encoding, which spells some names in its own way."""
    nvidia = parsed.nvidia.model_dump(by_alias=True)
    geometries = [
        {
            "models": list(entry.models),
            "geometries": [
                {"group": geometry.group, "instances": [kind.model_dump() for kind in geometry.instances]}
                for geometry in entry.geometries
            ],
        }
        for entry in parsed.nvidia.known_mig_geometries
    ]
    del nvidia["knownMigGeometries"]
    nvidia["resourcePriority"] = nvidia.pop("resourcePriorityName")
    if geometries:
        nvidia["migGeometriesList"] = geometries
    configs = [_encoded_vnpu(entry.model_dump(by_alias=True)) for entry in parsed.vnpus.configs]
    return {
        "nvidiaConfig": nvidia,
        "vnpUs": {"configs": configs, "hamiVnpuCore": parsed.vnpus.hami_vnpu_core},
    }


def _encoded_vnpu(entry: JsonObject) -> JsonObject:
    entry["aicpu"] = entry.pop("aiCPU")
    entry["templates"] = [
        {("aicpu" if key == "aiCPU" else key): part for key, part in template.items()}
        for template in entry["templates"]
    ]
    return entry


# -- gpushare ------------------------------------------------------------------------------------------------------


@judge("getGPUMemoryOfPod", "getGPUNumberOfPod")
def _gpu_request(case: JsonObject) -> Iterator[str]:
    measure = gpushare.memory_of if case["fn"] == "getGPUMemoryOfPod" else gpushare.number_of
    yield from differ("request", case["result"], measure(task_of(case["args"]["pod"]).shape.pod.spec))


@judge("getDevicesIdleGPUMemory")
def _idle_memory(case: JsonObject) -> Iterator[str]:
    idle = {str(index): memory for index, memory in _gpu_devices(case["args"]["gs"]).idle().items()}
    yield from differing_maps("idle", case["result"], idle)


@judge("predicateGPUbyMemory")
def _by_memory(case: JsonObject) -> Iterator[str]:
    choice = _chosen(_gpu_devices(case["args"]["gs"]), task_of(case["args"]["pod"]))
    found = None if choice is None else [int(share.device) for shares in choice.holding for share in shares]
    yield from differ("cards", case["result"], found)


def _gpu_devices(encoded: JsonObject) -> GpuShareDevices:
    cards = {int(index): card["memory"] for index, card in encoded["device"].items()}

    def memory(task: Task) -> int:
        return gpushare.memory_of(task.shape.pod.spec)

    devices = GpuShareDevices(encoded["name"], cards, memory, lambda task: 0)
    for index, card in encoded["device"].items():
        for pod in (card.get("podMap") or {}).values():
            task = task_of(pod)
            devices.hold(task, ((Share(index, "", memory(task), 0),),))
    return devices


def _chosen(devices: Devices, task: Task) -> Choice | None:
    try:
        return devices.choose(task)
    except DoesNotFit:
        return None


# -- vGPU ----------------------------------------------------------------------------------------------------------


def _cards(encoded: JsonObject, limits: Mapping[int, int] | None = None, factor: int = 1) -> list[Card]:
    return [
        _card(int(index), card, (limits or {}).get(int(index), card["number"]), factor)
        for index, card in (encoded.get("device") or {}).items()
    ]


def _card(index: int, encoded: JsonObject, limit: int, factor: int = 1) -> Card:
    geometries = tuple(_geometry(entry) for entry in encoded.get("migTemplate") or ())
    facts = CardFacts(index, encoded["uuid"], limit, encoded["memory"], encoded["type"], True, geometries)
    card = Card(facts, factor=factor, is_cut=bool(geometries))
    card.cuts = _cuts(geometries, encoded.get("migUsage") or {})
    for uid, usage in (encoded.get("podMap") or {}).items():
        holder = Holder(usage["podGroupKey"])
        holder.shares.append(Held(usage["usedMem"], usage["usedCore"], _used_place(card)))
        card.holders[uid] = holder
    card.users, card.used_memory, card.used_cores = encoded["usedNum"], encoded["usedMem"], encoded["usedCore"]
    return card


def _geometry(encoded: JsonObject) -> Geometry:
    kinds = tuple(Instance(**kind) for kind in encoded.get("instances") or ())
    return Geometry(group=encoded["group"], instances=kinds)


def _cuts(geometries: tuple[Geometry, ...], usage: JsonObject) -> Cuts:
    """The index of the group in use counts only while something is: a card without users may be cut anew."""
    listed = usage.get("usageList") or ()
    used = {kind["name"]: set(kind.get("usedIndex") or ()) for kind in listed}
    in_use, index = any(used.values()), usage.get("index", -1)
    group = geometries[index].group if in_use and 0 <= index < len(geometries) else None
    return Cuts(geometries, group, used)


def _used_place(card: Card) -> Place | None:
    """The only instance in use, for vectors that do not say which pod uses it."""
    for geometry in card.facts.geometries:
        first = 0
        for kind in geometry.instances:
            for index in sorted(card.cuts.used.get(kind.name, ())):
                return Place(geometry.group, first + index)
            first += kind.count
    return None


def _counters(card: Card) -> tuple[int, int, int]:
    return card.users, card.used_memory, card.used_cores


def _wanted(encoded: JsonObject) -> tuple[int, int, int]:
    return encoded["usedNum"], encoded["usedMem"], encoded["usedCore"]


def _holders(card: Card) -> JsonObject:
    return {
        uid: {
            "podGroupKey": holder.group,
            "usedMem": sum(held.memory for held in holder.shares),
            "usedCore": sum(held.cores for held in holder.shares),
        }
        for uid, holder in card.holders.items()
    }


def _card_differences(want: JsonObject, card: Card) -> Iterator[str]:
    yield from differ("counters", _wanted(want), _counters(card))
    yield from differing_maps("holders", want.get("podMap") or {}, _holders(card))
    used = {kind["name"]: set(kind["usedIndex"]) for kind in (want.get("migUsage") or {}).get("usageList") or ()}
    yield from differing_maps("instances", used, card.cuts.used)


def _vgpu(encoded: JsonObject, policy: str = "") -> VgpuDevices:
    return VgpuDevices(
        encoded["name"], encoded["mode"] or "hami-core", _cards(encoded), RESOURCES, Settings(policy=policy)
    )


@judge("NewGPUDevice")
def _new_card(case: JsonObject) -> Iterator[str]:
    args, want = case["args"], case["result"]
    card = Card(CardFacts(args["id"], want["uuid"], want["number"], args["mem"], want["type"]))
    yield from differ("index and memory", (want["id"], want["memory"]), (card.facts.index, card.facts.memory))
    yield from _card_differences(want, card)


@judge("GPUDevices.addResource")
def _add(case: JsonObject) -> Iterator[str]:
    devices = _vgpu(case["recv"])
    pod = case["args"]["pod"]
    task = task_of({**pod, "metadata": {**pod["metadata"], "annotations": case["args"]["annotations"]}})
    devices.hold(task, devices.recorded(task))
    after = (case.get("recvAfter") or case["recv"])["device"]
    for card in devices.cards:
        yield from _card_differences(after[str(card.facts.index)], card)


@judge("GPUDevices.Release", "AscendDevices.Release")
def _release(_case: JsonObject) -> Iterator[str]:
    raise NotApplicable("annotations travel with the Binding: there are none to take off a pod that is not bound")


@judge("GPUDevices.FilterNode")
def _filter(case: JsonObject) -> Iterator[str]:
    policy = case["args"]["schedulePolicy"]
    choice = _chosen(_vgpu(case["recv"], policy), task_of(case["args"]["pod"]))
    yield from differ("fits", case["results"][0] == 0, choice is not None)
    if policy != SPREAD:  # where upstream never gives points: defect of spec 06 section 31.3
        after = case.get("recvAfter") or case["recv"]
        yield from differ("score", round(after["score"], 6), round(choice.score, 6) if choice else 0)


@judge("GPUDevices.ScoreNode")
def _score(case: JsonObject) -> Iterator[str]:
    choice = _chosen(_vgpu(case["recv"], case["args"]["schedulePolicy"]), task_of(case["args"]["pod"]))
    yield from differ("score", round(case["result"], 6), round(choice.score, 6) if choice else 0)


@judge("checkNodeGPUSharingPredicateAndScore")
def _select(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    devices, task = _vgpu(args["gssnap"], args["schedulePolicy"]), task_of(args["pod"])
    fits, containers, score, error = case["results"]
    try:
        choice = devices.choose(task)
    except DoesNotFit as refusal:
        yield from differ("fits", fits, False)
        yield from differ("error", (error or {}).get("error"), str(refusal))
        return
    yield from differ("fits", fits, True)
    yield from differ("score", score, choice.score)
    yield from differ(
        "shares", [[_share(one) for one in each] for each in containers], [list(s) for s in choice.holding]
    )
    devices.hold(task, choice.holding)
    after = (case.get("argsAfter") or args)["gssnap"]["device"]
    for card in devices.cards:
        yield from differ("counters", _wanted(after[str(card.facts.index)]), _counters(card))


def _share(encoded: JsonObject) -> Share:
    return Share(encoded["uuid"], encoded["type"], encoded["usedmem"], encoded["usedcores"])


@judge("decodeContainerDevices")
def _decode(case: JsonObject) -> Iterator[str]:
    want = [_share(one) for one in case["result"] or ()]
    yield from differ("shares", want, list(encoding.decode(case["args"]["str"])))


@judge("checkGPUtype")
def _type(case: JsonObject) -> Iterator[str]:
    found = vgpu_cards.type_accepted(case["args"]["annos"] or {}, case["args"]["cardtype"])
    yield from differ("accepted", case["result"], found)


@judge("getPodGroupKey")
def _group_key(case: JsonObject) -> Iterator[str]:
    task = task_of(case["args"]["pod"])
    yield from differ("key", case["result"], vgpu_cards.group_key(task.namespace, task.annotations))


@judge("deviceHasPodFromSameGroup")
def _same_group(case: JsonObject) -> Iterator[str]:
    card = _card(0, case["args"]["gd"], 0)
    yield from differ("same group", case["result"], card.hosts_group(case["args"]["currentKey"]))


# -- MIG -----------------------------------------------------------------------------------------------------------


@judge("findMatch")
def _find(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    geometries = tuple(_geometry(entry) for entry in args["allowedGeometries"])
    found = _cuts(geometries, args["usage"]).find(args["requestMem"])
    got = [False, "", 0] if found is None else [True, found[0].on(args["uuid"]), found[1]]
    yield from differ("instance", case["results"], got)


@judge("addMigUsed", "subMigUsed")
def _mig_used(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    card, place = _card(0, args["gd"], 0), Place(args["groupName"], args["position"])
    change: Callable[[Place], Any] = card.cuts.take if case["fn"] == "addMigUsed" else card.cuts.give_back
    try:
        memory = change(place)
    except BadInstance:
        memory = 0
    if case["fn"] == "addMigUsed":
        yield from differ("memory", case["result"], memory)
    yield from _card_differences((case.get("argsAfter") or args)["gd"], card)


@judge("MIGFactory.AddPod", "MIGFactory.SubPod", "HAMICoreFactory.SubPod")
def _pod_on_card(case: JsonObject) -> Iterator[str]:
    args = case["args"]
    encoded = args["gd"]
    card = _card(encoded["id"], encoded, encoded["number"], args.get("deviceMemoryFactor", 1))
    if case["fn"].endswith("AddPod"):
        card.take(args["podUID"], args["devID"], args["mem"], args["core"])
    else:
        card.drop(args["podUID"])
    yield from _card_differences((case.get("argsAfter") or args)["gd"], card)


# -- Ascend HAMi ---------------------------------------------------------------------------------------------------


def _vnpu(encoded: JsonObject) -> Vnpu:
    return Vnpu.model_validate(_vnpu_document(encoded))


@judge("AscendDevice.trimMemory")
def _trim(case: JsonObject) -> Iterator[str]:
    yield from differ("memory", tuple(case["results"]), hami.trim(_vnpu(case["recv"]["config"]), case["args"]["m"]))


@judge("fit")
def _fit(case: JsonObject) -> Iterator[str]:
    request = case["args"]["req"]
    card = _ascend_card(case["args"]["dev"])
    yield from differ("fits", case["result"], card.fits(request["memreq"], request["coresreq"]))


@judge("verifyReq")
def _verify(case: JsonObject) -> Iterator[str]:
    encoded = case["args"]["req"]
    request = ContainerRequest(encoded["nums"], encoded["memreq"], None, encoded["coresreq"])
    is_partial = hami.is_partial(_vnpu(case["args"]["dev"]["config"]), request, 0)
    yield from differ("error", (case["result"] or {}).get("error"), hami.PARTIAL if is_partial else None)


@judge("AscendDevices.AddResource")
def _add_ascend(case: JsonObject) -> Iterator[str]:
    recv, pod = case["recv"] or {}, case["args"]["pod"]
    listed = {name: device for name, device in (recv.get("devices") or {}).items() if device}
    cards = {name: _ascend_card(device) for name, device in listed.items()}
    config = next(iter(listed.values()))["config"] if listed else {}
    devices = HamiDevices(_vnpu(config), list(cards.values()), recv.get("policy", ""))
    task = task_of(pod)
    # The vectors' devices know no annotation key, so that the text stands under an empty one.
    devices.hold(task, devices.known(task.annotations.get("", "")))
    after = (case.get("recvAfter") or recv).get("devices") or {}
    for name, card in cards.items():
        want = after[name]["deviceUsage"]
        found = {"used": card.users, "usedmem": card.used_memory, "usedcores": card.used_cores}
        yield from differing_maps(f"usage of {name}", want, found)


def _ascend_card(encoded: JsonObject) -> hami.Card:
    info = encoded["deviceInfo"]
    card = hami.Card(hami.Registered(info["id"], info["index"], info["count"], info["devmem"], info["devcore"]))
    known = encoded.get("podMap") or {}
    for uid, usage in known.items():
        card.take(uid, Share(info["id"], "", usage["usedmem"], usage["usedcores"]))
    usage = encoded["deviceUsage"]
    if not known and usage["used"]:
        card.take("unnamed", Share(info["id"], "", usage["usedmem"], usage["usedcores"]))
    return card
