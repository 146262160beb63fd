"""Heaps whose keys change while elements wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.scheduler.core.heaps import Heap
from stromboli.scheduler.core.plugin import Depends
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.tables import JobTable


def jobs(count: int) -> list[Job]:
    table = JobTable(4)
    return [Job(f"ns/j{index}", table) for index in range(count)]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_pops_come_in_the_order_of_the_keys(priorities: list[int]) -> None:
    elements = jobs(len(priorities))
    for job, priority in zip(elements, priorities, strict=True):
        job.priority = priority
    heap: Heap[Job] = Heap(lambda job: (-job.priority, job.id))
    heap.push_all(elements)
    popped = [heap.pop() for _ in elements]
    assert popped == sorted(elements, key=lambda job: (-job.priority, job.id))
    assert not heap


@given(
    st.sampled_from([Depends.ITSELF, Depends.OTHERS]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans()), max_size=30),
)
def test_a_pop_gives_the_least_by_present_keys(depends: Depends, events: list[tuple[int, int, bool]]) -> None:
    elements, changes = jobs(4), list[Job]()
    heap: Heap[Job] = Heap(lambda job: (job.priority, job.id), depends, changes, lambda job: job)
    heap.push_all(elements)
    inside = set(elements)
    for index, priority, pops in events:
        job = elements[index]
        if job in inside or priority % 2:
            job.priority = priority
            changes.append(job)
        if pops and inside:
            least = min(inside, key=lambda each: (each.priority, each.id))
            assert heap.pop() is least
            inside.remove(least)
        elif job not in inside:
            heap.push(job)
            inside.add(job)
    assert len(heap) == len(inside)


def test_keys_that_depend_on_nothing_are_read_once() -> None:
    first, second = jobs(2)
    heap: Heap[Job] = Heap(lambda job: (job.priority, job.id))
    heap.push_all([first, second])
    first.priority = 9
    assert heap.pop() is first


@pytest.mark.parametrize("depends", list(Depends))
def test_nothing_can_be_popped_from_an_empty_heap(depends: Depends) -> None:
    with pytest.raises(IndexError):
        Heap[Job](lambda job: (job.id,), depends).pop()


def test_an_element_is_in_the_heap_once() -> None:
    (job,) = jobs(1)
    heap: Heap[Job] = Heap(lambda each: (each.id,))
    heap.push(job)
    heap.push(job)
    heap.pop()
    assert not heap
