"""Compares what a session did here with what a vector says, as data: no scheduler is needed to test it.

A vector binds in layers. ``expect`` (as far as ``checks`` names it) always holds. ``exact`` cases also hold
``observed``, apart from the fields listed in ``unstable``. Other cases hold ``invariants``, what all recorded runs had
in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stromboli.scheduler.core.admitting import OWN_CONDITIONS

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """The session after one action."""

    action: str
    tasks: Mapping[str, Mapping[str, str]]
    """job -> task -> ``Status`` or ``Status@node``."""
    phases: Mapping[str, str]
    """job -> phase of its PodGroup."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one session did."""

    binds: Mapping[str, str] = field(default_factory=dict)
    evicted: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict)
    """job -> phase as worked out before the session was closed, when plugins have not set conditions yet."""
    pod_groups: Mapping[str, JsonObject] = field(default_factory=dict)
    """job -> phase, running, failed, succeeded, conditions; after the session was closed."""
    queues: Mapping[str, JsonObject] = field(default_factory=dict)
    """queue -> ``{"allocated": {...}}``."""
    hyper_nodes: Mapping[str, JsonObject] = field(default_factory=dict)
    """job -> ``{"allocated", "subJobs": {id: {"allocated", "nominated"}}}`` after the last action; no empty names."""
    members: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """tier -> HyperNode -> its nodes."""


def session_differences(case: JsonObject, outcome: Outcome) -> list[str]:
    """Everything in which ``outcome`` contradicts the vector; empty when the case holds."""
    differences = [*expectation_differences(case, outcome)]
    if case.get("exact", True):
        differences += observation_differences(case["observed"], frozenset(case.get("unstable") or ()), outcome)
    else:
        differences += invariant_differences(case.get("invariants") or {}, outcome)
    return list(dict.fromkeys(differences))


# -- expect --------------------------------------------------------------------------------------------------------


def expectation_differences(case: JsonObject, outcome: Outcome) -> Iterator[str]:
    """The upstream table, as far as ``checks`` says upstream verified it."""
    expect, match = case.get("expect") or {}, case.get("match") or {}
    checks = set(case.get("checks") or ())
    if "bind" in checks:
        yield from expected_binds(expect, str(match.get("binds", "map")), outcome)
    if "evict" in checks:
        yield from expected_evictions(expect, str(match.get("evicted", "multiset")), outcome)
    if "pipelined" in checks:
        yield from expected_pipelines(expect.get("pipelined") or {}, outcome)
    if "taskStatusNums" in checks:
        yield from counted_statuses(
            "expect.taskStatusNums", expect.get("taskStatusNums") or {}, outcome, complete=False
        )
    if "podGroupStatus" in checks:
        for job, phase in (expect.get("podGroupPhases") or {}).items():
            yield from differ(f"expect.podGroupPhases {job}", phase, outcome.phases.get(job))


def expected_binds(expect: JsonObject, strictness: str, outcome: Outcome) -> Iterator[str]:
    """``map`` compares nodes, ``count`` numbers only, ``unchecked`` nothing."""
    if strictness == "map" and not expect.get("minimalBindCheck"):
        yield from differing_maps("expect.bindMap", expect.get("bindMap") or {}, outcome.binds)
    elif strictness == "map":
        for pod, node in (expect.get("bindMap") or {}).items():
            yield from differ(f"expect.bindMap {pod}", node, outcome.binds.get(pod))
    if strictness in ("map", "count") and "bindsNum" in expect:
        yield from differ("expect.bindsNum", expect["bindsNum"], len(outcome.binds))


def expected_evictions(expect: JsonObject, strictness: str, outcome: Outcome) -> Iterator[str]:
    """Evictions as a multiset, or their number only."""
    if strictness == "multiset" and "evicted" in expect:
        yield from differ("expect.evicted", sorted(expect["evicted"]), sorted(outcome.evicted))
    elif strictness != "unchecked" and "evictNum" in expect:
        yield from differ("expect.evictNum", expect["evictNum"], len(outcome.evicted))


