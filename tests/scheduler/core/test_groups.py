"""Jobs, roles, sub-jobs and their readiness (spec 04 sections 10 to 12 and 35)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import core
from stromboli.scheduler.core import grouping, opening, readiness
from stromboli.scheduler.core.journal import Journal
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import PodGroupBuilder, hyper_node, node, pod, pod_group, queue
from tests.scheduler.core.worlds import world


def mixed(minimum: int) -> Job:
    """A best-effort and a normal task in each of Pending, Pipelined and Running."""
    mirror = world(
        node("n").offer(cpu=9).build(),
        queue().build(),
        pod_group("g").members(minimum).build(),
        [pod(f"e{index}").group("g").build() for index in range(2)],
        [pod(f"w{index}").group("g").request(cpu=1).build() for index in range(2)],
        pod("e2").group("g").on("n").build(),
        pod("w2").group("g").request(cpu=1).on("n").build(),
    )
    journal = Journal(mirror.ledger)
    for name in ("e1", "w1"):
        journal.place(mirror.tasks[f"ns/{name}"], mirror.nodes_by_name["n"], TaskStatus.PIPELINED)
    return mirror.jobs["ns/g"]


def test_best_effort_tasks_count_towards_ready_but_not_against_starving() -> None:
    job = mixed(5)
    assert job.pending_best_effort == 1
    assert (job.is_ready, job.is_pipelined, job.is_starving) == (False, True, True)
    job = mixed(3)
    assert (job.is_ready, job.is_pipelined) == (True, True)


def role_job(minimum: int, minimums: dict[str, int], running: dict[str, int], pending: dict[str, int]) -> Job:
    pods = [
        pod(f"{role}-{index}").group("g").role(role).request(cpu=1).on("n").build()
        for role, count in running.items()
        for index in range(count)
    ]
    pods += [
        pod(f"{role}-p{index}").group("g").role(role).request(cpu=1).build()
        for role, count in pending.items()
        for index in range(count)
    ]
    return world(queue().build(), pod_group("g").members(minimum, **minimums).build(), pods).jobs["ns/g"]


@dataclass(frozen=True)
class RoleCase:
    minimum: int
    minimums: dict[str, int]
    running: dict[str, int]
    pending: dict[str, int]
    want_valid: bool
    want_ready: bool


ROLES = {
    "every role has its minimum": RoleCase(3, {"m": 1, "w": 2}, {"m": 1, "w": 2}, {}, True, True),
    "one role waits": RoleCase(3, {"m": 1, "w": 2}, {"m": 1, "w": 1}, {"w": 1}, True, False),
    "one role is missing": RoleCase(3, {"m": 1, "w": 2}, {"w": 3}, {}, False, False),
    "a small minMember switches roles off": RoleCase(2, {"m": 1, "w": 2}, {"w": 3}, {}, True, True),
    "a minimum of zero asks for nothing": RoleCase(1, {"m": 0}, {"w": 1}, {}, True, True),
}


@pytest.mark.parametrize("case", ROLES.values(), ids=ROLES.keys())
def test_roles(case: RoleCase) -> None:
    job = role_job(case.minimum, case.minimums, case.running, case.pending)
    assert readiness.roles_valid(job) is case.want_valid
    assert readiness.roles_ready(job) is case.want_ready


@dataclass(frozen=True)
class GoOnCase:
    job: Job
    failed: set[str]
    want: bool


GO_ON = {
    "all tasks are needed": GoOnCase(role_job(2, {}, {}, {"w": 2}), {"w"}, False),
    "some tasks are spare": GoOnCase(role_job(1, {}, {}, {"w": 3}), {"w"}, True),
    "a role that failed had its minimum": GoOnCase(role_job(1, {"w": 1}, {"w": 1}, {"w": 2}), {"w"}, True),
    "a role that failed lacks its minimum": GoOnCase(role_job(2, {"m": 1, "w": 1}, {}, {"m": 1, "w": 2}), {"m"}, False),
    "enough tasks of other roles": GoOnCase(role_job(1, {"m": 1, "w": 1}, {}, {"m": 1, "w": 2}), {"m"}, True),
    "too few tasks of other roles": GoOnCase(role_job(3, {"m": 2, "w": 2}, {}, {"m": 3, "w": 1}), {"m"}, False),
}


@pytest.mark.parametrize("case", GO_ON.values(), ids=GO_ON.keys())
def test_going_on_after_a_task_found_no_node(case: GoOnCase) -> None:
    (sub_job,) = case.job.sub_jobs.values()
    sub_job.minimum = min(sub_job.minimum, 1) if len(sub_job.tasks) > 2 else sub_job.minimum
    sub_job.failed_roles = case.failed
    assert readiness.may_go_on(sub_job) is case.want


def group_with(*policies: core.SubGroupPolicy, minimum: int = 1) -> PodGroupBuilder:
    builder = pod_group("job1").members(minimum)
    for each in policies:
        builder = builder._spec(sub_group_policy=(*builder.spec.sub_group_policy, each))
    return builder


@dataclass(frozen=True)
class PlaceCase:
    policies: list[core.SubGroupPolicy]
    labels: dict[str, str]
    want_id: str
    want_minimum: int = 1
    want_index: int = 0


def by(*keys: str, selector: core.LabelSelector | None = None, size: int | None = None) -> core.SubGroupPolicy:
    return core.SubGroupPolicy(name="policy1", match_label_keys=keys, label_selector=selector, sub_group_size=size)


PLACES = {
    "by one label": PlaceCase([by("a", size=4)], {"a": "1"}, "ns/job1/policy1-1", 4, 1),
    "without size one is enough": PlaceCase([by("a")], {"a": "x"}, "ns/job1/policy1-x"),
    "by two labels": PlaceCase([by("a", "b")], {"a": "v1", "b": "v2"}, "ns/job1/policy1-v1-v2"),
    "a missing label": PlaceCase([by("a", "b")], {"a": "v1"}, "ns/job1"),
    "an empty label": PlaceCase([by("a")], {"a": ""}, "ns/job1"),
    "no keys never form a sub-job": PlaceCase([by()], {"a": "1"}, "ns/job1"),
    "the selector must match": PlaceCase(
        [by("a", selector=core.LabelSelector(match_labels={"x": "y"}))], {"a": "1"}, "ns/job1"
    ),
    "an invalid operator matches nothing": PlaceCase(
        [by("a", selector=core.LabelSelector(match_expressions=(core.Requirement(key="a", operator="Like"),)))],
        {"a": "1"},
        "ns/job1",
    ),
    "an empty selector matches all": PlaceCase(
        [by("a", selector=core.LabelSelector())], {"a": "1"}, "ns/job1/policy1-1", 1, 1
    ),
}


@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES.keys())
def test_the_sub_job_of_a_pod(case: PlaceCase) -> None:
    mirror = world(
        queue().build(), group_with(*case.policies).build(), pod("p").group("job1").label(**case.labels).build()
    )
    (sub_job,) = mirror.jobs["ns/job1"].sub_jobs.values()
    assert (sub_job.id, sub_job.minimum, sub_job.match_index) == (case.want_id, case.want_minimum, case.want_index)


def test_long_values_are_replaced_by_a_short_hash() -> None:
    mirror = world(group_with(by("a", "b")).build())
    place = grouping.place_of(mirror.jobs["ns/job1"], {"a": "x" * 63, "b": "y" * 66})
    assert len(place.id) < len("ns/job1/policy1-") + 11
    assert place.id == grouping.place_of(mirror.jobs["ns/job1"], {"a": "x" * 63, "b": "y" * 66}).id
    assert place.id != grouping.place_of(mirror.jobs["ns/job1"], {"a": "x" * 63, "b": "z" * 66}).id


def test_the_default_sub_job_has_the_minimum_of_the_job() -> None:
    mirror = world(queue().build(), pod_group("g").members(3).build(), pod("p").group("g").build())
    assert mirror.jobs["ns/g"].sub_jobs["ns/g"].minimum == 3


def test_priority_of_a_sub_job_follows_its_tasks() -> None:
    mirror = world(
        queue().build(),
        pod_group("g").build(),
        pod("a").group("g").priority(5).build(),
        pod("b").group("g").priority(9).build(),
    )
    sub_job = mirror.jobs["ns/g"].sub_jobs["ns/g"]
    assert sub_job.priority == 9
    mirror.delete_pod("ns/b")
    assert sub_job.priority == 5


def test_groups_count_their_sub_jobs() -> None:
    spread = core.SubGroupPolicy(name="s", match_label_keys=("part",), sub_group_size=2, min_sub_groups=2)
    running = [
        pod(f"p{index}").group("job1").label(part=str(index // 2)).request(cpu=1).on("n").build() for index in range(3)
    ]
    mirror = world(queue().build(), group_with(spread).build(), running)
    job = mirror.jobs["ns/job1"]
    assert readiness.sub_groups_valid(job)
    assert not readiness.sub_groups_ready(job)
    assert not readiness.sub_groups_pipelined(job)
    mirror.apply_pod(pod("p3").group("job1").label(part="1").request(cpu=1).on("n").build())
    assert readiness.sub_groups_ready(job)


class TestTopology:
    """Spec 04 sections 24.1, 24.2 and 35; the root is of tier 4."""

    TREE = (hyper_node("s0", 1, ("n1",)), hyper_node("s1", 2, (), ("s0",)), hyper_node("s2", 3, (), ("s1",)))

    @staticmethod
    def hard(tier: int | None = None, name: str = "") -> core.NetworkTopology:
        return core.NetworkTopology(mode="hard", highest_tier_allowed=tier, highest_tier_name=name)

    SOFT = core.NetworkTopology(mode="soft")

    CASES = {
        "nothing": (None, None, None, None),
        "soft job": (SOFT, None, 4, None),
        "hard job": ("hard2", None, 2, None),
        "soft sub-group under a hard job": ("hard2", SOFT, 2, 2),
        "soft sub-group alone": (None, SOFT, None, 4),
        "hard sub-group alone": (None, "hard1", None, 1),
        "by a known name": ("spine", None, 2, None),
        "by an unknown name": ("unheard", None, None, None),
    }

    @pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
    def test_tiers(self, case: tuple[object, object, int | None, int | None]) -> None:
        def topology(text: object) -> core.NetworkTopology | None:
            if not isinstance(text, str):
                return text  # type: ignore[return-value]
            return self.hard(int(text[4:])) if text.startswith("hard") else self.hard(name=text)

        mirror, job = self._job(topology(case[0]), topology(case[1]))
        view = mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)
        opening.adjust_topology(job, view, {"spine": 2})
        assert (job.hard_tier, job.sub_jobs["ns/g/s-1"].hard_tier) == (case[2], case[3])

    def _job(self, whole: core.NetworkTopology | None, part: core.NetworkTopology | None) -> tuple[Mirror, Job]:
        group = pod_group("g").sub_group("s", "part", topology=part)
        group = group._spec(network_topology=whole)
        mirror = world(
            node("n1").build(), self.TREE, queue().build(), group.build(), pod("p").group("g").label(part="1").build()
        )
        return mirror, mirror.jobs["ns/g"]

    def test_records_of_jobs_that_hold_nothing_are_cleared(self) -> None:
        mirror, job = self._job(self.hard(2), None)
        job.allocated_hyper_node = "s0"
        opening.repair_hyper_nodes(job, mirror.hyper_nodes.view(mirror.node_list, 0))
        assert job.allocated_hyper_node == ""

    def test_missing_records_are_found_from_where_tasks_are(self) -> None:
        mirror, job = self._job(None, self.hard(2))
        mirror.apply_pod(pod("p").group("g").label(part="1").request(cpu=1).on("n1").build())
        opening.repair_hyper_nodes(job, mirror.hyper_nodes.view(mirror.node_list, 0))
        assert job.sub_jobs["ns/g/s-1"].allocated_hyper_node == "s0"
        assert job.allocated_hyper_node == "s0"
