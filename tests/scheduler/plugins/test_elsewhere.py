"""What queues may still take here, when other schedulers' jobs hold a part of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import pytest

from stromboli.api import core
from stromboli.scheduler.core.elsewhere import PART
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import QueueBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import binds, evicted, feed, option, policy, run_cycle, world
from tests.scheduler.plugins.dra.building import claim, device_class, request

QUEUE_PLUGINS: dict[str, PluginOption] = {
    "proportion": PluginOption("proportion"),
    "capacity": PluginOption("capacity"),
    "capacity in a tree": option("capacity", hierarchy=True),
}
ROOT = queue("root")


def hold(mirror: Mirror, queue_name: str, cpu: int, *, prefix: str = "far") -> None:
    """Another scheduler's job holds so many cores of a queue, on nodes of its own."""
    name = f"{prefix}-{queue_name}"
    mirror.elsewhere.apply_pod_group(pod_group(name).queue(queue_name).phase("Running").build(), ours=False)
    for number in range(cpu):
        mirror.elsewhere.apply_pod(pod(f"{name}-{number}").group(name).request(cpu=1).on("far").build(), ours=False)


def guaranteed(builder: QueueBuilder, **amounts: int) -> core.Queue:
    built = builder.build()
    guarantee = core.Guarantee(resource=dict(amounts))
    return msgspec.structs.replace(built, spec=msgspec.structs.replace(built.spec, guarantee=guarantee))


def cluster(*queues: core.Queue, wants: int, among: str = "a") -> Mirror:
    """One node of ten cores, and a job that wants some of them in one pod."""
    return world(
        node("n").offer(cpu=10, memory="10Gi", pods=100).build(),
        ROOT.build(),
        *queues,
        pod_group("job").queue(among).members(1).phase("Pending").reserve(cpu=wants).build(),
        pod("job-0").group("job").request(cpu=wants).build(),
    )


@dataclass
class Case:
    """What the queue is allowed, what is held of it elsewhere, what a job wants of it here, and whether it gets it."""

    queues: list[core.Queue]
    wants: int
    want: bool
    elsewhere: dict[str, int] = field(default_factory=dict)


A, B = queue("a"), queue("b")
LIMITS = {
    "nothing elsewhere": Case([A.cap(cpu=4).build()], 4, True),
    "what is elsewhere and this together are within the capability": Case([A.cap(cpu=4).build()], 1, True, {"a": 3}),
    "they are not": Case([A.cap(cpu=4).build()], 2, False, {"a": 3}),
    "more is elsewhere than the capability": Case([A.cap(cpu=4).build()], 1, False, {"a": 6}),
    "without a capability only the nodes here matter": Case([A.build()], 10, True, {"a": 50}),
    "another queue's jobs elsewhere do not matter": Case([A.cap(cpu=4).build(), B.build()], 4, True, {"b": 50}),
}
GUARANTEES = {
    "a guarantee is kept free here": Case([A.build(), guaranteed(B, cpu=6)], 5, False),
    "but not the part of it that is had elsewhere": Case([A.build(), guaranteed(B, cpu=6)], 7, True, {"b": 3}),
    "and no more than that part": Case([A.build(), guaranteed(B, cpu=6)], 8, False, {"b": 3}),
    "one that is exceeded elsewhere gives nothing more": Case([A.build(), guaranteed(B, cpu=6)], 10, True, {"b": 30}),
}
ABOVE = {
    "what is below the same queue elsewhere counts above": Case(
        [queue("team").cap(cpu=4).build(), A.parent("team").build(), B.parent("team").build()], 2, False, {"b": 3}
    ),
    "and leaves the rest": Case(
        [queue("team").cap(cpu=4).build(), A.parent("team").build(), B.parent("team").build()], 1, True, {"b": 3}
    ),
}


def gives(case: Case, plugin: str, actions: str) -> bool:
    mirror = cluster(*case.queues, wants=case.wants)
    for held, cpu in case.elsewhere.items():
        hold(mirror, held, cpu)
    return bool(binds(run_cycle(mirror, policy(QUEUE_PLUGINS[plugin], actions=actions))))


