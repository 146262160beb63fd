"""Whole cycles: what goes wrong stays apart, what does not change costs nothing, the same input decides the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stromboli.api import core
from stromboli.scheduler.core.cycle import Cycle, run
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, Plugin, PluginTable
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption, Policy
from stromboli.scheduler.core.view import Sample, View
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, PLUGINS, audit, binds, picture, plugin_of, policy, run_cycle, world


def gang_world(pods: int = 3, minimum: int = 2) -> Mirror:
    return world(
        [node(f"n{index}").offer(cpu=2, memory="4Gi").build() for index in range(2)],
        queue("default").build(),
        pod_group("g").members(minimum).phase("Pending").build(),
        [pod(f"g-w-{index}").group("g").request(cpu=1).build() for index in range(pods)],
    )


def test_a_gang_is_admitted_and_bound_in_one_cycle() -> None:
    mirror = gang_world()
    result = run_cycle(mirror, DEFAULT_POLICY)
    assert sorted(binds(result)) == ["g-w-0", "g-w-1", "g-w-2"]
    assert result.problems == []
    (update,) = result.pod_groups
    assert update.status.phase == "Inqueue"
    audit(mirror)


@pytest.mark.parametrize("seed", [None, 7])
def test_the_same_mirror_and_seed_decide_the_same(seed: int | None) -> None:
    first, second = (run_cycle(gang_world(9, 4), DEFAULT_POLICY, seed=seed) for _ in range(2))
    assert first.binds == second.binds
    assert first.pod_groups == second.pod_groups


def test_a_cycle_with_nothing_to_do_looks_at_no_job() -> None:
    mirror = world(
        node("n").offer(cpu=4).build(),
        queue().build(),
        pod_group("g").members(1).phase("Running").build(),
        pod("p").group("g").request(cpu=1).on("n").build(),
    )
    asked: list[str] = []

    def valid(job: object) -> None:
        asked.append("asked")

    plugins = {"watcher": plugin_of(Hooks(job_valid=valid), "watcher")}
    wanted = policy("gang", "watcher", actions="enqueue allocate backfill preempt reclaim")
    run_cycle(mirror, wanted, plugins=plugins)
    asked.clear()
    before = picture(mirror)
    result = run_cycle(mirror, wanted, plugins=plugins)
    assert asked == []
    assert (result.binds, result.pod_groups, result.pods, result.queues, result.events) == ([], [], [], [], [])
    assert picture(mirror) == before


class Broken(Plugin):
    name = "broken"

    def open(self, view: View) -> Hooks:
        raise RuntimeError("no")


class BrokenAtClose(Plugin):
    name = "broken-at-close"

    def open(self, view: View) -> Hooks:
        return Hooks(close=self.fail)

    def fail(self) -> None:
        raise RuntimeError("late")


class TestFaults:
    def test_an_unknown_plugin_is_skipped_and_named(self) -> None:
        result = run_cycle(gang_world(), policy("gang", "imaginary"))
        assert result.problems == ["plugin imaginary is not known; it is skipped"]
        assert len(result.binds) == 3

    def test_a_plugin_that_cannot_be_opened_is_skipped_and_named(self) -> None:
        result = run_cycle(gang_world(), policy("gang", "broken"), plugins={"broken": Broken})
        assert result.problems == ["plugin broken could not be opened and is skipped: RuntimeError('no')"]
        assert len(result.binds) == 3

    def test_a_plugin_that_fails_at_close_does_not_keep_statuses_from_being_written(self) -> None:
        plugins = {"broken-at-close": BrokenAtClose}
        result = run_cycle(gang_world(), policy("broken-at-close", "gang"), plugins=plugins)
        assert result.problems == ["plugin broken-at-close failed at close: RuntimeError('late')"]
        assert len(result.pod_groups) == 1

    def test_an_unknown_action_is_skipped_and_named(self) -> None:
        result = run_cycle(gang_world(), policy("gang", actions="enqueue elect allocate"))
        assert result.problems == ["action elect is not known; it is skipped"]
        assert len(result.binds) == 3

    def test_an_action_that_fails_half_way_leaves_no_trace(self) -> None:
        mirror = world(
            node("n").offer(cpu=4).build(),
            queue().build(),
            pod_group("g").members(1).build(),
            pod("new").group("g").request(cpu=1).build(),
            pod("old").group("g").request(cpu=1).on("n").build(),
        )

        def stumble(cycle: Cycle, arguments: Mapping[str, object]) -> None:
            statement = cycle.statement()
            statement.evict(mirror.tasks["ns/old"], "test")
            statement.allocate(mirror.tasks["ns/new"], mirror.nodes_by_name["n"])
            raise RuntimeError("stumbled")

        before = picture(mirror)
        cycle = Cycle(mirror, policy("gang"), NOW, session_id="s", plugins=PLUGINS, actions={"stumble": stumble})
        cycle.execute("stumble")
        result = cycle.close()
        assert result.problems == ["action stumble failed: RuntimeError('stumbled')"]
        assert (result.binds, result.evictions) == ([], [])
        assert picture(mirror) == before


def test_a_flood_of_problems_is_cut_off() -> None:
    cycle = Cycle(world(), policy(), NOW, session_id="s", plugins={}, actions={})
    for number in range(1000):
        cycle.complain(f"problem {number}")
    assert len(cycle.result.problems) == 100


def test_timings_come_from_the_clock_that_is_passed() -> None:
    ticks = iter(range(1000))
    result = run(
        gang_world(),
        Policy(("allocate", "allocate"), ((PluginOption("gang"),),)),
        NOW,
        session_id="s",
        plugins=PLUGINS,
        actions={"allocate": lambda cycle, arguments: None},
        clock=lambda: float(next(ticks)),
    )
    assert result.timings["action", "allocate"] == 2.0
    assert ("plugin-open", "gang") in result.timings
    assert ("plugin-close", "gang") in result.timings
    assert result.timings["open", ""] > 0


def test_an_action_gets_its_own_arguments() -> None:
    given: list[Mapping[str, object]] = []
    cycle = Cycle(
        world(),
        policy(allocate={"predicateErrorCacheEnable": False}),
        NOW,
        session_id="s",
        plugins={},
        actions={"allocate": lambda cycle, arguments: given.append(arguments)},
    )
    cycle.execute("allocate")
    assert given == [{"predicateErrorCacheEnable": False}]


def test_what_plugins_measure_and_report_comes_out() -> None:
    class Speaking(Plugin):
        name = "speaking"

        def open(self, view: View) -> Hooks:
            view.measure("things", 2.0, queue_name="default")
            view.report(view.jobs["ns/g"], "Why", "because")
            return Hooks()

    result = run_cycle(gang_world(), policy("speaking"), plugins={"speaking": Speaking})
    assert Sample("things", (("queue_name", "default"),), 2.0) in result.samples
    assert ("Why", "because", "Normal") in [(event.reason, event.message, event.type) for event in result.events]


def test_labels_that_somebody_selects_on_tell_shapes_apart() -> None:
    mirror = world(pod("a").label(app="x").build(), pod("b").label(app="y").build())
    assert mirror.tasks["ns/a"].shape is mirror.tasks["ns/b"].shape
    term = core.PodAffinityTerm(topology_key="zone", label_selector=core.LabelSelector(match_labels={"app": "x"}))
    spread = core.Affinity(
        pod_anti_affinity=core.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    )
    mirror.apply_pod(pod("c").affine(spread).build())
    mirror.prepare()
    assert mirror.tasks["ns/a"].shape is not mirror.tasks["ns/b"].shape
    assert dict(mirror.tasks["ns/a"].shape.labels) == {"app": "x"}
    assert [shape.pod.name for shape in mirror.shapes.affine()] == ["c"]


def test_labels_that_services_select_on_tell_shapes_apart() -> None:
    mirror = world(pod("a").label(app="x").build(), pod("b").label(app="y").build())
    mirror.apply_object(core.Service(metadata=core.ObjectMeta(name="s"), spec=core.ServiceSpec(selector={"app": "x"})))
    mirror.prepare()
    assert mirror.tasks["ns/a"].shape is not mirror.tasks["ns/b"].shape


def test_annotations_that_a_plugin_reads_tell_shapes_apart() -> None:
    class Reading(Plugin):
        name = "reading"
        shape_annotations = frozenset({"policy"})

        def open(self, view: View) -> Hooks:
            return Hooks()

    mirror = world(pod("a").annotate(policy="1").build(), pod("b").annotate(policy="2").build())
    assert mirror.tasks["ns/a"].shape is mirror.tasks["ns/b"].shape
    run_cycle(mirror, policy("reading"), plugins={"reading": Reading})
    assert dict(mirror.tasks["ns/a"].shape.annotations) == {"policy": "1"}
    assert mirror.tasks["ns/a"].shape is not mirror.tasks["ns/b"].shape


def test_a_plugin_must_say_what_it_does() -> None:
    with pytest.raises(NotImplementedError):
        Plugin().open(None)  # type: ignore[arg-type]
    table = PluginTable()
    assert table.add(Broken) is Broken
    assert table.factories == {"broken": Broken}
