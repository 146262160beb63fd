"""How the answers of plugins become one (spec 04 sections 27, 28 and 35)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core.combining import Combination, Member
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import (
    Depends,
    Eviction,
    EvictionContext,
    Hooks,
    Invalid,
    Order,
    Purpose,
    Victims,
    Vote,
)
from stromboli.scheduler.core.policy import PluginOption, Switches
from stromboli.scheduler.core.records import Job, Queue, Task
from stromboli.testing.builders import pod, pod_group, queue
from tests.scheduler.core.worlds import world

P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


def combine(*tiers: Sequence[Hooks], switches: Switches | None = None, tiers_agree: bool = False) -> Combination:
    """One plugin a hooks object."""
    named = [
        [Member(PluginOption(f"p{tier}-{place}", switches or Switches()), hooks) for place, hooks in enumerate(several)]
        for tier, several in enumerate(tiers)
    ]
    return Combination(named, [], tiers_agree=tiers_agree)


@pytest.fixture
def mirror() -> Mirror:
    return _cluster()


def _cluster() -> Mirror:
    return world(
        queue("default").build(),
        queue("late").born(5).build(),
        pod_group("g").build(),
        pod_group("h").born(1).build(),
        [pod(name).group("g").request(cpu=1).on("n1").build() for name in "abc"],
    )


@pytest.fixture
def job(mirror: Mirror) -> Job:
    return mirror.jobs["ns/g"]


VOTES: dict[str, tuple[list[list[Vote]], bool]] = {
    "nobody is asked": ([], True),
    "everybody abstains": ([[A, A], [A]], True),
    "a permit of the first tier decides": ([[A, P], [R]], True),
    "a reject beats a permit of its tier": ([[P, R]], False),
    "a reject before the permit of a later tier": ([[R], [P]], False),
    "a reject in the tier that is asked next": ([[A], [R]], False),
}


@pytest.mark.parametrize(("votes", "want"), VOTES.values(), ids=VOTES.keys())
def test_votes(job: Job, votes: list[list[Vote]], want: bool) -> None:
    def voting(vote: Vote) -> Hooks:
        return Hooks(job_pipelined=lambda _: vote, job_enqueueable=lambda _: vote, sub_job_pipelined=lambda _: vote)

    combination = combine(*[[voting(vote) for vote in tier] for tier in votes])
    assert combination.job_pipelined(job) is want
    assert combination.job_enqueueable(job) is want


@dataclass(frozen=True)
class VictimCase:
    tiers: list[list[tuple[str, Vote]]]
    want: str


VICTIMS = {
    "nobody registered": VictimCase([], ""),
    "intersection within a tier": VictimCase([[("ab", P), ("bc", P)]], "b"),
    "an abstainer is not asked": VictimCase([[("", A), ("a", P)]], "a"),
    "an empty verdict lets the next tier decide": VictimCase([[("", P)], [("a", P)]], "a"),
    "an empty verdict ends its tier": VictimCase([[("", P), ("a", P)]], ""),
    "reject with a list counts like permit": VictimCase([[("ab", R), ("b", R)]], "b"),
    "an intersection that becomes empty is seeded again": VictimCase([[("a", P), ("b", P), ("c", P)]], "c"),
    "the first tier with victims decides": VictimCase([[("a", P)], [("b", P)]], "a"),
    "order is that of the first list": VictimCase([[("cab", P), ("abc", P)]], "cab"),
}


AGREED = {
    "nobody registered": VictimCase([[], []], ""),
    "everybody abstains": VictimCase([[("a", A)], [("b", A)]], ""),
    "later tiers are asked, too": VictimCase([[("abc", P)], [("bc", P)], [("ab", P)]], "b"),
    "an abstainer is not asked": VictimCase([[("", A)], [("a", P)]], "a"),
    "an empty verdict spares everybody": VictimCase([[("", P)], [("a", P)]], ""),
    "an intersection that becomes empty stays empty": VictimCase([[("a", P), ("b", P), ("c", P)]], ""),
    "order is that of the candidates": VictimCase([[("cab", P)], [("bca", P)]], "abc"),
}
"""What the tiers make of the same answers when they have to agree."""


@pytest.mark.parametrize("case", VICTIMS.values(), ids=VICTIMS.keys())
def test_victims(mirror: Mirror, case: VictimCase) -> None:
    assert _victims(mirror, case.tiers) == [case.want] * 3


@pytest.mark.parametrize("case", AGREED.values(), ids=AGREED.keys())
def test_victims_of_tiers_that_agree(mirror: Mirror, case: VictimCase) -> None:
    assert _victims(mirror, case.tiers, tiers_agree=True) == [case.want] * 3


ANSWERS = st.tuples(
    st.permutations("abc").flatmap(lambda some: st.integers(0, 3).map(lambda n: "".join(some[:n]))),
    st.sampled_from([P, A, R]),
)


@given(st.lists(st.lists(ANSWERS, max_size=3), max_size=3), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_both_orders_of_tiers_give_the_same_victims(tiers: list[list[tuple[str, Vote]]], random: Random) -> None:
    cluster = _cluster()
    flat = [[answer] for tier in tiers for answer in tier]
    random.shuffle(flat)
    victims = _victims(cluster, tiers, tiers_agree=True)
    assert _victims(cluster, tiers[::-1], tiers_agree=True) == victims
    assert _victims(cluster, flat, tiers_agree=True) == victims


def _victims(mirror: Mirror, tiers: list[list[tuple[str, Vote]]], *, tiers_agree: bool = False) -> list[str]:
    """What comes out at each of the three points when the plugins of the tiers answer like that."""
    tasks = {name: mirror.tasks[f"ns/{name}"] for name in "abc"}

    def offering(names: str, vote: Vote) -> Hooks:
        def victims(subject: object, candidates: Sequence[Task]) -> Victims:
            return [tasks[name] for name in names], vote

        return Hooks(preemptable=victims, reclaimable=victims, unified_evictable=victims)

    combination = combine(*[[offering(*each) for each in tier] for tier in tiers], tiers_agree=tiers_agree)
    candidates = list(tasks.values())
    context = EvictionContext(Eviction.GANG_PREEMPT, mirror.jobs["ns/g"], "")
    found = (
        combination.preemptable(tasks["a"], candidates),
        combination.reclaimable(tasks["a"], candidates),
        combination.unified_evictable(context, candidates),
    )
    return ["".join(task.name for task in chosen) for chosen in found]


def test_victim_tasks_are_the_union_of_the_first_tier_that_names_any(mirror: Mirror) -> None:
    a, b, c = (mirror.tasks[f"ns/{name}"] for name in "abc")
    combination = combine(
        [Hooks(victim_tasks=[lambda _: []])],
        [Hooks(victim_tasks=[lambda _: [a], lambda _: [b]]), Hooks(victim_tasks=[lambda _: [b]])],
        [Hooks(victim_tasks=[lambda _: [c]])],
    )
    assert combination.victim_tasks([a, b, c]) == [a, b]
    assert combine().victim_tasks([a]) == []


STARVING: dict[str, tuple[list[list[bool]], bool]] = {
    "nobody registered": ([[], []], False),
    "all of the first tier with an opinion": ([[], [True, True], [False]], True),
    "one of that tier says no": ([[True, False], [True]], False),
}


@pytest.mark.parametrize(("answers", "want"), STARVING.values(), ids=STARVING.keys())
def test_starving(job: Job, answers: list[list[bool]], want: bool) -> None:
    def saying(answer: bool) -> Hooks:
        return Hooks(job_starving=lambda _: answer)

    assert combine(*[[saying(answer) for answer in tier] for tier in answers]).job_starving(job) is want


class TestChecks:
    def test_the_first_invalidity_is_told(self, job: Job) -> None:
        first, second = Invalid("A", "a"), Invalid("B", "b")
        hooks = [Hooks(job_valid=lambda _: None), Hooks(job_valid=lambda _: first), Hooks(job_valid=lambda _: second)]
        assert combine(hooks).job_valid(job) is first
        assert combine().job_valid(job) is None

    def test_ready_allocatable_and_preemptive_need_everybody(self, mirror: Mirror, job: Job) -> None:
        task, default = mirror.tasks["ns/a"], mirror.queues["default"]
        yes = Hooks(job_ready=lambda _: True, allocatable=lambda *_: True, preemptive=lambda *_: True)
        no = Hooks(job_ready=lambda _: False, allocatable=lambda *_: False, preemptive=lambda *_: False)
        for combination, want in ((combine(), True), (combine([yes]), True), (combine([yes], [no]), False)):
            assert combination.job_ready(job) is want
            assert combination.allocatable(default, task) is want
            assert combination.preemptive(default, [task]) is want

    def test_overused_needs_one(self, mirror: Mirror) -> None:
        default = mirror.queues["default"]
        assert not combine().overused(default)
        assert combine([Hooks(overused=lambda _: False)], [Hooks(overused=lambda _: True)]).overused(default)

    def test_a_sub_job_of_a_job_without_policies_stands_for_the_job(self, job: Job) -> None:
        sub_job = job.sub_jobs["ns/g"]
        combination = combine(
            [Hooks(job_ready=lambda _: False, sub_job_ready=lambda _: True, job_pipelined=lambda _: R)]
        )
        assert not combination.sub_job_ready(sub_job)
        assert not combination.sub_job_pipelined(sub_job)

    def test_everybody_hears_of_an_admission(self, job: Job) -> None:
        heard: list[str] = []
        combination = combine([Hooks(job_enqueued=lambda each: heard.append(each.id))] * 2)
        combination.job_enqueued(job)
        assert heard == ["ns/g", "ns/g"]

    def test_the_first_preparation_that_fails_is_told(self, mirror: Mirror) -> None:
        task = mirror.tasks["ns/a"]
        assert combine().prepare(task) is None
        assert combine([Hooks(prepare=lambda _: None), Hooks(prepare=lambda _: "no")]).prepare(task) == "no"

    def test_the_first_plugin_with_a_gradient_decides_alone(self, job: Job) -> None:
        hooks = [Hooks(gradient=lambda *_: []), Hooks(gradient=lambda *_: [["x"]])]
        assert combine(hooks).gradient(job, None, "start", Purpose.ALLOCATE) == []
        assert combine().gradient(job, None, "start", Purpose.ALLOCATE) == [["start"]]

    def test_a_switch_takes_a_hook_away(self, job: Job) -> None:
        hooks = Hooks(job_ready=lambda _: False, job_valid=lambda _: Invalid("x", "x"))
        combination = combine([hooks], switches=Switches(job_ready=False))
        assert combination.job_ready(job)
        assert combination.job_valid(job) is not None, "job valid has no switch"


class TestOrders:
    def test_plugins_come_before_the_fallback_and_earlier_plugins_first(self, mirror: Mirror) -> None:
        first, second = mirror.jobs["ns/g"], mirror.jobs["ns/h"]
        by_id = Hooks(job_order=Order(key=lambda job: (job.id == "ns/g",)))
        assert combine().job_ordering.sorted([second, first]) == [first, second]
        assert combine([by_id]).job_ordering.sorted([first, second]) == [second, first]
        against = Hooks(job_order=Order(key=lambda job: (job.id != "ns/g",)))
        assert combine([against], [by_id]).job_ordering.sorted([second, first]) == [first, second]

    def test_a_comparison_serves_as_well_as_a_key(self, mirror: Mirror) -> None:
        def later_first(left: Queue, right: Queue) -> int:
            return int(right.created - left.created)

        ordering = combine([Hooks(queue_order=Order(compare=later_first))]).queue_ordering
        assert [each.name for each in ordering.sorted(mirror.queues.values())] == ["late", "default"]

    def test_equal_by_plugins_means_equal_keys_without_the_fallback(self, mirror: Mirror) -> None:
        ordering = combine([Hooks(job_order=Order(key=lambda job: (job.priority,)))]).job_ordering
        first, second = mirror.jobs["ns/g"], mirror.jobs["ns/h"]
        assert ordering.plugin_key(first) == ordering.plugin_key(second)
        assert ordering.key(first) < ordering.key(second)

    def test_the_order_depends_on_what_its_most_restless_part_depends_on(self) -> None:
        def order(depends: Depends) -> Hooks:
            return Hooks(job_order=Order(key=lambda job: (), depends=depends))

        assert combine().job_ordering.depends is Depends.NOTHING
        assert combine([order(Depends.NOTHING), order(Depends.OTHERS)]).job_ordering.depends is Depends.OTHERS

    def test_an_order_is_either_keys_or_a_comparison(self) -> None:
        with pytest.raises(ValueError, match="either a key or a comparison"):
            Order[Job]()

    def test_victims_of_the_queue_served_last_go_first_unless_a_plugin_says_otherwise(self, mirror: Mirror) -> None:
        default, late = mirror.queues["default"], mirror.queues["late"]
        assert combine().victim_queue_compare(late, default, default) < 0
        assert combine([Hooks(victim_queue_order=lambda *_: 1)]).victim_queue_compare(late, default, default) > 0

    def test_tasks_go_by_index_then_age_then_uid(self) -> None:
        names = ["job-w-10", "job-w-9", "b", "a"]
        mirror = world(queue().build(), pod_group("g").build(), [pod(name).group("g").build() for name in names])
        ordered = combine().task_ordering.sorted(mirror.tasks.values())
        assert [task.name for task in ordered] == ["a", "b", "job-w-9", "job-w-10"]
