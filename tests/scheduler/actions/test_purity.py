"""Asking changes nothing, and what is undone has never been: for the plugins of the default policy and binpack."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.searching import Evaluation
from stromboli.scheduler.core.statuses import EVICTABLE_STATUSES, TaskStatus
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, open_cycle, picture, policy, world

POLICY = policy(
    "priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"
)


def term(key: str, app: str) -> core.PodAffinityTerm:
    return core.PodAffinityTerm(topology_key=key, label_selector=core.LabelSelector(match_labels={"app": app}))


def affinity(*, anti: bool, preferred: bool, key: str, app: str) -> core.Affinity:
    weighted = core.WeightedPodAffinityTerm(weight=7, pod_affinity_term=term(key, app))
    side = core.PodAffinity(
        required_during_scheduling_ignored_during_execution=() if preferred else (term(key, app),),
        preferred_during_scheduling_ignored_during_execution=(weighted,) if preferred else (),
    )
    return core.Affinity(pod_anti_affinity=side) if anti else core.Affinity(pod_affinity=side)


APPS, KEYS = st.sampled_from(["a", "b"]), st.sampled_from(["zone", "host"])


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    builder = pod(name).group(draw(st.sampled_from(["g", "h"]))).label(app=draw(APPS))
    builder = builder.request(cpu=draw(st.integers(0, 2)), memory="1G")
    match draw(st.integers(0, 4)):
        case 0:
            builder = builder.affine(
                affinity(anti=draw(st.booleans()), preferred=draw(st.booleans()), key=draw(KEYS), app=draw(APPS))
            )
        case 1:
            builder = builder.host_port(draw(st.sampled_from([80, 81])))
        case 2:
            selector = core.LabelSelector(match_labels={"app": draw(APPS)})
            spread = core.TopologySpreadConstraint(
                max_skew=1,
                topology_key="zone",
                label_selector=selector,
                when_unsatisfiable=draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
            )
            builder = builder._spec(topology_spread_constraints=(spread,))
    return builder


@st.composite
def clusters(draw: st.DrawFn) -> Mirror:
    names = [f"n{index}" for index in range(3)]
    running = [
        draw(pods(f"r{index}")).on(draw(st.sampled_from(names))).build() for index in range(draw(st.integers(0, 4)))
    ]
    waiting = [draw(pods(f"w{index}")).build() for index in range(draw(st.integers(1, 4)))]
    return world(
        [
            node(name).offer(cpu=6, memory="9G").label(zone=f"z{at % 2}", host=name).build()
            for at, name in enumerate(names)
        ],
        queue().build(),
        [
            pod_group(name).members(1).reserve(cpu=1).phase(draw(st.sampled_from(["Pending", "Inqueue"]))).build()
            for name in "gh"
        ],
        running,
        waiting,
    )


def answers(cycle: Cycle) -> dict[str, Any]:
    """Everything that can be asked, asked."""
    mirror, combination = cycle.mirror, cycle.combination
    found: dict[str, Any] = {}
    for job in mirror.session_jobs.values():
        found[job.id] = (
            combination.job_valid(job),
            combination.job_ready(job),
            combination.job_pipelined(job),
            combination.job_starving(job),
            combination.job_enqueueable(job),
            combination.job_ordering.key(job),
            [(combination.sub_job_ready(each), combination.sub_job_pipelined(each)) for each in job.sub_jobs.values()],
        )
    for queue_ in mirror.queues.values():
        found[queue_.name] = (combination.overused(queue_), combination.queue_ordering.key(queue_))
    running = [task for task in mirror.tasks.values() if task.status in EVICTABLE_STATUSES]
    for task in mirror.tasks.values():
        if task.status == TaskStatus.PENDING:
            found[task.key] = (
                *_about_nodes(cycle, task.key),
                [
                    [victim.key for victim in victims]
                    for victims in (combination.preemptable(task, running), combination.reclaimable(task, running))
                ],
            )
    return found


def _about_nodes(cycle: Cycle, key: str) -> tuple[Any, ...]:
    task = cycle.mirror.tasks[key]
    assert task.job is not None and task.job.queue is not None
    fresh = Evaluation(cycle.view, cycle.combination, cycle.mirror.ledger, task, cycle.complain)
    candidates = fresh.feasible(None)
    return (
        cycle.combination.allocatable(task.job.queue, task),
        cycle.combination.preemptive(task.job.queue, [task]),
        candidates.tolist(),
        np.round(fresh.totals(candidates), 9).tolist(),
        str(fresh.errors(None, "")),
        fresh.passes_for_eviction(None).tolist(),
    )


@given(clusters())
@settings(max_examples=40, deadline=None)
def test_asking_changes_nothing(mirror: Mirror) -> None:
    cycle = open_cycle(mirror, POLICY)
    before, first = picture(mirror), answers(cycle)
    assert picture(mirror) == before
    assert answers(cycle) == first
    audit(mirror)


MOVES = st.lists(
    st.tuples(st.sampled_from(["allocate", "pipeline", "evict"]), st.integers(0, 7), st.integers(0, 2)), max_size=8
)


@given(clusters(), MOVES, st.booleans())
@settings(max_examples=80, deadline=None)
def test_what_is_undone_has_never_been(mirror: Mirror, moves: list[tuple[str, int, int]], asks_first: bool) -> None:
    cycle = open_cycle(mirror, POLICY)
    before = picture(mirror)
    told = answers(cycle) if asks_first else None
    statement = cycle.statement()
    tasks = sorted(mirror.tasks.values(), key=lambda task: task.key)
    for act, which, where in moves:
        task, target = tasks[which % len(tasks)], mirror.nodes_by_name[f"n{where}"]
        try:
            if act == "evict":
                if task.status in EVICTABLE_STATUSES:
                    statement.evict(task, "test")
            elif task.status == TaskStatus.PENDING and act == "allocate":
                statement.allocate(task, target)
            elif task.status == TaskStatus.PENDING:
                statement.pipeline(task, target, eviction_occurred=False)
        except PlacementRefused:
            continue
        if asks_first:
            answers(cycle)
    statement.discard()
    assert picture(mirror) == before
    assert answers(cycle) == (told if told is not None else answers(open_cycle(mirror, POLICY)))
    assert cycle.result.problems == []
