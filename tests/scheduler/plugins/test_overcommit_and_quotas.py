"""overcommit and resourcequota, by spec 06 sections 11 and 12, and the pains P41 and P42."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.scheduler.core.records import Phase
from stromboli.testing.builders import Amount, PodGroupBuilder, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session, option

NODES = [node("small").offer(cpu=2, memory="4Gi").build(), node("large").offer(cpu=4, memory="16Gi").build()]


def asking(name: str, **amounts: Amount) -> PodGroupBuilder:
    return pod_group(name).members(1).phase("Pending").reserve(**amounts)


CASES: dict[str, tuple[object, dict[str, Amount], bool]] = {
    "a third of the cluster": (1.2, {"cpu": 2, "memory": "2G"}, True),
    "a factor below 1 counts as the default": (0.8, {"cpu": 2, "memory": "2G"}, True),
    "more than the cluster": (1.2, {"cpu": 20, "memory": "20G"}, False),
    "exactly the factor": (1.5, {"cpu": 4.5}, True),
    "above the factor": (1.5, {"cpu": 4.6}, False),
    "a factor that is no number counts as the default": ("much", {"cpu": 3.6}, True),
}


@pytest.mark.parametrize("name", CASES)
def test_admitted_work_is_bounded_by_the_factor(name: str) -> None:
    """The job is counted twice: once as admitted already, once as asking again."""
    factor, amounts, want = CASES[name]
    opened = Session(
        [queue().build(), *NODES],
        [asking("j", **amounts).build()],
        plugins=[option("overcommit", {"overcommit-factor": factor})],
    )
    opened.combination.job_enqueued(opened.job("j"))
    assert opened.combination.job_enqueueable(opened.job("j")) is want
    assert opened.events() == ([] if want else [f"resource in cluster is overused: {_overused(amounts)}"])


def _overused(amounts: dict[str, Amount]) -> str:
    return ", ".join(f"overused {name}" for name in amounts)


def test_what_nodes_hold_and_what_is_promised_both_count() -> None:
    held = pod("held").group("old").request(cpu=3).on("large").build()
    opened = Session(
        [queue().build(), *NODES],
        [pod_group("old").build(), asking("promised", cpu=3).phase("Inqueue").build(), asking("j", cpu=2).build()],
        held,
        plugins=["overcommit"],
    )
    assert not opened.combination.job_enqueueable(opened.job("j"))
    assert "is taken: short by cpu 800m" in opened.view.refusals["ns/j"].message


TAKEN = [
    pod_group("old").members(1).reserve(cpu=3).phase("Running").build(),
    pod("held").group("old").request(cpu=3).on("large").build(),
]
IN_VAIN = "waiting does not help: it would not start in the empty cluster either."
CAPPED, FREE = queue("default").cap(cpu=4).build(), queue("default").build()
STEPS = {
    "the cluster is full": (["overcommit"], FREE, 5, "Wait for running work to end, add nodes, or ask for less."),
    "the cluster is too small": (["overcommit"], FREE, 8, f"Add nodes, or ask for less; {IN_VAIN}"),
    "the queue is full": (
        ["proportion", "capacity"],
        CAPPED,
        4,
        "Wait for the queue's work to end, raise spec.capability, use another queue, or ask for less.",
    ),
    "the queue may not hold so much": (
        ["proportion", "capacity"],
        CAPPED,
        5,
        f"Raise spec.capability, use another queue, or ask for less; {IN_VAIN}",
    ),
    "no capability says so, and the cluster is full": (
        ["proportion", "capacity"],
        FREE,
        6,
        "Wait for running work to end, add nodes, or ask for less.",
    ),
    "no capability says so, and the cluster is too small": (
        ["proportion", "capacity"],
        FREE,
        8,
        f"Add nodes, or ask for less; {IN_VAIN}",
    ),
}


@pytest.mark.parametrize(("plugins", "into", "cpu", "want"), STEPS.values(), ids=STEPS.keys())
def test_waiting_is_advised_where_it_helps(plugins: list[str], into: core.Queue, cpu: int, want: str) -> None:
    for plugin in plugins:
        opened = Session([into, *NODES], TAKEN, [asking("j", cpu=cpu).build()], plugins=[plugin])
        assert not opened.combination.job_enqueueable(opened.job("j"))
        message = opened.view.refusals["ns/j"].message
        assert message.partition(". ")[2] == want, plugin


def test_p41_a_job_within_what_its_queue_is_guaranteed_enters_a_full_cluster() -> None:
    guarantee = core.Guarantee(resource={"cpu": "50"})
    org2 = queue("org2")._spec(guarantee=guarantee).build()
    pods = [pod(f"p{at}").group("g1").request(cpu=1).on("n").build() for at in range(100)]
    mirror = world(
        [queue("org1").build(), org2, node("n").offer(cpu=100, memory="1Gi").build()],
        [pod_group("g1").queue("org1").phase("Running").build(), asking("g2", cpu=50).queue("org2").build()],
        [asking("g3", cpu=50).queue("org1").build()],
        pods,
    )
    result = run_cycle(mirror, policy("gang", "overcommit", "proportion", actions="enqueue"))
    assert {update.job_id for update in result.pod_groups if update.status.phase == "Inqueue"} == {"ns/g2"}


@pytest.mark.parametrize("plugin", ["overcommit", "proportion", "capacity"])
def test_p42_promises_to_lower_priorities_that_wait_in_vain_do_not_keep_a_job_out(plugin: str) -> None:
    def opened(*waiting: PodGroupBuilder) -> Session:
        groups = [one.build() for one in waiting]
        return Session(
            [queue().build(), priority_class("high", 1000), *NODES],
            groups,
            [asking("high", cpu=4).priority_class("high").build(), asking("equal", cpu=1).build()],
            plugins=[plugin],
        )

    waiting = [asking(f"low{at}", cpu=1).phase("Inqueue") for at in range(50)]
    in_vain = opened(*(one.unschedulable() for one in waiting))
    assert in_vain.combination.job_enqueueable(in_vain.job("high"))
    assert not in_vain.combination.job_enqueueable(in_vain.job("equal"))
    not_tried_yet = opened(*waiting)
    assert not not_tried_yet.combination.job_enqueueable(not_tried_yet.job("high"))


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("plugin", ["overcommit", "proportion", "capacity"])
def test_so_it_is_with_promises_of_the_same_cycle_whenever_they_are_asked_for(plugin: str, asked_before: bool) -> None:
    waiting = [
        asking("low", cpu=4).unschedulable(),
        asking("high", cpu=4).priority_class("high"),
        asking("big", cpu=90),
    ]
    opened = Session(
        [queue().build(), priority_class("high", 1000), *NODES], [one.build() for one in waiting], plugins=[plugin]
    )
    if asked_before:
        assert not opened.combination.job_enqueueable(opened.job("big"))
    opened.combination.job_enqueued(opened.job("low"))
    opened.cycle.set_phase(opened.job("low"), Phase.INQUEUE)
    assert opened.combination.job_enqueueable(opened.job("high"))


def quota(**hard: Amount) -> core.ResourceQuota:
    metadata = core.ObjectMeta(name="q", namespace="ns")
    return core.ResourceQuota(metadata=metadata, spec=core.ResourceQuotaSpec(hard=hard))


QUOTAS: dict[str, tuple[list[core.ResourceQuota], dict[str, Amount] | None, bool]] = {
    "within": ([quota(cpu="2", memory="2G")], {"cpu": 2, "memory": "2G"}, True),
    "above": ([quota(cpu="2", memory="2G")], {"cpu": 20, "memory": "20G"}, False),
    "nothing asked": ([quota(cpu="2")], None, True),
    "no quota": ([], {"cpu": 20}, True),
    "other names do not matter": ([quota(**{"requests.cpu": "2"})], {"cpu": 20}, True),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_jobs_that_a_quota_would_block_are_not_admitted(name: str) -> None:
    quotas, amounts, want = QUOTAS[name]
    group = asking("j", **amounts) if amounts is not None else pod_group("j").phase("Pending")
    opened = Session([queue().build()], quotas, [group.build()], plugins=["resourcequota"])
    assert opened.combination.job_enqueueable(opened.job("j")) is want


def test_admitted_jobs_take_from_the_quota_at_once_and_rejected_ones_do_not() -> None:
    groups = [asking(name, cpu=cpu).build() for name, cpu in (("a", 1), ("b", 1), ("c", 2))]
    opened = Session([queue().build(), quota(cpu="1")], groups, plugins=["resourcequota"])
    assert opened.combination.job_enqueueable(opened.job("a"))
    assert opened.combination.job_enqueueable(opened.job("b"))
    opened.combination.job_enqueued(opened.job("a"))
    assert not opened.combination.job_enqueueable(opened.job("b"))
    assert opened.events() == ["resource quota insufficient, requested: cpu 1, used: cpu 0, limited: cpu 1"]
    assert not opened.combination.job_enqueueable(opened.job("c"))
    usual = "Wait for work of the namespace to end, raise the quota, or ask for less."
    lasting = f"Raise the namespace's ResourceQuota, or ask for less; {IN_VAIN}"
    told = [opened.view.refusals[f"ns/{name}"].message.partition(" is used. ")[2] for name in ("b", "c")]
    assert told == [usual, lasting]
