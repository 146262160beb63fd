"""Whole scheduling cycles: build the vector's cluster, run its actions one by one, compare what is seen after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stromboli.api import core
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core import closing, loads
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Plugin
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins import built_in
from tests.conformance import clusters, opened, stand_ins
from tests.conformance.comparing import Outcome, Step, differ, session_differences
from tests.conformance.vectors import JsonObject
from tests.conformance.verdicts import NotApplicable

PLUGINS: Mapping[str, type[Plugin]] = {**built_in().factories, **stand_ins.PLUGINS}


def differences(case: JsonObject) -> list[str]:
    """What differs between the vector and what happens here."""
    needs(case["input"])
    if case["kind"] == "sequence":
        return sequence_differences(case)
    if case["input"].get("actions") is None:
        return call_differences(case)
    mirror = clusters.build(case["input"])
    found = opened.differences(case["observed"].get("open"), mirror)
    return found or session_differences(case, run(case, mirror))


def probe_differences(case: JsonObject) -> list[str]:
    """As :func:`differences`, and every answer of the vector's ``probe`` too."""
    from tests.scheduler.plugins import probing  # needs this module itself

    found = differences(case)
    return found + (probing.differences(case) if case.get("probe") else [])


def call_differences(case: JsonObject) -> list[str]:
    """A session that is only opened, asked and closed."""
    from tests.scheduler.plugins import probing  # needs this module itself

    for call in case["observed"].get("calls") or ():
        if any(isinstance(value, dict) and "inline" in value for value in _values(call["args"])):
            raise NotApplicable("asks about a job that is not in the session")
    mirror = clusters.build(case["input"])
    found = opened.differences(case["observed"].get("open"), mirror)
    return found + probing.call_differences(case) + session_differences(case, run(case, mirror))


def _values(args: JsonObject) -> Iterator[object]:
    for value in args.values():
        yield value
        if isinstance(value, dict):
            yield from _values(value)


def needs(case_input: JsonObject) -> None:
    """Raises NotApplicable when the case uses actions or plugins that are not there."""
    registered = set(case_input.get("registeredPlugins") or ())
    named = {plugin["name"] for tier in case_input.get("tiers") or () for plugin in tier.get("plugins") or ()}
    missing = sorted((named & registered) - set(PLUGINS))
    if missing:
        raise NotApplicable(f"needs plugin {', '.join(missing)} (not built yet)")
    cycles = case_input.get("cycles") or ()
    actions = {*(case_input.get("actions") or ()), *(name for cycle in cycles for name in cycle["actions"])}
    if actions - set(ACTIONS):
        raise NotApplicable(f"needs action {', '.join(sorted(actions - set(ACTIONS)))} (not built yet)")


def run(case: JsonObject, mirror: Mirror) -> Outcome:
    """Run the actions of a session, looking after each."""
    case_input = case["input"]
    policy = clusters.policy_of(case_input)
    cycle = open_cycle(case, mirror, policy)
    steps = []
    for action in policy.actions:
        cycle.execute(action)
        steps.append(look(action, mirror))
    phases = {job.id: computed_phase(job, case["id"]) for job in mirror.session_jobs.values()}
    hyper_nodes = {job.id: entry for job in mirror.session_jobs.values() if (entry := hyper_node_entry(job))}
    result = cycle.close()
    refuse_problems(result)
    return replace(
        outcome(result, mirror, steps),
        phases=phases,
        hyper_nodes=hyper_nodes,
        members=members_by_tier(case_input.get("hyperNodes") or {}),
    )


def hyper_node_entry(job: Job) -> JsonObject:
    """The HyperNodes recorded for a job and its sub-jobs; empty names are left out."""
    sub_jobs = {
        sub_job.id: _named(allocated=sub_job.allocated_hyper_node, nominated=sub_job.nominated_hyper_node)
        for sub_job in job.sub_jobs.values()
    }
    named = {id_: entry for id_, entry in sub_jobs.items() if entry}
    return {**_named(allocated=job.allocated_hyper_node), **({"subJobs": named} if named else {})}


def _named(**names: str) -> JsonObject:
    return {key: name for key, name in names.items() if name}


