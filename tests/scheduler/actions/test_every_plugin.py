"""What holds after any cycle, whichever actions decide in whichever order, with any of all plugins in any tiers.

Clusters have cards that pods share, CPUs by NUMA node, groups of nodes, zones that are lent by time, measured loads,
racks, queues in a tree, gangs of roles and of sub-groups. What ``test_properties`` finds about the usual plugins is to
hold for all of them, and for what only some of them count: parts of cards and CPUs of a NUMA node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Act, Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.policy import PluginOption, Policy, Tier
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.core.statuses import EVICTABLE_STATUSES, TaskStatus
from stromboli.testing.builders import PodGroupBuilder, QueueBuilder, hyper_node, node, pod_group, priority_class, queue
from stromboli.testing.builders import pod as new_pod
from tests.scheduler.actions.test_properties import overfull
from tests.scheduler.actions.test_purity import answers
from tests.scheduler.core.worlds import audit, open_cycle, picture, run_cycle, world
from tests.scheduler.pains.policies import POLICIES
from tests.scheduler.plugins.deviceshare.stage import VGPU, card, slice_of
from tests.scheduler.plugins.sessions import option
from tests.scheduler.plugins.test_numaaware import numatopology

NODES = [f"n{at}" for at in range(4)]
CARD_MEMORY, CARD_CORES, NUMA_CPUS = 16384, 100, 4
EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
ACTIONS = ("enqueue", "allocate", "backfill", "shuffle", *EVICTING)
ROLES = ("w", "v")

thorough = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

USAGE = {"thresholds": {"cpu": 80, "mem": 80}, "cpu.weight": 1, "memory.weight": 1}
PLUGINS: dict[str, tuple[PluginOption, ...]] = {
    "priority": (option("priority"),),
    "conformance": (option("conformance"),),
    "sla": (option("sla", {"sla-waiting-time": "1h"}),),
    "overcommit": (option("overcommit"), option("overcommit", {"overcommit-factor": 2.0})),
    "resourcequota": (option("resourcequota"),),
    "drf": (option("drf"), option("drf", preemptable=False), option("drf", hierarchy=True)),
    "shares": (
        option("proportion"),
        option("capacity"),
        option("capacity", hierarchy=True),
        option("capacity", {"ancestorReclaimLevel": 2}, hierarchy=True),
    ),
    "nodeorder": (option("nodeorder"),),
    "binpack": (option("binpack"),),
    "resource-strategy-fit": (option("resource-strategy-fit"),),
    "usage": (option("usage", USAGE),),
    "network-topology-aware": (option("network-topology-aware"),),
    "cdp": (option("cdp"),),
    "pdb": (option("pdb"),),
    "numa-aware": (option("numa-aware"), option("numa-aware", {"weight": 10})),
    "nodegroup": (option("nodegroup", {"strict": False}),),
    "task-topology": (option("task-topology"),),
    "deviceshare": (
        option("deviceshare", {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"}),
        option("deviceshare", {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "spread"}),
    ),
    "tdm": (option("tdm", {"tdm.revocable-zone.rz1": "0:00-23:59"}),),
    "rescheduling": (option("rescheduling", {"interval": "1s", "strategies": [{"name": "lowNodeUtilization"}]}),),
}
"""Every plugin that needs no service, by what it is about; gang and predicates are always there."""


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any of all actions in any order, any of all plugins in up to three tiers."""
    actions = draw(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=len(ACTIONS), unique=True))
    actions += [name for name in ("allocate", draw(st.sampled_from(EVICTING))) if name not in actions]
    chosen = draw(st.lists(st.sampled_from(sorted(PLUGINS)), min_size=8, unique=True))
    plugins = [draw(st.sampled_from(PLUGINS[name])) for name in chosen]
    plugins += [option("gang", preemptable=draw(st.booleans())), option("predicates")]
    plugins = draw(st.permutations(_compatible(plugins)))
    cuts = sorted(draw(st.lists(st.integers(0, len(plugins)), max_size=2)))
    tiers: list[Tier] = [tuple(plugins[a:b]) for a, b in zip([0, *cuts], [*cuts, len(plugins)], strict=True)]
    return Policy(tuple(actions), tuple(tier for tier in tiers if tier))


