"""The mirror: any order of events, identity by UID, bad objects kept apart, assumptions about our own decisions."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Phase, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import (
    hyper_node,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
)
from tests.scheduler.core.worlds import Picture, audit, binds, feed, picture, policy, run_cycle, world
from tests.scheduler.plugins.volumes import building as claiming

OBJECTS: list[core.Object] = [
    node("n1").offer(cpu=8, memory="10G").build(),
    node("n2").offer(cpu=4, memory="8G", gpu=2).build(),
    queue("default").build(),
    queue("other").build(),
    priority_class("high", 100),
    priority_class("usual", 5, default=True),
    pod_group("g").members(2, a=1).priority_class("high").reserve(cpu=2).build(),
    pod_group("h").queue("other").sub_group("s", "part", size=1).build(),
    pod("bound").group("g").role("a").request(cpu=1, memory="1G").on("n1").host_port(80).build(),
    pod("waiting").group("g").role("b").request(cpu=2, memory="2G").build(),
    pod("leaving").group("h").label(part="1").request(cpu=1, gpu=1).on("n2").deleting().build(),
    pod("part").group("h").label(part="2").request(cpu=1).build(),
    pod("finished").group("h").request(cpu=1).on("n2", "Succeeded").build(),
    pod("stranger").request(cpu=1).on("n2").build(),
    pod("idle").group("g").build(),
    claiming.pod("attaching", "data").group("g").request(cpu=1).on("n1").build(),
    claiming.claim("data", class_="fast"),
    claiming.storage_class("fast", claiming.DRIVER),
    claiming.csi_node("n1", 4),
]


@given(st.permutations(OBJECTS))
@settings(max_examples=60, deadline=None)
def test_any_order_of_events_gives_the_same_mirror(objects: list[core.Object]) -> None:
    mirror = world(objects)
    audit(mirror)
    assert _settled(mirror) == _settled(world(OBJECTS))
    audit(mirror)


@given(st.lists(st.tuples(st.sampled_from(OBJECTS), st.booleans()), max_size=60))
@settings(max_examples=80, deadline=None)
def test_whatever_comes_and_goes_the_sums_agree_with_the_tasks(events: list[tuple[core.Object, bool]]) -> None:
    mirror = Mirror()
    for obj, comes in events:
        if comes:
            feed(mirror, obj)
        else:
            _delete(mirror, obj)
        audit(mirror)
        mirror.prepare()
        audit(mirror)


def test_an_absurd_request_that_comes_and_goes_leaves_all_sums_exact() -> None:
    bound = pod("bound").request(cpu=3, memory="1G").on("n1").build()
    mirror = world(node("n1").offer(cpu=8, memory="10G").build(), queue("default").build())
    for obj in (pod_group("g").build(), pod("small").group("g").request(cpu="7m", memory="1").build(), bound):
        feed(mirror, obj)
    before = picture(mirror)
    for absurd in (
        pod("waiting").group("g").request(cpu="1e30", memory="1e30", gpu="1e30").build(),
        pod("running").group("g").request(cpu="1e30", memory="1e30", gpu="1e30").on("n1").build(),
    ):
        feed(mirror, absurd)
        audit(mirror)
        _delete(mirror, absurd)
        audit(mirror)
    assert picture(mirror) == before
    assert mirror.queues["default"].pending[:2].tolist() == [7.0, 1.0]


STORAGE = "ephemeral-storage"


def test_absurd_amounts_of_nodes_and_groups_are_cut_to_what_swallows_nothing() -> None:
    absurd = {"cpu": "1e30", "memory": "1e30", "pods": "1e30", "nvidia.com/gpu": "1e30", STORAGE: "1e30"}
    mirror = world(queue("default").build(), pod_group("g").reserve(**absurd).build())
    feed(mirror, node("n1").offer(**absurd).build())
    column = [mirror.columns.intern(name) for name in absurd]
    row = mirror.nodes_by_name["n1"].row
    assert mirror.nodes.allocatable[row][column].tolist() == [2.0**50] * 4 + [2.0**55]
    minimum = mirror.jobs["ns/g"].min_resources
    assert minimum is not None
    assert minimum[column].tolist() == [2.0**50, 2.0**60, 2.0**50, 2.0**50, 2.0**65]
    assert ((minimum[:1] + 7.0) - minimum[:1]).tolist() == [7.0]


def test_storage_of_terabytes_is_not_cut() -> None:
    mirror = world(queue("default").build(), pod_group("g").build())
    feed(mirror, node("n1").offer(cpu=8, **{STORAGE: "1500G"}).build())
    feed(mirror, pod("p").group("g").request(**{STORAGE: "2T"}).build())
    assert binds(run_cycle(mirror, policy("gang"))) == {}


@given(st.lists(st.tuples(st.sampled_from(OBJECTS), st.booleans()), max_size=40))
@settings(max_examples=60, deadline=None)
def test_history_leaves_no_trace_once_everything_is_there(events: list[tuple[core.Object, bool]]) -> None:
    mirror = Mirror()
    for obj, comes in events:
        if comes:
            feed(mirror, obj)
        else:
            _delete(mirror, obj)
    for obj in OBJECTS:
        feed(mirror, obj)
    assert _settled(mirror) == _settled(world(OBJECTS))


LIVES: list[core.Pod] = [
    pod("p").group("g").role("a").request(cpu=1).build(),
    pod("p").group("g").role("a").request(cpu=1).gated("a.example.com/wait").build(),
    pod("p").group("g").role("a").request(cpu=1).gated("a.example.com/wait", "b.example.com/wait").build(),
    pod("p").group("g").role("a").request(cpu=1).nominated("n1").build(),
    pod("p").group("g").role("a").request(cpu=1).priority(7).on("n1", "Pending").build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1").build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1").host_port(80).build(),
    pod("p").group("g").role("a").request(cpu=2).on("n1").build(),
    pod("p").group("g").role("b").request(cpu=1).on("n1").build(),
    pod("p").group("h").role("a").label(part="1").request(cpu=1).on("n1").build(),
    pod("p").group("g").role("a").request(cpu=1).on("ghost").build(),
    pod("p").group("g").role("a").request(cpu=1).on("ghost", "Succeeded").build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1").deleting().build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1", "Succeeded").build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1", "Failed").build(),
    pod("p").group("g").role("a").request(cpu=1).phase("Succeeded").build(),
    pod("p").group("g").role("a").request(cpu=1).on("n1", "Unknown").build(),
]
"""One pod in every state it may be seen in."""


@given(st.lists(st.sampled_from(LIVES), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_pod_is_what_was_last_seen_of_it_whatever_it_was_before(states: list[core.Pod]) -> None:
    around = [obj for obj in OBJECTS if not isinstance(obj, core.Pod)]
    mirror, fresh, last = world(around), world(around), states[0]
    for state in states:
        known = mirror.tasks.get("ns/p")
        if known is None or not mirror._is_ahead(known, state):
            last = state
        feed(mirror, state)
        audit(mirror)
    feed(fresh, last)
    assert _settled(mirror) == _settled(fresh)
    assert _known(mirror.tasks["ns/p"]) == _known(fresh.tasks["ns/p"])
    assert set(mirror.nodes_by_name) == set(fresh.nodes_by_name)


def _known(task: Task) -> dict[str, object]:
    """All that is read from a pod."""
    elsewhere = {"job", "node", "shape", "sub_job"}
    return {name: getattr(task, name) for name in Task.__slots__ if name not in elsewhere}


def _settled(mirror: Mirror) -> Picture:
    """As the next cycle would find it."""
    mirror.prepare()
    return picture(mirror)


def _delete(mirror: Mirror, obj: core.Object) -> None:
    match obj:
        case core.Pod():
            mirror.delete_pod(f"{obj.namespace}/{obj.name}", obj.uid)
        case core.Node():
            mirror.delete_node(obj.name, obj.uid)
        case core.PodGroup():
            mirror.delete_pod_group(f"{obj.namespace}/{obj.name}", obj.uid)
        case core.Queue():
            mirror.delete_queue(obj.name, obj.uid)
        case core.PriorityClass():
            mirror.delete_priority_class(obj.name, obj.uid)
        case _:
            mirror.delete_object(type(obj), obj.key, obj.uid)


def test_everything_gone_means_nothing_kept() -> None:
    mirror = world(OBJECTS)
    for obj in random.Random(1).sample(OBJECTS, len(OBJECTS)):
        _delete(mirror, obj)
    assert not mirror.tasks
    assert not mirror.jobs
    assert not mirror.queues
    assert not mirror.nodes_by_name
    mirror.prepare()
    assert mirror.session_jobs == {}


class TestIdentity:
    def test_a_pod_of_the_same_name_and_another_uid_is_another_pod(self) -> None:
        mirror = world(node("n1").offer(cpu=4).build(), pod("p").request(cpu=1).on("n1").with_uid("old").build())
        mirror.apply_pod(pod("p").request(cpu=2).with_uid("new").build())
        assert mirror.task_by_uid("old") is None
        assert mirror.tasks["ns/p"].uid == "new"
        assert mirror.nodes.used[0, 0] == 0

    def test_deleting_the_old_uid_leaves_the_new_pod(self) -> None:
        mirror = world(pod("p").with_uid("new").build())
        mirror.delete_pod("ns/p", "old")
        assert "ns/p" in mirror.tasks

    def test_a_node_made_again_gets_its_tasks_back(self) -> None:
        mirror = world(node("n1").offer(cpu=4).build(), pod("p").request(cpu=1).on("n1").build())
        mirror.delete_node("n1")
        mirror.apply_node(node("n1").offer(cpu=8).build())
        row = mirror.nodes_by_name["n1"].row
        assert mirror.nodes.idle[row, 0] == 7000

    def test_a_deletion_of_another_node_of_that_name_is_ignored(self) -> None:
        mirror = world(node("n1").offer(cpu=4).build())
        mirror.delete_node("n1", "another")
        assert mirror.nodes_by_name["n1"].row == 0

    def test_a_pod_group_of_another_uid_is_not_deleted(self) -> None:
        mirror = world(queue().build(), pod_group("g").build())
        mirror.delete_pod_group("ns/g", "another")
        assert "ns/g" in mirror.session_jobs

    def test_nodes_keep_the_order_in_which_they_came(self) -> None:
        mirror = world([node(f"n{index:02}").offer(cpu=1).build() for index in range(12)])
        for index in range(9):
            mirror.delete_node(f"n{index:02}")
        mirror.apply_node(node("late").offer(cpu=1).build())
        mirror.prepare()
        assert [known.name for known in mirror.node_list if known] == ["n09", "n10", "n11", "late"]
        assert [mirror.nodes_by_name[known.name].row for known in mirror.node_list if known] == [0, 1, 2, 3]


@dataclass(frozen=True)
class Bad:
    objects: list[core.Object]
    want_problem: tuple[str, str]
    want_text: str


BAD = {
    "a pod with an unreadable request": Bad(
        [pod("p").request(cpu="much").build()], ("Pod", "ns/p"), "Pod ns/p is left out: 'much' is not a quantity"
    ),
    "a node with an unreadable amount": Bad(
        [node("n1").offer(memory="lots").build()], ("Node", "n1"), "Node n1 is left out: 'lots' is not a quantity"
    ),
    "a PodGroup with an unreadable minimum": Bad(
        [pod_group("g").reserve(cpu="some").build()], ("PodGroup", "ns/g"), "PodGroup ns/g is left out"
    ),
    "a queue with an unreadable capability": Bad(
        [queue("q").cap(cpu="all").build()], ("Queue", "q"), "Queue q is left out: 'all' is not a quantity"
    ),
}


class TestBadObjects:
    @pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
    def test_is_left_out_and_named(self, case: Bad) -> None:
        mirror = world(case.objects, node("good").offer(cpu=1).build())
        assert mirror.problems[case.want_problem].startswith(case.want_text)
        assert mirror.nodes_by_name["good"].row >= 0

    def test_a_readable_version_takes_the_problem_away(self) -> None:
        mirror = world(pod("p").request(cpu="much").build())
        mirror.apply_pod(pod("p").request(cpu="1").build())
        assert mirror.problems == {}
        assert "ns/p" in mirror.tasks

    def test_an_unreadable_change_leaves_what_was_known(self) -> None:
        mirror = world(node("n1").offer(cpu=4).build())
        mirror.apply_node(node("n1").offer(cpu="x").build())
        assert mirror.nodes.allocatable[0, 0] == 4000

    def test_deleting_the_bad_object_takes_the_problem_away(self) -> None:
        mirror = world(pod("p").request(cpu="much").build())
        mirror.delete_pod("ns/p")
        assert mirror.problems == {}


class TestNodes:
    """Spec 04 section 35, nodes."""

    def test_pods_take_from_idle_and_give_back_exactly(self) -> None:
        mirror = world(
            node("n1").offer(cpu=8, memory="10G", pods=20).build(),
            pod("a").request(cpu=1, memory="1G").on("n1").build(),
            pod("b").request(cpu=2, memory="2G").on("n1").build(),
        )
        assert mirror.nodes.idle[0, :3].tolist() == [5000, 7e9, 18]
        assert mirror.nodes.used[0, :3].tolist() == [3000, 3e9, 2]
        mirror.delete_pod("ns/b")
        assert mirror.nodes.idle[0, :3].tolist() == [7000, 9e9, 19]

    def test_a_node_may_be_overfull(self) -> None:
        mirror = world(
            node("n1").offer(cpu=2, memory="1G").build(),
            pod("p").request(cpu=1, memory="2G").on("n1", "Strange").build(),
        )
        assert mirror.nodes.idle[0, :2].tolist() == [1000, -1e9]
        assert mirror.tasks["ns/p"].status == TaskStatus.UNKNOWN

    def test_a_shrunken_node_recovers_when_it_grows_again(self) -> None:
        mirror = world(node("n1").offer(cpu=10).build(), pod("p").request(cpu=9).on("n1").build())
        mirror.apply_node(node("n1").offer(cpu=8).build())
        assert mirror.nodes.idle[0, 0] == -1000
        mirror.apply_node(node("n1").offer(cpu=10).build())
        assert mirror.nodes.idle[0, 0] == 1000

    def test_pods_before_their_node_count_when_it_arrives(self) -> None:
        mirror = world(pod("p").request(cpu=1).on("n1").build())
        assert mirror.nodes.count == 0
        mirror.apply_node(node("n1").offer(cpu=4).build())
        assert mirror.nodes.idle[0, 0] == 3000

    def test_finished_pods_take_nothing_but_stay_in_their_job(self) -> None:
        mirror = world(node("n1").offer(cpu=4).build(), pod("p").group("g").request(cpu=1).on("n1", "Failed").build())
        assert mirror.nodes.idle[0, 0] == 4000
        assert mirror.jobs["ns/g"].counts[TaskStatus.FAILED] == 1

    def test_oversubscription_is_added(self) -> None:
        annotations = {"volcano.sh/oversubscription-cpu": "1500", "volcano.sh/oversubscription-memory": "oops"}
        mirror = world(node("n1").offer(cpu=4).annotate(**annotations).build())
        assert mirror.nodes.allocatable[0, 0] == 5500

    def test_new_resources_widen_everything(self) -> None:
        many = {f"example.com/r{index}": 1 for index in range(12)}
        mirror = world(
            queue().build(),
            node("n1").offer(cpu=4).build(),
            pod("p").group("g").request(cpu=1).on("n1").build(),
            pod_group("g").build(),
            pod("q").group("g").request(**many).on("n1").build(),
        )
        audit(mirror)
        assert mirror.columns.width == 16


def _status(mirror: Mirror, key: str) -> str:
    return mirror.tasks[key].status.word


class TestOwnDecisions:
    def _bound(self) -> Mirror:
        mirror = world(
            node("n1").offer(cpu=4).build(),
            queue().build(),
            pod_group("g").members(1).build(),
            pod("p").group("g").request(cpu=1).build(),
        )
        assert binds(run_cycle(mirror, policy("gang"))) == {"p": "n1"}
        return mirror

    def test_a_bound_task_stays_binding_until_it_is_confirmed(self) -> None:
        mirror = self._bound()
        assert _status(mirror, "ns/p") == "Binding"
        mirror.apply_pod(pod("p").group("g").request(cpu=1).label(seen="late").build())
        assert _status(mirror, "ns/p") == "Binding"
        mirror.apply_pod(pod("p").group("g").request(cpu=1).on("n1", "Pending").build())
        assert _status(mirror, "ns/p") == "Bound"
        audit(mirror)

    def test_a_refused_binding_gives_everything_back(self) -> None:
        mirror = self._bound()
        mirror.bind_failed("ns-p")
        assert mirror.tasks["ns/p"].status == TaskStatus.PENDING
        assert mirror.nodes.idle[0, 0] == 4000
        audit(mirror)
        assert binds(run_cycle(mirror, policy("gang"))) == {"p": "n1"}

    def test_a_refusal_after_the_pod_has_moved_on_is_ignored(self) -> None:
        mirror = self._bound()
        mirror.apply_pod(pod("p").group("g").request(cpu=1).on("n1").build())
        mirror.bind_failed("ns-p")
        assert mirror.tasks["ns/p"].status == TaskStatus.RUNNING

    def _evicted(self) -> Mirror:
        mirror = world(
            node("n1").offer(cpu=1).build(),
            queue().build(),
            priority_class("high", 10),
            pod_group("low").members(0).phase("Running").build(),
            pod_group("urgent").members(1).priority_class("high").build(),
            pod("old").group("low").request(cpu=1).on("n1").build(),
            pod("new").group("urgent").request(cpu=1).build(),
        )
        result = run_cycle(mirror, policy("gang", "priority", "conformance", actions="allocate preempt"))
        assert [(eviction.task.name, eviction.reason) for eviction in result.evictions] == [("old", "preempt")]
        return mirror

    def test_an_evicted_task_stays_releasing_though_its_pod_still_looks_well(self) -> None:
        mirror = self._evicted()
        mirror.apply_pod(pod("old").group("low").request(cpu=1).on("n1").build())
        assert mirror.tasks["ns/old"].status == TaskStatus.RELEASING
        mirror.delete_pod("ns/old")
        assert mirror.nodes.idle[0, 0] == 1000

    def test_a_refused_eviction_makes_it_running_again(self) -> None:
        mirror = self._evicted()
        mirror.evict_failed("ns-old")
        assert mirror.tasks["ns/old"].status == TaskStatus.RUNNING
        audit(mirror)

    def test_what_only_waits_is_pending_again_after_the_cycle(self) -> None:
        mirror = self._evicted()
        assert mirror.tasks["ns/new"].status == TaskStatus.PENDING
        audit(mirror)


class TestJobs:
    def test_counts_of_a_job_with_pods_in_every_state(self) -> None:
        mirror = world(
            queue().build(),
            pod_group("g").build(),
            pod("a").group("g").request(cpu=1).build(),
            pod("b").group("g").request(cpu=2).on("n1").build(),
            pod("c").group("g").request(cpu=1).on("n1", "Pending").build(),
            pod("d").group("g").request(cpu=1).on("n1", "Pending").build(),
        )
        job = mirror.jobs["ns/g"]
        assert job.allocated[:3].tolist() == [4000, 0, 3]
        assert (job.counts[TaskStatus.PENDING], job.counts[TaskStatus.RUNNING]) == (1, 1)
        assert job.counts[TaskStatus.BOUND] == 2

    def test_a_job_is_of_the_session_only_with_group_and_queue(self) -> None:
        mirror = world(pod("p").group("g").build())
        assert "ns/g" not in mirror.session_jobs
        mirror.apply_pod_group(pod_group("g").queue("q").build())
        assert "ns/g" not in mirror.session_jobs
        mirror.apply_queue(queue("q").build())
        assert "ns/g" in mirror.session_jobs

    def test_an_empty_queue_name_means_the_default_queue(self) -> None:
        mirror = Mirror(default_queue="mine")
        mirror.apply_queue(queue("mine").build())
        mirror.apply_pod_group(pod_group("g").queue("").build())
        assert mirror.session_jobs["ns/g"].queue_name == "mine"

    def test_moving_a_group_to_another_queue_moves_its_sums(self) -> None:
        mirror = world(
            queue("a").build(),
            queue("b").build(),
            pod("p").group("g").request(cpu=1).on("n").build(),
            pod_group("g").queue("a").build(),
        )
        mirror.apply_pod_group(pod_group("g").queue("b").build())
        assert mirror.queues["a"].allocated[0] == 0
        assert mirror.queues["b"].allocated[0] == 1000

    def test_priority_follows_classes_as_they_come_and_go(self) -> None:
        mirror = world(pod_group("g").priority_class("high").build(), pod_group("h").build())
        assert mirror.jobs["ns/g"].priority == 0
        feed(mirror, priority_class("high", 9))
        feed(mirror, priority_class("usual", 3, default=True))
        assert (mirror.jobs["ns/g"].priority, mirror.jobs["ns/h"].priority) == (9, 3)
        mirror.delete_priority_class("usual")
        assert mirror.jobs["ns/h"].priority == 0

    def test_phase_is_read_from_the_status(self) -> None:
        mirror = world(pod_group("g").phase("Running").build(), pod_group("h").phase("").build())
        assert mirror.jobs["ns/g"].phase == Phase.RUNNING
        assert mirror.jobs["ns/h"].phase == Phase.PENDING


def test_shapes_of_pods_that_are_gone_are_forgotten() -> None:
    mirror = Mirror()
    for index in range(1100):
        mirror.apply_pod(pod("p").request(cpu=index + 1).build())
    assert len(mirror.shapes) == 1100
    mirror.prepare()
    assert len(mirror.shapes) == 1
    assert mirror.tasks["ns/p"].request[0] == 1_100_000


def test_hyper_nodes_are_taken_in_and_given_up() -> None:
    mirror = world(node("n1").build(), hyper_node("s0", 1, ("n1",)))
    assert "s0" in mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation).rows
    mirror.delete_hyper_node("s0", "another")
    mirror.delete_hyper_node("s0", "hypernode-s0")
    assert "s0" not in mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation).rows


def test_objects_only_plugins_read_are_kept_by_kind() -> None:
    mirror = Mirror()
    service = core.Service(
        metadata=core.ObjectMeta(name="s", namespace="ns", uid="1"), spec=core.ServiceSpec(selector={"app": "x"})
    )
    before = mirror.objects.version(core.Service)
    mirror.apply_object(service)
    assert mirror.objects.get(core.Service, "s", "ns") is service
    assert mirror.objects.version(core.Service) > before
    mirror.delete_object(core.Service, ("ns", "s"), "2")
    assert mirror.objects.get(core.Service, "s", "ns") is service
    mirror.delete_object(core.Service, ("ns", "s"), "1")
    assert mirror.objects.all(core.Service) == {}
