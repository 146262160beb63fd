"""Parts of NVIDIA cards: which cards a pod gets, and what is left for others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins.deviceshare.cluster_devices import MEMORY, Memory
from stromboli.scheduler.plugins.deviceshare.configuration import DEFAULTS
from stromboli.scheduler.plugins.deviceshare.families import DoesNotFit
from stromboli.scheduler.plugins.deviceshare.settings import Settings
from stromboli.scheduler.plugins.deviceshare.vgpu import VgpuDevices, VgpuFamily
from stromboli.scheduler.plugins.deviceshare.vgpu_cards import Inventory, parse
from stromboli.testing.builders import pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import NOW, audit, binds, evicted, feed, picture, policy, run_cycle
from tests.scheduler.plugins.deviceshare.stage import (
    Amounts,
    asking,
    card,
    cluster,
    devices,
    devices_policy,
    gpu_node,
    member,
    opened,
    roomy,
    slice_of,
    task_of,
    written,
)
from tests.scheduler.plugins.sessions import allowed_rows

REFUSED = ["hami-vgpuDeviceSharing error"]
NVIDIA = DEFAULTS.nvidia


def ids(result: CycleResult) -> dict[str, str]:
    """Pod name to what is written about its cards."""
    return {bind.task.name: written(bind, names.VGPU_IDS) for bind in result.binds}


def placed(mirror: Mirror, **arguments: object) -> dict[str, str]:
    """What a cycle writes about the cards of pods."""
    return ids(run_cycle(mirror, devices_policy(VGPUEnable=True, **arguments)))


# -- the register of a node ----------------------------------------------------------------------------------------


def cards_of(text: str) -> Inventory | None:
    return parse(text, NVIDIA)


UNUSABLE = {
    "nothing": "",
    "no colon": "GPU-0,10,16384,NVIDIA,true,hami-core",
    "too few fields": "GPU-0,10,16384,NVIDIA,true:",
    "no card": ":",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_register_that_cannot_be_used_is_no_device(name: str) -> None:
    assert cards_of(UNUSABLE[name]) is None


def test_cards_are_numbered_without_gaps() -> None:
    found = cards_of("junk:" + card("GPU-0") + ":junk:" + card("GPU-1", memory=8) + ":")
    assert found is not None
    assert [(facts.index, facts.uuid, facts.memory) for facts in found.cards] == [(0, "GPU-0", 16384), (1, "GPU-1", 8)]


def test_amounts_that_are_no_numbers_are_none() -> None:
    found = cards_of("GPU-0,many,x,NVIDIA,true,mps:")
    assert found is not None
    assert (found.mode, found.cards[0].limit, found.cards[0].memory) == ("hami-core", 0, 0)


@pytest.mark.parametrize("missing", [names.VGPU_NUMBER, names.VGPU_CORES, names.VGPU_MEMORY])
def test_a_node_must_offer_all_three_resources(missing: str) -> None:
    node = gpu_node("n1", card("GPU-0"))
    family = VgpuFamily(Settings(vgpu=True), NVIDIA)
    assert family.inventory(node) is not None
    left = {name: amount for name, amount in node.status.allocatable.items() if name != missing}
    status = msgspec.structs.replace(node.status, allocatable=left)
    assert family.inventory(msgspec.structs.replace(node, status=status)) is None


# -- which cards ---------------------------------------------------------------------------------------------------

TWO = (card("GPU-0"), card("GPU-1"))
FITS: dict[str, tuple[tuple[str, ...], list[Amounts], dict[str, str], bool]] = {
    "part of a card": (TWO, [slice_of(1, 4096, 25)], {}, True),
    "all of both": (TWO, [slice_of(2, cores=100)], {}, True),
    "more cards than there are": (TWO, [slice_of(3, 10)], {}, False),
    "more memory than a card has": (TWO, [slice_of(1, 16385)], {}, False),
    "more cores than a card has": (TWO, [slice_of(1, 10, 101)], {}, False),
    "containers that share a card": (TWO[:1], [slice_of(1, 8000, 50), slice_of(1, 8000, 50)], {}, True),
    "containers that do not fit together": (TWO[:1], [slice_of(1, 9000), slice_of(1, 9000)], {}, False),
    "a whole card for each container": (TWO, [slice_of(1, 10, 100), slice_of(1, 10, 100)], {}, True),
    "a whole card that the first container is on": (TWO[:1], [slice_of(1, 10, 1), slice_of(1, 10, 100)], {}, False),
    "no cores on a card without any left": (TWO[:1], [slice_of(1, 10, 100), slice_of(1, 10)], {}, False),
    "sick cards": ((card("GPU-0", health="false"),), [slice_of(1, 10)], {}, False),
    "the mode asked for": (TWO, [slice_of(1, 10)], {names.VGPU_MODE: "hami-core"}, True),
    "another mode": (TWO, [slice_of(1, 10)], {names.VGPU_MODE: "mig"}, False),
    "the type asked for": (TWO, [slice_of(1, 10)], {names.USE_GPU_TYPE: "AMD,nvidia-a"}, True),
    "another type": (TWO, [slice_of(1, 10)], {names.USE_GPU_TYPE: "AMD"}, False),
    "a type that is not wanted": (TWO, [slice_of(1, 10)], {names.NO_USE_GPU_TYPE: "nvidia"}, False),
    "any but another type": (TWO, [slice_of(1, 10)], {names.NO_USE_GPU_TYPE: "AMD"}, True),
    "a wanted type counts more than an unwanted one": (
        TWO,
        [slice_of(1, 10)],
        {names.USE_GPU_TYPE: "nvidia", names.NO_USE_GPU_TYPE: "nvidia"},
        True,
    ),
    "cards of somebody else": ((card("GPU-0", type="MLU"),), [slice_of(1, 10)], {}, False),
}


@pytest.mark.parametrize("name", FITS)
def test_what_a_node_takes(name: str) -> None:
    cards, limits, annotations, fits = FITS[name]
    pod = asking(member("p").annotate(**annotations), *limits)
    session = opened(cluster(gpu_node("n1", *cards), pod), VGPUEnable=True)
    assert session.refusals("p") == ({} if fits else {"n1": REFUSED})


def test_a_node_without_such_devices_is_for_the_resource_check() -> None:
    mirror = cluster(roomy("n1").build(), asking(member("p"), slice_of(1, 10)))
    assert opened(mirror, VGPUEnable=True).refusals("p") == {}
    assert placed(mirror) == {}


def test_the_device_must_be_on() -> None:
    mirror = cluster(gpu_node("n1", card("GPU-0", memory=1)), asking(member("p"), slice_of(1, 10)))
    assert opened(mirror).refusals("p") == {}


CHOSEN = {
    "binpack fills a card": ("binpack", ["GPU-0", "GPU-0", "GPU-0"]),
    "spread takes the card with fewest users": ("spread", ["GPU-0", "GPU-1", "GPU-2"]),
    "without a policy the last card is first": ("", ["GPU-2", "GPU-2", "GPU-2"]),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_policy_says_which_card(name: str) -> None:
    preference, want = CHOSEN[name]
    node = gpu_node("n1", *(card(f"GPU-{n}") for n in range(3)))
    pods = [asking(member(f"p{n}"), slice_of(1, 4096, 25)) for n in range(3)]
    found = placed(cluster(node, *pods), SchedulePolicy=preference)
    assert found == {f"p{n}": f"{uuid},NVIDIA,4096,25:" for n, uuid in enumerate(want)}


def test_everything_that_goes_along_with_the_bind() -> None:
    mirror = cluster(gpu_node("n1", card("GPU-0")), asking(member("p"), slice_of(1, 100), {"cpu": 1}, slice_of(1, 200)))
    (bind,) = run_cycle(mirror, devices_policy(VGPUEnable=True, NodeLockEnable=True)).binds
    assert bind.extension is not None
    shares = "GPU-0,NVIDIA,100,0:;GPU-0,NVIDIA,200,0:"
    assert bind.extension.annotations == {
        names.VGPU_NODE: "n1",
        names.VGPU_TIME: str(int(NOW)),
        names.VGPU_IDS: shares,
        names.DEVICES_TO_ALLOCATE: shares,
        names.BIND_PHASE: "allocating",
        names.BIND_TIME: str(int(NOW)),
    }
    (lock,) = bind.extension.locks
    assert (lock.key, lock.handed_over) == ("hamivgpu", True)
    assert lock.failure == "node n1 locked for p hamivgpu lockname"


def test_a_memory_share_in_percent_is_rounded_down() -> None:
    configuration = NVIDIA.model_copy(update={"resource_memory_percentage_name": names.VGPU_MEMORY_PERCENTAGE})
    family = VgpuFamily(Settings(vgpu=True), configuration)
    inventory = family.inventory(gpu_node("n1", card("GPU-0", memory=1001)))
    limits = {names.VGPU_NUMBER: 1, names.VGPU_MEMORY_PERCENTAGE: 50}
    choice = family.devices(inventory, "n1").choose(task_of(asking(member("p"), limits)))
    assert choice.holding[0][0].memory == 500


# -- scores --------------------------------------------------------------------------------------------------------

SCORES = {
    "binpack, with the request counted": ("binpack", 1000, 13 * 10.0),
    "binpack, rounded to the nearest": ("binpack", 1100, 14 * 10.0),
    "spread, on a used card": ("spread", 1000, 0.0),
    "no policy": ("", 1000, 0.0),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores(name: str) -> None:
    preference, memory, want = SCORES[name]
    used = asking(member("used", **{names.VGPU_IDS: "GPU-0,NVIDIA,3000,0:"}).on("n1"), slice_of(1, 3000))
    mirror = cluster(gpu_node("n1", card("GPU-0", memory=30000)), used, asking(member("p"), slice_of(1, memory)))
    session = opened(mirror, VGPUEnable=True, SchedulePolicy=preference, ScheduleWeight=10)
    assert session.scores("p") == {"n1": want}


def test_spread_prefers_idle_cards() -> None:
    mirror = cluster(gpu_node("n1", *TWO), roomy("n2").build(), asking(member("p"), slice_of(2, 10)))
    session = opened(mirror, VGPUEnable=True, SchedulePolicy="spread", ScheduleWeight=1)
    assert session.scores("p") == {"n1": 200.0, "n2": 0.0}


def test_without_weight_there_is_no_score() -> None:
    mirror = cluster(gpu_node("n1", *TWO), asking(member("p"), slice_of(2, 10)))
    assert opened(mirror, VGPUEnable=True, SchedulePolicy="spread").scores("p") == {"n1": 0.0}


# -- pods of one PodGroup ------------------------------------------------------------------------------------------

APART = {names.VGPU_PODGROUP_POLICY: "spread"}


def test_pods_of_a_group_may_be_kept_apart() -> None:
    pods = [asking(member(f"p{n}", **APART), slice_of(1, 10)) for n in range(3)]
    found = placed(cluster(gpu_node("n1", *TWO), *pods), SchedulePolicy="binpack")
    assert found == {"p0": "GPU-0,NVIDIA,10,0:", "p1": "GPU-1,NVIDIA,10,0:"}


def test_pods_of_two_groups_may_share_a_card() -> None:
    other = asking(member("other").annotate(**{names.GROUP_NAME: "another"}).on("n1"), slice_of(1, 10))
    other.metadata.annotations[names.VGPU_IDS] = "GPU-0,NVIDIA,10,0:"
    mirror = cluster(gpu_node("n1", TWO[0]), other, asking(member("p", **APART), slice_of(1, 10)))
    assert opened(mirror, VGPUEnable=True).refusals("p") == {}


def test_answers_for_pods_that_look_alike_differ_by_their_groups() -> None:
    used = asking(member("used", **{names.VGPU_IDS: "GPU-0,NVIDIA,10,0:"}).on("n1"), slice_of(1, 10))
    stranger = asking(member("stranger", **APART).annotate(**{names.GROUP_NAME: "k"}), slice_of(1, 10))
    mirror = cluster(
        pod_group("k").build(), gpu_node("n1", TWO[0]), used, asking(member("p", **APART), slice_of(1, 10)), stranger
    )
    session = opened(mirror, VGPUEnable=True)
    assert session.task("p").shape is session.task("stranger").shape
    assert allowed_rows(session, "p") == set()
    assert allowed_rows(session, "stranger") == {"n1"}


# -- exclusive cards -----------------------------------------------------------------------------------------------

RULES = [{"app": "training"}, {"workload": "inference"}]
EXCLUSIVE: dict[str, tuple[dict[str, str], str]] = {
    "of the same rule": ({"app": "training"}, "GPU-1"),
    "of another rule": ({"workload": "inference"}, "GPU-0"),
    "of no rule": ({}, "GPU-0"),
    "of both rules": ({"app": "training", "workload": "inference"}, "GPU-1"),
}


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_pods_of_one_rule_do_not_share_cards(name: str) -> None:
    labels, want = EXCLUSIVE[name]
    first = member("first", **{names.VGPU_IDS: "GPU-0,NVIDIA,10,0:"}).label(app="training").on("n1")
    mirror = cluster(
        gpu_node("n1", *TWO), asking(first, slice_of(1, 10)), asking(member("p").label(**labels), slice_of(1, 10))
    )
    found = placed(mirror, SchedulePolicy="binpack", GPUExclusiveRules=RULES)
    assert found == {"p": f"{want},NVIDIA,10,0:"}


def test_a_rule_holds_among_pods_of_one_cycle() -> None:
    pods = [asking(member(f"p{n}").label(app="training"), slice_of(1, 10)) for n in range(3)]
    found = placed(cluster(gpu_node("n1", *TWO), *pods), GPUExclusiveRules=RULES)
    assert found == {"p0": "GPU-1,NVIDIA,10,0:", "p1": "GPU-0,NVIDIA,10,0:"}


def test_pods_of_a_rule_and_others_that_ask_for_the_same_are_told_apart_from_the_first_cycle_on() -> None:
    first = member("first", **{names.VGPU_IDS: "GPU-0,NVIDIA,10,0:"}).label(app="training").on("n1")
    mirror = cluster(
        gpu_node("n1", TWO[0]),
        asking(first, slice_of(1, 10)),
        asking(member("a"), slice_of(1, 10)),
        asking(member("b").label(app="training"), slice_of(1, 10)),
    )
    assert opened(mirror, VGPUEnable=True, GPUExclusiveRules=RULES).refusals("b") == {"n1": REFUSED}
    assert placed(mirror, GPUExclusiveRules=RULES) == {"a": "GPU-0,NVIDIA,10,0:"}
    audit(mirror)


def test_a_card_is_free_again_when_its_pod_is_gone() -> None:
    first = member("first", **{names.VGPU_IDS: "GPU-0,NVIDIA,10,0:"}).label(app="training").on("n1")
    mirror = cluster(
        gpu_node("n1", TWO[0]), asking(first, slice_of(1, 10)), asking(member("p").label(app="training"), slice_of(1))
    )
    assert opened(mirror, VGPUEnable=True, GPUExclusiveRules=RULES).refusals("p") == {"n1": REFUSED}
    mirror.delete_pod("ns/first")
    assert opened(mirror, VGPUEnable=True, GPUExclusiveRules=RULES).refusals("p") == {}


# -- what is counted -----------------------------------------------------------------------------------------------

COUNTED = {
    "a running pod": ("Running", {}, 1),
    "a pod that is over": ("Succeeded", {}, 0),
    "a record of another card": ("Running", {names.VGPU_IDS: "GPU-9,NVIDIA,16384,100:"}, 0),
    "no record": ("Running", {names.VGPU_IDS: ""}, 0),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_running_pods_hold(name: str) -> None:
    phase, annotations, users = COUNTED[name]
    record = {names.VGPU_IDS: "GPU-0,NVIDIA,16384,100:", **annotations}
    mirror = cluster(
        gpu_node("n1", TWO[0]),
        asking(member("used", **record).on("n1", phase), slice_of(1)),
        asking(member("p"), slice_of(1, 10)),
    )
    assert opened(mirror, VGPUEnable=True).refusals("p") == ({"n1": REFUSED} if users else {})


def full(mirror: Mirror) -> bool:
    return opened(mirror, VGPUEnable=True).refusals("p9") == {"n1": REFUSED}


def two_placed() -> Mirror:
    pods = [asking(member(f"p{n}"), slice_of(1)) for n in (0, 1, 9)]
    mirror = cluster(gpu_node("n1", *TWO), *pods)
    assert set(placed(mirror)) == {"p0", "p1"}
    return mirror


def test_what_a_cycle_has_bound_is_counted_before_the_watch_shows_it() -> None:
    mirror = two_placed()
    assert full(mirror)
    audit(mirror)


def test_a_failed_bind_gives_the_card_back() -> None:
    mirror = two_placed()
    mirror.bind_failed(mirror.tasks["ns/p0"].uid)
    assert not full(mirror)


def test_the_watch_confirms_what_was_assumed() -> None:
    mirror = two_placed()
    record = mirror.tasks["ns/p0"].annotations[names.VGPU_IDS]
    feed(mirror, asking(member("p0", **{names.VGPU_IDS: record}).on("n1"), slice_of(1)))
    assert full(mirror)


def test_a_gang_that_does_not_fit_leaves_no_trace() -> None:
    pods = [asking(member(f"p{n}"), slice_of(1)) for n in (0, 1, 9)]
    mirror = cluster(gpu_node("n1", *TWO), *pods, members=3)
    before = picture(mirror)
    assert placed(mirror) == {}
    assert picture(mirror).nodes == before.nodes
    assert not full(mirror)


def test_an_evicted_pod_gives_its_card_to_others_at_once_and_gets_it_back_when_that_is_undone() -> None:
    mirror = two_placed()
    session = opened(mirror, VGPUEnable=True)
    assert allowed_rows(session, "p9") == set()
    statement = session.cycle.statement()
    statement.evict(session.task("p0"), "test")
    assert allowed_rows(session, "p9") == {"n1"}
    statement.discard()
    assert allowed_rows(session, "p9") == set()


def crowded(number: int, queue_of_urgent: str = "default") -> Mirror:
    """A card that is full, on a node that offers so many shares, and an urgent pod."""
    victim = asking(member("victim", **{names.VGPU_IDS: "GPU-0,NVIDIA,16384,0:"}).on("n1").priority(1), slice_of(1))
    return cluster(
        queue(queue_of_urgent).build(),
        priority_class("high", 10),
        pod_group("k").members(1).queue(queue_of_urgent).priority_class("high").build(),
        gpu_node("n1", TWO[0], number=number),
        victim,
        asking(pod("urgent").group("k").priority(10), slice_of(1)),
        members=0,
    )


@pytest.mark.parametrize("number", [1, 40])
def test_preemption_frees_cards_whether_or_not_resources_are_short(number: int) -> None:
    mirror = crowded(number)
    plugins = policy("priority", "gang", devices(VGPUEnable=True), "predicates", actions="allocate preempt")
    result = run_cycle(mirror, plugins)
    assert evicted(result) == ["victim"]
    assert not result.problems
    assert mirror.tasks["ns/urgent"].node is None


@pytest.mark.parametrize("number", [1, 40])
def test_reclaim_frees_cards(number: int) -> None:
    mirror = crowded(number, "other")
    plugins = policy("gang", devices(VGPUEnable=True), "predicates", actions="allocate reclaim")
    result = run_cycle(mirror, plugins)
    assert not result.problems
    assert evicted(result) == ["victim"]


def test_nobody_is_evicted_for_a_pod_that_no_card_takes() -> None:
    mirror = crowded(40)
    feed(mirror, asking(pod("urgent").group("k").priority(10), slice_of(1, 10, 101)))
    plugins = policy("priority", "gang", devices(VGPUEnable=True), "predicates", actions="allocate preempt reclaim")
    result = run_cycle(mirror, plugins)
    assert evicted(result) == result.problems == []


def test_pods_without_devices_are_not_looked_at() -> None:
    mirror = cluster(gpu_node("n1", TWO[0]), member("p").request(cpu=1).build())
    result = run_cycle(mirror, devices_policy(VGPUEnable=True, ScheduleWeight=1))
    assert binds(result) == {"p": "n1"}
    assert result.binds[0].extension is None
    memory = mirror.memory[MEMORY]
    assert isinstance(memory, Memory)
    assert memory.nodes == {}


# -- the status of queues ------------------------------------------------------------------------------------------


def allocated_of(result: CycleResult) -> dict[str, str]:
    (update,) = result.queues
    return {name: amount for name, amount in update.allocated.items() if name.startswith("volcano.sh/")}


def test_the_status_of_a_queue_tells_what_was_really_given() -> None:
    mirror = cluster(gpu_node("n1", *TWO), asking(member("p"), slice_of(2)))
    plan = devices_policy(VGPUEnable=True)
    given = {names.VGPU_NUMBER: "2", names.VGPU_MEMORY: "32768"}
    assert allocated_of(run_cycle(mirror, plan)) == given
    assert run_cycle(mirror, plan).queues == [], "nothing has changed"
    record = mirror.tasks["ns/p"].annotations[names.VGPU_IDS]
    feed(mirror, asking(member("p", **{names.VGPU_IDS: record}).on("n1"), slice_of(2)))
    assert run_cycle(mirror, plan).queues == []
    mirror.delete_pod("ns/p")
    assert allocated_of(run_cycle(mirror, plan)) == {}


# -- invariants ----------------------------------------------------------------------------------------------------

REQUESTS = st.lists(
    st.builds(slice_of, st.integers(1, 3), st.none() | st.integers(1, 20000), st.none() | st.integers(0, 100)),
    min_size=1,
    max_size=3,
)


def counters(found: VgpuDevices) -> list[tuple[int, int, int]]:
    return [(card.users, card.used_memory, card.used_cores) for card in found.cards]


@given(pods=st.lists(REQUESTS, max_size=6), preference=st.sampled_from(["", "binpack", "spread"]), data=st.data())
def test_no_card_is_ever_promised_more_than_it_has_and_everything_comes_back(
    pods: list[list[Amounts]], preference: str, data: st.DataObject
) -> None:
    family = VgpuFamily(Settings(vgpu=True, policy=preference), NVIDIA)
    node = gpu_node("n1", card("GPU-0", limit=3), card("GPU-1", memory=8192), card("GPU-2"))
    found = family.devices(family.inventory(node), "n1")
    holding = []
    for number, limits in enumerate(pods):
        task = task_of(asking(member(f"p{number}"), *limits))
        before = counters(found)
        try:
            choice = found.choose(task)
        except DoesNotFit:
            choice = None
        assert counters(found) == before
        if choice is not None:
            found.hold(task, choice.holding)
            found.hold(task, choice.holding)
            holding.append(task)
        for card_ in found.cards:
            assert 0 <= card_.users <= card_.facts.limit
            assert 0 <= card_.used_memory <= card_.facts.memory
            assert 0 <= card_.used_cores <= 100
    for task in data.draw(st.permutations(holding)):
        found.drop(task.uid)
    assert counters(found) == [(0, 0, 0)] * 3
