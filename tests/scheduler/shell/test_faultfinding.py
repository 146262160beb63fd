"""What is wrong with an object is said on the object, once for as long as it is so (pains P33, C1, C2)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stromboli.api import kinds, names
from stromboli.api.kinds import Kind
from stromboli.scheduler.core.view import QueueFault
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


def test_what_is_wrong_with_a_queue_is_said_once_while_it_is_so() -> None:
    heard = Heard({})
    faults, bad = Faults(heard, heard), QueueFault("q", "uid-q", "queue q is set aside")
    for found in ([bad], [bad], [], [bad]):
        faults.queues(found)
    assert heard.said == [("Queue", "/q", "uid-q QueueMisconfigured", "queue q is set aside")] * 2


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