@pytest.mark.parametrize("actions", ["enqueue allocate", "allocate"])
class TestAQueueGives:
    """Both when the job is admitted and when its pods are placed."""

    @pytest.mark.parametrize("plugin", QUEUE_PLUGINS)
    @pytest.mark.parametrize("case", LIMITS.values(), ids=LIMITS.keys())
    def test_within_its_capability(self, case: Case, plugin: str, actions: str) -> None:
        assert gives(case, plugin, actions) is case.want

    @pytest.mark.parametrize("plugin", ["proportion", "capacity"])
    @pytest.mark.parametrize("case", GUARANTEES.values(), ids=GUARANTEES.keys())
    def test_what_others_are_not_guaranteed(self, case: Case, plugin: str, actions: str) -> None:
        assert gives(case, plugin, actions) is case.want

    @pytest.mark.parametrize("case", ABOVE.values(), ids=ABOVE.keys())
    def test_within_the_capability_of_queues_above(self, case: Case, actions: str) -> None:
        assert gives(case, "capacity in a tree", actions) is case.want


@pytest.mark.parametrize("plugin", QUEUE_PLUGINS)
def test_the_reason_counts_what_is_elsewhere(plugin: str) -> None:
    mirror = cluster(A.cap(cpu=4).build(), wants=2)
    hold(mirror, "a", 3)
    (report,) = run_cycle(mirror, policy(QUEUE_PLUGINS[plugin], "gang")).reports
    (shortage,) = report.shortages
    assert (shortage.resource, shortage.limit, shortage.taken, shortage.short) == ("cpu", "4", "3", "1")


@pytest.mark.parametrize("plugin", QUEUE_PLUGINS)
def test_the_reason_of_a_pod_counts_what_is_elsewhere(plugin: str) -> None:
    mirror = cluster(A.cap(cpu=4).build(), wants=2)
    hold(mirror, "a", 3)
    (update,) = run_cycle(mirror, policy(QUEUE_PLUGINS[plugin], "gang", actions="allocate")).pods
    assert "cpu 4, of which cpu 3 is taken: short by cpu 1 for a pod that needs cpu 2" in update.message


@pytest.mark.parametrize("plugin", QUEUE_PLUGINS)
def test_metrics_tell_what_is_held_here(plugin: str) -> None:
    """So that series of all schedulers add up."""
    mirror = cluster(A.cap(cpu=4).build(), wants=1)
    hold(mirror, "a", 3)
    feed(mirror, pod("job-0").group("job").request(cpu=1).on("n").build())
    samples = {
        sample.name: sample.value
        for sample in run_cycle(mirror, policy(QUEUE_PLUGINS[plugin])).samples
        if dict(sample.labels).get("queue_name") == "a"
    }
    assert samples["queue_allocated_milli_cpu"] == samples["queue_request_milli_cpu"] == 1000


def test_a_queue_that_may_have_more_than_the_nodes_here_is_at_fault_only_if_they_are_the_cluster() -> None:
    def warnings(**options: object) -> list[str]:
        mirror = cluster(A.cap(cpu=20).build(), wants=1)
        return run_cycle(mirror, policy(QUEUE_PLUGINS["capacity in a tree"]), options=options).warnings

    assert len(warnings()) == 1
    assert warnings(**{PART: True}) == []


def test_a_full_cluster_admits_what_a_queue_is_due_and_has_not_elsewhere() -> None:
    def admits(elsewhere: int) -> bool:
        mirror = cluster(A.deserve(cpu=4).build(), B.build(), wants=2)
        feed(mirror, pod_group("full").queue("b").phase("Running").build())
        feed(mirror, pod("full-0").group("full").request(cpu=10).on("n").build())
        hold(mirror, "a", elsewhere)
        result = run_cycle(mirror, policy(PluginOption("overcommit", arguments={"overcommit-factor": 1.0}), "gang"))
        return any(update.job_id == "ns/job" and update.status.phase == "Inqueue" for update in result.pod_groups)

    assert [admits(elsewhere) for elsewhere in (0, 2, 3)] == [True, True, False]


def starving(number: int) -> Iterator[core.Object]:
    """Jobs of queue b that want a core each."""
    for index in range(number):
        yield pod_group(f"job-{index}").queue("b").members(1).build()
        yield pod(f"job-{index}").group(f"job-{index}").request(cpu=1).build()


