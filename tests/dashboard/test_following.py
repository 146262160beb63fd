"""What is known of the cluster while its API server comes and goes."""

from __future__ import annotations

import asyncio

from stromboli.api import kinds
from stromboli.dashboard.following import Follower
from stromboli.dashboard.making import Sections
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually
from tests.dashboard.conftest import following


async def test_everything_is_known_and_the_connection_is_well(follower: Follower, server: FakeApiServer) -> None:
    sight = follower.sight()
    counts = [len(found) for found in (sight.queues, sight.groups, sight.jobs, sight.pods, sight.nodes)]
    assert counts == [3, 2, 3, 5, 4]
    assert (len(sight.hyper_nodes), len(sight.events)) == (3, 2)
    told = follower.connection()
    assert (told.server, told.since, told.error, told.problems) == (server.url, 0.0, "", ())


async def test_pods_that_are_bound_already_count_at_the_time_they_say(follower: Follower) -> None:
    """Those of the canned cluster were bound long ago, except one that does not say when."""
    assert follower.starts.pace(follower._clock.time()).minute == 2


async def test_a_pod_that_gets_its_node_counts_once(follower: Follower, server: FakeApiServer) -> None:
    before = follower.starts.pace(follower._clock.time()).minute
    wide = server.get(kinds.PODS, "wide-worker-0", "vision")
    wide["spec"]["nodeName"] = "spare"
    server.put(kinds.PODS, wide)
    wide["status"]["phase"] = "Running"
    server.put(kinds.PODS, wide)
    await eventually(lambda: any(pod.node == "spare" and pod.phase == "Running" for pod in follower.sight().pods))
    assert follower.starts.pace(follower._clock.time()).minute == before + 1


async def test_a_change_is_a_new_revision(follower: Follower, server: FakeApiServer) -> None:
    revision = follower.revision
    waiting = asyncio.create_task(follower.changed(revision))
    server.remove(kinds.JOBS, "done", "speech")
    assert await asyncio.wait_for(waiting, 10) > revision
    await eventually(lambda: len(follower.sight().jobs) == 2)


async def test_while_the_server_is_away_the_last_view_stays_and_afterwards_it_goes_on(
    follower: Follower, server: FakeApiServer
) -> None:
    port = server.port
    await server.stop()
    await eventually(lambda: follower.connection().since > 0, timeout=30, what="the server is missed")
    assert follower.connection().error
    assert len(follower.sight().jobs) == 3
    assert follower.missing() is None
    server.remove(kinds.JOBS, "done", "speech")
    await server.start(port)
    await eventually(lambda: follower.connection().since == 0, timeout=30, what="it is back")
    await eventually(lambda: len(follower.sight().jobs) == 2, timeout=30, what="the view goes on")
    await eventually(lambda: follower.connection().problems == (), timeout=30, what="nothing is behind")


async def test_a_kind_that_may_not_be_read_is_named_and_hides_no_others(server: FakeApiServer) -> None:
    server.faults.fail(403, verb="list", kind=kinds.HYPER_NODES, times=None)
    server.faults.fail(403, verb="watch", kind=kinds.HYPER_NODES, times=None)
    async with following(server) as follower:
        await eventually(lambda: follower.connection().problems, timeout=30, what="the problem is told")
        (problem,) = follower.connection().problems
        assert problem.resource == "hypernodes.topology.volcano.sh"
        assert "ordered by the test" in problem.message
        assert len(follower.sight().queues) == 3
        assert follower.connection().since == 0


class Ticking(FakeClock):
    """Every reading is ``step`` seconds after the one before, so that making a section takes that long."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.at = 0.0
        self.step = step

    def monotonic(self) -> float:
        self.at += self.step
        return self.at


async def test_a_section_is_made_once_a_revision(follower: Follower) -> None:
    made: list[str] = []
    sections = Sections(follower, clock=Ticking(0.0), took=lambda section, _: made.append(section))
    first = sections.queues()
    assert sections.queues() is first
    follower.revision += 1
    assert sections.queues() is not first
    assert made == ["queues", "queues"]


async def test_a_section_that_is_slow_to_make_is_kept_for_four_times_as_long(follower: Follower) -> None:
    clock = Ticking(1.0)
    made: list[str] = []
    sections = Sections(follower, clock=clock, took=lambda section, _: made.append(section))
    sections.queues()
    follower.revision += 1
    sections.queues()
    assert made == ["queues"], "within the rest"
    clock.at += 4.0
    sections.queues()
    assert made == ["queues", "queues"], "after it"
