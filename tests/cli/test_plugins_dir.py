"""What is worked out offline is worked out with the scheduler's own plugins: those of ``--plugins-dir``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stromboli.api import core, kinds
from stromboli.cli.rehearsing import members
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import drive
from tests.cli.situations import DEFAULT, NOW, nodes, vcjob
from tests.cli.test_previewing import put

PLUGIN = '''"""full-moon: keeps every gang out until then."""
from stromboli.scheduler.core.plugin import Hooks, Plugin, Vote


class FullMoon(Plugin):
    name = "full-moon"

    def open(self, view):
        return Hooks(job_enqueueable=lambda job: Vote.REJECT)
'''
POLICY = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: full-moon}, {name: predicates}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of plugins, with a policy that names one and a job beside it."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "full-moon.py").write_text(PLUGIN)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(vcjob()))
    return tmp_path


LINES = {
    "preview": ("vcctl job preview -f {dir}/job.yaml", "ns/train never fits, even in the empty cluster: "),
    "simulate": ("vcctl simulate {dir}/snapshot --with {dir}/job.yaml", "1 cycle with policy "),
    "explain": ("vcctl job explain waiting -n ns", "ns/waiting waits: no scheduling cycle has looked at it yet."),
}


@pytest.mark.parametrize("name", LINES)
async def test_plugins_of_a_folder_have_their_say(server: FakeApiServer, folder: Path, name: str) -> None:
    put(server, *nodes(), DEFAULT)
    waiting = server.put(kinds.JOBS, vcjob("waiting"))
    server.put(kinds.POD_GROUPS, core.to_builtins(members.pod_group(waiting, [], NOW), kinds.POD_GROUPS))
    assert (await drive(f"vcctl snapshot {folder}/snapshot", server)).code == 0
    line, want = LINES[name]
    line = f"{line.format(dir=folder)} --policy {folder}/policy.yaml"
    unknown = await drive(line, server)
    assert unknown.code == 0
    assert unknown.err.startswith(
        f"policy {folder}/policy.yaml: tiers[0].plugins[1].name: plugin 'full-moon' is not known"
    )
    assert unknown.err.endswith("; if it is a plugin of your own, give its folder with --plugins-dir\n")
    done = await drive(f"{line} --plugins-dir {folder}/plugins", server)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(want)
    assert "0 pods start" in done.out or name != "simulate"


@pytest.mark.parametrize("name", LINES)
async def test_a_folder_that_is_not_there_is_named(server: FakeApiServer, folder: Path, name: str) -> None:
    server.put(kinds.JOBS, vcjob("waiting"))
    assert (await drive(f"vcctl snapshot {folder}/snapshot", server)).code == 0
    done = await drive(f"{LINES[name][0].format(dir=folder)} --plugins-dir {folder}/none", server)
    assert (done.code, done.out) == (255, "")
    assert done.err.endswith(f"--plugins-dir={folder}/none: no such directory\n")