def expected_pipelines(allowed: Mapping[str, list[str]], outcome: Outcome) -> Iterator[str]:
    """Nodes on which tasks of a job may be pipelined."""
    last = outcome.steps[-1].tasks if outcome.steps else {}
    for job, nodes in allowed.items():
        used = {text.partition("@")[2] for text in last.get(job, {}).values() if text.startswith("Pipelined@")}
        if not used or not used <= set(nodes):
            yield f"expect.pipelined {job}: want nodes among {sorted(nodes)}, got {sorted(used)}"


# -- observed ------------------------------------------------------------------------------------------------------


def observation_differences(observed: JsonObject, unstable: frozenset[str], outcome: Outcome) -> Iterator[str]:
    """Everything upstream did in an exact case, apart from the fields that varied."""
    steps = observed.get("afterActions") or []
    if "binds" not in unstable and "binds" in observed and not binding_failed(observed):
        yield from differing_maps("binds", observed["binds"], outcome.binds)
    if "evicted" not in unstable and "evicted" in observed:
        yield from differ("evicted", sorted(observed["evicted"]), sorted(outcome.evicted))
    for number, (want, got) in enumerate(zip(steps, outcome.steps, strict=False)):
        yield from step_differences(f"after {number}:{want['action']}", want, got, "afterActions.tasks" not in unstable)
    if steps and steps[-1].get("hyperNodes") and "afterActions.hyperNodes" not in unstable:
        want_nodes = {job: _without_nodes(entry) for job, entry in steps[-1]["hyperNodes"].items()}
        yield from differing_maps("hyperNodes", want_nodes, outcome.hyper_nodes)
    yield from closing_differences(observed.get("afterClose") or {}, unstable, outcome)


def _without_nodes(entry: JsonObject) -> JsonObject:
    return {name: value for name, value in entry.items() if name != "nominatedNodes"}


def binding_failed(observed: JsonObject) -> bool:
    """Volume cases: tasks reached Binding but the set-up of the vector has nothing that could bind their claims."""
    last = (observed.get("afterActions") or [{}])[-1]
    binding = any(
        text.startswith("Binding@") for tasks in (last.get("tasks") or {}).values() for text in tasks.values()
    )
    return binding and not observed["binds"]


def step_differences(where: str, want: JsonObject, got: Step, tasks: bool) -> Iterator[str]:
    """Tasks and phases after one action."""
    if tasks:
        for job in sorted({*want["tasks"], *got.tasks}):
            yield from differing_maps(f"{where} tasks of {job}", want["tasks"].get(job) or {}, got.tasks.get(job) or {})
    yield from differing_maps(f"{where} phases", want["phases"], got.phases)


def closing_differences(want: JsonObject, unstable: frozenset[str], outcome: Outcome) -> Iterator[str]:
    """PodGroups and queues after the session was closed."""
    texts = not {"afterClose.podGroups", "afterClose.writes"} & unstable
    for job, status in (want.get("podGroups") or {}).items():
        got = outcome.pod_groups.get(job)
        if got is None:
            yield f"afterClose {job}: missing"
            continue
        for name in ("phase", "running", "failed", "succeeded"):
            yield from differ(f"afterClose {job} {name}", status.get(name), got.get(name))
        yield from differ(f"afterClose {job} conditions", conditions(status, texts=texts), conditions(got, texts=texts))
    if "afterClose.queues" not in unstable:
        for queue, status in (want.get("queues") or {}).items():
            allocated = (outcome.queues.get(queue) or {}).get("allocated")
            yield from differing_maps(
                f"afterClose queue {queue}", quantities(status.get("allocated")), quantities(allocated)
            )


def conditions(status: JsonObject, *, texts: bool) -> list[tuple[str, ...]]:
    """Conditions without times and ids; without messages where those varied."""
    names = ("type", "status", "reason", "message") if texts else ("type", "status", "reason")
    return sorted(
        tuple(str(condition.get(name) or "") for name in names)
        for condition in status.get("conditions") or ()
        if condition.get("type") not in OWN_CONDITIONS
    )


def quantities(resources: Mapping[str, Any] | None) -> dict[str, str]:
    """A resource list with canonical quantities, so that ``1`` and ``1000m`` are the same."""
    from stromboli.api import quantities as parser

    return {name: str(parser.parse(str(quantity))) for name, quantity in (resources or {}).items()}


