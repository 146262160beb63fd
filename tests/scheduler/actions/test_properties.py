"""What holds after any cycle over any cluster, whichever actions decide, and with either queue plugin.

Clusters are small and tight: two queues, two priorities, gangs with and without surplus, racks.
"""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.columns import EPSILON
from stromboli.scheduler.core.journal import Act, Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.results import CycleResult
from stromboli.testing.builders import hyper_node, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import audit, feed, option, picture, policy, run_cycle, world

NODES = [f"n{index}" for index in range(4)]
EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    evicting = draw(st.lists(st.sampled_from(EVICTING), min_size=1, max_size=3, unique=True))
    shares = draw(st.sampled_from(["proportion", "capacity"]))
    gang = option("gang", preemptable=draw(st.booleans()))
    drf = option("drf", preemptable=False)
    plugins = ("priority", gang, "conformance", drf, "predicates", shares, "nodeorder", "binpack")
    return policy(*plugins, "network-topology-aware", actions=" ".join(["enqueue", "allocate", *evicting, "backfill"]))


@st.composite
def groups(draw: st.DrawFn, name: str) -> list[core.Object]:
    """A group and its pods, some of which run already."""
    size = draw(st.integers(1, 4))
    running = draw(st.sampled_from([0, 0, 0, size, size, draw(st.integers(0, size))]))
    members = pod_group(name).members(draw(st.integers(1, size))).queue(draw(st.sampled_from(["qa", "qb"])))
    members = members.priority_class("low" if running and draw(st.booleans()) else "high")
    if draw(st.integers(0, 3)) == 0:
        members = members.topology("hard", draw(st.integers(1, 2)))
    parts: list[core.Object] = [members.phase("Running" if running else "Pending").build()]
    cpu = draw(st.sampled_from([0, 1, 1, 2]))
    for index in range(size):
        one = pod(f"{name}-{index}").group(name).request(cpu=cpu, memory="1G")
        one = one.annotate(**{"volcano.sh/preemptable": draw(st.sampled_from(["true", "true", "false"]))})
        if index < running:
            one = one.on(draw(st.sampled_from(NODES)))
        parts.append(one.build())
    return parts


@st.composite
def clusters(draw: st.DrawFn) -> Mirror:
    parts: list[core.Object] = [node(name).offer(cpu=draw(st.integers(1, 2)), memory="9G").build() for name in NODES]
    parts += [queue("qa").weight(draw(st.integers(1, 2))).build(), queue("qb").build()]
    parts += [priority_class("low", 1), priority_class("high", 100)]
    parts += [hyper_node("s0", 1, ("n0", "n1")), hyper_node("s1", 1, ("n2", "n3"))]
    parts += [hyper_node("top", 2, children=("s0", "s1"))]
    return world(parts, *[draw(groups(f"g{index}")) for index in range(draw(st.integers(4, 7)))])


def overfull(mirror: Mirror) -> set[str]:
    """Nodes that hold more than they have."""
    rows = np.nonzero((mirror.nodes.idle < -EPSILON).any(axis=1))[0].tolist()
    return {node.name for row in rows if (node := mirror.node_list[row]) is not None}


@settings(max_examples=60, deadline=None)
@given(clusters(), policies())
def test_no_node_gets_more_than_it_has(mirror: Mirror, wanted: Policy) -> None:
    before = overfull(mirror)  # a cluster may be found in any state
    result = run_cycle(mirror, wanted)
    assert not result.problems
    assert overfull(mirror) <= before
    assert not {bind.node for bind in result.binds} & before
    audit(mirror)


@settings(max_examples=60, deadline=None)
@given(clusters(), policies())
def test_what_is_bound_makes_its_gang_complete(mirror: Mirror, wanted: Policy) -> None:
    result = run_cycle(mirror, wanted)
    for job_id in {bind.task.job_id for bind in result.binds}:
        assert mirror.jobs[job_id].is_ready, job_id


@settings(max_examples=60, deadline=None)
@given(clusters(), policies())
def test_a_confined_gang_stays_within_one_hyper_node_of_its_tier(mirror: Mirror, wanted: Policy) -> None:
    racks = {"n0": "s0", "n1": "s0", "n2": "s1", "n3": "s1"}
    for job_id, bound in _bound(run_cycle(mirror, wanted)).items():
        job = mirror.jobs[job_id]
        if job.topology is not None and job.topology.highest_tier_allowed == 1:
            assert len({racks[where] for where in bound}) == 1, job_id


def _bound(result: CycleResult) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for bind in result.binds:
        found.setdefault(bind.task.job_id, []).append(bind.node)
    return found


@settings(max_examples=120, deadline=None)
@given(clusters(), policies())
def test_nobody_is_evicted_but_for_somebody_who_gets_the_place(mirror: Mirror, wanted: Policy) -> None:
    commit = Statement.commit
    decided: list[tuple[list[str], list[Job]]] = []

    def watched(statement: Statement) -> None:
        evicted = [operation.task.uid for operation in statement.operations if operation.act is Act.EVICT]
        claimants = [operation.task.job for operation in statement.operations if operation.act is not Act.EVICT]
        if evicted:
            jobs = [job for job in claimants if job is not None]
            assert all(job.is_pipelined for job in jobs)
            decided.append((evicted, jobs))
        commit(statement)

    with patch.object(Statement, "commit", watched):
        result = run_cycle(mirror, wanted)
    assert not result.problems, "an action that is stopped by an assertion above is a problem"
    event("evicts" if decided else "evicts nobody")
    assert all(jobs for _, jobs in decided)
    in_transactions = Counter(uid for evicted, _ in decided for uid in evicted)
    assert in_transactions == Counter(eviction.task.uid for eviction in result.evictions)
    assert max(in_transactions.values(), default=1) == 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_same_cluster_decides_the_same_and_deciding_twice_changes_nothing(data: st.DataObject) -> None:
    wanted, seed = data.draw(policies()), data.draw(st.integers(0, 9))
    parts = data.draw(st.lists(st.sampled_from(range(3)), min_size=1, max_size=3, unique=True))
    drawn = [data.draw(groups(f"g{index}")) for index in parts]
    frame: list[core.Object] = [node(name).offer(cpu=3, memory="9G").build() for name in NODES]
    frame += [queue("qa").build(), queue("qb").build()]
    first, second = (world(frame, *drawn) for _ in range(2))
    left, right = (run_cycle(mirror, wanted, seed=seed) for mirror in (first, second))
    assert (left.binds, left.evictions) == (right.binds, right.evictions)
    assert picture(first) == picture(second)


@settings(max_examples=40, deadline=None)
@given(clusters(), policies())
def test_cycles_without_events_come_to_rest(mirror: Mirror, wanted: Policy) -> None:
    """Whatever is decided happens at once, and evicted pods do not come back: then nothing is left to decide."""
    decided = True
    for _ in range(12):
        result = run_cycle(mirror, wanted)
        for eviction in result.evictions:
            mirror.delete_pod(f"{eviction.task.namespace}/{eviction.task.name}", eviction.task.uid)
        decided = bool(result.binds or result.evictions)
        if not decided:
            break
    assert not decided


def test_the_audit_would_notice_a_node_that_holds_too_much() -> None:
    mirror = world([node("n0").offer(cpu=1).build()], queue().build(), pod_group("g").build())
    feed(mirror, pod("p").group("g").request(cpu=2).on("n0").build())
    assert overfull(mirror) == {"n0"}
    assert np.isclose(mirror.nodes.idle[0, 0], -1000.0)
