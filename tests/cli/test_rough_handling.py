"""Command lines that no careful person would type: told in one line what is wrong, and nothing lost or half written."""

from __future__ import annotations

import io
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stromboli.api import core, kinds
from stromboli.cli.commanding.files import write_private
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import NOW, Outcome, drive, meta, queue

OUT_OF_RANGE = 'Error: invalid argument "99999999999999999999" for "-r, --replicas" flag: value out of range'

LINES: dict[str, tuple[str, int, str]] = {
    "a name with a slash": (
        "vcancel -n x/status",
        255,
        'Failed to: invalid name "x/status": may not contain "/"',
    ),
    "a name that is a place": ("vcctl job view -N ..", 255, 'Failed to view job: invalid name "..": may not be ".."'),
    "a namespace that is a way": (
        "vsub -n x -N ../../x",
        255,
        'Failed to: invalid namespace "../../x": may not contain "/"',
    ),
    "a name with a question": (
        "vcctl job delete -N train?dryRun=All",
        255,
        'Failed to delete job: jobs "train?dryRun=All" not found',
    ),
    "a name with a blank": (
        "vcctl job view -N 'a b'",
        255,
        'Failed to view job: jobs "a b" not found',
    ),
    "a name in other letters": (
        "vcctl job view -N жоб",
        255,
        'Failed to view job: jobs "жоб" not found',
    ),
    "an empty namespace": (
        "vcctl job view train -n ''",
        255,
        "Failed to view job: the namespace is empty; name one, or leave the flag out",
    ),
    "an empty namespace to delete from": (
        "vcctl job delete train -n ''",
        255,
        "Failed to delete job: the namespace is empty; name one, or leave the flag out",
    ),
    "an empty namespace to create in": (
        "vcctl job run train -n ''",
        255,
        "Failed to run job: the namespace is empty; name one, or leave the flag out",
    ),
    "a number that no machine holds": ("vsub -n x -r 99999999999999999999", 1, OUT_OF_RANGE),
}


@pytest.mark.parametrize("name", LINES)
async def test_lines(server: FakeApiServer, name: str) -> None:
    line, code, want = LINES[name]
    server.put(kinds.JOBS, {"metadata": meta("train"), "spec": {"tasks": []}})
    found = await drive(line, server)
    assert (found.code, found.err.splitlines()[-1]) == (code, want)
    assert "train" in (await drive("vjobs", server)).out


async def test_a_namespace_in_other_letters_has_no_jobs(server: FakeApiServer) -> None:
    assert await drive("vcctl job list -n ж", server) == Outcome(0, "No resources found\n", "")


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing yet\n"])
@pytest.mark.parametrize("command", ["jobflow", "jobtemplate"])
async def test_a_file_with_nothing_in_it_creates_nothing(
    server: FakeApiServer, tmp_path: Path, command: str, text: str
) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text(text)
    found = await drive(f"vcctl {command} create -f {file}", server)
    kind = {"jobflow": "JobFlow", "jobtemplate": "JobTemplate"}[command]
    assert (found.code, found.err) == (255, f"Failed to create {command}: {file}: expected a {kind}, found nothing\n")


