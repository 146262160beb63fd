"""Snapshots hold nothing private, simulations repeat themselves, and changes do what they say."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
import yaml

from stromboli.api import core, kinds
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.plots import plot, ticks_to
from stromboli.cli.rehearsing.settings import with_settings
from stromboli.cli.rehearsing.simulating import simulate
from stromboli.cli.rehearsing.snapshots import Snapshot, gather
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.core.snapshots import decode
from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.builders import pod, pod_group, queue
from tests.cli.driving import drive
from tests.cli.situations import DEFAULT, NOW, filler, nodes, vcjob
from tests.cli.test_previewing import PREEMPTING, put


def crowd() -> Snapshot:
    """Two queues that want the same two nodes."""
    objects: list[core.Object] = [*nodes(), queue("a").build(), queue("b").build()]
    objects.extend(pod_group(name).queue(name).members(1).reserve(cpu=2).phase("Inqueue").build() for name in "ab")
    objects.extend(pod(f"{name}-{at}").group(name).request(cpu=2).build() for name in "ab" for at in range(4))
    return Snapshot(NOW, tuple(objects))


def counts(snapshot: Snapshot) -> dict[str, int]:
    """Pods started, by queue."""
    found = simulate(snapshot, DEFAULT_POLICY, cycles=5)
    return {name: sum(start.job == f"ns/{name}" for start in found.started) for name in "ab"}


def test_weights_decide_who_starts() -> None:
    assert counts(crowd()) == {"a": 2, "b": 2}
    assert counts(with_settings(crowd(), ["queue/a.spec.weight=3"])) == {"a": 3, "b": 1}


def test_a_simulation_stops_when_nothing_happens_any_more() -> None:
    found = simulate(crowd(), DEFAULT_POLICY, cycles=50)
    assert len(found.rounds) == 2
    assert found.rounds[-1].quiet


def test_a_snapshot_survives_the_way_through_its_file() -> None:
    snapshot = crowd()
    assert decode(snapshot.encode()) == snapshot
    first, second = (simulate(each, DEFAULT_POLICY, cycles=5) for each in (snapshot, decode(snapshot.encode())))
    assert first == second


def test_shares_before_and_after() -> None:
    found = simulate(crowd(), DEFAULT_POLICY, cycles=5)
    assert (found.before["a"].share, found.after["a"].share) == (0.0, 1.0)
    assert found.rounds[0].use["cpu"] == 1.0


def test_a_queue_holds_what_those_below_it_hold() -> None:
    tree = [queue("root").build(), queue("dept").parent("root").build(), queue("team").parent("dept").build()]
    circle = [queue("c1").parent("c2").build(), queue("c2").parent("c1").build()]
    group = pod_group("g").queue("team").members(1).phase("Running").build()
    running = pod("p").group("g").request(cpu=2).on("n1").build()
    found = simulate(Snapshot(NOW, (*nodes(), *tree, *circle, group, running)), DEFAULT_POLICY, cycles=1)
    held = {name: state.allocated.get("cpu", "0") for name, state in found.before.items()}
    assert held == {"root": "2", "dept": "2", "team": "2", "c1": "0", "c2": "0"}


async def test_nothing_private_is_in_a_snapshot(server: FakeApiServer) -> None:
    secret = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "HIDDEN", "team": "a"},
            "managedFields": [{"manager": "HIDDEN"}],
        },
        "spec": {
            "nodeName": "n0",
            "containers": [
                {"name": "c", "env": [{"name": "A", "value": "HIDDEN"}], "args": ["HIDDEN"], "command": ["HIDDEN"]}
            ],
        },
    }
    server.put(kinds.PODS, secret)
    server.put(kinds.SECRETS, {"metadata": {"name": "s", "namespace": "ns"}, "data": {"x": "HIDDEN"}})
    job = vcjob()
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "HIDDEN"}]
    server.put(kinds.JOBS, job)
    with Api(find("", server.url, {})) as api:
        snapshot = await asyncio.to_thread(gather, api)
    assert [found.name for found in snapshot.of(core.Pod)] == ["p"]
    assert b"HIDDEN" not in snapshot.encode()


async def test_one_unreadable_object_is_named_and_left_out(server: FakeApiServer) -> None:
    put(server, *nodes(1))
    server.put(kinds.QUEUES, {"metadata": {"name": "bad"}, "spec": {"weight": "heavy"}})
    with Api(find("", server.url, {})) as api:
        snapshot = await asyncio.to_thread(gather, api)
    (line,) = snapshot.missing
    assert line.startswith("queues.scheduling.volcano.sh /bad: Queue: ")
    assert [node.name for node in snapshot.of(core.Node)] == ["n0"]


async def test_a_job_that_cannot_be_read_is_named_and_left_out(server: FakeApiServer) -> None:
    good, bad = (server.put(kinds.JOBS, vcjob(name)) for name in ("good", "bad"))
    bad["spec"]["tasks"][0]["template"]["spec"] = {"containers": "none"}
    server.put(kinds.JOBS, bad)
    put(server, DEFAULT)
    for job in (good, bad):
        name = f"{job['metadata']['name']}-{job['metadata']['uid']}"
        server.put(kinds.POD_GROUPS, {"metadata": {"name": name, "namespace": "ns"}})
    with Api(find("", server.url, {})) as api:
        snapshot = await asyncio.to_thread(gather, api)
    assert [each.name for each in snapshot.awaited] == [f"good-worker-{at}" for at in range(4)]
    (line,) = snapshot.missing
    assert line.startswith("jobs.batch.volcano.sh ns/bad: PodSpec: Expected `array`, got `str`")
    done = await drive("vcctl job explain bad -n ns", server)
    assert done.code == 255
    assert done.err.startswith("Failed to explain job: the job cannot be read: PodSpec: Expected `array`")


async def test_a_job_to_submit_that_cannot_be_read_is_refused(server: FakeApiServer, tmp_path: Path) -> None:
    snapshot, file = tmp_path / "snapshot.json", tmp_path / "job.yaml"
    snapshot.write_bytes(crowd().encode())
    file.write_text(yaml.safe_dump(vcjob(requests={"cpu": "lots"})))
    done = await drive(f"vcctl simulate {snapshot} --with {file}", server)
    assert done.code == 255
    assert done.err.startswith("Failed to simulate: a job given with --with cannot be read: ")
    assert done.err.count("\n") == 1


async def test_from_snapshot_to_simulation(server: FakeApiServer, tmp_path: Path) -> None:
    put(server, *nodes(), DEFAULT, *filler(1))
    file, job = tmp_path / "snapshot.json", tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump(vcjob(replicas=3)))
    done = await drive(f"vcctl snapshot {file}", server)
    assert (done.code, done.out) == (0, f"wrote 5 objects to {file}\n")
    assert file.stat().st_mode & 0o077 == 0
    server.token = "the cluster is not needed any more"
    done = await drive(f"vcctl simulate {file} --with {job}", server)
    assert (done.code, done.err) == (0, "")
    assert done.out == SIMULATED


SIMULATED = """\
3 cycles with the built-in policy: 3 pods start, 0 are evicted, 0 gangs wait.