def members_by_tier(given: JsonObject) -> dict[str, dict[str, frozenset[str]]]:
    """Nodes of each HyperNode, tier by tier."""
    real = given.get("realNodes") or {}
    tiers = given.get("setByTier") or {}
    return {tier: {name: frozenset(real.get(name) or ()) for name in names} for tier, names in tiers.items()}


def open_cycle(case: JsonObject, mirror: Mirror, policy: Policy) -> Cycle:
    """A cycle at the time of the vector, restricted to its shard."""
    shard = case["input"].get("shard") or {}
    options: JsonObject = case["input"].get("options") or {}
    now = core.timestamp(case["now"]) if case.get("now") else 1_800_000_000.0
    return Cycle(
        mirror,
        policy,
        now,
        session_id=case["id"],
        plugins=PLUGINS,
        actions=ACTIONS,
        shard=frozenset(shard["nodes"] or ()) if shard else None,
        shard_mode=shard.get("mode", "none"),
        options={
            "feature-gates": case["input"].get("featureGates") or {},
            loads.OPTION: node_loads(case["input"].get("nodeUsage") or {}, now),
            **options,
        },
    )


def node_loads(usage: JsonObject, now: float) -> dict[str, loads.NodeLoad]:
    """The vector's load metrics; nodes that never reported have none."""
    return {
        node: loads.NodeLoad(now - given["metricsAgeSeconds"], given["cpuUsageAvg"], given["memUsageAvg"])
        for node, given in usage.items()
        if given["metricsAgeSeconds"] is not None
    }


def refuse_problems(result: CycleResult) -> None:
    """A plugin or action that failed is a failure of the case, whatever came out."""
    if result.problems:
        raise AssertionError("; ".join(result.problems))


def look(action: str, mirror: Mirror) -> Step:
    """The session as it is now."""
    return Step(
        action,
        {job.id: {task.key: text(task) for task in job.tasks.values()} for job in mirror.session_jobs.values()},
        {job.id: phase(job.pod_group, job.phase.word) for job in mirror.session_jobs.values()},
    )


def phase(group: core.PodGroup | None, word: str) -> str:
    """The phase of a PodGroup in this session; an empty one that nothing has touched stays empty."""
    return "" if word == "Pending" and group is not None and not group.status.phase else word


def text(task: Task) -> str:
    """``Status`` or ``Status@node``."""
    return f"{task.status.word}@{task.node_name}" if task.node_name else task.status.word


def computed_phase(job: Job, session_id: str) -> str:
    """The phase of a PodGroup before plugins set their conditions at close."""
    assert job.pod_group is not None
    return closing.phase_of(job, job.pod_group.status.conditions, session_id).word


def outcome(result: CycleResult, mirror: Mirror, steps: Iterable[Step]) -> Outcome:
    """What the session did, in the vector's words."""
    return Outcome(
        binds={bind.task.key: bind.node for bind in result.binds},
        evicted=tuple(evict.task.key for evict in result.evictions),
        steps=tuple(steps),
        pod_groups={
            job.id: _status(job.pod_group) for job in mirror.session_jobs.values() if job.pod_group is not None
        },
        queues={name: {"allocated": dict(queue.resource.status.allocated)} for name, queue in mirror.queues.items()},
    )


def _status(group: core.PodGroup) -> JsonObject:
    status = group.status
    conditions: list[dict[str, Any]] = [
        {"type": item.type, "status": item.status, "reason": item.reason, "message": item.message}
        for item in status.conditions
    ]
    return {
        "phase": status.phase,
        "running": status.running,
        "failed": status.failed,
        "succeeded": status.succeeded,
        "conditions": conditions,
    }


def sequence_differences(case: JsonObject) -> list[str]:
    """Several cycles over the same cluster; what a cycle bound stays assumed in the next."""
    found: list[str] = []
    mirror = Mirror()
    for number, (given, want) in enumerate(zip(case["input"]["cycles"], case["observed"]["cycles"], strict=True)):
        clusters.apply(mirror, given.get("addObjects") or {})
        policy = clusters.policy_of(case["input"], given["actions"])
        cycle = open_cycle(case, mirror, policy)
        for action in given["actions"]:
            cycle.execute(action)
        result = cycle.close()
        refuse_problems(result)
        got = sorted(bind.task.key for bind in result.binds)
        found += differ(f"cycle {number} binds", sorted(want["binds"]), got)
    return found
