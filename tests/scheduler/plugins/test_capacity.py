"""capacity, by spec 06 section 10; its tables of reclaim cases are vectors, see test_vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.view import Refusal, Sample, Shortage
from stromboli.scheduler.plugins.device_quotas import DeviceAccount, limits
from stromboli.scheduler.plugins.queue_hierarchy import QueueHierarchy
from stromboli.testing.builders import Amount, QueueBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import binds, policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session, option

GIB = 1024**3
A100 = "nvidia.com/a100"
TREE = option("capacity", hierarchy=True)


def work(
    name: str,
    in_queue: str,
    count: int = 1,
    *,
    on: str = "",
    phase: str = "Running",
    asks: Mapping[str, Amount] | None = None,
    **more: Amount,
) -> list[core.Object]:
    group = pod_group(name).members(1).queue(in_queue).phase(phase).build()
    pods = [pod(f"{name}-{at}").group(name).request(**(asks or {}), **more) for at in range(count)]
    return [group, *(one.on(on).build() if on else one.build() for one in pods)]


SHARES: dict[str, tuple[dict[str, Amount], dict[str, Amount], float]] = {
    "nothing deserved": ({}, {}, 1.0),
    "zeros deserved": ({"cpu": 0, "memory": 0}, {"cpu": 1}, 1.0),
    "nothing in use": ({"cpu": 2, "memory": "2Gi"}, {}, 0.0),
    "half in use": ({"cpu": 2, "memory": "2Gi"}, {"cpu": 1, "memory": "1Gi"}, 0.5),
    "all in use": ({"cpu": 2, "memory": "2Gi"}, {"cpu": 2, "memory": "2Gi"}, 1.0),
    "more of one": ({"cpu": 2, "memory": "2Gi"}, {"cpu": 3, "memory": "2Gi"}, 1.5),
    "memory dominates": ({"cpu": 2, "memory": "4Gi"}, {"cpu": 1, "memory": "3Gi"}, 0.75),
    "cpu dominates": ({"cpu": 2, "memory": "4Gi"}, {"cpu": 1.5, "memory": "2Gi"}, 0.75),
}


@pytest.mark.parametrize("name", SHARES)
def test_the_share_of_a_queue_is_what_it_uses_of_what_it_deserves(name: str) -> None:
    deserved, used, want = SHARES[name]
    opened = Session(
        [queue("q").deserve(**deserved).build(), node("n").offer(cpu=9, memory="9Gi").build()],
        work("j", "q", on="n", asks=used),
        work("k", "q", cpu=5, memory="5Gi"),
        plugins=["capacity"],
    )
    result = opened.cycle.close()
    (share,) = (sample.value for sample in result.samples if sample.name == "queue_share")
    assert share == pytest.approx(want)


def test_queues_go_by_priority_then_share_then_those_that_deserve_something() -> None:
    queues = [
        queue("best-effort").build(),
        queue("full").deserve(cpu=1).build(),
        queue("empty").deserve(cpu=1).build(),
        queue("important").priority(1).build(),
    ]
    opened = Session(
        [node("n").offer(cpu=9, memory="9Gi").build(), *queues],
        work("a", "best-effort"),
        work("b", "full", on="n", cpu=1),
        work("c", "empty", cpu=1),
        work("d", "important"),
        plugins=["capacity"],
    )
    assert opened.queue_order() == ["important", "empty", "full", "best-effort"]


def family(*links: tuple[str, str]) -> list[core.Queue]:
    return [(queue(name).parent(above) if above else queue(name)).build() for name, above in links]


FAULTS: dict[str, tuple[list[core.Queue], set[str]]] = {
    "a tree": (family(("root", ""), ("a", "root"), ("b", "a"), ("c", "")), set()),
    "a parent that does not exist takes its descendants along": (
        family(("root", ""), ("a", "ghost"), ("b", "a"), ("c", "")),
        {"a", "b"},
    ),
    "queues that are each other's parents": (
        family(("root", ""), ("a", "b"), ("b", "a"), ("c", "b"), ("d", "")),
        {"a", "b", "c"},
    ),
    "its own parent": (family(("root", ""), ("a", "a"), ("b", "")), {"a"}),
    "no root at all": (family(("a", ""), ("b", "a")), {"a", "b"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_queues_that_cannot_be_used_are_set_aside(name: str) -> None:
    queues, want = FAULTS[name]
    tree = QueueHierarchy.of(world(queues).queues)
    assert set(tree.faults) == want
    assert set(tree.ancestors) == {one.name for one in queues} - want


def test_the_common_ancestors_of_queues_are_counted_from_the_root() -> None:
    tree = QueueHierarchy.of(world(family(("root", ""), ("a", "root"), ("a1", "a"), ("a2", "a"), ("b", "root"))).queues)
    assert tree.ancestors["a1"] == ["a", "root"]
    assert tree.common_depth("a1", "a2") == 2
    assert tree.common_depth("a1", "b") == 1
    assert tree.at_depth("a1", 1) == "a"
    assert tree.at_depth("b", 1) == "b"
    assert tree.is_leaf("a1") and not tree.is_leaf("a")


def opened_tree(*given: list[core.Object], queues: list[QueueBuilder], level: int = 0) -> Session:
    plugin = option("capacity", {"ancestorReclaimLevel": level}, hierarchy=True)
    nodes = [node("n").offer(cpu=8, memory="8Gi", **{A100: 8}).build()]
    return Session([queue("root").build(), *(one.build() for one in queues)], nodes, *given, plugins=[plugin])


def test_limits_are_inherited_and_capped_by_all_ancestors() -> None:
    queues = [
        queue("dept").cap(cpu=4),
        queue("one").parent("dept").cap(cpu=200),
        queue("two").parent("dept"),
    ]
    opened = opened_tree(
        work("a", "one", 3, on="n", cpu=1), work("b", "two", 2, cpu=1), work("c", "one", cpu=2), queues=queues
    )
    allocatable = opened.combination.allocatable
    assert allocatable(opened.queue("two"), opened.task("b-0"))
    assert not allocatable(opened.queue("one"), opened.task("c-0"))
    opened.place("b-0", "n")
    assert not allocatable(opened.queue("two"), opened.task("b-1"))
    assert any("one" in warning and "capability" in warning for warning in opened.view.warnings)


def test_a_guarantee_is_kept_free_from_the_siblings() -> None:
    guarantee = core.Guarantee(resource={"cpu": "3"})
    queues = [
        queue("dept").cap(cpu=4),
        queue("safe").parent("dept")._spec(guarantee=guarantee),
        queue("two").parent("dept"),
    ]
    opened = opened_tree(work("a", "two", 2, cpu=1), work("b", "safe", cpu=3), queues=queues)
    opened.place("a-0", "n")
    assert not opened.combination.allocatable(opened.queue("two"), opened.task("a-1"))
    assert opened.combination.allocatable(opened.queue("safe"), opened.task("b-0"))


@dataclass(frozen=True)
class Limited:
    """Queues, where 3 cpu are in use, and who is named for a job of 2 cpu in the leaf."""

    queues: list[QueueBuilder]
    used_by: str
    holder: str
    limit: str
    taken: str
    short: str


LIMITED = {
    "the leaf": Limited(
        [queue("dept").cap(cpu=9), queue("leaf").parent("dept").cap(cpu=4)], "leaf", "leaf", "4", "3", "1"
    ),
    "the queue above, whose capability the leaf inherits": Limited(
        [queue("dept").cap(cpu=4), queue("leaf").parent("dept")], "leaf", "dept", "4", "3", "1"
    ),
    "the queue above, because of the leaf's sibling": Limited(
        [queue("dept").cap(cpu=4), queue("leaf").parent("dept").cap(cpu=3), queue("other").parent("dept")],
        *("other", "dept", "4", "3", "1"),
    ),
    "a queue two levels above": Limited(
        [queue("org").cap(cpu=4), queue("dept").parent("org"), queue("leaf").parent("dept").cap(cpu=200)],
        *("leaf", "org", "4", "3", "1"),
    ),
    "a level between": Limited(
        [queue("org").cap(cpu=100), queue("dept").parent("org").cap(cpu="3500m"), queue("leaf").parent("dept")],
        *("leaf", "dept", "3500m", "3", "1500m"),
    ),
}


@pytest.mark.parametrize("case", LIMITED.values(), ids=LIMITED)
def test_who_limits_a_job_is_named_with_resource_and_amounts(case: Limited) -> None:
    waiting: list[core.Object] = [
        pod_group("j").members(1).queue("leaf").phase("Pending").reserve(cpu=2).build(),
        pod("j-0").group("j").request(cpu=2).build(),
        pod_group("used").members(1).queue(case.used_by).reserve(cpu=3).build(),
        pod("used-0").group("used").request(cpu=3).on("n").build(),
    ]
    opened = opened_tree(waiting, queues=case.queues)
    assert not opened.combination.job_enqueueable(opened.job("j"))
    refusal = opened.view.refusals["ns/j"]
    assert refusal.shortages == (Shortage(case.holder, "cpu", "2", case.limit, case.taken, case.short),)
    limit = f"queue {case.holder} may hold cpu {case.limit}"
    told = f"{limit}, of which cpu {case.taken} is taken: short by cpu {case.short}"
    assert refusal.message.startswith(f"The group needs cpu 2; {told}. ")
    leaf, task = opened.queue("leaf"), opened.task("j-0")
    assert not opened.combination.allocatable(leaf, task)
    want = Refusal("QueueQuotaInsufficient", f"{told} for a pod that needs cpu 2", refusal.shortages)
    assert opened.combination.withheld(leaf, task) == want


def test_a_queue_that_takes_no_work_says_so_to_pods_as_well() -> None:
    queues = [queue("dept"), queue("leaf").parent("dept"), queue("shut").state("Closed"), queue("lost").parent("ghost")]
    opened = opened_tree(*(work(f"in-{one}", one, cpu=1) for one in ("dept", "shut", "lost", "leaf")), queues=queues)
    withheld = {
        name: opened.combination.withheld(opened.queue(name), opened.task(f"in-{name}-0"))
        for name in ("dept", "shut", "lost", "leaf")
    }
    assert withheld == {
        "dept": Refusal("QueueNotLeaf", "queue dept has queues below it and takes no jobs itself"),
        "shut": Refusal("QueueNotOpen", "queue shut is Closed: it takes no work until it is Open"),
        "lost": Refusal("QueueMisconfigured", "the queue lost has invalid parent queue ghost"),
        "leaf": None,
    }


def test_a_guarantee_beside_an_ancestor_that_takes_the_room_is_named() -> None:
    greedy = queue("greedy")._spec(guarantee=core.Guarantee(resource={"cpu": "1000"}))
    queues = [queue("dept").cap(cpu=4), queue("mid").parent("dept"), queue("leaf").parent("mid"), greedy.parent("dept")]
    group = pod_group("j").members(1).queue("leaf").phase("Pending").reserve(cpu=1).build()
    opened = opened_tree([group], queues=queues)
    assert not opened.combination.job_enqueueable(opened.job("j"))
    assert "Queue greedy is guaranteed cpu 1k, kept free for it" in opened.view.refusals["ns/j"].message


def test_a_queue_with_children_takes_no_jobs_and_says_so() -> None:
    opened = opened_tree(
        work("wrong", "dept", phase="Pending", cpu=1),
        work("right", "leaf", phase="Pending", cpu=1),
        queues=[queue("dept"), queue("leaf").parent("dept")],
    )
    assert not opened.combination.job_enqueueable(opened.job("wrong"))
    assert not opened.combination.allocatable(opened.queue("dept"), opened.task("wrong-0"))
    assert opened.combination.job_enqueueable(opened.job("right"))
    assert "dept" in opened.view.refusals["ns/wrong"].message


def test_the_books_of_all_ancestors_follow_placements_and_come_back_exactly() -> None:
    opened = opened_tree(
        work("a", "leaf", 2, on="n", cpu=1),
        work("b", "leaf", cpu=2),
        queues=[queue("dept"), queue("leaf").parent("dept")],
    )

    def held() -> list[float]:
        result = {sample.labels: sample.value for sample in _closing_samples(opened)}
        return [result[("queue_name", name),] for name in ("leaf", "dept", "root")]

    assert held() == [2000.0, 2000.0, 2000.0]
    statement = opened.cycle.statement()
    statement.allocate(opened.task("b-0"), opened.node("n"))
    statement.evict(opened.task("a-0"), "test")
    assert held() == [3000.0, 3000.0, 3000.0]
    statement.discard()
    assert held() == [2000.0, 2000.0, 2000.0]


def _closing_samples(opened: Session) -> list[Sample]:
    opened.view.samples.clear()
    for _, close in opened.combination.close_hooks:
        close()
    return [sample for sample in opened.view.samples if sample.name == "queue_allocated_milli_cpu"]


def test_leaves_are_compared_below_their_last_common_ancestor() -> None:
    queues = [
        queue("busy").deserve(cpu=2),
        queue("idle").deserve(cpu=2),
        queue("b1").parent("busy").deserve(cpu=4),
        queue("b2").parent("busy").deserve(cpu=4),
        queue("i1").parent("idle").deserve(cpu=1),
    ]
    opened = opened_tree(
        work("x", "b1", on="n", cpu=2), work("y", "b2", cpu=1), work("z", "i1", on="n", cpu=1), queues=queues
    )
    order = [name for name in opened.queue_order() if name in ("b1", "b2", "i1")]
    assert order == ["i1", "b2", "b1"]


def test_victims_of_the_closer_relative_go_first() -> None:
    queues = [queue("near"), queue("mine").parent("near"), queue("sibling").parent("near"), queue("far")]
    opened = opened_tree(queues=queues)
    compare = opened.combination.victim_queue_compare
    mine = opened.queue("mine")
    assert compare(opened.queue("sibling"), opened.queue("far"), mine) < 0
    assert compare(opened.queue("far"), opened.queue("sibling"), mine) > 0


def test_a_guarantee_is_never_reclaimed() -> None:
    guarantee = core.Guarantee(resource={"cpu": "2"})
    opened = Session(
        [queue("safe")._spec(guarantee=guarantee).build(), queue("poor").deserve(cpu=4).build()],
        [node("n").offer(cpu=4, memory="4Gi").build()],
        work("s", "safe", 3, on="n", cpu=1),
        work("p", "poor", cpu=1),
        plugins=["capacity"],
    )
    assert opened.reclaimable("p-0", "s-0", "s-1", "s-2") == ["s-2"]


def test_what_has_nothing_in_common_with_the_reclaimer_stays() -> None:
    opened = Session(
        [queue("rich").build(), queue("poor").deserve(cpu=4).build(), node("n").offer(cpu=4, gpu=4).build()],
        work("g", "rich", on="n", gpu=1),
        work("c", "rich", on="n", cpu=1),
        work("p", "poor", cpu=1),
        plugins=["capacity"],
    )
    assert opened.reclaimable("p-0", "g-0", "c-0") == ["c-0"]


def test_p46_a_queue_that_deserves_only_gpus_reclaims_for_a_pod_that_also_asks_for_cpu() -> None:
    opened = Session(
        [queue("gpus").deserve(**{A100: 2}).build(), queue("rich").build()],
        [node("n").offer(cpu=4, memory="8Gi", **{A100: 2}).build()],
        work("r", "rich", 2, on="n", cpu=1, memory="1Gi", asks={A100: 1}),
        work("g", "gpus", cpu=1, memory="1Gi", asks={A100: 2}),
        plugins=["capacity"],
    )
    assert opened.combination.preemptive(opened.queue("gpus"), opened.tasks("g-0"))
    assert len(opened.reclaimable("g-0", "r-0", "r-1")) == 2


# Device classes


def test_device_keys_are_read_from_resource_lists() -> None:
    listed: dict[str, str] = {
        "cpu": "4",
        "deviceclass/gpu.com": "2",
        "memory.deviceclass/gpu.com": "16Gi",
        "deviceclass/": "1",
        ".deviceclass/x": "1",
    }
    assert limits(listed) == {"deviceclass/gpu.com": 2.0, "memory.deviceclass/gpu.com": 16.0 * GIB}


def test_a_shared_claim_is_charged_once_and_released_with_its_last_task() -> None:
    account = DeviceAccount({"deviceclass/g": 2.0})
    claims = {"ns/shared": {"deviceclass/g": 2.0}}
    assert account.admits(claims)
    account.charge(claims)
    account.charge(claims)
    assert account.allocated["deviceclass/g"] == 2.0
    assert account.admits(claims)
    assert not account.admits({"ns/other": {"deviceclass/g": 1.0}})
    account.release(claims)
    assert not account.admits({"ns/other": {"deviceclass/g": 1.0}})
    account.release(claims)
    assert account.admits({"ns/other": {"deviceclass/g": 1.0}})


def test_promises_count_for_admission_only() -> None:
    account = DeviceAccount({"deviceclass/g": 2.0, "memory.deviceclass/g": 16.0})
    demand = {"deviceclass/g": 2.0, "memory.deviceclass/g": 16.0}
    account.promise({"deviceclass/g": 1.0, "memory.deviceclass/g": 8.0})
    assert [each.resource for each in account.lacking(demand)] == ["deviceclass/g", "memory.deviceclass/g"]
    assert account.admits({"ns/c": demand})
    assert account.admits({"ns/c": {"deviceclass/unknown": 100.0}})
    assert not account.admits({"ns/c": {"deviceclass/g": 1.0, "other.deviceclass/g": 1.0}})


def claimed(name: str, device_class: str, count: int) -> core.ResourceClaim:
    exact = core.ExactDeviceRequest(device_class_name=device_class, count=count)
    devices = core.DeviceClaim(requests=(core.DeviceRequest(name="r", exactly=exact),))
    metadata = core.ObjectMeta(name=name, namespace="ns")
    return core.ResourceClaim(metadata=metadata, spec=core.ResourceClaimSpec(devices=devices))


def test_a_job_that_asks_for_more_devices_than_its_queue_may_have_is_not_admitted() -> None:
    group = pod_group("j").members(1).phase("Pending").queue("q").build()
    claim = core.PodResourceClaim(name="c", resource_claim_name="big")
    opened = Session(
        [queue("q").cap(**{"deviceclass/gpu.com": 1}).build(), node("n").offer(cpu=1).build()],
        [claimed("big", "gpu.com", 2), group, pod("p").group("j")._spec(resource_claims=(claim,)).build()],
        plugins=["capacity"],
    )
    assert not opened.combination.job_enqueueable(opened.job("j"))
    assert opened.events() == ["queue resource quota insufficient: insufficient dra-resource-exceeded"]
    assert opened.view.refusals["ns/j"].shortages == (Shortage("q", "deviceclass/gpu.com", "2", "1", "0", "1"),)
    withheld = opened.combination.withheld(opened.queue("q"), opened.task("p"))
    assert withheld is not None
    assert withheld.message == (
        "queue q may hold deviceclass/gpu.com 1, of which deviceclass/gpu.com 0 is taken: "
        "short by deviceclass/gpu.com 1 for a pod that needs deviceclass/gpu.com 2"
    )
    assert not opened.combination.allocatable(opened.queue("q"), opened.task("p"))


# Gates


def test_room_is_kept_for_tasks_whose_gate_was_removed() -> None:
    gated = [
        pod(f"g{at}").group("j").request(cpu=1).annotate(**{names.QUEUE_ALLOCATION_GATE: "true"}) for at in range(2)
    ]
    pods = [gated[0].gated(names.QUEUE_ALLOCATION_GATE).build(), gated[1].build()]
    opened = Session(
        [queue("q").cap(cpu=2).build(), node("n").offer(cpu=4).build()],
        [pod_group("j").members(1).queue("q").build(), *pods],
        work("k", "q", 2, cpu=1),
        plugins=["capacity"],
        options={"feature-gates": {"SchedulingGatesQueueAdmission": True}},
    )
    allocatable, q = opened.combination.allocatable, opened.queue("q")
    assert allocatable(q, opened.task("g0"))  # one core is kept for g1, which was let through before
    opened.cycle.remove_gate(opened.task("g0"))
    assert not allocatable(q, opened.task("k-0"))
    assert allocatable(q, opened.task("g1"))
    opened.place("g1", "n")
    assert not allocatable(q, opened.task("k-0"))


def test_without_the_feature_nothing_is_kept() -> None:
    waiting = pod("g").group("j").request(cpu=1).annotate(**{names.QUEUE_ALLOCATION_GATE: "true"}).build()
    opened = Session(
        [queue("q").cap(cpu=1).build(), node("n").offer(cpu=4).build()],
        [pod_group("j").members(1).queue("q").build(), waiting],
        work("k", "q", cpu=1),
        plugins=["capacity"],
    )
    assert opened.combination.allocatable(opened.queue("q"), opened.task("k-0"))


# Inputs that stopped the original (pains C1, C2, C4, P31, P33)

BROKEN: dict[str, list[QueueBuilder]] = {
    "C1: a parent that does not exist": [queue("bad").parent("ghost")],
    "C2: queues that are each other's parents": [queue("bad").parent("worse"), queue("worse").parent("bad")],
    "C4: a job in a queue that has children": [queue("bad"), queue("below").parent("bad")],
    "P31: children are guaranteed more than their parent": [
        queue("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "10"})),
        queue("bad").parent("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "6"})),
        queue("d2").parent("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "6"})),
    ],
    "P33: a child may have more than the cluster": [queue("bad").cap(cpu=200)],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_queue_stops_nobody_else(name: str) -> None:
    guaranteed = name.startswith("P31")
    mirror = world(
        [queue("root").build(), queue("good").build(), *(one.build() for one in BROKEN[name])],
        [node("n").offer(cpu=40 if guaranteed else 4, memory="40Gi").build()],
        work("g", "good", 2, phase="Pending", cpu=1, memory="1Gi"),
        work("b", "bad", phase="Pending", cpu=1, memory="1Gi"),
    )
    result = run_cycle(mirror, policy("gang", TREE, actions="enqueue allocate reclaim"))
    assert not result.problems
    assert {"g-0", "g-1"} <= set(binds(result))
    if name[:2] in ("C1", "C2"):
        assert any("bad" in warning for warning in result.warnings)
    if name.startswith("C"):
        assert "b-0" not in binds(result)
    else:
        assert "b-0" in binds(result)
        assert result.warnings