@pytest.mark.parametrize(("text", "what"), [("words", "a text"), ("[1]", "a list"), ("5", "a number")])
async def test_what_a_file_holds_is_said_in_words(server: FakeApiServer, tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    found = await drive(f"vcctl job preview -f {file}", server)
    assert found.err.endswith(f"expected a Job of batch.volcano.sh/v1alpha1, found {what}\n")


async def test_a_kubeconfig_that_is_no_map(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("just words")
    found = await drive("vjobs", server, environment={"KUBECONFIG": str(file)})
    assert found.err == f"Failed to: kubeconfig {file} is no map; it must have clusters, users and contexts\n"


async def test_a_snapshot_that_is_nested_without_end(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "deep"
    file.write_text('{"a":' * 20_000)
    found = await drive(f"vcctl simulate {file}", server)
    assert (found.code, found.err) == (255, "Failed to simulate: what was given is nested too deep to be read\n")


async def test_a_policy_that_is_nested_without_end(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "deep"
    file.write_text("[" * 20_000)
    found = await drive(f"vcctl policy lint {file}", server)
    assert found.code == 255
    assert found.out.startswith(("error: not YAML: ", "error: the file: it is nested too deep"))


# -- files that are written --------------------------------------------------------------------------------------------


def test_a_private_file_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(b"old")
    file.chmod(0o644)
    kept = file.open("rb")
    write_private(file, b"new")
    with kept:
        assert (file.read_bytes(), kept.read()) == (b"new", b"old")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["snapshot.json"]


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"old", ["snapshot.json"])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_private(tmp_path / "link", b"new")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "file").read_bytes()) == (True, b"new")


def test_a_device_is_written_to() -> None:
    write_private(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()


# -- outputs that are full or closed -----------------------------------------------------------------------------------

START = [sys.executable, "-c", "import sys; from stromboli.cli.vcctl import main; sys.exit(main())"]


def _run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{shlex.join(START)} {line}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **more},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_told_in_one_line() -> None:
    done = _run("--help > /dev/full")
    assert (done.returncode, done.stderr) == (255, "error: the output cannot be written: No space left on device\n")


def test_a_closed_output_is_no_failure() -> None:
    done = _run("--help >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    done = _run("--help | head -c 1")
    assert (done.stdout, done.stderr) == ("C", "")


def test_letters_that_the_terminal_lacks_are_spelled_out(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('actions: "жоб"\n', encoding="utf-8")
    done = _run(f"policy lint {policy}", PYTHONIOENCODING="ascii")
    assert done.returncode == 255
    assert "\\u0436\\u043e\\u0431" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_policy_and_a_snapshot_come_through_pipes_too(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")
    done = _run(f"policy lint - < {policy}")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Actions, in this order:")
    done = _run(f"simulate - < {policy}")
    assert done.returncode == 255
    assert done.stderr.startswith("Failed to simulate: standard input is not a snapshot: ")


# -- much at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["vcctl queue list", "vcctl queue get {}", "vqueues", "vqueues -n {}"])
@pytest.mark.parametrize("length", [24, 25, 60])
async def test_a_long_name_does_not_run_into_the_next_column(server: FakeApiServer, line: str, length: int) -> None:
    name = "q" * length
    server.put(kinds.QUEUES, queue(name))
    found = await drive(line.format(name), server)
    assert f"{name} 1       Open    " in found.out


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self) -> bool:
        return True


async def test_on_a_terminal_a_simulation_of_many_shows_what_changes(server: FakeApiServer, tmp_path: Path) -> None:
    file, screen = tmp_path / "snapshot.json", Terminal()
    objects: list[core.Object] = [builders.node("n").offer(cpu=90, memory="8Gi", pods=110).build()]
    objects += [builders.queue(f"q{at:02}").build() for at in range(50)]
    for at in range(45):
        objects.append(builders.pod_group(f"g{at:02}").queue(f"q{at:02}").members(1).phase("Inqueue").build())
        objects.append(builders.pod(f"p{at:02}").group(f"g{at:02}").request(cpu=1).build())
    file.write_bytes(Snapshot(NOW, tuple(objects)).encode())
    whole = (await drive(f"vcctl simulate {file}", server)).out
    shown = (await drive(f"vcctl simulate {file}", server, out=screen)).out
    assert sum(" -> cpu=1" in line for line in whole.splitlines()) == 45
    assert sum(line.startswith("q") for line in whole.splitlines()) == 50
    assert "more" not in whole
    lines = shown.splitlines()
    starts = lines.index("Starts:")
    assert lines[starts + 21] == "  and 25 more (all of them: -o json, or into a file)"
    assert sum(line.startswith("q") for line in lines) == 20
    assert lines[-2:] == [
        "and 25 more (all of them: -o json, or into a file)",
        "5 queues stay as they are",
    ]


# -- standard input and output -----------------------------------------------------------------------------------------

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: piped}
spec: {tasks: [{name: worker, replicas: 1, template: {spec: {containers: [{name: c, image: busybox}]}}}]}
"""
FLOW = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: piped}
spec: {flows: [{name: a}]}
"""
PIPED = {
    "a job to run": ("vcctl job run -f -", JOB, "run job piped successfully\n"),
    "a flow to create": ("vcctl jobflow create -f -", FLOW, "Created JobFlow: default/piped\n"),
    "a template to create": (
        "vcctl jobtemplate create -f -",
        FLOW.replace("JobFlow", "JobTemplate"),
        "Created JobTemplate: default/piped\n",
    ),
}


@pytest.mark.parametrize("name", PIPED)
async def test_files_may_come_through_a_pipe(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    line, text, want = PIPED[name]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert await drive(line, server) == Outcome(0, want, "")


@pytest.mark.parametrize(
    "line",
    [
        "vcctl job run -f -",
        "vcctl jobflow create -f -",
        "vcctl job preview -f -",
        "vcctl simulate -",
        "vcctl policy lint -",
    ],
)
async def test_a_standard_input_that_was_closed_is_told(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    found = await drive(line, server)
    assert (found.code, found.out) == (255, "")
    assert found.err.endswith("standard input: cannot be read: it is closed\n")


async def test_a_snapshot_may_go_through_a_pipe(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put(kinds.QUEUES, queue("a"))
    taken = await drive("vcctl snapshot -", server)
    assert (taken.code, taken.err) == (0, "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(taken.out.encode())))
    assert "\na  " in (await drive("vcctl simulate -", server)).out


async def test_a_job_that_is_submitted_twice_is_told(server: FakeApiServer, tmp_path: Path) -> None:
    snapshot, file = tmp_path / "snapshot.json", tmp_path / "job.yaml"
    snapshot.write_bytes(Snapshot(NOW, ()).encode())
    file.write_text(JOB)
    found = await drive(f"vcctl simulate {snapshot} --with {file} --with {file}", server)
    assert (found.code, found.out) == (255, "")
    assert found.err == (
        "Failed to simulate: --with: job default/piped is given more than once; give each another name\n"
    )


# -- servers that are none ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", ["vcctl job list", "vcctl queue list", "vcctl top --once", "vcctl top", "vcctl job run a"]
)
async def test_a_cluster_without_definitions_is_told(server: FakeApiServer, line: str) -> None:
    server.faults.fail(404, reason="NotFound", message="the server could not find the requested resource", times=None)
    found = await drive(line, server)
    assert (found.code, found.out) == (255, "")
    assert found.err.endswith("; are the definitions of Job, Queue and the like installed in this cluster?\n")


@pytest.mark.parametrize("line", ["vcctl job list", "vcctl top --once", "vcctl job view a"])
async def test_another_server_is_told(line: str, server: FakeApiServer) -> None:
    async def greet(_request: web.Request) -> web.Response:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", greet)
    async with TestServer(application) as other:
        found = await drive(f"{line} -s {other.make_url('')}", server)
    assert (found.code, found.out) == (255, "")
    assert found.err.endswith("; is the address that of an API server?\n")