def _compatible(plugins: list[PluginOption]) -> list[PluginOption]:
    """Weights of flat queues and of a tree exclude each other."""
    if any(one.name == "drf" and one.switches.hierarchy for one in plugins):
        return [one for one in plugins if one.name != "proportion"]
    return plugins


@st.composite
def queues(draw: st.DrawFn) -> list[QueueBuilder]:
    found = [queue("root"), queue("x").deserve(cpu=draw(st.integers(0, 8)), memory="16Gi")]
    for name in ("qa", "qb"):
        leaf = queue(name).weight(draw(st.integers(1, 3))).deserve(cpu=draw(st.integers(0, 6)), memory="8Gi")
        leaf = leaf.parent("x") if draw(st.booleans()) else leaf
        places = {names.HIERARCHY: f"root/x/{name}", names.HIERARCHY_WEIGHTS: f"1/2/{draw(st.integers(1, 3))}"}
        found.append(QueueBuilder(leaf.name, annotations=places, spec=leaf.spec))
    return found


@st.composite
def nodes(draw: st.DrawFn, name: str) -> list[core.Object]:
    built = node(name).offer(cpu=draw(st.integers(2, 6)), memory="16Gi", **VGPU)
    cards = [card(f"{name}-{at}", memory=CARD_MEMORY) for at in range(draw(st.integers(1, 2)))]
    built = built.annotate(
        **{
            names.NODE_VGPU_REGISTER: "".join(f"{one}:" for one in cards),
            "cpu_usage_avg.5m": str(draw(st.integers(0, 100))),
        }
    )
    labels = {names.HOSTNAME: name, "zone": draw(st.sampled_from(["z0", "z1"]))}
    if draw(st.booleans()):
        labels[names.NODE_GROUP_NAME] = "group-a"
    if draw(st.integers(0, 3)) == 0:
        labels[names.REVOCABLE_ZONE] = "rz1"
    built = built.label(**labels)
    policy = draw(st.sampled_from(["none", "best-effort", "single-numa-node", "restricted"]))
    return [built.build(), numatopology(name, policy_name=policy)]


@st.composite
def groups(draw: st.DrawFn, name: str) -> list[core.Object]:
    """A group and its pods, some of which run already."""
    size = draw(st.integers(1, 4))
    running = draw(st.sampled_from([0, 0, size, draw(st.integers(0, size))]))
    roles = [draw(st.sampled_from(ROLES)) for _ in range(size)]
    group = pod_group(name).queue(draw(st.sampled_from(["qa", "qb"]))).phase("Running" if running else "Pending")
    important = draw(st.integers(0, 3)) == 0 if running else draw(st.integers(0, 3)) > 0
    group = _least(draw, group, roles).priority_class("high" if important else "low")
    group = _confined(draw, group)
    extras = {
        names.TASK_TOPOLOGY_AFFINITY: "w,v",
        names.REVOCABLE_ZONE: "*",
        names.SLA_WAITING_TIME: "1s",
        names.PREEMPTABLE: draw(st.sampled_from(["true", "false"])),
    }
    kept = draw(st.lists(st.sampled_from(sorted(extras)), unique=True))
    group = group.annotate(**{key: extras[key] for key in kept})
    kind = draw(st.sampled_from(["plain", "plain", "cards", "numa", "nothing"]))
    pods = [
        _pod(draw, f"{name}-{at}", role, kind, important, on=draw(st.sampled_from(NODES)) if at < running else "")
        for at, role in enumerate(roles)
    ]
    return [group.build(), *pods]


def _least(draw: st.DrawFn, group: PodGroupBuilder, roles: list[str]) -> PodGroupBuilder:
    counts = Counter(roles) if draw(st.integers(0, 2)) == 0 else Counter[str]()
    least = draw(st.integers(1, len(roles)))
    group = group.members(max(least, counts.total()), **counts)
    return group.reserve(cpu=1, memory="1Gi") if draw(st.booleans()) else group


def _confined(draw: st.DrawFn, group: PodGroupBuilder) -> PodGroupBuilder:
    match draw(st.integers(0, 5)):
        case 0:
            return group.topology("hard", draw(st.integers(1, 2)))
        case 1:
            return group.topology("soft")
        case 2:
            confined = core.NetworkTopology(mode="hard", highest_tier_allowed=1)
            return group.sub_group("part", "part", size=1, topology=confined)
        case _:
            return group


