"""Two candidates, one Lease, and everything that can come between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.errors import ConfigurationError, LeadershipLost
from stromboli.kube.json import JsonObject
from stromboli.kube.leases import LeaderElector, LeaseTiming, new_identity
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually


class WatchedClient(Client):
    """Knows how many requests are on their way."""

    on_the_way = 0

    def with_limit(self, *, qps: float, burst: int = 100, user_agent: str | None = None) -> WatchedClient:
        return self

    async def _answer(self, *args: Any) -> bytes:
        self.on_the_way += 1
        try:
            return await super()._answer(*args)
        finally:
            self.on_the_way -= 1


class Candidate:
    """One process that wants to lead."""

    def __init__(self, client: Client, clock: FakeClock, identity: str, *, release: bool = True) -> None:
        self.elector = LeaderElector(
            client,
            namespace="volcano-system",
            name="volcano",
            identity=identity,
            clock=clock,
            release_on_stop=release,
            rng=random.Random(1),  # the same for all: they come at the same moment
        )
        self._working = False
        self.finish = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def work(self) -> None:
        self._working = True
        try:
            await self.finish.wait()
        finally:
            self._working = False

    def works(self) -> bool:
        return self._working

    def start(self) -> None:
        self.task = asyncio.create_task(self.elector.run(self.work))

    async def outcome(self) -> BaseException | None:
        assert self.task
        (result,) = await asyncio.gather(self.task, return_exceptions=True)
        return result


class Contest:
    """A server, a clock, and candidates on it."""

    def __init__(self, server: FakeApiServer, client: WatchedClient, clock: FakeClock) -> None:
        self.server = server
        self.client = client
        self.clock = clock
        self.candidates: list[Candidate] = []

    def candidate(self, identity: str, *, release: bool = True, clock: FakeClock | None = None) -> Candidate:
        candidate = Candidate(self.client, clock or self.clock, identity, release=release)
        self.candidates.append(candidate)
        candidate.start()
        return candidate

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """Move the clock in small steps; it stands still while requests are on their way, unless they are held."""
        for _ in range(int(seconds / step)):
            await self.clock.advance(step)
            await self.quiet()
            assert sum(candidate.works() for candidate in self.candidates) <= 1, "two leaders at a time"

    async def quiet(self) -> None:
        """Wait until no request is on its way, except those that the server holds back."""
        await self.clock.settle()
        while self.client.on_the_way != self.server.held:
            await eventually(lambda: self.client.on_the_way == self.server.held)
            await self.clock.settle()

    @property
    def spec(self) -> JsonObject:
        found = self.server.get(kinds.LEASES, "volcano", "volcano-system")["spec"]
        assert isinstance(found, dict)
        return found


@pytest.fixture
async def contest(server: FakeApiServer) -> AsyncIterator[Contest]:
    clock = FakeClock()
    async with await WatchedClient.connect(master=server.url, qps=0, clock=clock) as client:
        contest = Contest(server, client, clock)
        yield contest
        server.faults.clear()
        for candidate in contest.candidates:
            if candidate.task:
                candidate.task.cancel()
                await candidate.outcome()


@asynccontextmanager
async def patience() -> AsyncIterator[None]:
    async with asyncio.timeout(20):
        yield


async def test_the_first_candidate_leads_and_writes_what_others_expect(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    assert contest.spec["holderIdentity"] == "one"
    assert contest.spec["leaseDurationSeconds"] == 15
    assert contest.spec["leaseTransitions"] == 0
    assert contest.spec["acquireTime"].endswith("Z") and "." in contest.spec["acquireTime"]
    before = contest.spec["renewTime"]
    await contest.pass_time(2.5)
    assert contest.spec["renewTime"] > before
    assert first.elector.is_leader


async def test_the_second_candidate_waits_and_takes_over_what_is_released(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    second = contest.candidate("two")
    await contest.pass_time(40)
    assert first.works() and not second.works()
    assert second.elector.leader == "one"
    first.finish.set()
    assert await first.outcome() is None
    assert contest.spec["holderIdentity"] == ""
    await contest.pass_time(6)
    assert second.works()
    assert contest.spec["leaseTransitions"] == 1


async def test_a_leader_that_vanishes_is_replaced_when_its_lease_has_run_out(contest: Contest) -> None:
    first = contest.candidate("one", release=False)
    await eventually(first.works)
    second = contest.candidate("two")
    await contest.pass_time(5)
    assert first.task
    first.task.cancel()
    await first.outcome()
    await contest.pass_time(12)
    assert not second.works(), "the lease has not run out yet"
    await contest.pass_time(10)
    assert second.works()


async def test_a_leader_cut_off_stops_before_another_may_start(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    renewed = contest.clock.monotonic()
    contest.server.faults.fail(503, verb="update", kind=kinds.LEASES, times=None)
    contest.server.faults.fail(503, verb="get", kind=kinds.LEASES, times=None)
    async with patience():
        while first.works():
            await contest.pass_time(0.5)
    assert contest.clock.monotonic() - renewed < 15
    assert isinstance(await first.outcome(), LeadershipLost)


async def test_a_server_that_does_not_answer_costs_the_lease_in_time(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    renewed = contest.clock.monotonic()
    contest.server.faults.hold(kind=kinds.LEASES, times=None)
    async with patience():
        while first.works():
            await contest.pass_time(0.5)
    assert contest.clock.monotonic() - renewed < 15
    lost = await first.outcome()
    assert isinstance(lost, LeadershipLost)
    assert "could not be renewed for 10 s" in str(lost)


async def test_a_short_failure_is_survived(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    contest.server.faults.fail(500, verb="update", kind=kinds.LEASES, times=2)
    await contest.pass_time(12)
    assert first.works()


async def test_somebody_elses_write_ends_the_leadership_at_once(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    lease = contest.server.get(kinds.LEASES, "volcano", "volcano-system")
    contest.server.put(kinds.LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "usurper"}})
    await contest.pass_time(2.5)
    assert not first.works()
    lost = await first.outcome()
    assert isinstance(lost, LeadershipLost)
    assert "usurper holds it" in str(lost)
    assert contest.spec["holderIdentity"] == "usurper", "what is not ours is not released"


async def test_a_harmless_write_by_others_is_only_a_conflict(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    lease = contest.server.get(kinds.LEASES, "volcano", "volcano-system")
    lease["metadata"]["annotations"] = {"touched": "yes"}
    contest.server.put(kinds.LEASES, lease)
    await contest.pass_time(20)
    assert first.works()


async def test_a_deleted_lease_is_made_again(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    contest.server.remove(kinds.LEASES, "volcano", "volcano-system")
    await contest.pass_time(3)
    assert first.works()
    assert contest.spec["holderIdentity"] == "one"


async def test_of_two_that_take_an_expired_lease_one_gets_a_conflict(contest: Contest) -> None:
    old = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "leaseTransitions": 3}
    contest.server.put(kinds.LEASES, {"metadata": {"name": "volcano", "namespace": "volcano-system"}, "spec": old})
    candidates = [contest.candidate(name) for name in ("one", "two")]
    await contest.pass_time(14, step=1)
    assert not any(candidate.works() for candidate in candidates), "watched for less than its duration"
    await contest.pass_time(6)
    assert [candidate.works() for candidate in candidates].count(True) == 1
    assert contest.spec["leaseTransitions"] == 4
    assert contest.server.count("update", kinds.LEASES) >= 2


async def test_of_two_that_start_at_the_same_moment_one_makes_the_lease(contest: Contest) -> None:
    candidates = [contest.candidate(name) for name in ("one", "two")]
    await contest.pass_time(20)
    assert [candidate.works() for candidate in candidates].count(True) == 1
    assert contest.server.count("create", kinds.LEASES) == 2
    assert contest.spec["leaseTransitions"] == 0


async def test_a_lease_that_cannot_be_given_back_runs_out_by_itself(
    contest: Contest, caplog: pytest.LogCaptureFixture
) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    contest.server.faults.fail(500, verb="update", kind=kinds.LEASES)
    first.finish.set()
    assert await first.outcome() is None
    assert "was not released" in caplog.text
    assert contest.spec["holderIdentity"] == "one"


async def test_wall_clocks_that_jump_or_disagree_do_not_matter(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    fast = FakeClock(start=contest.clock.time() + 86_400)  # a day ahead: every renewTime looks long past
    second = contest.candidate("two", clock=fast)
    for _ in range(20):
        contest.clock.jump(-3600)
        await contest.pass_time(1)
        await fast.advance(1)
        await contest.quiet()
    assert first.works() and not second.works()


async def test_a_long_pause_is_survived_when_nobody_came_between(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    contest.clock._steady += 60  # the process slept through its renewals
    assert not first.elector.is_leader
    await contest.pass_time(3)
    assert first.works() and first.elector.is_leader


async def test_a_long_pause_with_somebody_in_between_is_the_end(contest: Contest) -> None:
    first = contest.candidate("one")
    await eventually(first.works)
    lease = contest.server.get(kinds.LEASES, "volcano", "volcano-system")
    contest.server.put(kinds.LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "two"}})
    contest.clock._steady += 60
    await contest.pass_time(3)
    assert isinstance(await first.outcome(), LeadershipLost)


async def test_an_error_of_the_work_is_not_a_lost_lease_and_releases_it(contest: Contest) -> None:
    elector = LeaderElector(
        contest.client, namespace="volcano-system", name="volcano", identity="one", clock=contest.clock
    )

    async def fail() -> None:
        raise RuntimeError("boom")

    with pytest.raises(ExceptionGroup) as caught:
        await elector.run(fail)
    assert caught.group_contains(RuntimeError, match="boom")
    assert contest.spec["holderIdentity"] == ""


async def test_renewals_do_not_queue_behind_other_requests(server: FakeApiServer) -> None:
    async with await Client.connect(master=server.url, qps=0.001, burst=1) as busy:
        await busy.list(kinds.PODS)  # takes the only token for the next quarter of an hour
        elector = LeaderElector(busy, namespace="volcano-system", name="volcano", identity="one")
        async with asyncio.timeout(5):
            await elector.acquire()
            await elector.release()
        assert await busy.with_limit(qps=0).list(kinds.PODS) == []
        await busy.with_limit(qps=0).close()
        assert await busy.with_limit(qps=0).list(kinds.PODS) == []


async def test_new_leaders_are_told_of(contest: Contest) -> None:
    leaders: list[str] = []
    elector = LeaderElector(
        contest.client,
        namespace="volcano-system",
        name="volcano",
        identity="one",
        on_new_leader=leaders.append,
        clock=contest.clock,
    )
    await elector.acquire()
    assert leaders == ["one"]


def test_an_identity_is_the_host_and_something_unique() -> None:
    one, other = new_identity(), new_identity()
    assert one != other
    assert one.split("_")[0] == other.split("_")[0] != ""


TIMINGS = {
    "duration not above the deadline": ((10, 10, 2), "--leader-elect-lease-duration must be greater than"),
    "deadline not above the retries": ((15, 2, 2), "--leader-elect-renew-deadline must be greater than"),
    "no pause": ((15, 10, 0), "--leader-elect-retry-period must be greater than zero"),
    "below what a Lease can say": ((0.9, 0.5, 0.1), "at least one second"),
}


@pytest.mark.parametrize(("values", "want"), TIMINGS.values(), ids=TIMINGS.keys())
def test_timings_that_cannot_keep_two_leaders_apart_are_refused(values: tuple[float, float, float], want: str) -> None:
    with pytest.raises(ConfigurationError, match=want):
        LeaseTiming(*values)
