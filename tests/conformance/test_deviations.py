"""What the reviewed deviations rest on: with upstream's mechanism in place of ours the excluded cases hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from stromboli.scheduler.actions import domains, victims
from stromboli.scheduler.core import victim_order
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.plugin import Hooks, Purpose
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins.domain_packing import sums
from stromboli.scheduler.plugins.network_topology_aware import NetworkTopologyAware
from tests.conformance import properties, sessions, vectors
from tests.conformance.exclusions import Exclusions
from tests.conformance.vectors import JsonObject

ROOT = vectors.directory()

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(vectors.suite(ROOT, "scheduler") is None, reason=f"no vectors in {ROOT}; set CONFORMANCE_DIR"),
]


def case_of(pattern: str) -> JsonObject:
    directory = vectors.suite(ROOT, "scheduler")
    assert directory is not None
    name, _, case_id = pattern.partition("::")
    (case,) = (case for case in vectors.load(directory / name).cases if case["id"] == case_id)
    return case


def excluded(because: str) -> list[str]:
    """Patterns of the reviewed list whose reason has these words."""
    return [pattern for pattern, reason in Exclusions.read().reasons.items() if because in reason]


class StaleVictims:
    """A binary heap whose order is not re-established when keys change inside it."""

    def __init__(self, cycle: Cycle, tasks: Iterable[Task], preemptor: Job) -> None:
        self._key = victim_order.key(cycle.combination, preemptor)
        self._items: list[Task] = []
        for task in tasks:
            self._push(task)

    def __bool__(self) -> bool:
        return bool(self._items)

    def pop(self) -> Task:
        items = self._items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        at = 0
        while (child := 2 * at + 1) < last:
            if child + 1 < last and self._less(child + 1, child):
                child += 1
            if not self._less(child, at):
                break
            items[at], items[child] = items[child], items[at]
            at = child
        return items.pop()

    def _push(self, task: Task) -> None:
        items = self._items
        items.append(task)
        at = len(items) - 1
        while at and self._less(at, (at - 1) // 2):
            items[at], items[(at - 1) // 2] = items[(at - 1) // 2], items[at]
            at = (at - 1) // 2

    def _less(self, left: int, right: int) -> bool:
        return bool(self._key(self._items[left]) < self._key(self._items[right]))


@pytest.mark.parametrize("pattern", excluded("victims where their old keys"))
def test_victims_go_as_upstreams_heap_has_them(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victims, "VictimQueue", StaleVictims)
    assert sessions.differences(case_of(pattern)) == []


@pytest.mark.parametrize("pattern", excluded("idle amounts of HyperNodes when the session opened"))
def test_hyper_nodes_are_judged_by_what_was_idle_at_opening(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    present = NetworkTopologyAware.open
    layers: list[Floats] = []

    def open_and_remember(self: NetworkTopologyAware, view: View) -> Hooks:
        layers[:] = [view.nodes.idle.copy(), view.nodes.future.copy()]
        return present(self, view)

    def holding(self: NetworkTopologyAware, names: Sequence[str], minimum: Floats, purpose: Purpose) -> list[str]:
        assert purpose is Purpose.ALLOCATE
        rows = [self._known.rows[name] for name in names]
        enough = np.logical_or.reduce([(minimum < sums(layer, rows) + EPSILON).all(axis=1) for layer in layers])
        return [name for name, fits in zip(names, enough.tolist(), strict=True) if fits]

    monkeypatch.setattr(NetworkTopologyAware, "open", open_and_remember)
    monkeypatch.setattr(NetworkTopologyAware, "_holding", holding)
    assert sessions.differences(case_of(pattern)) == []


@pytest.mark.parametrize("pattern", excluded("dry runs that were discarded"))
def test_records_of_discarded_dry_runs_are_used(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered: dict[tuple[str, str], dict[str, str]] = {}
    fill, record = domains._fill, domains.record

    def fill_and_remember(cycle: Cycle, job: Job, hyper_node: str, *rest: Any) -> float:
        score = fill(cycle, job, hyper_node, *rest)
        decision: domains.Decision = rest[-1]
        remembered.setdefault((job.id, hyper_node), {}).update(decision.sub_jobs)
        return score

    def record_all(cycle: Cycle, job: Job, decision: domains.Decision) -> None:
        known: Mapping[str, str] = remembered.get((job.id, decision.hyper_node), {})
        record(cycle, job, domains.Decision(decision.hyper_node, {**known, **decision.sub_jobs}))

    monkeypatch.setattr(domains, "_fill", fill_and_remember)
    monkeypatch.setattr(domains, "record", record_all)
    assert sessions.differences(case_of(pattern)) == []


def test_placing_a_pipelined_task_again_is_told_by_what_was_seen() -> None:
    def steps(state: str, *failed: str) -> JsonObject:
        errors = {"ns/g": {"tasks": dict.fromkeys(failed, "0/1 nodes are unavailable")}}
        first = {"action": "gangreclaim", "tasks": {"ns/g": {"ns/p": "Pipelined@n1"}}}
        later = {"action": "allocate", "tasks": {"ns/g": {"ns/p": state}}, "fitErrors": errors}
        return {"observed": {"afterActions": [first, later]}}

    assert properties.placed_again(steps("Binding@n1"))
    assert properties.placed_again(steps("Pipelined@n2"))
    assert properties.placed_again(steps("Pipelined@n1", "ns/p"))
    assert not properties.placed_again(steps("Pipelined@n1", "ns/other"))
    assert not properties.placed_again({"observed": {}})


def test_a_record_of_a_name_that_two_have_is_ambiguous() -> None:
    def recorded(*names: str) -> JsonObject:
        objects = [{"metadata": {"name": name}} for name in names]
        step = {"action": "allocate", "hyperNodes": {"ns/g": {"allocated": "s1"}, "ns/free": {}}}
        return {"input": {"hyperNodes": {"objects": objects}}, "observed": {"afterActions": [step]}}

    assert properties.ambiguous_record(recorded("s1", "s1", "s2"))
    assert not properties.ambiguous_record(recorded("s0", "s1", "s2"))
    assert not properties.ambiguous_record(recorded("s0", "s0", "s1"))
