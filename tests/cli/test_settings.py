"""What-ifs set what a cluster would take, and nothing else: refusals name the field and why."""

from __future__ import annotations

import msgspec
import pytest

from stromboli.api import core
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.rehearsing.settings import with_settings
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.cli.situations import NOW


def small() -> Snapshot:
    """A node, a tree of queues, a gang and its pod."""
    return Snapshot(
        NOW,
        (
            node("n").offer(cpu=4, memory="8Gi", pods=10).build(),
            queue("root").build(),
            queue("a").parent("root").build(),
            queue("a.b").parent("a").build(),
            queue("c").parent("a.b").build(),
            pod_group("g").queue("a").members(1).build(),
            pod("p").group("g").request(cpu=1).build(),
        ),
    )


def found(snapshot: Snapshot, struct: type[core.Object], name: str) -> object:
    return next(obj for obj in snapshot.of(struct) if obj.name == name)


REFUSED: dict[str, tuple[str, str]] = {
    "no value": ("queue/a.spec.weight", "expected kind/name.spec.field=value"),
    "no field": ("queue/a=5", "expected kind/name.spec.field=value"),
    "a field without a name": ("queue/a.spec.=5", "expected kind/name.spec.field=value"),
    "a dot too many": ("queue/a.spec.guarantee..resource=5", "expected kind/name.spec.field=value"),
    "no such kind": ("cat/a.spec.weight=5", "kind 'cat' is not known; choose one of "),
    "no such object": ("queue/z.spec.weight=5", "the snapshot has no Queue 'z'"),
    "no such object in the namespace": ("podgroup/other/g.spec.minMember=5", "the snapshot has no PodGroup 'other/g'"),
    "the wrong type": ("queue/a.spec.weight=heavy", 'spec.weight in body must be of type integer: "string"'),
    "a truth for a number": ("queue/a.spec.weight=true", 'spec.weight in body must be of type integer: "boolean"'),
    "a list for a number": ("queue/a.spec.weight=[1]", 'spec.weight in body must be of type integer: "array"'),
    "a part of a number": ("queue/a.spec.weight=1.5", 'spec.weight in body must be of type integer: "number"'),
    "a number for a truth": ("node/n.spec.unschedulable=1", "Expected `bool`, got `int` - at `$.spec.unschedulable`"),
    "no such field": ("queue/a.spec.wait=5", "Queue has no field spec.wait that scheduling reads"),
    "no such field to take away": ("queue/a.spec.wait=", "Queue has no field spec.wait that scheduling reads"),
    "a field below a number": ("queue/a.spec.weight.more=1", "weight is no object"),
    "no YAML": ("queue/a.spec.weight={", "while parsing"),
    "no amount": ("queue/a.spec.capability.cpu=lots", "'lots' is no quantity of cpu; write for example 500m, 2 or 4Gi"),
    "no amount among others": ("queue/a.spec.deserved={cpu: 1, memory: [2]}", "[2] is no quantity of memory"),
    "an amount below nothing": (
        "queue/a.spec.capability.cpu=-1",
        "spec.capability.cpu: -1 of cpu: must be greater than or equal to 0",
    ),
    "an amount below nothing, deep inside": (
        "queue/a.spec.guarantee={resource: {cpu: -1}}",
        "spec.guarantee: -1 of cpu: must be greater than or equal to 0",
    ),
    "an amount below nothing of a node": (
        "node/n.status.allocatable.memory=-8Gi",
        "status.allocatable.memory: -8Gi of memory: must be greater than or equal to 0",
    ),
    "half a device": (
        "node/n.status.allocatable.nvidia.com/gpu=500m",
        "status.allocatable.nvidia.com/gpu: 500m of nvidia.com/gpu: must be an integer",
    ),
    "half a pod": ("node/n.status.allocatable.pods=1.5", "status.allocatable.pods: 1.5 of pods: must be an integer"),
    "a weight below nothing": (
        "queue/a.spec.weight=-1",
        "spec.weight: Invalid value: -1: spec.weight in body should be greater than or equal to 1",
    ),
    "no weight": ("queue/a.spec.weight=0", "spec.weight in body should be greater than or equal to 1"),
    "too much weight": ("queue/a.spec.weight=70000", "spec.weight in body should be less than or equal to 65535"),
    "a gang of fewer than none": ("podgroup/ns/g.spec.minMember=-3", "spec.minMember"),
    "another name": ("queue/a.metadata.name=b", "metadata.name is who the object is, and cannot be set"),
    "another namespace": (
        "pod/ns/p.metadata.namespace=b",
        "metadata.namespace is who the object is, and cannot be set",
    ),
    "another object": ("queue/a.metadata.uid=b", "metadata.uid is who the object is, and cannot be set"),
    "a state that there is not": ("queue/a.status.state=Ajar", 'Unsupported value: "Ajar": supported values: '),
    "a phase that there is not": ("podgroup/ns/g.status.phase=Late", 'Unsupported value: "Late": supported values: '),
    "a phase that pods do not have": (
        "pod/ns/p.status.phase=Late",
        "status.phase: 'Late' is no phase of a pod; choose ",
    ),
    "a node that is not there": ("pod/ns/p.spec.nodeName=m", "spec.nodeName: the snapshot has no Node 'm'"),
    "a queue that is not there": ("podgroup/ns/g.spec.queue=z", "spec.queue: the snapshot has no Queue 'z'"),
    "a parent that is not there": ("queue/a.spec.parent=z", "spec.parent: the snapshot has no Queue 'z'"),
    "its own parent": ("queue/a.spec.parent=a", "spec.parent: queue a would stand below itself"),
    "a parent from below": ("queue/a.spec.parent=c", "spec.parent: queue a would stand below itself"),
    "a parent of the root": ("queue/root.spec.parent=a", "spec.parent: root is above all queues"),
    "a guarantee that is not deserved": (
        "queue/a.spec.guarantee.resource.cpu=1",
        "spec.deserved.cpu is not set, and must be at least spec.guarantee.resource.cpu=1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_cluster_would_take_is_refused(name: str) -> None:
    setting, want = REFUSED[name]
    with pytest.raises(CommandError) as raised:
        with_settings(small(), [setting])
    text = str(raised.value)
    assert text.startswith(f"--set {setting}: ")
    assert want in text
    assert "\n" not in text


ORDERS = {
    "deserved below the guarantee": (
        "deserved.cpu=1",
        "spec.guarantee.resource.cpu=2 must be at most spec.deserved.cpu=1",
    ),
    "more deserved than possible": ("capability.cpu=2", "spec.deserved.cpu=3 must be at most spec.capability.cpu=2"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_amounts_of_a_queue_keep_their_order(name: str) -> None:
    setting, want = ORDERS[name]
    kept = [f"queue/a.spec.{one}" for one in ("guarantee.resource.cpu=2", "deserved.cpu=3", "capability.cpu=4")]
    with_settings(small(), kept)
    with pytest.raises(CommandError, match=want):
        with_settings(small(), [*kept, f"queue/a.spec.{setting}"])


def test_settings_are_judged_together() -> None:
    """Each alone would be refused, or only one way round."""
    settings = ["queue/a.spec.deserved.cpu=4", "queue/a.spec.guarantee.resource.cpu=2", "queue/a.spec.capability.cpu=8"]
    for order in (settings, settings[::-1]):
        spec = found(with_settings(small(), order), core.Queue, "a").spec  # type: ignore[attr-defined]
        assert (spec.guarantee.resource, spec.deserved, spec.capability) == ({"cpu": 2}, {"cpu": 4}, {"cpu": 8})
    swapped = with_settings(small(), ["queue/a.b.spec.parent=root", "queue/a.spec.parent=c"])
    assert found(swapped, core.Queue, "a").spec.parent == "c"  # type: ignore[attr-defined]


TAKEN: dict[str, tuple[str, type[core.Object], str, str, object]] = {
    "a name with dots": ("queue/a.b.spec.weight=3", core.Queue, "a.b", "spec.weight", 3),
    "a resource with dots": (
        "queue/a.spec.capability.nvidia.com/gpu=4", core.Queue, "a", "spec.capability", {"nvidia.com/gpu": 4}
    ),
    "a resource with dots, deeper": (
        "queue/a.status.allocated.cpu=4", core.Queue, "a", "status.allocated", {"cpu": 4}
    ),
    "a label with dots": (
        "node/n.metadata.labels.example.com/zone=5", core.Node, "n", "metadata.labels", {"example.com/zone": "5"}
    ),
    "a name that is a number": (
        "podgroup/ns/g.spec.priorityClassName=7", core.PodGroup, "g", "spec.priority_class_name", "7"
    ),
    "a time": (
        "podgroup/ns/g.metadata.creationTimestamp=2026-01-01T00:00:00Z",
        core.PodGroup, "g", "metadata.creation_timestamp", "2026-01-01T00:00:00Z",
    ),
    "nothing, where there is a default": ("queue/a.spec.weight=", core.Queue, "a", "spec.weight", 1),
    "nothing, where there is none": (
        "node/n.status.allocatable.cpu=", core.Node, "n", "status.allocatable", {"memory": "8Gi", "pods": 10}
    ),
    "a truth": ("node/n.spec.unschedulable=true", core.Node, "n", "spec.unschedulable", True),
    "a zero": ("podgroup/ns/g.spec.minMember=0", core.PodGroup, "g", "spec.min_member", 0),
    "the root as parent": ("queue/c.spec.parent=root", core.Queue, "c", "spec.parent", "root"),
    "another queue": ("podgroup/ns/g.spec.queue=c", core.PodGroup, "g", "spec.queue", "c"),
    "a node": ("pod/ns/p.spec.nodeName=n", core.Pod, "p", "spec.node_name", "n"),
    "a closed queue": ("queue/a.status.state=Closed", core.Queue, "a", "status.state", "Closed"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_a_cluster_would_take_is_set(name: str) -> None:
    setting, struct, who, field, want = TAKEN[name]
    value = found(with_settings(small(), [setting]), struct, who)
    for part in field.split("."):
        value = getattr(value, part)
    assert value == want


def test_the_root_need_not_be_there_to_be_a_parent() -> None:
    snapshot = Snapshot(NOW, (queue("a").build(),))
    assert with_settings(snapshot, ["queue/a.spec.parent=root"]).objects


def test_what_was_wrong_before_does_not_hold_up_what_is_set() -> None:
    """A queue that was stored when nobody judged it."""
    old = queue("old").build()
    old = msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, deserved={"cpu": "many"}, weight=-4))
    assert isinstance(old, core.Queue)
    (changed,) = with_settings(Snapshot(NOW, (old,)), ["queue/old.spec.capability.cpu=3"]).objects
    assert isinstance(changed, core.Queue)
    assert changed.spec.capability == {"cpu": 3}