class TestReclaiming:
    """All schedulers together take from a queue what it has too much, and not each of them all of that."""

    def taken(self, here: int, elsewhere: int, *, due: int = 4, wants: int = 6, plugin: str = "capacity") -> int:
        mirror = world(
            node("n").offer(cpu=here, memory="10Gi", pods=100).build(),
            ROOT.build(),
            A.deserve(cpu=due).build(),
            B.deserve(cpu=20).build(),
            pod_group("rich").queue("a").members(0).phase("Running").build(),
            *(pod(f"rich-{number}").group("rich").request(cpu=1).on("n").build() for number in range(here)),
            *starving(wants),
        )
        hold(mirror, "a", elsewhere)
        return len(evicted(run_cycle(mirror, policy(QUEUE_PLUGINS[plugin], "gang", "predicates", actions="reclaim"))))

    @pytest.mark.parametrize("plugin", ["capacity", "capacity in a tree"])
    def test_takes_a_part_of_what_is_too_much(self, plugin: str) -> None:
        assert self.taken(here=4, elsewhere=0, plugin=plugin) == 0
        assert self.taken(here=6, elsewhere=0, plugin=plugin) == 2
        assert self.taken(here=4, elsewhere=4, plugin=plugin) == 2, "and the other scheduler the other two"
        assert self.taken(here=6, elsewhere=2, plugin=plugin) == 3, "and the other one"
        assert self.taken(here=2, elsewhere=2, plugin=plugin) == 0

    @pytest.mark.parametrize(("here", "elsewhere"), [(4, 4), (8, 4), (6, 10), (12, 12), (11, 1)])
    def test_two_that_reclaim_at_the_same_moment_leave_what_is_due(self, here: int, elsewhere: int) -> None:
        """But for the pod of which a part is too much, which a scheduler by itself takes as well."""
        first, second = (self.taken(*held, wants=12) for held in ((here, elsewhere), (elsewhere, here)))
        exact = [part * (here + elsewhere - 4) / (here + elsewhere) for part in (here, elsewhere)]
        assert [first, second] == [math.ceil(part) for part in exact]

    def test_a_guarantee_may_be_had_elsewhere(self) -> None:
        mirror = world(
            node("n").offer(cpu=4, memory="10Gi", pods=100).build(),
            guaranteed(A, cpu=4),
            B.deserve(cpu=20).build(),
            pod_group("rich").queue("a").members(0).phase("Running").build(),
            *(pod(f"rich-{number}").group("rich").request(cpu=1).on("n").build() for number in range(4)),
            *starving(4),
        )
        reclaim = policy("capacity", "gang", "predicates", actions="reclaim")
        assert evicted(run_cycle(mirror, reclaim)) == []
        hold(mirror, "a", 4)
        assert len(evicted(run_cycle(mirror, reclaim))) == 2


class TestDevices:
    """Quotas on device classes count claims of pods elsewhere; one that is shared counts once."""

    def mirror(self, *claims: str) -> Mirror:
        limited = msgspec.structs.replace(A.build().spec, capability={"deviceclass/gpu": "2"})
        mirror = world(
            node("n").offer(cpu=10, memory="10Gi", pods=100).build(),
            msgspec.structs.replace(A.build(), spec=limited),
            device_class("gpu"),
            *(claim(name, request("r")) for name in ("one", "two", "three")),
            pod_group("job").queue("a").members(1).build(),
            self.claiming("job-0", "job", "three"),
        )
        mirror.elsewhere.apply_pod_group(pod_group("far").queue("a").phase("Running").build(), ours=False)
        for number, name in enumerate(claims):
            there = self.claiming(f"far-{number}", "far", name)
            spec = msgspec.structs.replace(there.spec, node_name="far")
            running = msgspec.structs.replace(there, spec=spec, status=core.PodStatus(phase="Running"))
            mirror.elsewhere.apply_pod(running, ours=False)
        return mirror

    def claiming(self, name: str, group: str, claimed: str) -> core.Pod:
        made = pod(name).group(group).request(cpu=1).build()
        claims = (core.PodResourceClaim(name="c", resource_claim_name=claimed),)
        return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, resource_claims=claims))

    @pytest.mark.parametrize(
        ("claims", "want"), [((), True), (("one",), True), (("one", "one"), True), (("one", "two"), False)]
    )
    def test_are_limited_in_all(self, claims: tuple[str, ...], want: bool) -> None:
        result = run_cycle(self.mirror(*claims), policy("capacity", actions="allocate"))
        assert bool(binds(result)) is want

    def test_are_written_in_all(self) -> None:
        (update,) = run_cycle(self.mirror("one", "one", "two"), policy("gang", actions="enqueue")).queues
        assert update.allocated["deviceclass/gpu"] == "2"
        assert update.allocated["cpu"] == "3"