# -- invariants ----------------------------------------------------------------------------------------------------


def invariant_differences(invariants: JsonObject, outcome: Outcome) -> Iterator[str]:
    """What all recorded runs of an inexact case had in common."""
    for name, want in invariants.items():
        check = INVARIANTS.get(name)
        if check:
            yield from check(want, outcome)


def _bound_pods(want: list[str], outcome: Outcome) -> Iterator[str]:
    yield from differ("invariant boundPods", sorted(want), sorted(outcome.binds))


def _binds_number(want: int, outcome: Outcome) -> Iterator[str]:
    yield from differ("invariant bindsNum", want, len(outcome.binds))


def _binds_per_node(want: list[int], outcome: Outcome) -> Iterator[str]:
    got = sorted(Counter(outcome.binds.values()).values(), reverse=True)
    yield from differ("invariant bindsPerNodeSorted", sorted(want, reverse=True), got)


def _nodes_used(want: list[str], outcome: Outcome) -> Iterator[str]:
    yield from differ("invariant nodesUsed", sorted(want), sorted(set(outcome.binds.values())))


def _evicted(want: list[str], outcome: Outcome) -> Iterator[str]:
    yield from differ("invariant evicted", sorted(want), sorted(outcome.evicted))


def _phases(want: JsonObject, outcome: Outcome) -> Iterator[str]:
    yield from differing_maps("invariant phases", want, outcome.phases)


def _hyper_nodes(want: JsonObject, outcome: Outcome) -> Iterator[str]:
    yield from differing_maps("invariant hyperNodes", want, outcome.hyper_nodes)


def _placed_per_hyper_node(want: JsonObject, outcome: Outcome) -> Iterator[str]:
    """Per tier and job the numbers of its tasks in each HyperNode, whichever these are."""
    last = outcome.steps[-1].tasks if outcome.steps else {}
    for tier, jobs in want.items():
        for job, numbers in jobs.items():
            nodes = [text.partition("@")[2] for text in last.get(job, {}).values() if "@" in text]
            members = outcome.members.get(tier, {}).values()
            found = sorted((n for m in members if (n := sum(node in m for node in nodes))), reverse=True)
            yield from differ(f"invariant placedTasksPerHyperNode {tier} {job}", sorted(numbers, reverse=True), found)


def _statuses(want: JsonObject, outcome: Outcome) -> Iterator[str]:
    yield from counted_statuses("invariant taskStatusNums", want, outcome, complete=True)


INVARIANTS: dict[str, Callable[[Any, Outcome], Iterator[str]]] = {
    "bindsNum": _binds_number,
    "boundPods": _bound_pods,
    "bindsPerNodeSorted": _binds_per_node,
    "nodesUsed": _nodes_used,
    "evicted": _evicted,
    "phases": _phases,
    "taskStatusNums": _statuses,
    "hyperNodes": _hyper_nodes,
    "placedTasksPerHyperNodeByTier": _placed_per_hyper_node,
}


# -- parts ---------------------------------------------------------------------------------------------------------


def counted_statuses(where: str, want: JsonObject, outcome: Outcome, *, complete: bool) -> Iterator[str]:
    """Numbers of tasks by status and job after the last action."""
    last = outcome.steps[-1].tasks if outcome.steps else {}
    for job, numbers in want.items():
        got = Counter(text.partition("@")[0] for text in last.get(job, {}).values())
        asked = set(numbers) | (set(got) if complete else set())
        yield from differing_maps(
            f"{where} {job}", {s: numbers.get(s, 0) for s in asked}, {s: got.get(s, 0) for s in asked}
        )


def differ(where: str, want: object, got: object) -> Iterator[str]:
    """One line when two values differ."""
    if want != got:
        yield f"{where}: want {want}, got {got}"


def differing_maps(where: str, want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    """One line for two mappings, naming the differing keys only."""
    keys: Iterable[str] = sorted({*want, *got})
    lines = [f"{key}: want {want.get(key)}, got {got.get(key)}" for key in keys if want.get(key) != got.get(key)]
    if lines:
        yield f"{where}: " + "; ".join(lines)
