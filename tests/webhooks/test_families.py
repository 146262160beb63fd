"""Families of queues: kept up with changes they are what counting anew would give, and judge as that would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks import queue_tree
from stromboli.webhooks.caching import CachedCluster
from stromboli.webhooks.context import Context, KnownCluster
from stromboli.webhooks.families import Amounts, Claims, Families, Family
from stromboli.webhooks.shapes import Queue, read
from tests.webhooks.building import eventually, queue

NAMES = ("a", "b", "c", "d")
PARENTS = ("", "root", *NAMES)
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "no quantity"]),
    st.one_of(st.integers(-1, 3), st.sampled_from(["500m", "0", "lots"])),
    max_size=3,
)
specs = st.fixed_dictionaries(
    {"parent": st.sampled_from(PARENTS), "deserved": amounts, "guarantee": st.fixed_dictionaries({"resource": amounts})}
)
queues = st.builds(lambda name, spec: read(Queue, queue(name, **spec)), st.sampled_from(NAMES), specs)
changes = st.lists(st.one_of(queues, st.sampled_from(NAMES)), max_size=12)
"""Queues that come or change, and names of queues that go."""


def followed(steps: list[Queue | str]) -> tuple[Families, dict[str, Queue]]:
    families = Families()
    known: dict[str, Queue] = {}
    for step in steps:
        match step:
            case str():
                families.remove(step)
                known.pop(step, None)
            case _:
                families.put(step)
                known[step.name] = step
    return families, known


@given(changes)
def test_families_that_are_kept_up_are_those_counted_anew(steps: list[Queue | str]) -> None:
    families, known = followed(steps)
    for parent in PARENTS:
        assert families.below(parent) == Family.of(child for child in known.values() if child.spec.parent == parent)
        assert [child.name for child in families.below(parent).children] == sorted(
            child.name for child in known.values() if child.spec.parent == parent
        )


@given(changes, queues)
def test_sums_that_are_kept_judge_as_adding_up_does(steps: list[Queue | str], changed: Queue) -> None:
    _, known = followed(steps)
    context = Context("UPDATE", cluster=KnownCluster(known))
    got = [fault.field for fault in queue_tree.share_faults(changed, context) if "sum of" in fault.text]
    assert sorted(set(got)) == sorted(set(added_up(changed, known)))


def added_up(changed: Queue, known: dict[str, Queue]) -> list[str]:
    """The fields of which some of the children, in order, have too much; the plain way."""
    found: list[str] = []
    others = [known[name] for name in sorted(known) if name != changed.name]
    if changed.spec.parent not in queue_tree.TOP:
        parent = known.get(changed.spec.parent)
        if parent is None:
            return []
        found += too_much(parent, [*(each for each in others if each.spec.parent == parent.name), changed])
    return found + too_much(changed, [each for each in others if each.spec.parent == changed.name])


def too_much(parent: Queue, children: list[Queue]) -> list[str]:
    return [
        f"spec.{part}"
        for part in ("guarantee", "deserved")
        for count in range(1, len(children) + 1)
        if beyond(
            [getattr(Claims.of(child), part) for child in children[:count]],
            getattr(Claims.of(parent), part),
        )
    ]


def beyond(claims: Sequence[Amounts], limit: Amounts) -> bool:
    named = {name for claim in claims for name in claim}
    return any(
        sum(claim.get(name, 0) for claim in claims) > limit.get(name, 0)
        or (name not in limit and name not in ("cpu", "memory"))
        for name in named
    )


async def test_the_cache_follows_queues_that_come_move_and_go() -> None:
    async with FakeApiServer() as api, await Client.connect(master=api.url) as client:
        api.put(kinds.QUEUES, queue("p"))
        api.put(kinds.QUEUES, queue("b", parent="p", deserved={"cpu": "1"}))
        api.put(kinds.QUEUES, queue("a", parent="p", deserved={"cpu": "2"}))
        cluster = CachedCluster(client, namespaces=False)

        async def below(parent: str, *want: str) -> None:
            async def as_wanted() -> bool:
                return [child.name for child in cluster.children(parent)] == list(want)

            await eventually(as_wanted)

        following = asyncio.create_task(cluster.run())
        await below("p", "a", "b")
        assert cluster.family("p").deserved.amounts == {"cpu": 3000}
        api.put(kinds.QUEUES, queue("b", parent="q"))
        await below("q", "b")
        await below("p", "a")
        assert cluster.family("p").deserved.amounts == {"cpu": 2000}
        await client.delete(kinds.QUEUES, "a")
        await below("p")
        assert cluster.family("p").deserved.amounts == {}
        following.cancel()
        await asyncio.wait([following])