def _pod(draw: st.DrawFn, name: str, role: str, kind: str, important: bool, *, on: str) -> core.Pod:
    cpu = draw(st.integers(1, 3))
    amounts: dict[str, str | int | float] = {"cpu": cpu, "memory": "1Gi"}
    if kind == "nothing":
        amounts = {}
    if kind == "cards":
        amounts |= slice_of(1, draw(st.sampled_from([1000, 9000, CARD_MEMORY])), draw(st.sampled_from([10, 60, 100])))
    labels = {"app": draw(st.sampled_from("ab")), "part": draw(st.sampled_from(["p0", "p1"]))}
    built = new_pod(name).group(name.partition("-")[0]).role(role).label(**labels).request(**amounts)
    built = built.priority(100 if important else 1)
    built = built.annotate(**{names.PREEMPTABLE: draw(st.sampled_from(["true", "true", "false"]))})
    if kind == "numa":
        built = built.annotate(
            **{names.NUMA_TOPOLOGY_POLICY: draw(st.sampled_from(["single-numa-node", "best-effort"]))}
        )
    if on:
        built = built.on(on)
    made = built.build()
    containers = tuple(
        msgspec.structs.replace(
            one, resources=core.ResourceRequirements(requests=one.resources.requests, limits=one.resources.requests)
        )
        for one in made.spec.containers
    )
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=containers))


@st.composite
def objects(draw: st.DrawFn) -> list[core.Object]:
    found: list[core.Object] = [one.build() for one in draw(queues())]
    for name in NODES:
        found += draw(nodes(name))
    found += [priority_class("low", 1), priority_class("high", 100)]
    found += [hyper_node("s0", 1, ("n0", "n1")), hyper_node("s1", 1, ("n2", "n3"))]
    found.append(hyper_node("top", 2, children=("s0", "s1")))
    for at in range(draw(st.integers(3, 7))):
        found += draw(groups(f"g{at}"))
    return found


clusters = objects().map(world)


@thorough
@given(clusters, policies())
def test_no_node_no_card_and_no_numa_node_gets_more_than_it_has(mirror: Mirror, wanted: Policy) -> None:
    before = overfull(mirror)  # a cluster may be found in any state
    results = []
    for number in range(3):
        results.append(run_cycle(mirror, wanted, now=core.timestamp("2026-01-02T00:00:00Z") + number))
        assert not results[-1].problems
        audit(mirror)
    assert overfull(mirror) <= before
    cards, numa = _given(results)
    event("parts of cards" if cards else "no cards")
    event("CPUs of NUMA nodes" if numa else "no NUMA nodes")
    for memory, cores in cards.values():
        assert memory <= CARD_MEMORY
        assert cores <= CARD_CORES
    assert max(numa.values(), default=0) <= NUMA_CPUS


def _given(results: Iterable[CycleResult]) -> tuple[dict[str, tuple[int, int]], Counter[tuple[str, str]]]:
    """What binds say about cards (memory and cores by card) and CPUs of NUMA nodes."""
    cards: dict[str, tuple[int, int]] = {}
    numa: Counter[tuple[str, str]] = Counter()
    for bind in (bind for result in results for bind in result.binds if bind.extension is not None):
        annotations = bind.extension.annotations if bind.extension else {}
        for name, memory, cores in _parts(annotations.get(names.VGPU_IDS, "")):
            known = cards.get(name, (0, 0))
            cards[name] = (known[0] + memory, known[1] + cores)
        decision = json.loads(annotations.get(names.TOPOLOGY_DECISION, "{}"))
        for at, amounts in decision.get("numa", {}).items():
            numa[bind.node, at] += int(amounts.get("cpu", 0))
    return cards, numa


def _parts(text: str) -> Iterator[tuple[str, int, int]]:
    for entry in text.replace(";", ":").split(":"):
        if entry:
            uuid, _, memory, cores = entry.split(",")[:4]
            yield uuid, int(memory), int(cores)


