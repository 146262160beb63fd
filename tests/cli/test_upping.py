"""``stromboli up``: what it prints when it is up and when it stops, and what the scheduler is started with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.app import app
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.cli.rehearsing.policies import in_cluster
from stromboli.cli.stack import Stack, StackError, StackOptions
from stromboli.cli.upping import UpOptions, banner, stack_options
from stromboli.localcluster.datadirectory import holder

POLICY = "actions: enqueue, allocate\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: mine}]}]\n"
PLUGIN = """
from pathlib import Path

from stromboli.scheduler.core.plugin import Hooks, Plugin


class Mine(Plugin):
    name = "mine"

    def open(self, view):
        Path(__file__).with_name("opened").touch()
        return Hooks()
"""


def appears(path: Path) -> None:
    """Wait until there is such a file."""
    deadline = time.monotonic() + 20.0
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.02)


def test_the_banner_leads_to_the_tools_of_this_installation(tmp_path: Path) -> None:
    lines = banner(Stack(StackOptions(directory=tmp_path))).splitlines()
    assert lines[0].strip() == f"export KUBECONFIG={tmp_path / 'kubeconfig'}"
    assert lines[1].strip().startswith(f"export PATH={Path(sys.executable).parent}:$PATH ")


@pytest.mark.parametrize("keep", [True, False])
def test_state_is_kept_unless_it_is_to_be_fresh(tmp_path: Path, keep: bool) -> None:
    asked = UpOptions(tmp_path, 1, "cpu=1", 0, keep)
    assert stack_options(asked).state_file == (tmp_path / "state.json" if keep else None)


@pytest.mark.parametrize("option", ["--scheduler-conf", "--plugins-dir"])
def test_what_is_not_there_is_refused_before_anything_starts(tmp_path: Path, option: str) -> None:
    done = CliRunner().invoke(app, ["up", "--dir", str(tmp_path / "up"), option, str(tmp_path / "none")])
    assert done.exit_code == 2
    assert not (tmp_path / "up").exists()


@pytest.mark.parametrize("option", ["--port", "--dashboard-port"])
@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_ports_that_there_are_not_are_refused_before_anything_starts(tmp_path: Path, option: str, port: str) -> None:
    done = CliRunner().invoke(app, ["up", "--dir", str(tmp_path / "up"), option, port])
    assert done.exit_code == 2
    assert not (tmp_path / "up").exists()


async def test_a_directory_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "up"
    with pytest.raises(StackError) as raised:
        async with Stack(StackOptions(directory=directory)):
            pass
    assert str(raised.value) == f"{directory} cannot be used: Not a directory; give another --dir"


@pytest.mark.timeout(180)  # five processes start one after the other
def test_the_scheduler_gets_policy_and_plugins_and_the_end_says_where_state_is(tmp_path: Path) -> None:
    """The policy names a plugin of the folder, which leaves a trace when a cycle opens it."""
    directory, conf, plugins = tmp_path / "up", tmp_path / "policy.yaml", tmp_path / "plugins"
    conf.write_text(POLICY)
    plugins.mkdir()
    (plugins / "mine.py").write_text(PLUGIN)
    command = [
        sys.executable,
        "-c",
        "from stromboli.cli.app import app; app()",
        "up",
        "--nodes=1",
        f"--dir={directory}",
    ]
    with subprocess.Popen(
        [*command, f"--scheduler-conf={conf}", f"--plugins-dir={plugins}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        seen, written = [], ""
        for line in running.stdout:
            seen.append(line)
            if "Stop: Ctrl-C" in line:
                appears(plugins / "opened")
                with Api(find(str(directory / "kubeconfig"), "", {})) as api:
                    written = in_cluster(api)[0]
                running.send_signal(signal.SIGINT)
        code = running.wait(timeout=30)
    assert any(line.startswith("Dashboard: http://127.0.0.1:") for line in seen), "".join(seen)
    assert (code, seen[-1]) == (0, f"stopping; state kept in {directory / 'state.json'}\n"), "".join(seen)
    assert (directory / "state.json").exists()
    assert (plugins / "opened").exists()
    assert written == POLICY
    assert any(line.startswith(f"Policy: {conf}; vcctl finds it") for line in seen), "".join(seen)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("at", ["starting localcluster", "starting webhooks"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_says_so_and_leaves_nothing_running(
    tmp_path: Path, at: str, number: signal.Signals
) -> None:
    directory = tmp_path / "up"
    command = "from stromboli.cli.app import app; app()"
    with subprocess.Popen(
        [sys.executable, "-c", command, "up", "--nodes=1", f"--dir={directory}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        seen = []
        for line in running.stdout:
            seen.append(line)
            if line.startswith(at):
                running.send_signal(number)
        code = running.wait(timeout=30)
    assert (code, seen[-1]) == (130, f"{at}\n"), "".join(seen)
    assert holder(directory) is None
    assert processes_with(str(directory)) == []


def processes_with(argument: str) -> list[str]:
    """Command lines of running processes that have the text in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [line] if argument in line else []
    return found
