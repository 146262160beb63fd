"""priority and conformance, by spec 06 sections 6 and 7."""

from __future__ import annotations

from stromboli.api import core
from stromboli.scheduler.core.plugin import Eviction, EvictionContext
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import evicted, policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session, option

CLASSES = [priority_class("high", 1000), priority_class("low", 100)]


def on(builder: PodBuilder, group: str) -> core.Pod:
    return builder.group(group).request(cpu=1).on("n").build()


def session(*pods: core.Pod, plugins: list[str] | None = None) -> Session:
    groups = [pod_group(name).members(1).priority_class(name).build() for name in ("high", "low")]
    nodes = [node("n").offer(cpu=8, memory="8Gi").build()]
    return Session([queue().build()], CLASSES, nodes, groups, list(pods), plugins=plugins or ["priority"])


def pending(name: str, group: str) -> PodBuilder:
    return pod(name).group(group).request(cpu=1)


def test_the_higher_priority_comes_first_for_tasks_and_jobs() -> None:
    opened = session(
        pending("h", "high").build(), pending("l", "low").build(), pending("l9", "low").priority(9).build()
    )
    assert opened.job_order() == ["high", "low"]
    assert opened.task_order("l", "l9") == ["l9", "l"]


def test_between_jobs_the_jobs_priorities_count_and_inside_a_job_the_tasks() -> None:
    opened = session(
        on(pod("low-task").priority(5000), "low"),
        on(pod("high-task").priority(1), "high"),
        pending("h", "high").priority(7).build(),
        pending("l", "low").build(),
    )
    assert opened.preemptable("h", "low-task", "high-task") == ["low-task", "high-task"]
    assert opened.preemptable("l", "high-task") == []


def test_priority_has_no_say_in_reclaim() -> None:
    opened = session(on(pod("v"), "low"), pending("h", "high").build(), plugins=["priority", "conformance"])
    assert opened.reclaimable("h", "v") == ["v"]


def test_gang_reclaim_takes_all_and_gang_preempt_those_of_lower_priority() -> None:
    middle = priority_class("middle", 500)
    opened = session(on(pod("a"), "high"), on(pod("b"), "low"))
    job = opened.job("low")
    job.priority = middle.value
    candidates = opened.tasks("a", "b")
    job_of_b = opened.task("b").job
    assert job_of_b is job
    job.priority = 100
    context_job = opened.job("high")
    for kind, want in ((Eviction.GANG_RECLAIM, ["a", "b"]), (Eviction.GANG_PREEMPT, ["b"])):
        chosen = opened.combination.unified_evictable(EvictionContext(kind, context_job, ""), candidates)
        assert [task.name for task in chosen] == want


def test_a_job_starves_while_some_of_its_tasks_have_no_place() -> None:
    opened = session(on(pod("r"), "high"), pending("p", "high").build(), on(pod("x"), "low"))
    assert opened.combination.job_starving(opened.job("high"))
    assert not opened.combination.job_starving(opened.job("low"))


def cluster_of_the_preemption_case() -> list[core.Object]:
    small, full = node("small").offer(cpu=1, memory="1Gi"), node("full").offer(cpu=6, memory="6Gi")
    pods = [
        pod("first").group("low").request(cpu=3, memory="3Gi").on("full"),
        pod("second").group("low").request(cpu=3, memory="3Gi").on("full").priority(1000),
        pod("wants").group("high").request(cpu=3, memory="3Gi").priority(1000),
    ]
    minimums = {"low": 0, "high": 1}
    groups = [pod_group(name).members(least).priority_class(name).build() for name, least in minimums.items()]
    return [*CLASSES, queue().build(), small.build(), full.build(), *groups, *(one.build() for one in pods)]


def test_of_two_pods_of_a_lower_job_the_less_important_one_is_preempted() -> None:
    wanted = policy("priority", "gang", "conformance", actions="allocate preempt")
    mirror = world(cluster_of_the_preemption_case())
    result = run_cycle(mirror, wanted)
    assert evicted(result) == ["first"]


def test_without_its_preemptable_switch_nothing_is_preempted() -> None:
    wanted = policy(option("priority", preemptable=False), actions="allocate preempt")
    assert evicted(run_cycle(world(cluster_of_the_preemption_case()), wanted)) == []


def test_critical_pods_are_never_evicted() -> None:
    system = pod("dns", "kube-system").on("n").build()
    critical = pod("proxy").group("low").on("n")._spec(priority_class_name="system-node-critical").build()
    opened = session(system, critical, on(pod("v"), "low"), pending("h", "high").build(), plugins=["conformance"])
    assert opened.preemptable("h", "dns", "proxy", "v") == ["v"]
    assert opened.reclaimable("h", "dns", "proxy") == []
    context = EvictionContext(Eviction.GANG_PREEMPT, opened.job("high"), "")
    assert opened.combination.unified_evictable(context, opened.tasks("dns", "v")) == opened.tasks("v")


def test_a_tier_in_which_all_are_critical_names_nobody() -> None:
    system = pod("dns", "kube-system").on("n").build()
    opened = session(system, pending("h", "high").build(), plugins=["conformance", "priority"])
    assert opened.preemptable("h", "dns") == []
