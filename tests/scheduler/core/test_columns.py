"""Resource columns, node rows and imagined rows."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.scheduler.core.columns import CPU, MEMORY, PODS, Columns, fits_within, widened
from stromboli.scheduler.core.tables import JobTable, Kind, NodeTable


def test_columns_are_interned_and_widen_by_doubling() -> None:
    columns = Columns(width=4)
    assert [columns.intern(name) for name in ("cpu", "memory", "pods", "a", "a", "b")] == [CPU, MEMORY, PODS, 3, 3, 4]
    assert (len(columns), columns.width) == (5, 8)
    assert columns.get("lost") is None


def test_amounts_by_name_and_back() -> None:
    columns = Columns()
    vector = columns.vector({"cpu": 1000.0, "x": 3.0}, missing=np.inf)
    assert vector[CPU] == 1000.0
    assert vector[MEMORY] == np.inf
    plain = columns.vector({"x": 3.0})
    assert columns.amounts(plain) == {"cpu": 0.0, "memory": 0.0, "x": 3.0}
    assert columns.amounts(plain, [3]) == {"x": 3.0}
    assert columns.requested(columns.vector({"cpu": 0.05, "x": 0.1})) == (3,)


@pytest.mark.parametrize(
    ("amount", "available", "want"), [(1.0, 1.0, True), (1.09, 1.0, True), (1.1, 1.0, False), (0.0, -0.2, False)]
)
def test_amounts_closer_than_epsilon_are_equal(amount: float, available: float, want: bool) -> None:
    assert fits_within(np.array([amount]), np.array([available])).tolist() == [want]


def test_widening_keeps_what_is_wide_enough() -> None:
    array = np.ones((2, 3))
    assert widened(array, 3) is array
    assert widened(array, 5).tolist() == [[1, 1, 1, 0, 0]] * 2


def filled(count: int) -> NodeTable:
    table = NodeTable(4)
    for index in range(count):
        table.reset(table.append(), np.array([index, 0.0, 9.0, 0.0]))
    return table


def test_a_table_grows_and_compacts_in_order() -> None:
    table = filled(100)
    for row in (0, 50, 99):
        table.kill(row)
    renumbered = table.compact()
    assert table.count == 97
    assert table.allocatable[:, 0].tolist() == [index for index in range(100) if index not in (0, 50, 99)]
    assert renumbered[[0, 1, 49, 50, 51, 98]].tolist() == [-1, 0, 48, -1, 49, 96]
    assert table.log == []


def test_imagined_rows_are_gone_afterwards() -> None:
    table = filled(3)
    block = np.zeros((len(Kind), 4))
    block[Kind.IDLE, 0] = -2.0
    with table.imagined(np.array([2, 0]), block, 3, first_level=-1) as rows:
        assert rows.tolist() == [3, 4, 5, 6, 7, 8]
        assert table.idle[rows, 0].tolist() == [4, 2, 0, 2, 0, -2]
        assert table.live[rows].all()
    assert len(table.idle) == len(table.live) == 3


def test_many_imagined_rows_make_room() -> None:
    table = filled(60)
    with table.imagined(np.arange(60), np.zeros((len(Kind), 4)), 16) as rows:
        assert len(rows) == 960
        assert table.allocatable[rows, 2].tolist() == [9.0] * 960


def test_job_rows_are_reused_and_clean() -> None:
    table = JobTable(4)
    rows = [table.take() for _ in range(100)]
    table.allocated[rows[70]] = 5.0
    table.queue[rows[70]] = 3
    table.release(rows[70])
    assert table.take() == rows[70]
    assert table.allocated[rows[70]].tolist() == [0.0] * 4
    assert table.queue[rows[70]] == -1
    assert table.count == 100
