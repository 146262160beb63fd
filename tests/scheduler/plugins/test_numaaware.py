"""numa-aware: which nodes take a Guaranteed pod, which CPUs it gets, and what is left on the node afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.numaaware.assigning import assign, take
from stromboli.scheduler.plugins.numaaware.fitting import fit
from stromboli.scheduler.plugins.numaaware.hints import Hint, TopologyPolicy, cpu_hints
from stromboli.scheduler.plugins.numaaware.layouts import BadCpuSet, Layout, parse_cpus
from stromboli.scheduler.plugins.numaaware.pods import is_guaranteed, whole_cpus
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import binds, feed, policy, run_cycle, world
from tests.scheduler.plugins.sessions import Session

CPUS = {cpu: core.CpuInfo(numa=cpu // 4, socket=cpu // 4, core=cpu // 2) for cpu in range(8)}
LAYOUT = Layout(CPUS)
NAMED = {str(cpu): place for cpu, place in CPUS.items()}


def numatopology(
    name: str, allocatable: str = "0-7", policy_name: str = "single-numa-node", **more: object
) -> core.Numatopology:
    spec = {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy_name},
        "numares": {"cpu": core.NumaResource(allocatable=allocatable, capacity=8)},
        "cpu_detail": NAMED,
        **more,
    }
    return core.Numatopology(metadata=core.ObjectMeta(name=name), spec=core.NumatopologySpec(**spec))  # type: ignore[arg-type]


def guaranteed(name: str, cpu: int, *, numa: str = "single-numa-node", containers: int = 1) -> core.Pod:
    amounts: core.ResourceList = {"cpu": str(cpu), "memory": "1Gi"}
    resources = core.ResourceRequirements(requests=amounts, limits=amounts)
    built = pod(name).group("j").annotate(**({names.NUMA_TOPOLOGY_POLICY: numa} if numa else {})).build()
    listed = tuple(core.Container(name=f"c{number}", resources=resources) for number in range(containers))
    return core.Pod(
        metadata=built.metadata, spec=core.PodSpec(scheduler_name="volcano", containers=listed), status=built.status
    )


def cluster(*more: core.Object, members: int = 1) -> Mirror:
    return world(queue().build(), pod_group("j").members(members).phase("Inqueue").build(), *more)


# -- hints and assignments -----------------------------------------------------------------------------------------

HINTS = {
    "either NUMA node has room": (4, "0-7", [(1, True), (2, True), (3, False)]),
    "one NUMA node has lost a CPU": (4, "1-7", [(2, True), (3, False)]),
    "more than a NUMA node holds": (5, "0-7", [(3, True)]),
    "everything": (8, "0-7", [(3, True)]),
    "more than there is": (9, "0-7", []),
    "only in pieces": (4, "2-5", [(3, False)]),
}


@pytest.mark.parametrize("name", HINTS)
def test_hints_say_where_cpus_are(name: str) -> None:
    count, available, want = HINTS[name]
    found = cpu_hints(LAYOUT, parse_cpus(available), count)
    assert [(hint.mask, hint.preferred) for hint in found] == want


ASSIGNMENTS = {
    "a whole socket": (4, "0-7", 1, "0-3"),
    "the socket of the hint": (4, "1-7", 2, "4-7"),
    "a socket and one CPU more": (5, "0-7", 3, "0-4"),
    "the whole socket first": (5, "1-7", 3, "1,4-7"),
    "not enough": (8, "1-7", 3, ""),
    "any node will do": (2, "0-7", None, "0-1"),
    "a single CPU breaks up a core that is broken already": (1, "1-7", 1, "1"),
    "the rest comes from elsewhere": (5, "0-7", 2, "0,4-7"),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assigned_cpus(name: str) -> None:
    count, available, mask, want = ASSIGNMENTS[name]
    assert assign(LAYOUT, parse_cpus(available), count, mask) == parse_cpus(want)


def test_core_ids_may_repeat_on_every_socket() -> None:
    layout = Layout({cpu: core.CpuInfo(numa=cpu // 4, socket=cpu // 4, core=cpu % 4 // 2) for cpu in range(8)})
    assert take(layout, parse_cpus("1-7"), 2) == parse_cpus("2-3")


@given(free=st.frozensets(st.integers(0, 7)), count=st.integers(1, 8), mask=st.sampled_from([None, 1, 2, 3]))
def test_an_assignment_is_exactly_as_large_as_asked_for_and_free(
    free: frozenset[int], count: int, mask: int | None
) -> None:
    found = assign(LAYOUT, free, count, mask)
    assert found <= free
    assert len(found) == (count if count <= len(free) else 0)


@given(free=st.frozensets(st.integers(0, 7)), counts=st.lists(st.integers(0, 8), max_size=4))
def test_what_a_single_numa_node_policy_admits_is_on_one_numa_node_per_container(
    free: frozenset[int], counts: list[int]
) -> None:
    found = fit(LAYOUT, free, "single-numa-node", tuple(counts))
    if found.refused is None:
        assert all(count <= 4 for count in counts)
        assert len(found.cpus) == sum(counts)


BOTH_RESOURCES = {
    "both on the first node": ([1], [1], {"restricted": (1, True), "single-numa-node": (1, True)}),
    "nothing in common": ([1], [2], {"restricted": (1, False), "single-numa-node": (3, False)}),
}


@pytest.mark.parametrize("name", BOTH_RESOURCES)
def test_hints_of_several_resources_are_merged(name: str) -> None:
    cpu, gpu, want = BOTH_RESOURCES[name]

    def hints(masks: list[int]) -> list[Hint]:
        return [Hint(3, preferred=False), *(Hint(mask, preferred=True) for mask in masks)]

    for policy_name, expected in want.items():
        best, admitted = TopologyPolicy(policy_name, (0, 1)).admit([{"cpu": hints(cpu)}, {"gpu": hints(gpu)}])
        assert ((best.mask, best.preferred), admitted) == (expected, expected[1])


@pytest.mark.parametrize(("name", "admitted"), [("restricted", False), ("best-effort", True), ("none", True)])
def test_policies_differ_in_what_they_admit(name: str, admitted: bool) -> None:
    hints = {"cpu": [Hint(3, preferred=False)]}
    assert TopologyPolicy(name, (0, 1)).admit([hints])[1] is admitted


@pytest.mark.parametrize("text", ["1-", "a", "3-1", "-1", "0-999999999"])
def test_a_bad_cpu_set_is_named(text: str) -> None:
    with pytest.raises(BadCpuSet, match="is no set of CPUs"):
        parse_cpus(text)


# -- pods ----------------------------------------------------------------------------------------------------------


@dataclass
class Quality:
    requests: core.ResourceList
    limits: core.ResourceList
    guaranteed: bool


QUALITIES = {
    "requests equal limits": Quality({"cpu": "2", "memory": "1Gi"}, {"cpu": "2000m", "memory": "1Gi"}, True),
    "requests default to limits": Quality({}, {"cpu": 2, "memory": "1Gi"}, True),
    "a request below its limit": Quality({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, False),
    "no memory limit": Quality({"cpu": "1"}, {"cpu": "1"}, False),
    "nothing": Quality({}, {}, False),
    "what cannot be read": Quality({}, {"cpu": "two", "memory": "1Gi"}, False),
}


@pytest.mark.parametrize("name", QUALITIES)
def test_quality_of_service(name: str) -> None:
    case = QUALITIES[name]
    resources = core.ResourceRequirements(requests=case.requests, limits=case.limits)
    spec = core.PodSpec(containers=(core.Container(name="c", resources=resources),))
    assert is_guaranteed(spec) == case.guaranteed


@pytest.mark.parametrize(("cpu", "want"), [("4", 4), ("1500m", 0), ("0", 0), ("2000m", 2)])
def test_only_whole_cpus_are_exclusive(cpu: str, want: int) -> None:
    resources = core.ResourceRequirements(requests={"cpu": cpu})
    assert whole_cpus(core.Container(name="c", resources=resources)) == want


# -- the filter ----------------------------------------------------------------------------------------------------

POLICY_OF = {"TopologyManagerPolicy": "single-numa-node"}
REFUSED: dict[str, tuple[dict[str, object] | None, list[str]]] = {
    "no information": (None, ["numa info is empty"]),
    "a shared CPU manager": (
        {"policies": {"CPUManagerPolicy": "none", **POLICY_OF}},
        ["cpu manager policy isn't static"],
    ),
    "another policy": (
        {"policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"}},
        ["task topology policy[single-numa-node] is different with node[restricted]"],
    ),
    "no resources": ({"numares": {}}, ["no topo information"]),
    "no CPUs": ({"numares": {"cpu": core.NumaResource()}}, ["cpu allocatable map is empty"]),
    "too few on one NUMA node": (
        {"numares": {"cpu": core.NumaResource(allocatable="2-5")}},
        ["container c0 cannot be assigned by numa"],
    ),
    "reserved CPUs": ({"res_reserved": {"cpu": "4500m"}}, ["container c0 cannot be assigned by numa"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_task_with_a_policy_needs_a_node_that_has_it(name: str) -> None:
    spec, want = REFUSED[name]
    facts = [] if spec is None else [numatopology("n1", **spec)]  # type: ignore[arg-type]
    session = Session(mirror=cluster(node("n1").build(), *facts, guaranteed("p", 4)), plugins=["numa-aware"])
    assert session.refusals("p") == {"n1": want}


PASSES = {
    "no information": [],
    "no topology policy": [numatopology("n1", policy_name="none")],
    "a shared CPU manager": [numatopology("n1", policies={"TopologyManagerPolicy": "restricted"})],
}


@pytest.mark.parametrize("name", PASSES)
def test_a_task_without_policy_passes_where_nothing_is_aligned(name: str) -> None:
    mirror = cluster(node("n1").build(), *PASSES[name], guaranteed("p", 6, numa=""))
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p") == {}


def test_a_task_without_policy_is_held_against_the_policy_of_the_node() -> None:
    mirror = cluster(node("n1").build(), numatopology("n1"), guaranteed("p", 6, numa=""))
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p") == {
        "n1": ["container c0 cannot be assigned by numa"]
    }


def test_a_pod_that_is_not_guaranteed_goes_anywhere() -> None:
    burstable = pod("p").group("j").annotate(**{names.NUMA_TOPOLOGY_POLICY: "restricted"}).request(cpu=4).build()
    assert Session(mirror=cluster(node("n1").build(), burstable), plugins=["numa-aware"]).refusals("p") == {}


def test_containers_do_not_share_cpus() -> None:
    mirror = cluster(
        node("n1").build(), numatopology("n1"), guaranteed("p", 4, containers=2), guaranteed("q", 3, containers=3)
    )
    session = Session(mirror=mirror, plugins=["numa-aware"])
    assert session.refusals("p") == {}
    assert session.refusals("q") == {"n1": ["container c2 cannot be assigned by numa"]}


def test_a_numatopology_that_cannot_be_read_is_named() -> None:
    broken = numatopology("n1", numares={"cpu": core.NumaResource(allocatable="all")})
    session = Session(mirror=cluster(node("n1").build(), broken, guaranteed("p", 4)), plugins=["numa-aware"])
    assert session.refusals("p") == {"n1": ["numa info is empty"]}
    assert session.view.warnings == ['Numatopology n1: it is ignored: "all" is no set of CPUs: write it like 0-3,7']


# -- score ---------------------------------------------------------------------------------------------------------


def test_fewer_numa_nodes_are_better() -> None:
    mirror = cluster(
        node("whole").build(),
        node("pieces").build(),
        numatopology("whole", policy_name="best-effort"),
        numatopology("pieces", "2-5", policy_name="best-effort"),
        guaranteed("p", 4, numa="best-effort"),
        guaranteed("q", 4, numa=""),
    )
    session = Session(mirror=mirror, plugins=["numa-aware"])
    assert session.scores("p") == {"whole": 50.0, "pieces": 0.0}
    assert session.scores("q") == {"whole": 0.0, "pieces": 0.0}


# -- accounting ----------------------------------------------------------------------------------------------------


def test_tasks_of_one_cycle_do_not_get_the_same_cpus() -> None:
    big = node("n1").offer(cpu=64, memory="64Gi")
    pods = [guaranteed(f"p{number}", 4) for number in range(3)]
    mirror = cluster(big.build(), numatopology("n1"), *pods)
    result = run_cycle(mirror, policy("gang", "numa-aware"))
    assert binds(result) == {"p0": "n1", "p1": "n1"}
    decisions = [
        json.loads(bind.extension.annotations[names.TOPOLOGY_DECISION]) for bind in result.binds if bind.extension
    ]
    assert decisions == [{"numa": {"0": {"cpu": "4"}}}, {"numa": {"1": {"cpu": "4"}}}]


def test_a_gang_that_does_not_fit_leaves_the_cpus_to_others() -> None:
    pods = [guaranteed(f"p{number}", 4) for number in range(3)]
    mirror = cluster(node("n1").offer(cpu=64, memory="64Gi").build(), numatopology("n1"), *pods, members=3)
    assert binds(run_cycle(mirror, policy("gang", "numa-aware"))) == {}
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p0") == {}


ALL_GIVEN_OUT = {"n1": ["cpu allocatable map is empty"]}


def placed_twice() -> Mirror:
    mirror = cluster(
        node("n1").offer(cpu=64, memory="64Gi").build(),
        numatopology("n1"),
        *[guaranteed(f"p{number}", 4) for number in range(3)],
    )
    run_cycle(mirror, policy("gang", "numa-aware"))
    return mirror


def test_what_was_assigned_stays_so_until_the_node_tells() -> None:
    assert Session(mirror=placed_twice(), plugins=["numa-aware"]).refusals("p2") == ALL_GIVEN_OUT


def test_cpus_come_back_when_the_bind_fails() -> None:
    mirror = placed_twice()
    mirror.bind_failed(mirror.tasks["ns/p0"].uid)
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p2") == {}


def test_cpus_come_back_when_a_pod_is_gone() -> None:
    mirror = placed_twice()
    mirror.delete_pod("ns/p1")
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p2") == {}


TOLD = {
    "it has more than was thought": ("0-7", {}),
    "it has given out what was assigned": ("", ALL_GIVEN_OUT),
    "it does not know of everything yet": ("4-7", ALL_GIVEN_OUT),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_new_numatopology_is_taken_in(name: str) -> None:
    allocatable, want = TOLD[name]
    mirror = placed_twice()
    feed(mirror, numatopology("n1", allocatable))
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p2") == want


def test_a_numatopology_that_goes_leaves_nothing_behind() -> None:
    mirror = placed_twice()
    mirror.delete_object(core.Numatopology, ("", "n1"))
    assert Session(mirror=mirror, plugins=["numa-aware"]).refusals("p2") == {"n1": ["numa info is empty"]}


def test_an_undone_eviction_takes_the_same_cpus_again() -> None:
    mirror = placed_twice()
    session = Session(mirror=mirror, plugins=["numa-aware"])
    statement = session.cycle.statement()
    statement.evict(session.task("p0"), "test")
    assert session.refusals("p2") == {}
    statement.discard()
    assert session.refusals("p2") == ALL_GIVEN_OUT
