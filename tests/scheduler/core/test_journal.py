"""Statements: discarded they leave no trace, replayed they are the same again, refused they change nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core.journal import Act, Journal, Statement
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import EVICTABLE_STATUSES, TaskStatus
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, picture, world


class Accounts:
    """A plugin's books, kept as a plugin would; refuses what it is told to."""

    def __init__(self) -> None:
        self.balance: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.told: list[str] = []

    def add(self, task: Task, node: Node) -> None:
        if task.name in self.refused:
            raise PlacementRefused(f"{task.name} may not go to {node.name}")
        self.balance[f"{task.key}@{node.name}"] += 1
        self.told.append(f"+{task.name}")

    def subtract(self, task: Task, node: Node) -> None:
        self.balance[f"{task.key}@{node.name}"] -= 1
        self.told.append(f"-{task.name}")

    def state(self) -> dict[str, int]:
        return {key: count for key, count in self.balance.items() if count}


def small_world() -> Mirror:
    return world(
        [node(f"n{index}").offer(cpu=8, memory="8G").build() for index in range(3)],
        queue("default").build(),
        pod_group("g").members(1).build(),
        pod_group("h").members(1).build(),
        [pod(f"w{index}").group("g").role(f"r{index % 2}").request(cpu=index + 1).build() for index in range(4)],
        [
            pod(f"r{index}").group("h").request(cpu=1).on(f"n{index % 3}").host_port(index + 1).build()
            for index in range(3)
        ],
        pod("bound").group("h").request(cpu=1).on("n0", "Pending").build(),
    )


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    acts = st.sampled_from(["allocate", "pipeline", "evict"])
    pods = st.sampled_from(["w0", "w1", "w2", "w3", "r0", "r1", "r2", "bound"])
    nodes = st.sampled_from(["n0", "n1", "n2"])
    return draw(st.lists(st.tuples(acts, pods, nodes), max_size=12))


def perform(statement: Statement, mirror: Mirror, wanted: list[tuple[str, str, str]]) -> None:
    for act, name, where in wanted:
        task, target = mirror.tasks[f"ns/{name}"], mirror.nodes_by_name[where]
        try:
            if act == "evict":
                if task.status in EVICTABLE_STATUSES:
                    statement.evict(task, "test")
            elif task.status == TaskStatus.PENDING:
                if act == "allocate":
                    statement.allocate(task, target)
                else:
                    statement.pipeline(task, target, eviction_occurred=where == "n1")
        except PlacementRefused:
            continue


@given(steps(), st.sets(st.sampled_from(["w0", "w1", "w2"])))
@settings(max_examples=150, deadline=None)
def test_a_discarded_statement_leaves_no_trace(wanted: list[tuple[str, str, str]], refused: set[str]) -> None:
    mirror, first, second = small_world(), Accounts(), Accounts()
    second.refused = refused
    journal = Journal(mirror.ledger, [(first.add, first.subtract), (None, None), (second.add, second.subtract)])
    before = picture(mirror)
    statement = journal.statement()
    perform(statement, mirror, wanted)
    audit(mirror)
    statement.discard()
    audit(mirror)
    assert picture(mirror) == before
    assert first.state() == second.state() == {}


@given(steps())
@settings(max_examples=100, deadline=None)
def test_a_saved_plan_does_the_same_again(wanted: list[tuple[str, str, str]]) -> None:
    mirror = small_world()
    journal = Journal(mirror.ledger)
    statement = journal.statement()
    perform(statement, mirror, wanted)
    after, plan = picture(mirror), statement.save()
    statement.discard()
    again = journal.statement()
    again.replay(plan)
    assert picture(mirror) == after
    assert [(operation.act, operation.task.name) for operation in again.operations] == [
        (operation.act, operation.task.name) for operation in plan
    ]


@given(steps())
@settings(max_examples=60, deadline=None)
def test_what_is_committed_is_decided_once_and_nothing_else_is(wanted: list[tuple[str, str, str]]) -> None:
    mirror = small_world()
    journal = Journal(mirror.ledger)
    statement = journal.statement()
    perform(statement, mirror, wanted)
    acts = Counter(operation.act for operation in statement.operations)
    statement.commit()
    assert len(statement) == 0
    assert len(journal.decisions.binds) == acts[Act.ALLOCATE]
    assert len(journal.decisions.evictions) == acts[Act.EVICT]
    assert all(task.status == TaskStatus.BINDING for task, _ in journal.decisions.binds)
    audit(mirror)


def test_what_a_job_costs_another_on_a_node_is_noted_once() -> None:
    mirror = small_world()
    journal = Journal(mirror.ledger)
    statement = journal.statement()
    jobs = mirror.jobs
    for name in ("r0", "bound", "r1"):
        statement.evict(mirror.tasks[f"ns/{name}"], "test")
    for name in ("w0", "w1"):
        statement.pipeline(mirror.tasks[f"ns/{name}"], mirror.nodes_by_name["n0"], eviction_occurred=True)
    statement.commit()
    noted = [(one.taker, one.victim, one.node.name) for one in journal.decisions.takings]
    assert noted == [(jobs["ns/g"], jobs["ns/h"], "n0"), (jobs["ns/g"], jobs["ns/h"], "n1")]


