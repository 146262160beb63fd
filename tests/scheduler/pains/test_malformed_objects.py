"""Malformed objects beside a healthy queue and job: those are scheduled as if the others were not there.

Nothing is raised out of the mirror or a cycle, no plugin and no action fails for one object's sake, all books are
right, and what is wrong is said of the object that it is wrong with.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.results import CycleResult
from stromboli.testing.builders import hyper_node, node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, binds, feed, run_cycle, world
from tests.scheduler.pains import malformed
from tests.scheduler.pains.policies import POLICIES

SEEDS = 12
BROAD = ("built in", "capacity in a tree", "fairness in a tree", "everything by weight", "everything in a tree")
"""Of each way to share between queues one; with everything on, one flat and one in a tree."""
HEALTHY = {"healthy-0", "healthy-1"}


def healthy() -> list[core.Object]:
    """A node, a queue that is guaranteed what its job needs, and the job."""
    enough = {"cpu": "2", "memory": "2Gi"}
    guaranteed = queue(malformed.HEALTHY_QUEUE)._spec(guarantee=core.Guarantee(resource=dict(enough)))
    group = pod_group("healthy", "sane").members(2).queue(malformed.HEALTHY_QUEUE).phase("Pending")
    return [
        queue("root").build(),
        guaranteed.deserve(**enough).build(),
        node(malformed.HEALTHY_NODE).offer(cpu=4, memory="16Gi").label(healthy="yes").build(),
        group.reserve(cpu=2, memory="2Gi").build(),
        *(
            pod(name, "sane").group("healthy").request(cpu=1, memory="1Gi").select(healthy="yes").build()
            for name in sorted(HEALTHY)
        ),
    ]


def cycles(mirror: Mirror, policy: Policy) -> list[CycleResult]:
    """Two cycles, the second over what the first has left; whatever holds for every malformed object is checked."""
    results = []
    for number in range(2):
        results.append(run_cycle(mirror, policy))
        if number == 0:
            assert set(binds(results[0])) >= HEALTHY
        assert not results[-1].problems
        audit(mirror)
    return results


@pytest.mark.parametrize("name", POLICIES)
def test_a_healthy_job_is_placed_among_damaged_objects_of_every_kind(name: str) -> None:
    for seed in range(SEEDS):
        dice = random.Random(f"{name} {seed}")
        given = [*malformed.objects(dice), *healthy()]
        dice.shuffle(given)
        cycles(world(given), POLICIES[name])


@pytest.mark.parametrize("name", POLICIES)
def test_undamaged_they_are_placed_themselves(name: str) -> None:
    """Or the damage would be to what nobody looks at."""
    objects = [malformed.decoded(struct, given) for struct, given in malformed.whole()]
    mirror = world([one for one in objects if one is not None], healthy())
    found = set(binds(cycles(mirror, POLICIES[name])[0]))
    assert {"bad-plain-w", "bad-plain-v", "bad-part-0", "bad-volumes", "bad-gpu"} <= found


@dataclass(frozen=True)
class Bad:
    """Objects of which at least one makes no sense, and what is said of it (empty: there is nothing to complain of)."""

    objects: Sequence[core.Object]
    want_said: str = ""
    about: str = ""


def job(name: str = "j", *, in_queue: str = "bad", minimum: int = 1, **roles: int) -> list[core.Object]:
    """A PodGroup and a pod that could go anywhere but to the healthy node."""
    return [
        pod_group(name).members(minimum, **roles).queue(in_queue).build(),
        pod(f"{name}-0").group(name).request(cpu="100m", memory="1Mi").role("w").select(bad="yes").build(),
    ]


BAD_NODE = node("bad-node").offer(cpu=8, memory="32Gi").label(bad="yes")
OPEN = queue("bad").build()
INT = 2**31 - 1


def cluster(*more: core.Object) -> list[core.Object]:
    return [OPEN, BAD_NODE.build(), *more]


def selecting(kind: str, **selector: object) -> core.HyperNodeMember:
    return core.HyperNodeMember(type=kind, selector=core.MemberSelector(**selector))  # type: ignore[arg-type]


def tree(name: str, *members: core.HyperNodeMember, tier: int = 1) -> core.HyperNode:
    return core.HyperNode(
        metadata=core.ObjectMeta(name=name, uid=f"h-{name}"), spec=core.HyperNodeSpec(tier=tier, members=members)
    )


CASES: dict[str, Bad] = {
    "a node without allocatable": Bad([OPEN, core.Node(metadata=core.ObjectMeta(name="bad-node", uid="b")), *job()]),
    "a node with less than nothing": Bad([OPEN, BAD_NODE.offer(cpu="-4", memory="-1Gi", gpu="-8").build(), *job()]),
    "a node with more than there is": Bad([OPEN, BAD_NODE.offer(cpu="1e300", memory="1e300").build(), *job()]),
    "a node with words for numbers": Bad(
        [OPEN, BAD_NODE.offer(cpu="many").build(), *job()], "'many' is not a quantity", "bad-node"
    ),
    "a node without a name": Bad([OPEN, core.Node(), *job()]),
    "a pod without metadata": Bad(cluster(core.Pod(), core.Pod(spec=core.PodSpec(node_name="bad-node")))),
    "a pod on a node that nobody knows": Bad(
        cluster(*job(), pod("lost").group("j").request(cpu=1).on("unheard-of").build())
    ),
    "a pod that asks for less than nothing": Bad(
        cluster(*job(), pod("less").group("j").request(cpu="-5", memory="-1Gi", gpu=-3).select(bad="yes").build())
    ),
    "a pod that asks for more than there is": Bad(
        cluster(*job(), pod("more").group("j").request(cpu="1e300", memory="1e300").select(bad="yes").build())
    ),
    "a running pod that holds more than there is": Bad(
        cluster(*job(), pod("more").group("j").request(cpu="1e300", memory="1e300").on("bad-node").build())
    ),
    "a pod that asks for words": Bad(
        cluster(*job(), pod("words").group("j").request(cpu="some").build()), "'some' is not a quantity", "ns/words"
    ),
    "a group in a queue that nobody knows": Bad(cluster(*job(in_queue="ghost"))),
    "a group of a priority class that nobody knows": Bad(
        cluster(pod_group("j").queue("bad").members(1).priority_class("ghost").build(), job()[1])
    ),
    "a group of a least of 0": Bad(cluster(*job(minimum=0))),
    "a group of a negative least": Bad(cluster(*job(minimum=-5))),
    "a group of a least beyond all bounds": Bad(cluster(*job(minimum=INT)), "min: 2147483647", "ns/j"),
    "a group that needs a task nobody has": Bad(cluster(*job(ghost=3))),
    "a group that needs less than nothing of a task": Bad(cluster(*job(w=-2))),
    "a group that needs tasks beyond all bounds": Bad(cluster(*job(w=INT, v=INT))),
    "sub-groups that contradict one another": Bad(
        cluster(
            pod_group("j")
            .queue("bad")
            .members(1)
            .sub_group("a", "part", size=0, minimum=INT)
            .sub_group("a", "part", size=-1, minimum=-1, topology=core.NetworkTopology(mode="hard"))
            .sub_group("", "", size=INT, topology=core.NetworkTopology(mode="odd", highest_tier_allowed=-7))
            .build(),
            *job()[1:],
        )
    ),
    "a topology of no tier and no mode": Bad(cluster(pod_group("j").queue("bad").topology("", -1).build(), *job()[1:])),
    "queues that are each other's parents": Bad(
        [queue("bad").parent("worse").build(), queue("worse").parent("bad").build(), BAD_NODE.build(), *job()]
    ),
    "a queue that is its own parent": Bad([queue("bad").parent("bad").build(), BAD_NODE.build(), *job()]),
    "a root with a parent": Bad([queue("root").parent("bad").build(), OPEN, BAD_NODE.build(), *job()]),
    "a queue without a name": Bad([core.Queue(), BAD_NODE.build(), *job(in_queue="")]),
    "a queue of negative weight": Bad([queue("bad").weight(-7).build(), BAD_NODE.build(), *job()]),
    "queues whose weights add up to nothing": Bad(
        [
            queue("bad").weight(-1).build(),
            queue("b2").weight(0).build(),
            BAD_NODE.build(),
            *job(),
            *job("k", in_queue="b2"),
        ]
    ),
    "a queue of a weight beyond all bounds": Bad([queue("bad").weight(2**62).build(), BAD_NODE.build(), *job()]),
    "a queue that deserves more than it may have": Bad(
        [queue("bad").deserve(cpu=100, memory="1Ti").cap(cpu=1, memory="1Mi").build(), BAD_NODE.build(), *job()]
    ),
    "a queue that deserves less than nothing": Bad(
        [queue("bad").deserve(cpu=-4).cap(cpu=-4, memory="-1Gi").build(), BAD_NODE.build(), *job()]
    ),
    "a queue that is guaranteed more than there is": Bad(
        [
            queue("bad")._spec(guarantee=core.Guarantee(resource={"cpu": "1e300", "memory": "1e300"})).build(),
            BAD_NODE.build(),
            *job(),
        ]
    ),
    "a queue that is guaranteed less than nothing": Bad(
        [queue("bad")._spec(guarantee=core.Guarantee(resource={"cpu": "-50"})).build(), BAD_NODE.build(), *job()]
    ),
    "a queue of a state that does not exist": Bad([queue("bad").state("Ajar").build(), BAD_NODE.build(), *job()]),
    "HyperNodes in a circle": Bad(
        cluster(
            hyper_node("a", 1, children=("b",)), hyper_node("b", 2, children=("a",)), hyper_node("c", 3, ("bad-node",))
        )
    ),
    "a HyperNode in itself": Bad(cluster(hyper_node("a", 1, ("bad-node",), children=("a",)), *job())),
    "a HyperNode of two parents": Bad(
        cluster(
            hyper_node("leaf", 1, ("bad-node",)),
            hyper_node("p", 2, children=("leaf",)),
            hyper_node("q", 2, children=("leaf",)),
            *job(),
        )
    ),
    "HyperNodes of odd tiers": Bad(
        cluster(hyper_node("a", -5, ("bad-node",)), hyper_node("b", INT, children=("a",)), *job())
    ),
    "a HyperNode with a pattern that is none": Bad(
        cluster(tree("a", selecting("Node", regex_match=core.MemberRegexMatch(pattern="(("))), *job())
    ),
    "a HyperNode with members of no known kind": Bad(
        cluster(tree("a", selecting("Rack", exact_match=core.MemberExactMatch(name="bad-node"))), *job())
    ),
    "a HyperNode whose members say nothing": Bad(cluster(tree("a", core.HyperNodeMember()), tree("b"), *job())),
}
ANNOTATIONS: dict[str, list[str]] = {
    names.NUMA_TOPOLOGY_POLICY: ["none", "[]", "single"],
    names.TOPOLOGY_DECISION: ["{", "[]", '{"node": 7}', '{"node": {"main": "9-1"}}'],
    names.TASK_TOPOLOGY_AFFINITY: [";;,", "w,w", "ghost"],
    names.TASK_TOPOLOGY_TASK_ORDER: ["w,ghost", ","],
    names.SLA_WAITING_TIME: ["-1h", "soon", "1e999h", "0"],
    names.REVOCABLE_ZONE: ["rz1", "?", ""],
    names.JDB_MIN_AVAILABLE: ["-50%", "many", "101%"],
    names.PREEMPTABLE: ["perhaps", ""],
    names.COOLDOWN_TIME: ["-5m", "never", "1e999h"],
    names.GPU_INDEX: ["-1", "a,b", "99"],
    names.PREDICATE_TIME: ["soon", "-1"],
    names.VGPU_IDS: [":;,", "GPU,,,:", "{}"],
    names.DEVICES_TO_ALLOCATE: [":;,", "GPU-0,NVIDIA,x,y:;"],
    names.NODE_VGPU_REGISTER: ["GPU", ":::", "GPU-0,a,b,c,d,e:", "GPU-0,-10,-1,-1,V,maybe:"],
    names.GPU_UNHEALTHY_IDS: ["x", "-1,99"],
    names.OVERSUBSCRIPTION_CPU: ["much", "-1000", "1e300"],
    names.EVICTING_CPU_HIGH_WATERMARK: ["high", "-1"],
    names.RESOURCE_STRATEGY_WEIGHT: ["{", '{"cpu": "x"}', "[]"],
    names.RESOURCE_STRATEGY_SCORING_TYPE: ["Odd"],
    names.TASK_PRIORITY: ["high", "9" * 40],
    names.TASK_INDEX: ["first", "-1"],
    names.HIERARCHY: ["", "/", "root//a", "elsewhere/a"],
    names.HIERARCHY_WEIGHTS: ["", "/", "x/y", "1/-2/nan", "1/0"],
    "cpu_usage_avg.5m": ["nan", "hot"],
}


def annotated(key: str, value: str) -> list[core.Object]:
    """A node, a queue, a group and its pods that all say so."""
    limits = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 10}
    devices = {**limits, "volcano.sh/gpu-memory": 100, "volcano.sh/gpu-number": 2}
    member = pod("j-0").group("j").role("w").request(cpu=1, memory="1Mi").select(bad="yes").annotate(**{key: value})
    return [
        BAD_NODE.offer(**devices).annotate(**{key: value}).label(**{names.REVOCABLE_ZONE: "rz1"}).build(),
        core.Queue(
            metadata=core.ObjectMeta(name="bad", uid="bad", annotations={key: value}),
            spec=core.QueueSpec(weight=1),
            status=core.QueueStatus(state="Open"),
        ),
        pod_group("j").queue("bad").members(1).annotate(**{key: value}).build(),
        pod_group("k").queue("bad").members(1).annotate(**{key: value}).build(),
        member.build(),
        pod("j-1").group("j").request(cpu=1).annotate(**{key: value}).on("bad-node").build(),
        pod("k-0").group("k").request(cpu=1, memory="1Mi", **limits).select(bad="yes").annotate(**{key: value}).build(),
    ]


@pytest.mark.parametrize("name", BROAD)
@pytest.mark.parametrize("situation", CASES)
def test_beside_a_healthy_job_there_may_be(situation: str, name: str) -> None:
    case = CASES[situation]
    for given in ([*case.objects, *healthy()], [*healthy(), *case.objects]):
        mirror = world(given)
        results = cycles(mirror, POLICIES[name])
        said = list(complaints(mirror, results, case.about))
        assert not case.want_said or any(case.want_said in one for one in said), said


@pytest.mark.parametrize("name", BROAD)
@pytest.mark.parametrize("key", ANNOTATIONS)
def test_annotations_may_say_anything(key: str, name: str) -> None:
    for value in ANNOTATIONS[key]:
        cycles(world(annotated(key, value), healthy()), POLICIES[name])


def complaints(mirror: Mirror, results: Sequence[CycleResult], about: str) -> Iterator[str]:
    """What has been said of an object, wherever that is written."""
    yield from (text for (_, key), text in mirror.problems.items() if key == about)
    for result in results:
        yield from (text for text in result.warnings if about in text)
        yield from (f"{one.reason} {one.message}" for one in result.events if one.job_id == about)
        yield from (one.message + one.invalid + " ".join(one.notes) for one in result.reports if one.job_id == about)


def test_what_cannot_be_read_is_left_out_until_it_can() -> None:
    mirror = world(healthy(), CASES["a pod that asks for words"].objects)
    assert ("Pod", "ns/words") in mirror.problems
    feed(mirror, pod("words").group("j").request(cpu="100m", memory="1Mi").select(bad="yes").build())
    assert not mirror.problems
    assert "words" in binds(run_cycle(mirror, POLICIES["built in"]))
