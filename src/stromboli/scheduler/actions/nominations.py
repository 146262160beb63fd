"""The fast path for sub-jobs that a gang action has promised a HyperNode (spec 05 section 8)."""

from __future__ import annotations

import numpy as np

from stromboli.scheduler.actions.placing import Domain, domain
from stromboli.scheduler.actions.worksheets import Work
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Node, Task


def use(cycle: Cycle, work: Work) -> Statement | None:
    """Places every task on the node it was promised, or none: then the promises are forgotten."""
    sub_job = work.sub_job
    where = domain(cycle, sub_job.nominated_hyper_node)
    statement = None if where.is_empty else _place_all(cycle, work, where)
    if statement is None:
        _forget(work)
        return None
    common = cycle.view.hyper_nodes.lowest_common_ancestor
    sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, sub_job.nominated_hyper_node)
    work.tasks = []
    return statement


def _place_all(cycle: Cycle, work: Work, where: Domain) -> Statement | None:
    statement = cycle.statement()
    for task in reversed(work.tasks):
        node = _promised(cycle, task, where)
        if node is None or not _place(cycle, statement, task, node):
            statement.discard()
            return None
    return statement


def _promised(cycle: Cycle, task: Task, where: Domain) -> Node | None:
    queue = task.job.queue if task.job is not None else None
    node = cycle.view.nodes_by_name.get(task.nominated_node)
    if queue is None or node is None or node.row < 0 or not cycle.combination.allocatable(queue, task):
        return None
    inside = where.rows is None or node.row in where.rows
    return node if inside and cycle.combination.prepare(task) is None else None


def _place(cycle: Cycle, statement: Statement, task: Task, node: Node) -> bool:
    choice = cycle.searches.of(task).choose(np.array([node.row], dtype=np.intp), cycle.random)
    if choice is None:
        return False
    try:
        if choice.waits:
            statement.pipeline(task, node, eviction_occurred=False)
        else:
            statement.allocate(task, node)
    except PlacementRefused:
        return False
    return True


def _forget(work: Work) -> None:
    work.sub_job.nominated_hyper_node = ""
    for task in work.tasks:
        task.nominated_node = ""
