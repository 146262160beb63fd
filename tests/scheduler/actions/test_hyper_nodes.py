"""allocate over HyperNodes (spec 05 sections 6, 8 and 9); every node and pod has 2 cpu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, PlacementRefused
from stromboli.scheduler.core.records import Job, Node, SubJob, Task
from stromboli.testing.builders import PodBuilder, PodGroupBuilder, hyper_node, node, pod, pod_group, queue
from tests.scheduler.actions.gradients import Gradients
from tests.scheduler.core.worlds import audit, binds, picture, plugin_of, policy, run_cycle, world

POLICY = policy("gang", "predicates", "gradients", actions="allocate")
PLUGINS = {"gradients": Gradients}

TWO_TIERS: list[core.Object] = [
    *[node(name).offer(cpu=2).build() for name in ("s0-n1", "s0-n2", "s1-n3", "s1-n4")],
    hyper_node("s0", 1, ("s0-n1", "s0-n2")),
    hyper_node("s1", 1, ("s1-n3", "s1-n4")),
    hyper_node("s2", 2, children=("s0", "s1")),
]
THREE_TIERS: list[core.Object] = [
    *[node(f"{leaf}-n{number}").offer(cpu=2).build() for leaf in ("s3", "s4", "s5", "s6") for number in (1, 2)],
    *[hyper_node(leaf, 1, (f"{leaf}-n1", f"{leaf}-n2")) for leaf in ("s3", "s4", "s5", "s6")],
    hyper_node("s1", 2, children=("s3", "s4")),
    hyper_node("s2", 2, children=("s5", "s6")),
    hyper_node("s0", 3, children=("s1", "s2")),
]


def group(minimum: int) -> PodGroupBuilder:
    return pod_group("g").members(minimum)


def waiting(name: str, part: str = "") -> PodBuilder:
    builder = pod(name).group("g").request(cpu=2)
    return builder.label(part=part) if part else builder


def pods(count: int) -> list[core.Object]:
    return [waiting(f"p{index}").build() for index in range(count)]


def hard(tier: int) -> core.NetworkTopology:
    return core.NetworkTopology(mode="hard", highest_tier_allowed=tier)


SOFT = core.NetworkTopology(mode="soft")


@dataclass(frozen=True)
class Case:
    group: PodGroupBuilder
    pods: Sequence[core.Object]
    want: int
    tree: Sequence[core.Object] = ()


ON_S0 = [waiting("r1").on("s0-n1").build(), waiting("r2").on("s0-n2").build()]
ON_S3 = [waiting("r1").on("s3-n1").build(), waiting("r2").on("s3-n2").build()]

JOBS = {
    "soft, three of three": Case(group(3).topology("soft"), pods(3), 3),
    "soft, two with minimum one": Case(group(1).topology("soft"), pods(2), 2),
    "hard 1, three do not fit": Case(group(3).topology("hard", 1), pods(3), 0),
    "hard 2, three fit": Case(group(3).topology("hard", 2), pods(3), 3),
    "hard 1, two fit": Case(group(2).topology("hard", 1), pods(2), 2),
    "hard 1, two with minimum one": Case(group(1).topology("hard", 1), pods(2), 2),
    "soft, a third beside two running": Case(group(3).topology("soft"), [*ON_S0, *pods(1)], 1),
    "hard 2, a third beside two running": Case(group(2).topology("hard", 2), [*ON_S0, *pods(1)], 1),
    "hard 1, a third beside two running": Case(group(2).topology("hard", 1), [*ON_S0, *pods(1)], 0),
    "three tiers, hard 2": Case(group(2).topology("hard", 2), [*ON_S3, *pods(1)], 1, THREE_TIERS),
    "three tiers, hard 1": Case(group(2).topology("hard", 1), [*ON_S3, *pods(1)], 0, THREE_TIERS),
    "a tier name nobody knows does not confine": Case(
        group(2).topology("hard", tier_name="lost"), [*ON_S0, *pods(1)], 1
    ),
}


def part_of(
    minimum: int, topology: core.NetworkTopology | None = None, size: int = 1, count: int = 0
) -> PodGroupBuilder:
    return group(minimum).sub_group("a", "part", size=size, minimum=count, topology=topology)


def parts(**sizes: int) -> list[core.Object]:
    return [waiting(f"{part}{index}", part).build() for part, size in sizes.items() for index in range(size)]


SUB_GROUPS = {
    "hard 2, soft groups": Case(part_of(3, SOFT).topology("hard", 2), parts(x=2, y=1), 3),
    "no topology, hard 1 groups": Case(part_of(2, hard(1), size=2), parts(x=2), 2),
    "hard 1 groups of three do not fit": Case(part_of(3, hard(1), size=3), parts(x=3), 0),
    "one more beside its own": Case(
        part_of(1, hard(1)),
        [
            waiting("a", "x").on("s0-n1").build(),
            waiting("b", "y").on("s1-n3").build(),
            waiting("c", "y").build(),
        ],
        1,
    ),
    "one more where its own is full": Case(
        part_of(1, hard(1)),
        [
            waiting("a", "x").on("s0-n1").build(),
            waiting("b", "y").on("s1-n3").build(),
            waiting("c", "y").on("s1-n4").build(),
            waiting("d", "y").build(),
        ],
        0,
    ),
    "required groups are placed first": Case(part_of(4, hard(1), size=2, count=2), parts(x=2, y=2), 4),
    "not enough groups fit": Case(part_of(6, hard(1), size=2, count=3), parts(x=2, y=2, z=2), 0),
    "no topology anywhere": Case(part_of(2, count=2), parts(x=1, y=1), 2),
}


@pytest.mark.parametrize("case", [*JOBS.values(), *SUB_GROUPS.values()], ids=[*JOBS, *SUB_GROUPS])
def test_number_of_binds(case: Case) -> None:
    mirror = world(case.tree or TWO_TIERS, queue().build(), case.group.build(), case.pods)
    result = run_cycle(mirror, POLICY, plugins=PLUGINS)
    assert len(result.binds) == case.want
    assert result.problems == []
    audit(mirror)
    _confined(mirror)


def _confined(mirror: Mirror) -> None:
    """Every hard tier is respected by what is placed."""
    view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
    for job in mirror.session_jobs.values():
        owners: list[Job | SubJob] = [job, *job.sub_jobs.values()]
        for owner in owners:
            rows = {task.node.row for task in owner.tasks.values() if task.node is not None}
            if owner.hard_tier is not None and rows:
                assert any(
                    rows <= set(view.rows[name].tolist())
                    for name, known in view.by_name.items()
                    if known.tier <= owner.hard_tier and name in view.rows
                )


def test_a_job_without_solution_leaves_no_trace() -> None:
    mirror = world(TWO_TIERS, queue().build(), group(3).topology("hard", 1).build(), pods(3))
    before = picture(mirror)
    run_cycle(mirror, POLICY, plugins=PLUGINS)
    assert picture(mirror) == before


def test_why_no_hyper_node_would_do_is_reported() -> None:
    mirror = world(TWO_TIERS, queue().build(), group(3).topology("hard", 1).build(), pods(3))
    (report,) = run_cycle(mirror, POLICY, plugins=PLUGINS).reports
    assert report.notes == (
        "none of the 2 HyperNodes tried up to tier 1 takes what the gang needs",
        "2 of 3 tasks found a node; p2 asks for 2 cpu, and 0 is left on s0-n1, which comes closest",
    )
    mirror.apply_pod_group(group(3).topology("hard", 0).build())
    (report,) = run_cycle(mirror, POLICY, plugins=PLUGINS).reports
    assert report.notes == ("no HyperNode up to tier 0 is large enough for what the gang needs",)


def test_where_a_job_went_is_recorded_and_the_message_names_the_hyper_node() -> None:
    mirror = world(TWO_TIERS, queue().build(), group(2).topology("hard", 1).build(), pods(3))
    result = run_cycle(mirror, POLICY, plugins=PLUGINS)
    assert mirror.jobs["ns/g"].allocated_hyper_node == "s0"
    assert set(binds(result).values()) == {"s0-n1", "s0-n2"}
    (told,) = result.pods
    assert told.message == "In hyperNode s0: 0/2 nodes are unavailable: 2 Insufficient cpu."


class Favourite(Gradients):
    name = "favourite"
    favourite = "s1"


def test_of_several_hyper_nodes_the_best_score_decides() -> None:
    mirror = world(TWO_TIERS, queue().build(), part_of(2, hard(1), size=2).build(), parts(x=2))
    result = run_cycle(
        mirror, policy("gang", "predicates", "favourite", actions="allocate"), plugins={"favourite": Favourite}
    )
    assert set(binds(result).values()) == {"s1-n3", "s1-n4"}


def test_a_tree_that_is_not_ready_holds_up_only_jobs_with_a_topology() -> None:
    mirror = world(
        TWO_TIERS,
        hyper_node("other", 2, children=("s0",)),
        queue().build(),
        group(1).topology("hard", 1).build(),
        pods(1),
        pod_group("plain").members(1).build(),
        pod("free").group("plain").request(cpu=1).build(),
    )
    assert list(binds(run_cycle(mirror, POLICY, plugins=PLUGINS))) == ["free"]


class TestNominations:
    """Spec 05 section 8."""

    def promised(self, hyper_node: str, *nodes: str, topology: str = "hard") -> Mirror:
        wanted = group(2).topology(topology, 1) if topology else group(2)
        members = [waiting(f"p{index}").nominated(name).build() for index, name in enumerate(nodes)]
        mirror = world(TWO_TIERS, queue().build(), wanted.build(), members)
        mirror.jobs["ns/g"].sub_jobs["ns/g"].nominated_hyper_node = hyper_node
        return mirror

    @pytest.mark.parametrize("topology", ["hard", ""])
    def test_a_promise_is_kept(self, topology: str) -> None:
        mirror = self.promised("s1", "s1-n4", "s1-n3", topology=topology)
        assert binds(run_cycle(mirror, POLICY, plugins=PLUGINS)) == {"p0": "s1-n4", "p1": "s1-n3"}
        assert mirror.jobs["ns/g"].sub_jobs["ns/g"].nominated_hyper_node == ""

    BROKEN = {
        "an unknown HyperNode": ("gone", "s1-n4", "s1-n3"),
        "a pod without node": ("s1", "s1-n4", ""),
        "a node outside": ("s1", "s1-n4", "s0-n1"),
        "a node that is gone": ("s1", "s1-n4", "lost"),
        "a node promised twice": ("s1", "s1-n4", "s1-n4"),
    }

    @pytest.mark.parametrize("promise", BROKEN.values(), ids=BROKEN.keys())
    def test_a_promise_that_cannot_be_kept_is_forgotten(self, promise: tuple[str, ...]) -> None:
        mirror = self.promised(*promise)
        bound = binds(run_cycle(mirror, POLICY, plugins=PLUGINS))
        assert len(bound) == 2
        assert mirror.jobs["ns/g"].sub_jobs["ns/g"].nominated_hyper_node == ""
        _confined(mirror)


def test_a_plan_that_cannot_be_carried_out_leaves_no_trace_and_is_named() -> None:
    placed: list[str] = []

    def refuse_last(task: Task, target: Node) -> None:
        placed.append(target.name)
        if len(placed) == 5:  # the trial and its replay for the sub-job, in two racks; then the replay for the job
            raise PlacementRefused("gone meanwhile")

    members = [waiting("p0").on("s0-n1").build(), waiting("p1").build()]
    mirror = world(TWO_TIERS, queue().build(), group(2).topology("hard", 2).build(), members)
    before = picture(mirror)
    plugins = {**PLUGINS, "late": plugin_of(Hooks(on_allocate=refuse_last), "late")}
    wanted = policy("gang", "predicates", "gradients", "late", actions="allocate")
    result = run_cycle(mirror, wanted, plugins=plugins)
    assert placed == ["s0-n2", "s0-n2", "s1-n3", "s1-n3", "s0-n2"]
    assert result.binds == []
    assert len(result.problems) == 1
    assert result.problems[0].endswith("could not be carried out: gone meanwhile")
    assert picture(mirror) == before


class TestOrderOfTrials:
    """Scores are known before anything is placed: only what may win is tried."""

    @pytest.mark.parametrize(
        ("favourite", "size", "want"),
        {
            "of equals the first": ("", 2, ["s0-n1", "s0-n2"]),
            "the favourite": ("s1", 2, ["s1-n3", "s1-n4"]),
            "the next when the favourite is too small": ("s1", 3, ["s1-n3", "s1-n4", "s0-n1", "s0-n2", "s0-n5"]),
        }.values(),
        ids=["of equals the first", "the favourite", "the next when the favourite is too small"],
    )
    def test_racks_are_tried_from_the_best_downwards(self, favourite: str, size: int, want: list[str]) -> None:
        placed: list[str] = []
        watcher = plugin_of(Hooks(on_allocate=lambda task, target: placed.append(target.name)), "watcher")
        preference = type("Preference", (Gradients,), {"favourite": favourite})
        larger = [
            node("s0-n5").offer(cpu=2).build(),
            hyper_node("s0", 1, ("s0-n1", "s0-n2", "s0-n5")),
        ]
        mirror = world(TWO_TIERS, larger, queue().build(), group(size).topology("hard", 1).build(), pods(size))
        wanted = policy("gang", "predicates", "gradients", "watcher", actions="allocate")
        result = run_cycle(mirror, wanted, plugins={"gradients": preference, "watcher": watcher})
        assert placed == want
        assert sorted(binds(result).values()) == sorted(want[-size:])
        audit(mirror)

    def test_when_none_works_the_reason_is_that_of_the_last_rack(self) -> None:
        preference = type("Preference", (Gradients,), {"favourite": "s1"})
        mirror = world(TWO_TIERS, queue().build(), group(3).topology("hard", 1).build(), pods(3))
        result = run_cycle(mirror, POLICY, plugins={"gradients": preference})
        assert result.binds == []
        assert "In hyperNode s1" in result.reports[0].message
