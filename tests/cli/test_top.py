"""The live view: a tree of queues with bars, jobs by phase, what waits and why."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stromboli.api.kinds import JOBS, NODES, POD_GROUPS, PODS, QUEUES
from stromboli.cli.vc.top import bar
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import Until, drive, job, meta, pod_group, queue


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


async def test_lines_are_whole_without_a_terminal(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    furnish(server)
    assert (await drive("vcctl top --once", server)).out == LOOK


async def test_it_looks_again_until_interrupted(server: FakeApiServer) -> None:
    furnish(server)
    screen = Until("Waiting: 1")
    done = await drive("vcctl top", server, out=screen)
    assert done.code == 130


async def test_without_the_right_to_list_nodes_and_pods_the_rest_is_shown(server: FakeApiServer) -> None:
    furnish(server)
    for kind in (NODES, PODS):
        server.faults.fail(403, verb="list", kind=kind)
    done = await drive("vcctl top --once", server)
    assert (done.code, done.out.splitlines()[0]) == (0, "0 nodes, 0 pods, 0 starts in the last minute")


class Terminal(Until):
    """A terminal whose user presses Ctrl-C after the first look."""

    def isatty(self) -> bool:
        return True


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
    lines = screen.getvalue().splitlines()
    assert any(line.startswith(want) for line in lines)
    assert len(lines) < max(height, 12)
    assert lines[-1].startswith("  default/b")


BARS = {"empty": (0, 4, 0), "half": (2, 4, 12), "full": (4, 4, 24), "over": (9, 4, 24), "of nothing": (1, 0, 24)}


@pytest.mark.parametrize("name", BARS)
def test_bars(name: str) -> None:
    used, of, want = BARS[name]
    assert bar(Fraction(used), Fraction(of)).count("#") == want
