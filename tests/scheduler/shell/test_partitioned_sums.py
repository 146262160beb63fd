"""Schedulers that share a cluster by hashing: each knows what the queues hold in all, whatever it was told when."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, kinds
from stromboli.scheduler.accepting import Acceptance, Share
from stromboli.scheduler.cache import Source, required_sources
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.reading import job_id_of, status_of
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES
from stromboli.scheduler.options import Partition
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit

QUEUES = ("a", "b")


def members(number: int) -> tuple[str, ...]:
    return tuple(f"s-{ordinal}" for ordinal in range(number))


@dataclass
class Member:
    """One scheduler's mirror, fed as its informers feed it."""

    own: str
    among: tuple[str, ...]
    mirror: Mirror = field(default_factory=Mirror)
    told: list[str] = field(default_factory=list)
    """Names of objects of which others in the process hear."""

    def __post_init__(self) -> None:
        self.acceptance = Acceptance(["volcano"], share=Share.of(Partition(self.own, self.among)))
        sources = required_sources(self.mirror, self.acceptance)
        self._sources: dict[type[core.Object], Source[core.Object]] = {source.struct: source for source in sources}
        self._kept: dict[tuple[type[core.Object], tuple[str, str]], core.Object] = {}

    def hear(self, obj: core.Object) -> None:
        """The watch has shown an object."""
        source, place = self._sources[type(obj)], (type(obj), obj.key)
        known = self._kept.get(place)
        if source.accept is not None and not source.accept(obj):
            self.lose(obj)
            return
        if known is not None and known.uid != obj.uid:
            self.lose(known)
            known = None
        self._kept[place] = source.keep(obj) if source.keep else obj
        if source.apply(obj) is not False and known is None:
            self.told.append(obj.name)

    def lose(self, obj: core.Object) -> None:
        """The object is gone from the watch; of what was kept of it its deletion is told."""
        kept = self._kept.pop((type(obj), obj.key), None)
        if kept is not None and self._sources[type(obj)].delete(kept) is not False:
            self.told.append(f"-{obj.name}")

    def held(self) -> dict[str, tuple[float, float]]:
        """CPU (milli) and pods by queue."""
        self.mirror.prepare()
        sums = {name: known.allocated + known.elsewhere for name, known in self.mirror.queues.items()}
        return {name: (float(sums[name][0]), float(sums[name][2])) for name in sums}


@dataclass
class Cluster:
    """The truth."""

    objects: dict[tuple[type[core.Object], tuple[str, str]], core.Object] = field(default_factory=dict)

    def put(self, obj: core.Object) -> None:
        self.objects[type(obj), obj.key] = obj

    def held(self) -> dict[str, tuple[float, float]]:
        """Worked out from nothing but the objects."""
        groups = {f"{g.namespace}/{g.name}": g for g in self.objects.values() if isinstance(g, core.PodGroup)}
        sums = {obj.name: (0.0, 0.0) for obj in self.objects.values() if isinstance(obj, core.Queue)}
        for obj in self.objects.values():
            if not isinstance(obj, core.Pod) or status_of(obj) not in ALLOCATED_STATUSES:
                continue
            group = groups.get(job_id_of(obj))
            if group is not None and group.spec.queue in sums:
                cpu, pods = sums[group.spec.queue]
                asked = float(obj.spec.containers[0].resources.requests["cpu"])
                sums[group.spec.queue] = (cpu + 1000 * asked, pods + 1)
        return sums


def owned(obj: core.Object, owner: str) -> core.Object:
    """The object with a first owner of this name."""
    owners = (core.OwnerReference(name=owner),) if owner else ()
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, owner_references=owners))


names = st.sampled_from(["x", "y", "z", "u"])
owners = st.sampled_from(["", "", "o1", "o2", "o3"])


@st.composite
def a_pod(draw: st.DrawFn) -> core.Object:
    name = draw(names)
    made = pod(name).with_uid(f"{name}-{draw(st.integers(1, 2))}").request(cpu=draw(st.integers(1, 3)))
    if group := draw(st.sampled_from(["", "g1", "g1", "g2", "g3"])):
        made = made.group(group)
    if draw(st.integers(0, 5)):
        made = made.on(draw(st.sampled_from(["n1", "n2", "n3"])), draw(st.sampled_from(["Running", "Pending"])))
    if not draw(st.integers(0, 6)):
        made = made.phase(draw(st.sampled_from(["Succeeded", "Failed", "Unknown"])))
    if not draw(st.integers(0, 8)):
        made = made.deleting()
    built = made.build()
    if not draw(st.integers(0, 3)):
        built = msgspec.structs.replace(built, spec=msgspec.structs.replace(built.spec, scheduler_name="other"))
    return owned(built, draw(owners))


@st.composite
def a_group(draw: st.DrawFn, name: str = "") -> core.Object:
    name = name or draw(st.sampled_from(["g1", "g2", "g3"]))
    built = pod_group(name).queue(draw(st.sampled_from([*QUEUES, *QUEUES, "none"]))).build()
    uid = f"{name}-{draw(st.integers(1, 2))}"
    built = msgspec.structs.replace(built, metadata=msgspec.structs.replace(built.metadata, uid=uid))
    return owned(built, draw(owners))


