"""Promises to claims: who relies on them, and when they end."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.plugins.promises import Holder, Promises
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import open_cycle, policy, run_cycle, world

FIRST, SECOND = Holder("n0", "ns/a", "ns-a"), Holder("n0", "ns/b", "ns-b")


def claim(uid: str = "one", *, bound: bool = False) -> core.PersistentVolumeClaim:
    return core.PersistentVolumeClaim(
        metadata=core.ObjectMeta(name="c", namespace="ns", uid=uid),
        spec=core.PersistentVolumeClaimSpec(volume_name="v" if bound else ""),
    )


def promised(*holders: Holder) -> Promises[str]:
    promises = Promises[str]()
    for holder in holders:
        promises.add(claim(), "v", holder)
    return promises


def test_the_first_pod_makes_a_promise_and_the_last_ends_it() -> None:
    promises = Promises[str]()
    assert promises.add(claim(), "v", FIRST)
    assert not promises.add(claim(), "v", SECOND)
    assert promises.users(claim()) == {"ns-a", "ns-b"}
    assert promises.drop(claim().key, FIRST) is None
    assert promises.get(claim()) == "v"
    assert promises.drop(claim().key, FIRST) is None, "it did not rely on it any more"
    assert promises.drop(claim().key, SECOND) == "v"
    assert promises.get(claim()) is None
    assert promises.users(claim()) == set()
    assert promises.drop(claim().key, SECOND) is None


def test_a_promise_is_made_to_one_claim_and_not_to_another_of_its_name() -> None:
    promises = promised(FIRST)
    assert promises.get(claim("two")) is None
    assert promises.add(claim("two"), "w", SECOND)
    assert promises.get(claim()) is None
    assert list(promises.values()) == ["w"]


def test_the_version_tells_whether_anything_is_promised_otherwise() -> None:
    promises = promised(FIRST)
    before = promises.version
    promises.add(claim(), "v", SECOND)
    promises.drop(claim().key, SECOND)
    assert promises.version == before
    promises.drop(claim().key, FIRST)
    assert promises.version > before


def placed() -> Mirror:
    return world(node("n0").offer(cpu=1).build(), pod("a").on("n0").build())


ENDS: dict[str, tuple[Mirror, core.PersistentVolumeClaim | None, bool]] = {
    "still to be written": (placed(), claim(), True),
    "written": (placed(), claim(bound=True), False),
    "claim that is gone": (placed(), None, False),
    "another claim of its name": (placed(), claim("two"), False),
    "pod that is not on its node any more": (world(node("n0").build(), pod("a").build()), claim(), False),
    "pod of its name that is another": (
        world(node("n0").build(), pod("a").with_uid("other").on("n0").build()),
        claim(),
        False,
    ),
    "node that is gone": (world(), claim(), False),
}


@pytest.mark.parametrize(("mirror", "present", "stays"), ENDS.values(), ids=ENDS.keys())
def test_promises_end(mirror: Mirror, present: core.PersistentVolumeClaim | None, stays: bool) -> None:
    promises = promised(FIRST)
    view = open_cycle(mirror, policy()).view
    promises.tidy(view, lambda key: present if key == claim().key else None, lambda found: bool(found.spec.volume_name))
    assert len(promises) == int(stays)


def test_a_promise_outlasts_the_binds_that_rely_on_it() -> None:
    mirror = world(
        node("n0").offer(cpu=1).build(),
        queue("default").build(),
        pod_group("job").members(1).build(),
        pod("a").group("job").request(cpu=1).build(),
    )
    assert run_cycle(mirror, policy("gang", "predicates", actions="allocate")).binds
    promises = promised(FIRST)
    view = open_cycle(mirror, policy()).view
    promises.tidy(view, lambda _: claim(bound=True), lambda _: True)
    assert promises.get(claim()) == "v", "what is written may be taken back"
    mirror.apply_pod(pod("a").group("job").request(cpu=1).on("n0").build())
    promises.tidy(view, lambda _: claim(bound=True), lambda _: True)
    assert promises.get(claim()) is None
