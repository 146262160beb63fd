"""Random small clusters that are asked for more than they have: queues in a tree, gangs in them, some of it running."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.testing.builders import (
    PodBuilder,
    PodGroupBuilder,
    QueueBuilder,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
)
from tests.scheduler.core.worlds import world
from tests.scheduler.owners import Owners

PRIORITIES = {"low": 1, "middle": 50, "high": 100}


@st.composite
def queues(draw: st.DrawFn) -> list[QueueBuilder]:
    """Two departments with up to three queues below them; those that share by weight see five flat queues."""
    found = [queue(dept).deserve(cpu=draw(st.integers(0, 8)), memory="16Gi") for dept in ("x", "y")]
    for name in ("x1", "x2", "y1"):
        leaf = queue(name).parent(name[0]).weight(draw(st.integers(1, 3)))
        found.append(leaf.deserve(cpu=draw(st.integers(0, 5)), memory="8Gi"))
    return found


@st.composite
def jobs(draw: st.DrawFn, name: str) -> tuple[PodGroupBuilder, list[PodBuilder]]:
    """A job of up to three pods; its pods may differ in priority."""
    size = draw(st.integers(1, 3))
    least = draw(st.integers(1, size))
    group = pod_group(name).members(least).queue(draw(st.sampled_from(["x1", "x2", "y1"]))).phase("Inqueue")
    group = group.priority_class(draw(st.sampled_from(list(PRIORITIES)))).born(draw(st.integers(0, 3)))
    cpu = draw(st.integers(1, 3))
    own = draw(st.booleans())
    pods = [
        pod(f"{name}-{at}")
        .group(name)
        .request(cpu=cpu, memory="1Gi")
        .priority(draw(st.sampled_from(list(PRIORITIES.values()))) if own else 0)
        .annotate(**{"volcano.sh/preemptable": draw(st.sampled_from(["true", "true", "true", "false"]))})
        for at in range(size)
    ]
    return group.reserve(cpu=cpu * least, memory=f"{least}Gi"), pods


@dataclass(frozen=True)
class Crowd:
    """A cluster, and what runs or waits in it."""

    objects: tuple[core.Object, ...]
    pods: tuple[PodBuilder, ...]
    grace: int
    """Cycles that evicted pods take to end."""

    def mirror(self) -> Mirror:
        """The cluster as the scheduler sees it at first."""
        return world(self.objects, [one.build() for one in self.pods])

    def under(self, policy: Policy) -> Owners:
        """The cluster as it goes on under a policy."""
        return Owners.of(world(self.objects), self.pods, policy, grace=self.grace)


@st.composite
def crowds(draw: st.DrawFn) -> Crowd:
    """Up to three nodes that are asked for more than they have."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    nodes = [node(f"n{at}").offer(cpu=size, memory="16Gi").build() for at, size in enumerate(sizes)]
    wanted = [draw(jobs(f"j{at}")) for at in range(draw(st.integers(4, 7)))]
    objects = (
        *nodes,
        queue("root").build(),
        *(one.build() for one in draw(queues())),
        *(priority_class(name, value) for name, value in PRIORITIES.items()),
        *(group.build() for group, _ in wanted),
    )
    pods = [one for _, members in wanted for one in members]
    free = dict(zip([one.name for one in nodes], sizes, strict=True))
    pods = [_started(draw, one, free) for one in pods]
    return Crowd(objects, tuple(pods), grace=draw(st.integers(0, 1)))


def _started(draw: st.DrawFn, one: PodBuilder, free: dict[str, int]) -> PodBuilder:
    """Perhaps already running where there is room."""
    cpu = int(one.requests["cpu"])
    room = [name for name, left in free.items() if left >= cpu]
    if not room or draw(st.integers(0, 3)) == 0:
        return one
    where = draw(st.sampled_from(room))
    free[where] -= cpu
    return one.on(where)
