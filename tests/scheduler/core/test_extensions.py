"""What plugins may ask of the core: to send something along with binds, to tell pods apart, to account themselves."""

from __future__ import annotations

from stromboli.api import core
from stromboli.scheduler.core.extensions import BindExtension, NodeLock, merged
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Filter, Hooks, Plugin, Scope
from stromboli.scheduler.core.reasons import Reason
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import View
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, binds, feed, open_cycle, plugin_of, policy, run_cycle, world

DEVICE = "example.com/device"


def cluster() -> Mirror:
    return world(
        queue().build(),
        pod_group("j").members(1).reserve(**{"cpu": 1, DEVICE: 4}).build(),
        node("n1").offer(cpu=8).build(),
        pod("old").group("j").request(cpu=1, **{DEVICE: 2}).on("n1").build(),
        pod("p").group("j").request(cpu=1, **{DEVICE: 1}).build(),
    )


def test_extensions_of_several_plugins_become_one() -> None:
    first, second = NodeLock("a", "a"), NodeLock("b", "b")
    one, other = BindExtension({"x": "1"}, (first,)), BindExtension({"y": "2"}, (second,))
    assert merged([None, one, other]) == BindExtension({"x": "1", "y": "2"}, (first, second))
    assert merged([None, one]) is one
    assert merged([None]) is None


def test_what_goes_along_with_a_bind_is_assumed_by_the_mirror() -> None:
    def extension(task: Task, node: Node) -> BindExtension:
        return BindExtension({"example.com/node": node.name})

    mirror = world(
        queue().build(),
        pod_group("j").build(),
        node("n1").offer(cpu=8).build(),
        pod("p").group("j").request(cpu=1).build(),
    )
    hooks = Hooks(bind_extension=extension)
    result = run_cycle(mirror, policy("gang", "test"), plugins={"test": plugin_of(hooks)})
    (bind,) = result.binds
    assert bind.extension == BindExtension({"example.com/node": "n1"})
    task = mirror.tasks["ns/p"]
    assert task.status == TaskStatus.BINDING
    assert task.annotations["example.com/node"] == "n1"


def test_resources_that_a_plugin_accounts_for_weigh_nothing_from_its_first_cycle_on() -> None:
    mirror = cluster()
    hooks = Hooks(own_resources=frozenset({DEVICE}))
    result = run_cycle(mirror, policy("gang", "test"), plugins={"test": plugin_of(hooks)})
    assert binds(result) == {"p": "n1"}, "no node offers the device, and nobody misses it"
    audit(mirror)
    column = mirror.columns.get(DEVICE)
    assert not mirror.nodes.state[:, :, column].any()
    assert not mirror.job_table.minimum[:, column].any()
    feed(mirror, node("n2").offer(cpu=8, **{DEVICE: 3}).build())
    feed(mirror, pod("late").group("j").request(cpu=1, **{DEVICE: 1}).build())
    assert mirror.nodes.allocatable[:, column].sum() == mirror.tasks["ns/late"].request[column] == 0
    audit(mirror)


def test_pods_are_told_apart_as_soon_as_plugins_are_open() -> None:
    mirror = world(
        queue().build(),
        pod_group("j").build(),
        *(pod(name).group("j").label(tier=name).build() for name in ("a", "b")),
        *(pod(name).group("j").annotate(tier=name).build() for name in ("c", "d")),
    )
    hooks = Hooks(shape_labels=frozenset({"tier"}), shape_annotations=frozenset({"tier"}))

    def shapes() -> int:
        return len({task.shape.index for task in mirror.tasks.values()})

    assert shapes() == 1
    open_cycle(mirror, policy("test"), plugins={"test": plugin_of(hooks)}).close()
    assert shapes() == 4
    known = [task.shape for task in mirror.tasks.values()]
    open_cycle(mirror, policy("test"), plugins={"test": plugin_of(hooks)}).close()
    assert [task.shape for task in mirror.tasks.values()] == known, "nothing is made anew that has not changed"
    audit(mirror)


def test_affinity_follows_shapes_that_are_made_anew_after_its_plugin_has_opened() -> None:
    selector = core.LabelSelector(match_labels={"app": "x"})
    term = core.PodAffinityTerm(topology_key="zone", label_selector=selector)
    apart = core.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    mirror = world(
        queue().build(),
        pod_group("j").members(1).build(),
        *(node(name).offer(cpu=4).label(zone=name).build() for name in ("n1", "n2")),
        pod("there").group("j").label(tier="1").affine(core.Affinity(pod_anti_affinity=apart)).on("n1").build(),
        pod("new").group("j").label(app="x", tier="2").request(cpu=1).build(),
    )
    tiers = policy("gang", "predicates", "test")
    cycle = open_cycle(mirror, tiers, plugins={"test": plugin_of(Hooks(shape_labels=frozenset({"tier"})))})
    assert list(cycle.view.affine_shapes) == [mirror.tasks["ns/there"].shape]
    for action in tiers.actions:
        cycle.execute(action)
    assert binds(cycle.close()) == {"new": "n2"}


class Picky(Plugin):
    """Answers for some pods by their job."""

    name = "picky"
    asked: list[str]

    def open(self, view: View) -> Hooks:
        def refuse(task: Task, rows: object) -> None:
            Picky.asked.append(task.name)

        return Hooks(
            filters=[Filter("by job", [Reason("no")], refuse, scope=Scope.JOB, concerns=lambda t: t.request[0] > 1000)]
        )


def test_answers_are_as_narrow_as_the_hooks_that_concern_the_shape() -> None:
    Picky.asked = []
    pods = [pod(f"{job}-{cpu}").group(job).request(cpu=cpu).build() for job in ("j", "k") for cpu in (1, 2)]
    mirror = world(
        queue().build(), pod_group("j").build(), pod_group("k").build(), node("n1").offer(cpu=9).build(), *pods
    )
    cycle = open_cycle(mirror, policy("picky"), plugins={"picky": Picky})
    evaluations = {task.name: cycle.searches.of(task) for task in mirror.tasks.values()}
    assert evaluations["j-1"] is evaluations["k-1"]
    assert evaluations["j-2"] is not evaluations["k-2"]
    assert Picky.asked == ["j-2", "k-2"]
