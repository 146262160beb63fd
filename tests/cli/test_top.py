"""The live view: a tree of queues with bars, jobs by phase, what waits and why; and how it keeps up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from stromboli.api import core
from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, QUEUES, Kind
from stromboli.cli.vc.drawing import bar, screen, total
from stromboli.cli.vc.keeping import Keeper
from stromboli.cli.vc.looking import READINGS, Look
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.cli.driving import NOW, Outcome, Until, drive, job, meta, pod_group, queue

KINDS = (NODES, QUEUES, POD_GROUPS, JOBS, PODS)


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody says how wide the output is."""
    monkeypatch.delenv("COLUMNS", raising=False)


def furnish(server: FakeApiServer) -> None:
    allocatable = {"cpu": "8", "memory": "32Gi"}
    server.put(NODES, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
    server.put(QUEUES, queue("root", parent=""))
    research = queue("research")
    research["spec"] |= {"capability": {"cpu": "4"}, "deserved": {"cpu": "2"}}
    research["status"]["allocated"] = {"cpu": "2", "memory": "8Gi", "pods": "2"}
    server.put(QUEUES, research)
    server.put(QUEUES, queue("shut", state="Closed", parent="research"))
    server.put(JOBS, job("a"))
    server.put(JOBS, job("b", phase="Pending"))
    started = {"startTime": "2026-01-03T23:59:30Z", "phase": "Running"}
    server.put(PODS, {"metadata": meta("p"), "spec": {}, "status": started})
    waiting = pod_group("b-1", "research", "Pending")
    waiting["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "b"}]
    told = {"type": "Admitted", "status": "False", "reason": "QueueQuotaInsufficient", "message": "short by cpu 4"}
    waiting["status"]["conditions"] = [told]
    server.put(POD_GROUPS, waiting)


async def test_one_look(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    furnish(server)
    done = await drive("vcctl top --once", server)
    assert (done.code, done.err) == (0, "")
    assert done.out == LOOK


LOOK = """\
1 node, 1 pod, 1 start in the last minute
Jobs: 1 Pending, 1 Running

QUEUE                        RESOURCE   USE                            IN USE   DESERVED    AT MOST
root                         cpu        [                        ]          0          -          -
                             memory     [                        ]          0          -          -
  research                   cpu        [############            ]          2          2          4
                             memory     [######                  ]        8Gi          -          -
    shut (Closed)            cpu        [                        ]          0          -          -
                             memory     [                        ]          0          -          -

Waiting: 1
  default/b  3d  QueueQuotaInsufficient: short by cpu 4
"""


async def test_long_lines_are_cut_at_the_edge(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    furnish(server)
    lines = (await drive("vcctl top --once", server)).out.splitlines()
    assert max(map(len, lines)) == 40
    assert lines[-1].endswith("…")


async def test_lines_are_whole_without_a_terminal(server: FakeApiServer) -> None:
    furnish(server)
    assert (await drive("vcctl top --once", server)).out == LOOK


async def test_it_looks_until_interrupted(server: FakeApiServer) -> None:
    furnish(server)
    done = await drive("vcctl top", server, out=Until("Waiting: 1"))
    assert (done.code, done.err) == (130, "")
    assert done.out == f"{LOOK}\n"


async def test_later_looks_show_what_has_happened_and_list_nothing_again(server: FakeApiServer) -> None:
    furnish(server)
    screen = Until("Jobs: 1 Completed, 1 Running\n")
    looking = asyncio.create_task(drive("vcctl top -i 1", server, out=screen))
    await screen.opened.wait()
    server.put(JOBS, job("b", phase="Completed"))
    assert (await looking).code == 130
    assert {kind.plural: server.count("list", kind) for kind in KINDS} == {kind.plural: 1 for kind in KINDS}


@pytest.mark.parametrize(("line", "code"), [("vcctl top --once", 0), ("vcctl top", 130)])
async def test_without_the_right_to_list_nodes_and_pods_the_rest_is_shown(
    server: FakeApiServer, line: str, code: int
) -> None:
    furnish(server)
    for kind in (NODES, PODS):
        server.faults.fail(403, verb="list", kind=kind, times=None)
    done = await drive(line, server, out=Until("Waiting: 1") if code else None)
    assert (done.code, done.err) == (code, "")
    assert done.out.splitlines()[0] == "0 nodes, 0 pods, 0 starts in the last minute"


@pytest.mark.parametrize("line", ["vcctl top --once", "vcctl top"])
@pytest.mark.parametrize("kind", [QUEUES, POD_GROUPS, JOBS])
async def test_without_the_right_to_list_the_rest_there_is_nothing_to_show(
    server: FakeApiServer, line: str, kind: Kind
) -> None:
    server.faults.fail(403, verb="list", kind=kind, times=None, message="not for you")
    assert await drive(line, server) == Outcome(255, "", "Failed to top: not for you\n")


@pytest.mark.parametrize("line", ["vcctl top --once", "vcctl top"])
async def test_a_server_that_does_not_answer_is_told_at_once(server: FakeApiServer, line: str) -> None:
    await server.stop()
    done = await drive(line, server)
    assert (done.code, done.out) == (255, "")
    assert done.err.startswith(f"Failed to top: no answer from {server.url}: ")


async def test_credentials_that_expire_are_found_again(tmp_path: Path) -> None:
    config = tmp_path / "config"
    async with FakeApiServer(token="first") as server:
        furnish(server)
        config.write_text(kubeconfig(server, "first"))
        screen = Until("Jobs: 2 Running\n")
        looking = asyncio.create_task(
            drive("vcctl top -i 1", server, out=screen, environment={"KUBECONFIG": str(config)})
        )
        await screen.opened.wait()
        server.token = "second"
        config.write_text(kubeconfig(server, "second"))
        server.expire_versions()
        server.break_watches()
        server.put(JOBS, job("b"))
        assert (await looking).code == 130


def kubeconfig(server: FakeApiServer, token: str) -> str:
    return f"""\
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "{server.url}"}}}}]
users: [{{name: me, user: {{token: {token}}}}}]
"""


async def test_a_server_that_is_gone_leaves_the_last_look_and_says_so(server: FakeApiServer) -> None:
    furnish(server)
    screen = Terminal("Out of date for")
    looking = asyncio.create_task(drive("vcctl top -i 1", server, out=screen))
    await screen.opened.wait()
    await server.stop()
    assert (await looking).code == 130
    assert screen.lines[1:3] == LOOK.splitlines()[:2]


# -- keeping up --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def keeping(server: FakeApiServer) -> AsyncIterator[Keeper]:
    """A keeper that has listed the cluster and watches."""
    async with await server.client() as client:
        keeper = Keeper(client)
        async with keeper.running():
            assert await keeper.complete(10.0)
            await eventually(lambda: server.open_watches == len(KINDS), what="watches")
            yield keeper


def told(keeper: Keeper) -> list[str]:
    return list(screen(keeper.look(NOW), None))


def disturb_nothing(_server: FakeApiServer) -> None:
    pass


def cut(server: FakeApiServer) -> None:
    server.break_watches()


def forget(server: FakeApiServer) -> None:
    server.expire_versions()
    server.break_watches()


DISTURBANCES = {"nothing in between": (disturb_nothing, 1), "a cut": (cut, 1), "a version that is gone": (forget, 2)}


@pytest.mark.parametrize("name", DISTURBANCES)
async def test_what_appears_changes_and_goes_is_shown(server: FakeApiServer, name: str) -> None:
    disturb, listings = DISTURBANCES[name]
    furnish(server)
    async with keeping(server) as keeper:
        disturb(server)
        server.remove(POD_GROUPS, "b-1", "default")
        server.remove(QUEUES, "shut")
        server.put(JOBS, job("b"))
        server.put(JOBS, job("c", phase="Completed"))
        server.put(NODES, {"metadata": {"name": "m"}, "status": {"allocatable": {"cpu": "8", "memory": "32Gi"}}})
        await eventually(lambda: told(keeper) == LATER.splitlines(), what="all that has happened")
        await eventually(lambda: server.open_watches == len(KINDS), what="watches again")
        await eventually(lambda: keeper.problem == "", what="the end of all problems")
        assert server.count("list", JOBS) == listings


LATER = """\
2 nodes, 1 pod, 1 start in the last minute
Jobs: 1 Completed, 2 Running

QUEUE                        RESOURCE   USE                            IN USE   DESERVED    AT MOST
root                         cpu        [                        ]          0          -          -
                             memory     [                        ]          0          -          -
  research                   cpu        [############            ]          2          2          4
                             memory     [###                     ]        8Gi          -          -

Waiting: 0
"""


async def test_memory_is_given_back(server: FakeApiServer) -> None:
    """However much has come and gone, what is kept is what is there."""
    furnish(server)
    async with keeping(server) as keeper:
        before = keeper.known
        for number in range(200):
            server.put(JOBS, job(f"passing-{number}"))
            server.remove(JOBS, f"passing-{number}", "default")
        server.put(JOBS, job("last"))
        await eventually(lambda: len(keeper.look(NOW).jobs) == 3, what="the last job")
        assert keeper.known == before + 1


async def test_an_object_that_cannot_be_read_hides_no_others(server: FakeApiServer) -> None:
    furnish(server)
    server.put(JOBS, {"metadata": meta("old"), "status": {"state": "Running"}})
    async with keeping(server) as keeper:
        assert {line.identity.name for line in keeper.look(NOW).jobs} == {"a", "b"}


async def test_a_continue_token_that_expires_is_no_failure(server: FakeApiServer) -> None:
    furnish(server)
    server.faults.fail(410, verb="list", kind=JOBS, reason="Expired")
    async with keeping(server) as keeper:
        assert len(keeper.look(NOW).jobs) == 2


def test_nodes_of_all_sizes_are_added_up() -> None:
    sizes = [{"cpu": "8"}] * 3 + [{"cpu": "500m", "memory": "1Gi"}, {"cpu": "many"}]
    lines = [
        READINGS[NODES].decode(json.encode({"metadata": {"name": f"n{at}"}, "status": {"allocatable": size}}))
        for at, size in enumerate(sizes)
    ]
    assert total(lines) == {"cpu": Fraction(49, 2), "memory": 2**30}


class Terminal(Until):
    """A terminal whose user presses Ctrl-C after the first look."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """The last picture, without the codes that put it in its place."""
        return re.sub(r"\x1b\[[KJ]", "", self.getvalue().rpartition("\x1b[H")[2]).splitlines()


@pytest.mark.parametrize(
    ("height", "want"), [(60, "    shut (Closed)"), (20, "  and 38 queues more"), (5, "  and 42 queues more")]
)
async def test_many_queues_leave_room_for_what_waits(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, height: int, want: str
) -> None:
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("COLUMNS", "110")
    furnish(server)
    if height < 60:
        for number in range(40):
            server.put(QUEUES, queue(f"q-{number}"))
    screen = Terminal("Waiting: 1")
    await drive("vcctl top", server, out=screen)
    lines = screen.lines
    assert any(line.startswith(want) for line in lines)
    assert len(lines) < max(height, 12)
    assert lines[-1].startswith("  default/b")


BARS = {"empty": (0, 4, 0), "half": (2, 4, 12), "full": (4, 4, 24), "over": (9, 4, 24), "of nothing": (1, 0, 24)}


@pytest.mark.parametrize("name", BARS)
def test_bars(name: str) -> None:
    used, of, want = BARS[name]
    assert bar(Fraction(used), Fraction(of)).count("#") == want


LONG = "a-team-with-a-name-that-goes-on-and-on"


@pytest.mark.parametrize(
    ("columns", "want"), [("110", "  a-team-with-a-na… (Closed) cpu "), ("", f"  {LONG} (Closed) cpu ")]
)
async def test_long_names_keep_their_column(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, columns: str, want: str
) -> None:
    """Cut where the width is limited; elsewhere the column is as wide as the longest."""
    monkeypatch.setenv("COLUMNS", columns)
    furnish(server)
    server.put(QUEUES, queue(LONG, state="Closed"))
    lines = (await drive("vcctl top --once", server)).out.splitlines()
    assert sum(line.startswith(want) for line in lines) == 1
    bars = [line for line in lines if "[" in line]
    assert {line.index("[") for line in bars} == {bars[0].index("[")}
    assert lines[3].index("USE") == bars[0].index("[")


def test_names_in_deep_trees_are_not_cut_away() -> None:
    queues = [read_queue(queue("q0", parent="root"))]
    queues += [
        read_queue(queue(f"q{at}-of-the-deep", parent=f"q{at - 1}-of-the-deep" if at > 1 else "q0"))
        for at in range(1, 30)
    ]
    lines = list(screen(Look(now=NOW, queues=queues), 200))
    assert f"{'  ' * 29}q29-of-… cpu" in "\n".join(lines)


def read_queue(obj: JsonObject) -> core.Queue:
    return core.from_builtins(core.Queue, obj)


@pytest.mark.parametrize("columns", [77, 80, 95, 98, 99, 120])
async def test_the_table_fits_a_terminal_of_usual_width(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    furnish(server)
    server.put(QUEUES, queue(LONG, state="Closed"))
    table = (await drive("vcctl top --once", server)).out.splitlines()[3:-3]
    assert table[0].endswith("AT MOST")
    assert {len(line) for line in table} == {min(columns, 99)}
