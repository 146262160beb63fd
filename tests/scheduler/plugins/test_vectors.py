"""Every question of the vectors' probes, answered right after opening; and what the reviewed deviations rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from stromboli.scheduler.core.combining import Combination
from tests.conformance import sessions, vectors
from tests.conformance.comparing import JsonObject
from tests.conformance.exclusions import Exclusions
from tests.conformance.verdicts import NotApplicable
from tests.scheduler.plugins import probing

ROOT = vectors.directory()
EXCLUDED = {
    "OnSessionOpenWithHierarchy::case1": "upstream orders no queue at all once a job is in a queue that has children",
}

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(vectors.suite(ROOT, "scheduler") is None, reason=f"no vectors in {ROOT}; set CONFORMANCE_DIR"),
]


def session_files() -> list[str]:
    directory = vectors.suite(ROOT, "scheduler")
    return sorted(path.name for path in directory.glob("*.sessions.json")) if directory else []


def cases(name: str) -> Iterable[JsonObject]:
    directory = vectors.suite(ROOT, "scheduler")
    assert directory is not None
    return vectors.load(directory / name).cases


def applies(case: JsonObject) -> bool:
    try:
        sessions.needs(case["input"])
    except NotApplicable:
        return False
    return not any(part in case["id"] for part in EXCLUDED)


@pytest.mark.parametrize("name", session_files())
def test_an_opened_session_answers_as_the_probe_says(name: str) -> None:
    found = {
        case["id"]: differences
        for case in cases(name)
        if case.get("probe") and applies(case) and (differences := probing.differences(case))
    }
    assert not found


@pytest.mark.parametrize("name", session_files())
def test_calls_of_upstream_tests_are_answered_the_same(name: str) -> None:
    asked = [case for case in cases(name) if case["observed"].get("calls") and case["input"].get("actions") is None]
    found = {case["id"]: differences for case in asked if (differences := probing.call_differences(case))}
    assert not found


class StaleHeap:
    """A binary heap as upstream uses it: what is inside stays where its old key put it."""

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._items: list[Any] = []
        self._key = key

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: Any) -> None:
        self._items.append(item)
        child = len(self._items) - 1
        while child and self._less(child, (child - 1) // 2):
            self._swap(child, (child - 1) // 2)
            child = (child - 1) // 2

    def push_all(self, items: Iterable[Any]) -> None:
        for item in items:
            self.push(item)

    def pop(self) -> Any:
        last = len(self._items) - 1
        self._swap(0, last)
        at = 0
        while (child := 2 * at + 1) < last:
            if child + 1 < last and self._less(child + 1, child):
                child += 1
            if not self._less(child, at):
                break
            self._swap(at, child)
            at = child
        return self._items.pop()

    def _less(self, left: int, right: int) -> bool:
        return bool(self._key(self._items[left]) < self._key(self._items[right]))

    def _swap(self, left: int, right: int) -> None:
        self._items[left], self._items[right] = self._items[right], self._items[left]


STALE_HEAP_CASES = [case for case in Exclusions.read().reasons if "random/E/" in case]


@pytest.mark.parametrize("pattern", STALE_HEAP_CASES)
def test_excluded_cases_of_fairness_hold_with_upstreams_heap(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Combination, "queue_heap", lambda self: StaleHeap(self.queue_ordering.key))
    monkeypatch.setattr(Combination, "job_heap", lambda self: StaleHeap(self.job_ordering.key))
    name, _, case_id = pattern.partition("::")
    (case,) = (case for case in cases(name) if case["id"] == case_id)
    assert sessions.differences(case) == []
