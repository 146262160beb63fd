"""Queues: defaults, own fields, place in the tree, shares, deletion (spec 07 sections 13, 14 and 21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks import queue_tree, queues
from stromboli.webhooks.context import Context, KnownCluster, Settings
from stromboli.webhooks.shapes import JsonObject, Queue, read
from tests.webhooks.building import cluster, decide, queue

PATH = "/queues/validate"


def annotated(name: str, hierarchy: str, weights: str) -> JsonObject:
    annotations = {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"weight": 1}}


# Defaults


def test_a_bare_queue_is_reclaimable_and_weighs_one() -> None:
    after = queues.default({"metadata": {"name": "q"}}, Context("CREATE"))
    assert after["spec"] == {"reclaimable": True, "weight": 1}


def test_a_queue_that_may_not_be_reclaimed_stays_so() -> None:
    after = queues.default({"metadata": {"name": "q"}, "spec": {"reclaimable": False, "weight": 4}}, Context("CREATE"))
    assert after["spec"] == {"reclaimable": False, "weight": 4}


HIERARCHIES = {
    "below root": (("a/b", "2/3"), ("root/a/b", "1/2/3")),
    "already below root": (("root/a", "1/2"), ("root/a", "1/2")),
    "beginning with the letters of root": (("rooted/a", "1/2"), ("rooted/a", "1/2")),
    "without weights": (("a", ""), ("a", "")),
}


@pytest.mark.parametrize("name", HIERARCHIES)
def test_a_hierarchy_is_put_below_root(name: str) -> None:
    given_pair, want = HIERARCHIES[name]
    after = queues.default(annotated("q", *given_pair), Context("CREATE"))
    assert tuple(after["metadata"]["annotations"].values()) == want


# Creation


@dataclass
class Case:
    queue: JsonObject
    want: str
    known: KnownCluster = cluster()
    settings: Settings = Settings()


ANNOTATIONS = "requestBody.metadata.annotations: Invalid value: "
REFUSED = {
    "a state nobody may set": Case(
        queue("q", state="wrong"),
        'requestBody.spec.state: Invalid value: "wrong": queue state must be in [Open Closed]',
    ),
    "a negative amount": Case(
        queue("q", capability={"cpu": "-10"}),
        'requestBody.spec.capability.cpu: Invalid value: "-10": must be greater than or equal to 0',
    ),
    "half a device": Case(
        queue("q", capability={"nvidia.com/gpu": "1.5"}),
        'requestBody.spec.capability.nvidia.com/gpu: Invalid value: "1500m": must be an integer',
    ),
    "a guarantee that is not deserved": Case(
        queue("q", guarantee={"resource": {"cpu": "1"}}),
        'requestBody.spec.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=1',
    ),
    "two faults in one list": Case(
        queue("q", guarantee={"resource": {"cpu": "-2"}}),
        '[requestBody.spec.guarantee.resource.cpu: Invalid value: "-2": must be greater than or equal to 0, '
        'requestBody.spec.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=-2]',
    ),
    "more deserved than possible": Case(
        queue("q", deserved={"cpu": "2"}, capability={"cpu": "1"}),
        'requestBody.spec.deserved.cpu: Invalid value: "2": deserved[cpu]=2 must be <= capability[cpu]=1',
    ),
    "an amount that is none": Case(
        queue("q", capability={"cpu": "lots"}),
        'requestBody.spec.capability.cpu: Invalid value: "lots": '
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "a hierarchy of another length than its weights": Case(
        annotated("q", "root/a/b", "1/2"),
        ANNOTATIONS + '"root/a/b": volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights',
    ),
    "a weight that is no number": Case(
        annotated("q", "root/a", "1/a"),
        ANNOTATIONS + '"1/a": a in the 1/a is invalid number: strconv.ParseFloat: parsing "a": invalid syntax',
    ),
    "a weight of zero": Case(
        annotated("q", "root/a", "1/0"), ANNOTATIONS + '"1/0": 0 in the 1/0 must be larger than 0'
    ),
    "an infinite weight": Case(
        annotated("q", "root/a", "1/+Inf"), ANNOTATIONS + '"1/+Inf": +Inf in the 1/+Inf must be a finite number'
    ),
    "a weight beyond all numbers": Case(
        annotated("q", "root/a", "1/1e999"), ANNOTATIONS + '"1/1e999": 1e999 in the 1/1e999 must be a finite number'
    ),
    "a hierarchy above that of another queue": Case(
        annotated("q", "root/node1", "1/2"),
        ANNOTATIONS
        + '"root/node1": root/node1 is not allowed to be in the sub path of root/node1/node2 of queue other',
        cluster(annotated("other", "root/node1/node2", "1/2/3")),
    ),
    "itself as parent": Case(queue("q", parent="q"), "queue q cannot use itself as parent"),
    "a parent that is missing": Case(
        queue("q", parent="ghost"),
        'failed to get parent queue ghost of queue q: queue.scheduling.volcano.sh "ghost" not found',
    ),
    "too deep": Case(
        queue("q3", parent="q2"),
        "queue q3 exceeds the maximum allowed depth of 2",
        cluster(queue("q1"), queue("q2", parent="q1")),
        Settings(max_queue_depth=2),
    ),
    "a parent that runs pods itself": Case(
        queue("q", parent="p"),
        "queue p cannot be the parent queue of queue q because it has allocated Pods: 1",
        cluster(queue("p", allocated={"pods": "1"})),
    ),
    "more than an ancestor has, past a parent that sets nothing": Case(
        queue("q", parent="p", capability={"nvidia.com/gpu": "10"}),
        "queue q capability[nvidia.com/gpu]=10000.00 exceeds its ancestor's capability=8000.00",
        cluster(
            queue("g", capability={"cpu": "100", "nvidia.com/gpu": "8"}),
            queue("p", parent="g", capability={"cpu": "50"}),
        ),
    ),
    "memory shown as a quantity": Case(
        queue("q", parent="p", capability={"memory": "55Gi"}),
        "queue q capability[memory]=55Gi exceeds its ancestor's capability=50Gi",
        cluster(queue("p", capability={"memory": "50Gi"})),
    ),
    "guarantees of siblings that add up to too much": Case(
        queue("q", parent="p", deserved={"cpu": "7"}, guarantee={"resource": {"cpu": "7"}}),
        "parent queue p validation failed: sum of children's guarantee (cpu 9000.00, memory 0.00) "
        "exceeds parent's guarantee limit (cpu 8000.00, memory 0.00)",
        cluster(
            queue("p", deserved={"cpu": "20"}, guarantee={"resource": {"cpu": "8"}}),
            queue("s", parent="p", deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "2"}}),
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_queue_is_refused(case: Case) -> None:
    verdict = decide(PATH, case.queue, known=case.known, settings=case.settings)
    assert (verdict.allowed, verdict.message) == (False, case.want)


ACCEPTED: dict[str, tuple[JsonObject, KnownCluster]] = {
    "a plain queue": (queue("q"), cluster()),
    "no state at all": (queue("q", state=""), cluster()),
    "amounts equal in another notation": (queue("q", deserved={"cpu": "1000m"}, capability={"cpu": "1"}), cluster()),
    "below root, which need not exist": (queue("q", parent="root", capability={"cpu": "999"}), cluster()),
    "a hierarchy whose last name only begins alike": (
        annotated("q", "root/node", "1/2"),
        cluster(annotated("other", "root/node1/node2", "1/2/3")),
    ),
    "a weight in hexadecimal": (annotated("q", "root/a", "1/0x1p-2"), cluster()),
    "depth three of five": (queue("q3", parent="q2"), cluster(queue("q1"), queue("q2", parent="q1"))),
    "an unknown resource is not compared": (
        queue("q", parent="p", deserved={"foo": "1"}),
        cluster(queue("p")),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_queue_is_accepted(name: str) -> None:
    obj, known = ACCEPTED[name]
    verdict = decide(PATH, obj, known=known)
    assert (verdict.allowed, verdict.message) == (True, "")


def test_p31_children_may_not_be_guaranteed_more_than_their_parent() -> None:
    parent = queue("p", deserved={"cpu": "10"}, guarantee={"resource": {"cpu": "10"}})
    six: dict[str, Any] = {"deserved": {"cpu": "6"}, "guarantee": {"resource": {"cpu": "6"}}}
    assert decide(PATH, queue("first", parent="p", **six), known=cluster(parent)).allowed
    second = decide(PATH, queue("second", parent="p", **six), known=cluster(parent, queue("first", parent="p", **six)))
    assert "sum of children's guarantee (cpu 12000.00, memory 0.00)" in second.message


def test_p34_pods_of_a_first_child_do_not_forbid_a_second_one() -> None:
    busy = {"pods": "3", "cpu": "3"}
    known = cluster(queue("a", parent="root", allocated=busy), queue("b", parent="a", allocated=busy))
    assert decide(PATH, queue("c", parent="a"), known=known).allowed


# Changes


def test_p30_a_queue_on_its_way_to_closed_can_be_edited() -> None:
    for state in ("Closing", "Unknown"):
        old, new = queue("q", state=state), queue("q", state=state, capability={"cpu": "8"})
        assert decide(PATH, new, old).allowed


def test_a_state_cannot_be_changed_to_closing() -> None:
    verdict = decide(PATH, queue("q", state="Closing"), queue("q"))
    assert 'Invalid value: "Closing": queue state must be in [Open Closed]' in verdict.message


def test_a_queue_cannot_be_placed_below_its_own_descendant() -> None:
    known = cluster(queue("a"), queue("b", parent="a"), queue("c", parent="b"))
    verdict = decide(PATH, queue("a", parent="c"), queue("a"), known=known)
    assert verdict.message == "queue a cannot be placed below its own descendant c"


def test_a_cycle_that_is_already_stored_ends_every_walk() -> None:
    looped = cluster(queue("a", parent="b"), queue("b", parent="a", capability={"cpu": "1"}))
    new = decide(PATH, queue("q", parent="a", capability={"cpu": "2"}), known=looped)
    assert new.message == "queue q cannot be placed below a: its ancestors form a cycle at a"
    changed = queue("a", parent="b", capability={"cpu": "3"})
    assert "exceeds its ancestor's capability" in decide(PATH, changed, queue("a", parent="b"), known=looped).message


def test_a_cycle_can_be_undone() -> None:
    looped = cluster(queue("a", parent="b"), queue("b", parent="a"))
    assert decide(PATH, queue("a"), queue("a", parent="b"), known=looped).allowed


def test_depth_counts_what_is_moved_along() -> None:
    known = cluster(
        *(queue(f"q{n}", parent=f"q{n - 1}" if n > 1 else "") for n in range(1, 4)),
        queue("m"), queue("m1", parent="m"), queue("m2", parent="m1"),
    )  # fmt: skip
    assert decide(PATH, queue("m", parent="q2"), queue("m"), known=known).allowed
    verdict = decide(PATH, queue("m", parent="q3"), queue("m"), known=known)
    assert verdict.message == "queue m exceeds the maximum allowed depth of 5"


def test_a_change_of_weight_is_no_occasion_to_judge_shares() -> None:
    known = cluster(queue("p", deserved={"cpu": "1"}), queue("q", parent="p", deserved={"cpu": "2"}))
    old = queue("q", parent="p", deserved={"cpu": "2"})
    new = queue("q", parent="p", deserved={"cpu": "2000m"})
    new["spec"]["weight"] = 9
    assert decide(PATH, new, old, known=known).allowed


def test_a_parent_cannot_shrink_below_its_descendants() -> None:
    known = cluster(queue("p"), queue("c", parent="p"), queue("g", parent="c", capability={"cpu": "25"}))
    verdict = decide(PATH, queue("p", capability={"cpu": "20"}), queue("p"), known=known)
    assert verdict.message == "queue p capability[cpu]=20 is smaller than its descendants' max capability=25"


ROOT = queue("root", capability={"cpu": "10"})


def test_the_resources_of_root_are_protected() -> None:
    new = queue("root", capability={"cpu": "20"})
    text = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
    assert decide(PATH, new, ROOT).message == text
    assert decide(PATH, new, ROOT, settings=Settings(enable_root_queue_protection=False)).allowed
    heavier = queue("root", capability={"cpu": "10000m"})
    heavier["spec"]["weight"] = 5
    assert decide(PATH, heavier, ROOT).allowed


# Deletion

BUSY = queue("busy", allocated={"pods": "2"})
FAMILY = cluster(queue("p"), queue("c2", parent="p"), queue("c1", parent="p"), BUSY)
DELETIONS: dict[str, tuple[str, str]] = {
    "default": ("default", "`default` queue can not be deleted"),
    "root": ("root", "`root` queue can not be deleted"),
    "unknown": ("gone", 'queue.scheduling.volcano.sh "gone" not found'),
    "with children, in order": ("p", "queue p can not be deleted because it has 2 child queues: c1, c2"),
    "an open leaf": ("c1", ""),
    "with pods": ("busy", ""),
}


@pytest.mark.parametrize("name", DELETIONS)
def test_deletion_is_judged_by_name(name: str) -> None:
    target, want = DELETIONS[name]
    verdict = decide(PATH, None, queue(target), known=FAMILY, operation="DELETE", name=target)
    assert (verdict.allowed, verdict.message) == (not want, want)


LOOPS = cluster(queue("self", parent="self"), queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="b"))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("self", ""),
        ("a", ""),
        ("b", "queue b can not be deleted because it has 1 child queues: c"),
        ("c", ""),
    ],
)
def test_a_stored_cycle_can_be_deleted_but_not_from_above_its_other_children(name: str, want: str) -> None:
    stored = LOOPS.queue(name)
    assert stored is not None
    verdict = decide(PATH, None, queue(name, parent=stored.spec.parent), known=LOOPS, operation="DELETE", name=name)
    assert (verdict.allowed, verdict.message) == (not want, want)


def test_deletion_of_a_queue_with_pods_is_refused_when_asked_for() -> None:
    settings = Settings(enable_queue_allocated_pods_check=True)
    verdict = decide(PATH, None, BUSY, known=FAMILY, operation="DELETE", name="busy", settings=settings)
    assert verdict.message == "queue busy cannot be deleted because it has allocated Pods: 2"


# Invariants

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 9).map(str), max_size=2)


@st.composite
def forests(draw: st.DrawFn) -> KnownCluster:
    """Any queues with any parents: cycles, missing parents and violated sums included."""
    names = draw(st.sets(NAMES))
    found = []
    for name in sorted(names):
        parts: dict[str, Any] = {"parent": draw(NAMES), "capability": draw(AMOUNTS), "deserved": draw(AMOUNTS)}
        found.append(queue(name, **parts))
    return cluster(*found)


@given(forests(), NAMES, NAMES, AMOUNTS, st.booleans())
def test_no_forest_however_broken_keeps_a_decision_from_ending(
    known: KnownCluster, name: str, parent: str, amounts: dict[str, str], update: bool
) -> None:
    new = queue(name, parent=parent, capability=amounts, deserved=amounts)
    verdict = decide(PATH, new, queue(name) if update else None, known=known)
    assert verdict.allowed is not bool(verdict.message)


@given(forests(), NAMES, NAMES)
def test_an_accepted_parent_never_makes_a_cycle(known: KnownCluster, name: str, parent: str) -> None:
    new = queue(name, parent=parent)
    if not decide(PATH, new, queue(name), known=known).allowed:
        return
    after = {**known.known_queues, name: read(Queue, new)}
    seen, above = set(), name
    while above not in queue_tree.TOP and above in after:
        assert above not in seen
        seen.add(above)
        above = after[above].spec.parent


def test_a_stored_queue_whose_amounts_cannot_be_read_stays_editable() -> None:
    stored = queue("old", capability={"cpu": "lots"})
    verdict = decide("/queues/validate", {**stored, "spec": {**stored["spec"], "capability": {"cpu": "4"}}}, stored)
    assert verdict.allowed