Starts:
  ns/train-with-0  3 pods, from cycle 2

Queue                    Share           Allocated
default                  1.00 -> 1.00    cpu=2,pods=1 -> cpu=8,pods=4
"""


class Page(HTMLParser):
    """Counts elements, and sees to it that all that are opened are closed."""

    VOID = frozenset({"meta", "line", "circle", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_has_a_plot_of_each_kind(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "<snapshot>.json"
    file.write_bytes(crowd().encode())
    done = await drive(f"vcctl simulate '{file}' -o html", server)
    page = Page()
    page.feed(done.out)
    assert page.open == []
    drawn = [value for name, value in page.attributes if name == "aria-label"]
    assert drawn == ["part of the cluster in use by cycle", "share by cycle", "gangs by cycle"]
    assert "<snapshot>" not in done.out
    assert "<p>2 cycles: 4 pods start, 0 are evicted, 0 gangs wait.</p>" in done.out
    told = json.loads((await drive(f"vcctl simulate '{file}' -o json", server)).out)
    assert [len(cycle["started"]) for cycle in told["cycles"]] == [4, 0]


async def test_the_page_needs_nothing_from_elsewhere(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(crowd().encode())
    text = (await drive(f"vcctl simulate {file} -o html", server)).out
    page = Page()
    page.feed(text)
    assert {"script", "link", "img", "iframe", "object", "image", "use"} & set(page.counts) == set()
    assert {"href", "src", "xlink:href", "srcset", "data"} & {name for name, _ in page.attributes} == set()
    assert re.findall(r"https?:|url\(|@import", text) == []


TICKS = {
    "nothing": (0.0, [0.0, 1.0]),
    "all": (1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    "a few": (3.0, [0.0, 1.0, 2.0, 3.0]),
    "many": (137.0, [0.0, 50.0, 100.0, 150.0]),
    "little": (0.04, [0.0, 0.01, 0.02, 0.03, 0.04]),
}


@pytest.mark.parametrize("name", TICKS)
def test_axes_have_round_numbers(name: str) -> None:
    highest, want = TICKS[name]
    assert ticks_to(highest) == want


def test_a_plot_of_one_cycle_and_of_many_queues_has_room_for_all() -> None:
    drawn = plot({f"queue-{number}": [number / 20] for number in range(20)}, "share")
    assert drawn.count("<li>") == 20
    assert len(set(re.findall(r'<line x1="0".*?(stroke=.*?)/>', drawn))) == 20
    assert plot({}, "share") == "<p>Nothing to show.</p>"


FILES_REFUSED = {
    "nothing there": (None, "cannot be read: No such file or directory"),
    "no JSON": (b"{", "is not a snapshot: "),
    "something else": (b"{}", "format is None, expected 'stromboli-snapshot/1'"),
    "an object that is none": (
        b'{"format": "stromboli-snapshot/1", "taken": 1, "objects": {"nodes": [{"metadata": 3}]}}',
        "is not a snapshot: Node: Expected `object`, got `int` - at `$.metadata`",
    ),
}


@pytest.mark.parametrize("name", FILES_REFUSED)
async def test_files_that_are_no_snapshots(server: FakeApiServer, tmp_path: Path, name: str) -> None:
    content, want = FILES_REFUSED[name]
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    done = await drive(f"vcctl simulate {file}", server)
    assert done.code == 255
    assert done.err.startswith(f"Failed to simulate: {file}")
    assert want in done.err


def test_evicted_pods_of_jobs_come_back() -> None:
    victim = vcjob("old", replicas=2, minimum=1)
    running = [
        msgspec.structs.replace(
            each, spec=msgspec.structs.replace(each.spec, node_name="n0"), status=core.PodStatus(phase="Running")
        )
        for each in members.pods(victim, [])
    ]
    group = members.pod_group(victim, [], NOW)
    group = msgspec.structs.replace(group, status=core.PodGroupStatus(phase="Running"))
    urgent = pod_group("urgent").members(1).priority_class("high").reserve(cpu=2).phase("Inqueue").build()
    objects = [*nodes(1), builders.priority_class("high", 9), DEFAULT, group, *running, urgent]
    objects.append(pod("urgent-0").group("urgent").request(cpu=2).priority(9).build())
    found = simulate(Snapshot(NOW, tuple(objects)), PREEMPTING, cycles=6)
    assert [one.reason for one in found.evicted] == ["preempt"]
    assert [start.pod for start in found.started] == ["ns/urgent-0"]
