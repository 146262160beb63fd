"""Finding nodes: filters, scores, forecasts, ties, shards and explanations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core import searching
from stromboli.scheduler.core.columns import CPU, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Filter, Hooks, PlacementRefused, Plugin, Reach, Refusals, Scope, Score
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.searching import Evaluation
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Rows
from stromboli.scheduler.core.view import View
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import open_cycle, plugin_of, policy, world

NO, NEVER = Reason("no"), Reason("never", Code.UNRESOLVABLE)


def nodes_and_tasks(cpus: Sequence[int], *requests: int) -> Mirror:
    return world(
        [node(f"n{index}").offer(cpu=cpu, memory="8G").build() for index, cpu in enumerate(cpus)],
        queue("default").build(),
        pod_group("g").build(),
        [pod(f"p{index}").group("g").request(cpu=request).build() for index, request in enumerate(requests)],
    )


def rows_in(rows: Rows, *refused: int, code: int = 1) -> Refusals:
    return np.where(np.isin(rows, refused), code, 0).astype(np.uint8)


def opened(mirror: Mirror, *hooks: Hooks, seed: int | None = None) -> Cycle:
    plugins = {f"p{index}": plugin_of(each, f"p{index}") for index, each in enumerate(hooks)}
    return open_cycle(mirror, policy(*plugins), plugins=plugins, seed=seed)


def rising(_: Task, rows: Rows) -> Floats:
    return rows.astype(np.float64)


def rising_from_one(_: Task, rows: Rows) -> Floats:
    return rows.astype(np.float64) + 1.0


def falling(_: Task, rows: Rows) -> Floats:
    return -1.0 - rows.astype(np.float64)


class FreeFirst(Plugin):
    """Prefers idle cpu; refuses nodes with three pods; everything by the state of rows."""

    name = "free-first"
    reach = Reach.STATE

    def open(self, view: View) -> Hooks:
        def rate(task: Task, rows: Rows) -> Floats:
            free: Floats = view.nodes.idle[rows, CPU] / 7.0
            return free

        def refuse(task: Task, rows: Rows) -> Refusals:
            refusals: Refusals = (view.nodes.requested[rows, 2] >= 3).astype(np.uint8)
            return refusals

        return Hooks(
            scores=[Score("free", rate, reach=self.reach)], filters=[Filter("three", [NO], refuse, reach=self.reach)]
        )


class FreeFirstByRow(FreeFirst):
    name = "by-row"
    reach = Reach.ROW


@pytest.mark.parametrize("plugin", [FreeFirst, FreeFirstByRow])
@given(
    cpus=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    moves=st.lists(
        st.tuples(st.sampled_from(["place", "wait", "back"]), st.integers(0, 7), st.integers(0, 5)), max_size=25
    ),
)
@settings(max_examples=60, deadline=None)
def test_an_evaluation_kept_current_equals_a_new_one(
    plugin: type[Plugin], cpus: list[int], moves: list[tuple[str, int, int]]
) -> None:
    mirror = nodes_and_tasks(cpus, 1, 1, 1, 1, 2, 2, 2, 2)
    cycle = open_cycle(mirror, policy(plugin.name), plugins={plugin.name: plugin})
    tasks = [mirror.tasks[f"ns/p{index}"] for index in range(8)]
    for act, which, where in moves:
        task, target = tasks[which], mirror.node_list[where % len(cpus)]
        assert target is not None
        try:
            if act == "back":
                if task.node is not None:
                    cycle.journal.unplace(task)
            else:
                status = TaskStatus.ALLOCATED if act == "place" else TaskStatus.PIPELINED
                cycle.journal.place(task, target, status)
        except PlacementRefused:
            continue
        for example in (tasks[0], tasks[4]):
            kept = cycle.searches.of(example)
            kept.catch_up()
            fresh = Evaluation(cycle.view, cycle.combination, mirror.ledger, example, cycle.complain)
            for name in ("allowed", "local", "fits_idle", "fits_future", "_best_idle", "_best_future"):
                np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name), err_msg=name)
            assert kept.choose(None, None) == fresh.choose(None, None)
            assert str(kept.errors(None, "")) == str(fresh.errors(None, ""))
            assert kept.passes_for_eviction(None).tolist() == fresh.passes_for_eviction(None).tolist()


class TestChoosing:
    def test_idle_nodes_come_before_nodes_that_will_be_free(self) -> None:
        mirror = nodes_and_tasks([2, 1], 1)
        mirror.apply_pod(pod("leaving").request(cpu=2).on("n0").deleting().build())
        cycle = opened(mirror, Hooks(scores=[Score("first", lambda _, rows: np.where(rows == 0, 9.0, 0.0))]))
        choice = cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert (choice.row, choice.waits) == (1, False)
        mirror.delete_node("n1")
        cycle = opened(mirror)
        choice = cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert (choice.row, choice.waits) == (0, True)

    def test_idle_resources_that_are_promised_are_not_given_away(self) -> None:
        mirror = nodes_and_tasks([4], 3, 2)
        mirror.apply_pod(pod("leaving").request(cpu=2).on("n0").deleting().build())
        cycle = opened(mirror)
        cycle.journal.place(mirror.tasks["ns/p0"], mirror.nodes_by_name["n0"], TaskStatus.PIPELINED)
        evaluation = cycle.searches.of(mirror.tasks["ns/p1"])
        assert mirror.nodes.idle[0, CPU] == 2000
        assert evaluation.choose(None, None) is None
        assert evaluation.choose_for_eviction(np.array([0]), None) is None

    def test_nothing_fits(self) -> None:
        mirror = nodes_and_tasks([1, 1], 2)
        assert opened(mirror).searches.of(mirror.tasks["ns/p0"]).choose(None, None) is None

    def test_only_some_rows(self) -> None:
        mirror = nodes_and_tasks([4, 4, 4], 1)
        evaluation = opened(mirror).searches.of(mirror.tasks["ns/p0"])
        choice = evaluation.choose(np.array([2], dtype=np.intp), None)
        assert choice is not None
        assert choice.row == 2
        assert evaluation.choose(np.array([], dtype=np.intp), None) is None

    def test_of_equal_nodes_the_first(self) -> None:
        mirror = nodes_and_tasks([4, 4, 4], 1)
        choice = opened(mirror).searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert choice.row == 0

    def test_with_a_seed_ties_are_spread_and_repeatable(self) -> None:
        def chosen(seed: int) -> list[int]:
            mirror = nodes_and_tasks([4] * 20, 1)
            cycle = opened(mirror, seed=seed)
            evaluation = cycle.searches.of(mirror.tasks["ns/p0"])
            choices = [evaluation.choose(None, cycle.random) for _ in range(20)]
            return [choice.row for choice in choices if choice is not None]

        assert chosen(1) == chosen(1)
        assert len(set(chosen(1))) > 5

    def test_a_score_below_zero_is_fine(self) -> None:
        mirror = nodes_and_tasks([4, 4], 1)
        cycle = opened(mirror, Hooks(scores=[Score("less", falling)]))
        choice = cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert choice.row == 0

    def test_normalised_scores_see_the_candidates_only(self) -> None:
        seen: list[list[float]] = []

        def normalise(raw: Floats) -> Floats:
            seen.append(raw.tolist())
            scaled: Floats = raw / raw.max()
            return scaled

        mirror = nodes_and_tasks([4, 0, 4], 1)
        score = Score("raw", rising_from_one, normalise=normalise, reach=Reach.NODE)
        choice = opened(mirror, Hooks(scores=[score])).searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert choice.row == 2
        assert seen == [[1.0, 3.0]]

    def test_scores_about_the_whole_cluster_are_asked_each_time(self) -> None:
        asked: list[list[int]] = []

        def rate(task: Task, rows: Rows) -> Floats:
            asked.append(rows.tolist())
            return -rows.astype(np.float64)

        mirror = nodes_and_tasks([4, 4], 1)
        cycle = opened(mirror, Hooks(scores=[Score("all", rate, reach=Reach.CLUSTER)]))
        for _ in range(2):
            cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert asked == [[0, 1], [0, 1]]

    def test_a_hook_that_does_not_concern_a_shape_is_not_asked(self) -> None:
        def fail(task: Task, rows: Rows) -> Floats:
            raise AssertionError

        mirror = nodes_and_tasks([4], 1)
        score = Score("other", fail, reach=Reach.CLUSTER, concerns=lambda _: False)
        filter_ = Filter("other", [NO], fail, reach=Reach.CLUSTER, concerns=lambda _: False)  # type: ignore[arg-type]
        cycle = opened(mirror, Hooks(scores=[score], filters=[filter_]))
        assert cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None) is not None

    def test_a_failing_score_is_named_and_left_out(self) -> None:
        def fail(task: Task, rows: Rows) -> Floats:
            raise RuntimeError("broken")

        mirror = nodes_and_tasks([4, 4], 1)
        cycle = opened(mirror, Hooks(scores=[Score("bad", fail), Score("good", rising)]))
        choice = cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert choice.row == 1
        assert cycle.result.problems == ["score bad failed and is left out: RuntimeError('broken')"]

    @pytest.mark.parametrize(("scope", "want"), [(Scope.SHAPE, 1), (Scope.JOB, 1), (Scope.TASK, 2)])
    def test_answers_are_shared_as_far_as_their_scope_goes(self, scope: Scope, want: int) -> None:
        asked: list[str] = []

        def refuse(task: Task, rows: Rows) -> Refusals | None:
            asked.append(task.name)
            return None

        mirror = nodes_and_tasks([4], 1, 1)
        cycle = opened(mirror, Hooks(filters=[Filter("f", [NO], refuse, scope=scope)]))
        for name in ("p0", "p1"):
            cycle.searches.of(mirror.tasks[f"ns/{name}"])
        assert len(asked) == want

    def test_only_so_many_evaluations_are_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(searching, "_KEPT", 2)
        mirror = nodes_and_tasks([9], 1, 2, 3)
        cycle = opened(mirror)
        first, second, third = (mirror.tasks[f"ns/p{index}"] for index in range(3))
        kept = cycle.searches.of(first)
        cycle.searches.of(second)
        assert cycle.searches.of(first) is kept
        cycle.searches.of(third)
        assert cycle.searches.of(first) is kept, "the second was not used for longer"
        assert len(cycle.searches._known) == 2


class TestShards:
    def cycle(self, mode: str) -> tuple[Mirror, Cycle]:
        mirror = nodes_and_tasks([4, 4, 4], 1)
        prefers_last = plugin_of(Hooks(scores=[Score("last", rising)]), "last")
        shard = frozenset({"n0", "n1"})
        return mirror, open_cycle(mirror, policy("last"), plugins={"last": prefers_last}, shard=shard, shard_mode=mode)

    @pytest.mark.parametrize(("mode", "want"), [("none", 2), ("soft", 1), ("hard", 1)])
    def test_the_own_shard_comes_first_when_there_is_one(self, mode: str, want: int) -> None:
        mirror, cycle = self.cycle(mode)
        choice = cycle.searches.of(mirror.tasks["ns/p0"]).choose(None, None)
        assert choice is not None
        assert choice.row == want

    def test_soft_falls_back_to_others(self) -> None:
        mirror, cycle = self.cycle("soft")
        evaluation = cycle.searches.of(mirror.tasks["ns/p0"])
        choice = evaluation.choose(np.array([2], dtype=np.intp), None)
        assert choice is not None
        assert choice.row == 2
        assert evaluation.mine_first(np.array([2, 0, 1])).tolist() == [0, 1, 2]
        assert evaluation.by_score(np.array([0, 1, 2])).tolist() == [1, 0, 2]

    def test_hard_refuses_others_with_a_reason(self) -> None:
        mirror, cycle = self.cycle("hard")
        evaluation = cycle.searches.of(mirror.tasks["ns/p0"])
        assert evaluation.choose(np.array([2], dtype=np.intp), None) is None
        assert str(evaluation.errors(np.array([2], dtype=np.intp), "")) == (
            "0/1 nodes are unavailable: 1 node isn't in scheduler node shard."
        )


class TestExplaining:
    def test_resources_come_first_cpu_before_memory(self) -> None:
        mirror = world(
            node("a").offer(cpu=1, memory="9G").build(),
            node("b").offer(cpu=9, memory="1G").build(),
            node("c").offer(cpu=1, memory="1G").build(),
            node("d").offer(cpu=9, memory="9G", pods=0).build(),
            queue().build(),
            pod_group("g").build(),
            pod("p").group("g").request(cpu=2, memory="2G", gpu=1).build(),
        )
        errors = opened(mirror).searches.of(mirror.tasks["ns/p"]).errors(None, "")
        assert str(errors) == (
            "0/4 nodes are unavailable: 1 Insufficient memory, 1 Insufficient pods, 2 Insufficient cpu."
        )

    def test_plain_refusals_of_a_plugin_accumulate_and_others_end_its_turn(self) -> None:
        first = Filter("first", [NO], lambda _, rows: rows_in(rows, 0, 1))
        second = Filter("second", [Reason("x"), NEVER], lambda _, rows: rows_in(rows, 1, 2, code=2))
        third = Filter("third", [Reason("third")], lambda _, rows: rows_in(rows, 0, 1, 2, 3))
        other = Filter("other", [Reason("other")], lambda _, rows: rows_in(rows, 0, 1, 2, 3, 4))
        mirror = nodes_and_tasks([4] * 5, 1)
        cycle = opened(mirror, Hooks(filters=[first, second, third]), Hooks(filters=[other]))
        errors = cycle.searches.of(mirror.tasks["ns/p0"]).errors(None, "")
        assert dict(errors.counts) == {"no": 2, "never": 2, "third": 2, "other": 1}
        assert errors.nodes == 5
        assert errors.unresolvable is not None
        assert np.nonzero(errors.unresolvable)[0].tolist() == [1, 2]

    def test_filters_about_the_whole_cluster_count_in_their_plugins_turn(self) -> None:
        kept = Filter("kept", [NO], lambda _, rows: rows_in(rows, 0))
        fresh = Filter("fresh", [NEVER], lambda _, rows: rows_in(rows, 0, 1), reach=Reach.CLUSTER)
        mirror = nodes_and_tasks([4] * 3, 1)
        evaluation = opened(mirror, Hooks(filters=[kept, fresh])).searches.of(mirror.tasks["ns/p0"])
        assert dict(evaluation.errors(None, "").counts) == {"no": 1, "never": 2}
        choice = evaluation.choose(None, None)
        assert choice is not None
        assert choice.row == 2

    def test_eviction_helps_against_plain_refusals_only(self) -> None:
        plain = Filter("plain", [NO], lambda _, rows: rows_in(rows, 0, 1))
        hopeless = Filter("hopeless", [NEVER], lambda _, rows: rows_in(rows, 1, 2))
        later = Filter("later", [NEVER], lambda _, rows: rows_in(rows, 0, 3))
        apart = Filter("apart", [NEVER], lambda _, rows: rows_in(rows, 4), reach=Reach.CLUSTER)
        mirror = nodes_and_tasks([0] * 6, 1)
        cycle = opened(mirror, Hooks(filters=[plain, hopeless, apart]), Hooks(filters=[later]))
        evaluation = cycle.searches.of(mirror.tasks["ns/p0"])
        assert evaluation.passes_for_eviction(None).tolist() == [0, 5]

    def test_the_name_of_the_hyper_node_is_told_but_for_the_root(self) -> None:
        mirror = nodes_and_tasks([0], 1)
        evaluation = opened(mirror).searches.of(mirror.tasks["ns/p0"])
        assert str(evaluation.errors(np.array([0]), "s1")).startswith("In hyperNode s1: 0/1 nodes")
        assert str(evaluation.errors(None, "<cluster-top-hypernode>")).startswith("0/1 nodes")

    def test_deleted_nodes_are_not_counted(self) -> None:
        mirror = nodes_and_tasks([0, 0, 0], 1)
        mirror.delete_node("n1")
        evaluation = opened(mirror).searches.of(mirror.tasks["ns/p0"])
        assert str(evaluation.errors(None, "")).startswith("0/2 nodes")