a_queue = st.builds(lambda name: queue(name).build(), st.sampled_from(QUEUES))
Event = tuple[str, core.Object]
"""``put`` or ``remove``, and what."""


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Mostly pods that come and change, among queues and groups that are there, gone or changing."""
    kinds = st.sampled_from([*(a_pod(),) * 6, a_group(), a_queue]).flatmap(lambda kind: kind)
    event = st.tuples(st.sampled_from(["put", "put", "put", "put", "remove"]), kinds)
    first = [queue("a").build(), draw(a_group("g1")), draw(a_group("g2")), queue("b").build()]
    return [*(("put", obj) for obj in first), *draw(st.lists(event, min_size=4, max_size=30))]


def lived_on(before: core.Object | None, now: core.Object) -> core.Object:
    """The object as an API server would have it after what it was before: a pod that has a node keeps it."""
    if not isinstance(now, core.Pod) or not isinstance(before, core.Pod) or before.uid != now.uid:
        return now
    node_name = before.spec.node_name or now.spec.node_name
    return msgspec.structs.replace(now, spec=msgspec.structs.replace(now.spec, node_name=node_name))


@given(st.integers(1, 3), histories(), st.randoms(use_true_random=False))
def test_whatever_happens_every_scheduler_knows_what_queues_hold_in_all(
    number: int, happening: list[Event], random: Random
) -> None:
    cluster, schedulers = Cluster(), [Member(own, members(number)) for own in members(number)]
    for what, drawn in happening:
        obj = lived_on(cluster.objects.get((type(drawn), drawn.key)), drawn)
        if what == "put":
            cluster.put(obj)
        elif cluster.objects.pop((type(obj), obj.key), None) is None:
            continue
        for each in schedulers:
            each.hear(obj) if what == "put" else each.lose(obj)
    for each in schedulers:
        assert each.held() == cluster.held()
        audit(each.mirror)
    left = list(cluster.objects.values())
    for size in (number, number + 1):
        for own in members(size):
            restarted = Member(own, members(size))
            random.shuffle(left)
            for obj in left:
                restarted.hear(obj)
            assert restarted.held() == cluster.held(), "after a restart, and after one with another number of members"


@given(histories())
def test_nothing_stays_of_what_is_gone(happening: list[Event]) -> None:
    member, there = Member("s-0", members(3)), dict[object, core.Object]()
    for what, obj in happening:
        if what == "put":
            there[type(obj), obj.key] = obj
            member.hear(obj)
        elif there.pop((type(obj), obj.key), None) is not None:
            member.lose(obj)
    for obj in there.values():
        member.lose(obj)
    elsewhere = member.mirror.elsewhere
    assert (len(elsewhere), elsewhere.resources(), list(elsewhere.claimants())) == (0, set(), [])
    assert not elsewhere._gangs


def name_of(owner: str, prefix: str, among: tuple[str, ...]) -> str:
    """A name that the ring gives to this member."""
    share = Share.of(Partition(owner, among))
    return next(f"{prefix}-{number}" for number in range(1000) if share.holds(f"{prefix}-{number}"))


def foreign(name: str = "p", cpu: int = 2) -> core.Object:
    """A running pod of a job that is the business of ``s-1``, on a node of its."""
    two = members(2)
    made = pod(name).group("g").request(cpu=cpu).on(name_of("s-1", "node", two)).build()
    return owned(made, name_of("s-1", "job", two))


def foreign_group(queue_name: str = "a") -> core.Object:
    return owned(pod_group("g").queue(queue_name).build(), name_of("s-1", "job", members(2)))


def shared() -> Iterator[core.Object]:
    yield from (queue("a").build(), queue("b").build(), foreign_group(), foreign())


class TestWhatAnotherHolds:
    def member(self, *objects: core.Object) -> Member:
        made = Member("s-0", members(2))
        for obj in (*shared(), *objects):
            made.hear(obj)
        return made

    def test_is_counted_and_is_no_job_here(self) -> None:
        member = self.member()
        assert member.held() == {"a": (2000.0, 1.0), "b": (0.0, 0.0)}
        assert not member.mirror.tasks
        assert not member.mirror.jobs

    def test_moves_with_its_group_to_another_queue(self) -> None:
        assert self.member(foreign_group("b")).held() == {"a": (0.0, 0.0), "b": (2000.0, 1.0)}

    def test_is_counted_once_when_the_pod_comes_to_be_ours(self) -> None:
        mine = name_of("s-0", "job", members(2))
        member = self.member(owned(foreign_group(), mine))
        assert member.held() == {"a": (2000.0, 1.0), "b": (0.0, 0.0)}, "our group, and a pod of another's"
        member.hear(owned(foreign(), mine))
        assert member.held() == {"a": (2000.0, 1.0), "b": (0.0, 0.0)}
        assert list(member.mirror.tasks) == ["ns/p"]
        member.hear(foreign())
        assert member.held() == {"a": (2000.0, 1.0), "b": (0.0, 0.0)}
        assert not member.mirror.tasks

    def test_is_replaced_by_its_successor_of_the_same_name(self) -> None:
        successor = foreign(cpu=3)
        successor = msgspec.structs.replace(successor, metadata=msgspec.structs.replace(successor.metadata, uid="new"))
        elsewhere = self.member(successor).mirror.elsewhere
        assert elsewhere.held_in("a")["cpu"] == 3000.0
        assert not elsewhere.delete_pod("ns/p", foreign().uid), "the deletion of the first comes late"
        assert elsewhere.held_in("a")["cpu"] == 3000.0
        assert elsewhere.delete_pod("ns/p", "new")
        assert elsewhere.held_in("a") == {}

    def test_is_told_to_nobody_who_waits_for_work(self) -> None:
        member = self.member()
        member.lose(foreign())
        member.lose(foreign_group())
        assert member.told == ["a", "b"]

    def test_of_our_own_pods_and_groups_others_are_told(self) -> None:
        mine = name_of("s-0", "job", members(2))
        group, one = owned(pod_group("h").queue("a").build(), mine), owned(pod("q").group("h").build(), mine)
        member = self.member(group, one)
        member.lose(one)
        member.lose(group)
        assert member.told == ["a", "b", "h", "q", "-q", "-h"]

    def test_counts_the_volumes_that_it_attaches_when_they_are_known(self) -> None:
        claiming = foreign()
        assert isinstance(claiming, core.Pod)
        source = core.PvcVolume(claim_name="data")
        volumes = (core.Volume(name="v", persistent_volume_claim=source),)
        member = self.member(
            msgspec.structs.replace(claiming, spec=msgspec.structs.replace(claiming.spec, volumes=volumes))
        )
        scalar = "attachable-volumes-csi-csi.example.com"
        assert member.held()["a"] == (2000.0, 1.0)
        claim = core.PersistentVolumeClaim(
            metadata=core.ObjectMeta(name="data", namespace="ns"),
            spec=core.PersistentVolumeClaimSpec(storage_class_name="fast"),
        )
        fast = core.StorageClass(metadata=core.ObjectMeta(name="fast"), provisioner="csi.example.com")
        for obj in (claim, fast):
            member.mirror.apply_object(obj)
        assert member.held()["a"] == (2000.0, 1.0)
        column = member.mirror.columns.get(scalar)
        assert column is not None
        assert member.mirror.queues["a"].elsewhere[column] == 1.0
        member.mirror.delete_object(core.PersistentVolumeClaim, claim.key)
        member.mirror.prepare()
        assert member.mirror.queues["a"].elsewhere[column] == 0.0

    def test_does_not_count_what_devices_account_for(self) -> None:
        made = pod("p").group("g").request(cpu=1, gpu=2).on(name_of("s-1", "node", members(2))).build()
        member = self.member(owned(made, name_of("s-1", "job", members(2))))
        member.mirror.prepare()
        column = member.mirror.columns.get("nvidia.com/gpu")
        assert column is not None
        assert member.mirror.queues["a"].elsewhere[column] == 2000.0
        member.mirror.ignore(frozenset({"nvidia.com/gpu"}))
        assert member.mirror.queues["a"].elsewhere[column] == 0.0
        member.hear(foreign("another"))
        member.mirror.prepare()
        assert member.mirror.queues["a"].elsewhere[column] == 0.0

    def test_that_cannot_be_read_is_left_to_its_own_scheduler(self) -> None:
        bad = pod("p").group("g").request(cpu="lots").on(name_of("s-1", "node", members(2))).build()
        member = self.member(owned(bad, name_of("s-1", "job", members(2))))
        assert member.held()["a"] == (0.0, 0.0)
        assert not member.mirror.problems

    def test_costs_little_memory(self) -> None:
        """A task and what hangs on it takes more than two KiB."""
        member, number = self.member(), 2000
        pods = [foreign(f"p-{index}") for index in range(number)]
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for each in pods:
                member.mirror.elsewhere.apply_pod(each, ours=False)  # type: ignore[arg-type]
            taken = (tracemalloc.get_traced_memory()[0] - before) / number
        finally:
            tracemalloc.stop()
        assert len(member.mirror.elsewhere) >= number
        assert taken < 600, f"{taken:.0f} bytes a pod"


@pytest.mark.parametrize("kind", [kinds.PODS, kinds.POD_GROUPS])
def test_a_scheduler_by_itself_counts_nothing_elsewhere(kind: kinds.Kind) -> None:
    mirror = Mirror()
    sources = required_sources(mirror, Acceptance(["volcano"]))
    (source,) = (each for each in sources if each.kind == kind)
    source.apply(foreign() if kind == kinds.PODS else foreign_group())
    assert len(mirror.elsewhere) == 0
    assert mirror.tasks or mirror.jobs


def test_nodes_of_others_are_not_used() -> None:
    member = Member("s-0", members(2))
    member.hear(node(name_of("s-1", "node", members(2))).build())
    assert not member.mirror.nodes_by_name