class TestRefusals:
    def test_a_plugin_that_refuses_undoes_only_those_told_before_it(self) -> None:
        mirror, first, second, third = small_world(), Accounts(), Accounts(), Accounts()
        second.refused = {"w0"}
        books = [(accounts.add, accounts.subtract) for accounts in (first, second, third)]
        statement = Journal(mirror.ledger, books).statement()
        with pytest.raises(PlacementRefused, match="w0 may not go to n0"):
            statement.allocate(mirror.tasks["ns/w0"], mirror.nodes_by_name["n0"])
        assert (first.told, second.told, third.told) == (["+w0", "-w0"], [], [])
        assert len(statement) == 0

    def test_a_task_of_no_job_cannot_be_placed(self) -> None:
        mirror = world(node("n").offer(cpu=1).build(), pod("p").request(cpu=1).build())
        with pytest.raises(PlacementRefused, match="task ns/p has no job"):
            Journal(mirror.ledger).statement().allocate(mirror.tasks["ns/p"], mirror.nodes_by_name["n"])

    def test_a_task_already_placed_cannot_be_placed_again(self) -> None:
        mirror = small_world()
        task = mirror.tasks["ns/r0"]
        with pytest.raises(PlacementRefused, match="task <ns/r0> already on node <n0>"):
            Journal(mirror.ledger).place(task, mirror.nodes_by_name["n0"], TaskStatus.ALLOCATED)
        with pytest.raises(PlacementRefused, match="task <ns/r0> already on different node <n0>"):
            Journal(mirror.ledger).place(task, mirror.nodes_by_name["n1"], TaskStatus.ALLOCATED)

    def test_replay_stops_where_it_is_refused_and_keeps_what_went_before(self) -> None:
        mirror, accounts = small_world(), Accounts()
        journal = Journal(mirror.ledger, [(accounts.add, accounts.subtract)])
        statement = journal.statement()
        for name in ("w0", "w1"):
            statement.allocate(mirror.tasks[f"ns/{name}"], mirror.nodes_by_name["n0"])
        plan = statement.save()
        statement.discard()
        accounts.refused = {"w1"}
        again = journal.statement()
        with pytest.raises(PlacementRefused):
            again.replay(plan)
        assert [operation.task.name for operation in again.operations] == ["w0"]

    def test_nobody_can_refuse_that_a_task_stays_where_it_is(self) -> None:
        mirror, accounts = small_world(), Accounts()
        accounts.refused = {"r0"}
        before = picture(mirror)
        statement = Journal(mirror.ledger, [(accounts.add, accounts.subtract)]).statement()
        statement.evict(mirror.tasks["ns/r0"], "test")
        statement.discard()
        assert picture(mirror) == before


class TestMemory:
    def test_a_discarded_placement_is_remembered_for_the_message(self) -> None:
        mirror = small_world()
        statement = Journal(mirror.ledger).statement()
        task = mirror.tasks["ns/w0"]
        statement.pipeline(task, mirror.nodes_by_name["n1"], eviction_occurred=True)
        statement.discard()
        last = task.last_transaction
        assert last is not None
        assert (last.status, last.node, last.eviction_occurred) == (TaskStatus.PIPELINED, "n1", True)
        assert task.eviction_occurred is False

    def test_a_commit_forgets_it(self) -> None:
        mirror = small_world()
        journal = Journal(mirror.ledger)
        task = mirror.tasks["ns/w0"]
        for finish in (Statement.discard, Statement.commit):
            statement = journal.statement()
            statement.allocate(task, mirror.nodes_by_name["n1"])
            finish(statement)
        assert task.last_transaction is None

    def test_merging_moves_operations(self) -> None:
        mirror = small_world()
        journal = Journal(mirror.ledger)
        one, other = journal.statement(), journal.statement()
        other.allocate(mirror.tasks["ns/w0"], mirror.nodes_by_name["n1"])
        one.merge(other)
        assert (len(one), len(other)) == (1, 0)

    def test_an_undone_eviction_restores_the_status_there_was(self) -> None:
        mirror = small_world()
        statement = Journal(mirror.ledger).statement()
        task = mirror.tasks["ns/bound"]
        statement.evict(task, "test")
        statement.discard()
        assert task.status == TaskStatus.BOUND

    def test_evictions_nobody_decided_on_end_with_the_cycle(self) -> None:
        mirror = small_world()
        journal = Journal(mirror.ledger)
        before = picture(mirror)
        journal.statement().evict(mirror.tasks["ns/r0"], "test")
        journal.end_evictions()
        assert picture(mirror) == before