@thorough
@given(clusters, policies())
def test_what_is_bound_makes_its_gang_complete(mirror: Mirror, wanted: Policy) -> None:
    """When it is decided: a later action may still move a pod of the gang."""
    commit = Statement.commit

    def watched(statement: Statement) -> None:
        for one in statement.operations:
            if one.act is Act.ALLOCATE and one.task.job is not None:
                assert one.task.job.is_ready, one.task.job_id
        commit(statement)

    with patch.object(Statement, "commit", watched):
        result = run_cycle(mirror, wanted)
    assert not result.problems
    event("binds" if result.binds else "binds nothing")


@thorough
@given(clusters, policies())
def test_nobody_is_evicted_but_for_somebody_who_gets_the_place(mirror: Mirror, wanted: Policy) -> None:
    """Or because a plugin wants it moved, which shuffle does."""
    commit = Statement.commit
    decided: list[str] = []

    def watched(statement: Statement) -> None:
        evicted = [one for one in statement.operations if one.act is Act.EVICT and one.reason != "shuffle"]
        claimants: list[Job] = [
            one.task.job for one in statement.operations if one.act is not Act.EVICT and one.task.job is not None
        ]
        assert not evicted or claimants
        assert all(job.is_pipelined for job in claimants) or not evicted
        decided.extend(one.task.uid for one in evicted)
        commit(statement)

    with patch.object(Statement, "commit", watched):
        result = run_cycle(mirror, wanted)
    assert not result.problems, "an action that is stopped by an assertion above is a problem"
    event("evicts" if decided else "evicts nobody")
    asked = Counter(one.task.uid for one in result.evictions if one.reason in EVICTING)
    assert asked == Counter(decided)
    assert max(Counter(one.task.uid for one in result.evictions).values(), default=1) == 1


@thorough
@given(objects(), policies(), st.integers(0, 9))
def test_the_same_cluster_and_seed_decide_the_same(given_: list[core.Object], wanted: Policy, seed: int) -> None:
    first, second = world(given_), world(given_)
    left, right = (run_cycle(mirror, wanted, seed=seed) for mirror in (first, second))
    assert (left.binds, left.evictions, left.pods) == (right.binds, right.evictions, right.pods)
    assert picture(first) == picture(second)


MOVES = st.lists(
    st.tuples(st.sampled_from(["allocate", "pipeline", "evict"]), st.integers(0, 15), st.sampled_from(NODES)),
    max_size=8,
)


@thorough
@given(clusters, policies(), MOVES)
def test_asking_changes_nothing_and_what_is_undone_has_never_been(
    mirror: Mirror, wanted: Policy, moves: list[tuple[str, int, str]]
) -> None:
    cycle = open_cycle(mirror, wanted)
    told, before = answers(cycle), picture(mirror)
    assert picture(mirror) == before
    assert answers(cycle) == told
    _move(cycle, moves).discard()
    assert picture(mirror) == before
    assert answers(cycle) == told
    assert not cycle.journal.faults
    audit(mirror)


@pytest.mark.parametrize("name", POLICIES)
@settings(thorough, max_examples=6)
@given(mirror=clusters, moves=MOVES)
def test_with_everything_on_asking_changes_nothing_and_what_is_undone_has_never_been(
    name: str, mirror: Mirror, moves: list[tuple[str, int, str]]
) -> None:
    cycle = open_cycle(mirror, POLICIES[name])
    told, before = answers(cycle), picture(mirror)
    statement = _move(cycle, moves)
    answers(cycle)
    statement.discard()
    assert picture(mirror) == before
    assert answers(cycle) == told
    assert not cycle.journal.faults


def _move(cycle: Cycle, moves: list[tuple[str, int, str]]) -> Statement:
    statement, mirror = cycle.statement(), cycle.mirror
    tasks = sorted(mirror.tasks.values(), key=lambda task: task.key)
    for act, which, where in moves:
        task, target = tasks[which % len(tasks)], mirror.nodes_by_name[where]
        try:
            if act == "evict" and task.status in EVICTABLE_STATUSES:
                statement.evict(task, "test")
            elif act == "allocate" and task.status == TaskStatus.PENDING:
                statement.allocate(task, target)
            elif act == "pipeline" and task.status == TaskStatus.PENDING:
                statement.pipeline(task, target, eviction_occurred=False)
        except PlacementRefused:
            continue
    return statement
