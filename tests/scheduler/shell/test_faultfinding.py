"""What is wrong with an object is said on the object, once for as long as it is so (pains P33, C1, C2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from stromboli.api import core, kinds, names
from stromboli.api.kinds import Kind
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.scheduler.core.view import Fault
from stromboli.scheduler.faultfinding import Faults
from stromboli.testing.builders import QueueBuilder, node, pod, pod_group, queue
from tests.scheduler.pains.policies import POLICIES
from tests.scheduler.shell.stage import Stage, gang


class Heard:
    """Keeps what was said of whom."""

    def __init__(self, uids: Mapping[str, str]) -> None:
        self.said: list[tuple[str, str, str, str]] = []
        self._uids = uids

    def about(self, kind: Kind, namespace: str, name: str, uid: str, reason: str, message: str) -> None:
        self.said.append((kind.kind, f"{namespace}/{name}", f"{uid} {reason}", message))

    def uid_of(self, kind: Kind, namespace: str, name: str) -> str:
        return self._uids.get(name, "")


def test_what_is_left_out_is_said_once_until_it_can_be_read() -> None:
    heard = Heard({"p": "uid-1"})
    faults, bad = Faults(heard, heard), {("Pod", "ns/p"): "left out: much", ("Node", "n"): "left out: lots"}
    for problems in (bad, bad, {}, bad):
        faults.left_out(problems)
    once = [
        ("Pod", "ns/p", "uid-1 Unreadable", "left out: much"),
        ("Node", "/n", " Unreadable", "left out: lots"),
    ]
    assert heard.said == once * 2
    faults.left_out({**bad, ("Pod", "ns/p"): "left out: more"})
    assert heard.said[4:] == [("Pod", "ns/p", "uid-1 Unreadable", "left out: more")]


REASONS = {
    "Queue": "QueueMisconfigured",
    "PodGroup": "Unreadable",
    "Numatopology": "Unreadable",
    "ConfigMap": "Unreadable",
}


@pytest.mark.parametrize(("kind", "reason"), REASONS.items())
def test_what_is_wrong_with_an_object_is_said_once_while_it_is_so(kind: str, reason: str) -> None:
    heard = Heard({})
    faults, bad = Faults(heard, heard), Fault(kind, "ns", "x", "uid-x", "it is set aside")
    for found in ([bad], [bad], [], [bad]):
        faults.found(found)
    assert heard.said == [(kind, "ns/x", f"uid-x {reason}", "it is set aside")] * 2
    faults.found([replace(bad, uid="uid-y")])
    assert heard.said[2:] == [(kind, "ns/x", f"uid-y {reason}", "it is set aside")], "another of the same name"


QUEUES: dict[str, tuple[str, QueueBuilder, str]] = {
    "its parent does not exist": ("capacity in a tree", queue("bad").parent("ghost"), "is set aside"),
    "it is its own parent": ("capacity in a tree", queue("bad").parent("bad"), "is set aside"),
    "it may have more than the cluster": (
        "capacity in a tree",
        queue("bad").cap(cpu=200),
        "the cluster has",
    ),
    "its weight is negative": ("built in", queue("bad").weight(-1), "has weight -1, which counts as 0"),
    "its weight in the hierarchy is no number": (
        "fairness in a tree",
        QueueBuilder("bad", annotations={names.HIERARCHY: "root/a", names.HIERARCHY_WEIGHTS: "1/heavy"}),
        "'heavy' is not a number",
    ),
}


@pytest.mark.parametrize("case", QUEUES)
async def test_a_queue_says_of_itself_what_is_wrong_with_it(stage: Stage, case: str) -> None:
    policy, bad, want = QUEUES[case]
    stage.policies.current = POLICIES[policy]
    stage.put(bad.state("Open"), pod_group("g").queue("bad").members(1), pod("p").group("g").request(cpu=1))
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2, "the healthy job")
    await stage.until(lambda: stage.events("QueueMisconfigured", "bad"), "event")
    (event,) = stage.events("QueueMisconfigured", "bad")
    assert (event["involvedObject"]["kind"], event["type"]) == ("Queue", "Warning")
    assert event["involvedObject"]["uid"] == stage.queue("bad")["metadata"]["uid"]
    assert want in event["message"]


async def test_objects_that_cannot_be_read_say_so_themselves(stage: Stage) -> None:
    stage.put(node("bad-node").offer(cpu="many"), pod("bad").group("job").request(cpu="some"))
    stage.put(pod_group("bad-group").reserve(cpu="much"), queue("bad-queue").cap(cpu="all"))
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2, "the healthy job")
    for kind, name in (("Node", "bad-node"), ("Pod", "bad"), ("PodGroup", "bad-group"), ("Queue", "bad-queue")):
        await stage.until(lambda name=name: stage.events("Unreadable", name), "event")  # type: ignore[misc]
        (event,) = stage.events("Unreadable", name)
        assert event["involvedObject"]["kind"] == kind
        assert "is not a quantity" in event["message"]
    uid = stage.server.get(kinds.PODS, "bad", "ns")["metadata"]["uid"]
    assert stage.events("Unreadable", "bad")[0]["involvedObject"]["uid"] == uid


@dataclass
class Bad:
    """An object that a plugin cannot use."""

    plugin: PluginOption
    put: Callable[[Stage], None]
    kind: str
    name: str
    says: str


def put(stage: Stage, kind: Kind, obj: core.Object) -> None:
    stage.server.put(kind, dict(core.to_builtins(obj, kind)))


def put_group(stage: Stage) -> None:
    notes = {names.TASK_TOPOLOGY_AFFINITY: "ghost"}
    stage.put(pod_group("bad").annotate(**notes).members(1), pod("p").group("bad").request(cpu=100))


def put_numa(stage: Stage) -> None:
    spec = core.NumatopologySpec(numares={"cpu": core.NumaResource(allocatable="0-x", capacity=2)})
    put(stage, kinds.NUMATOPOLOGIES, core.Numatopology(metadata=core.ObjectMeta(name="bad"), spec=spec))


def put_config_map(namespace: str, key: str, **labels: str) -> Callable[[Stage], None]:
    meta = core.ObjectMeta(name="bad", namespace=namespace, labels=labels)
    return lambda stage: put(stage, kinds.CONFIG_MAPS, core.ConfigMap(metadata=meta, data={key: "- no"}))


DEVICES = {"KnownGeometriesCMName": "bad", "KnownGeometriesCMNamespace": "ns", "VGPUEnable": True}
UNUSABLE = {
    "a PodGroup whose task topology names no task": Bad(
        PluginOption("task-topology"), put_group, "PodGroup", "bad", "its task topology is ignored: task ghost"
    ),
    "a Numatopology with no CPU set": Bad(
        PluginOption("numa-aware"), put_numa, "Numatopology", "bad", "Numatopology bad: it is ignored: "
    ),
    "a ConfigMap with no report": Bad(
        PluginOption("deviceshare", arguments={"deviceshare.AscendMindClusterVNPUEnable": True}),
        put_config_map("mindx-dl", "bad", **{"mx-consumer-volcano": "true"}),
        "ConfigMap",
        "bad",
        "ConfigMap mindx-dl/bad: it is ignored: ",
    ),
    "a ConfigMap with no device configuration": Bad(
        PluginOption("deviceshare", arguments={f"deviceshare.{key}": value for key, value in DEVICES.items()}),
        put_config_map("ns", "device-config.yaml"),
        "ConfigMap",
        "bad",
        "ConfigMap ns/bad: device-config.yaml is not used: not a mapping",
    ),
}


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_object_that_a_plugin_cannot_use_says_so_once(stage: Stage, bad: Bad) -> None:
    tier = (PluginOption("gang"), PluginOption("predicates"), bad.plugin)
    stage.policies.current = Policy(("enqueue", "allocate"), (tier,))
    bad.put(stage)
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), *gang("job", 2))
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2, "the healthy job")
    await stage.until(lambda: stage.events("Unreadable", bad.name), "event")
    await stage.cycles(20)
    (event,) = stage.events("Unreadable", bad.name)
    assert (event["involvedObject"]["kind"], event["type"], event["count"]) == (bad.kind, "Warning", 1)
    assert event["involvedObject"]["uid"]
    assert bad.says in event["message"]


async def test_a_changed_neighbour_does_not_have_it_said_again(stage: Stage) -> None:
    stage.policies.current = Policy(("allocate",), ((PluginOption("numa-aware"),),))
    put_numa(stage)
    stage.put(node("n1").offer(cpu=4, memory="8Gi"))
    await stage.start()
    await stage.until(lambda: stage.events("Unreadable", "bad"), "event")
    for capacity in range(1, 6):
        spec = core.NumatopologySpec(numares={"cpu": core.NumaResource(allocatable="0", capacity=capacity)})
        put(stage, kinds.NUMATOPOLOGIES, core.Numatopology(metadata=core.ObjectMeta(name="good"), spec=spec))
        await stage.cycles(3)
    (event,) = stage.events("Unreadable", "bad")
    assert event["count"] == 1
