"""The example package is found through its entry points, and does what its README says."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler-extension"

TRY = """
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy_file import parse
from stromboli.scheduler.registering import load
from stromboli.testing.builders import node, pod, pod_group, queue

registry = load()
policy = parse(open("policy.yaml").read(), registry.known).policy
mirror = Mirror()
mirror.apply_queue(queue("default").build())
mirror.apply_node(node("with-gpu").offer(cpu=32, memory="64Gi", gpu=8).build())
mirror.apply_node(node("plain").offer(cpu=4, memory="8Gi").build())
mirror.apply_pod_group(pod_group("cheap").members(1).build())
mirror.apply_pod(pod("cheap-0").group("cheap").request(cpu=1).build())
mirror.apply_pod_group(pod_group("huge").members(1).build())
mirror.apply_pod(pod("huge-0").group("huge").request(cpu=99).build())
result = run(mirror, policy, 0.0, session_id="s", plugins=registry.plugins, actions=registry.actions)
print(result.problems, [(bind.task.name, bind.node) for bind in result.binds])
print([sample.value for sample in result.samples if sample.name == "example_waiting"])
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package is installed, as far as entry points can tell."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "stromboli_example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    path = os.pathsep.join([str(tmp_path), str(EXAMPLE / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def call(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=EXAMPLE, env=environ, capture_output=True, text=True, check=False
    )


def test_the_plugin_and_the_action_take_part(installed: dict[str, str]) -> None:
    done = call(installed, "-c", TRY)
    assert done.stderr == ""
    assert done.stdout == "[] [('cheap-0', 'plain')]\n[1]\n"


def test_the_policy_is_accepted_with_the_package_and_refused_without(installed: dict[str, str]) -> None:
    check = ["-m", "stromboli.scheduler", "--check-config=policy.yaml"]
    assert call(installed, *check).returncode == 0
    without = call(dict(os.environ), *check)
    assert without.returncode == 1
    assert "headcount" in without.stderr


SNAPSHOT = """
import sys
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.testing.builders import node, pod_group, queue

objects = (node("n").offer(cpu=4).build(), queue("default").build(), pod_group("huge").reserve(cpu=99).build())
sys.stdout.buffer.write(Snapshot(0.0, objects).encode())
"""
VCCTL = ["-c", "import sys; from stromboli.cli.vcctl import main; sys.exit(main())"]


def test_the_command_line_knows_what_the_scheduler_knows(installed: dict[str, str], tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(call(installed, "-c", SNAPSHOT).stdout)
    simulating = [*VCCTL, "simulate", str(snapshot), "--policy", "policy.yaml"]
    for command in ([*VCCTL, "policy", "lint", "policy.yaml"], simulating):
        done = call(installed, *command)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Problems" not in done.stdout
        without = call(dict(os.environ), *command)
        assert without.returncode == 255
        assert "failed to find Action  headcount" in without.stdout + without.stderr


def test_a_package_that_cannot_be_loaded_stops_the_scheduler_and_not_the_command_line(
    installed: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "stromboli_example-0.1.0.dist-info" / "entry_points.txt").write_text(
        "[stromboli.scheduler.actions]\nheadcount = stromboli_example.headcount:__doc__\n"
        "[stromboli.scheduler.plugins]\nspare-gpu = stromboli_example.nowhere:SpareGpu\n"
    )
    scheduler = call(installed, "-m", "stromboli.scheduler", "--check-config=policy.yaml")
    assert scheduler.returncode == 1
    assert "spare-gpu (stromboli_example.nowhere:SpareGpu) cannot be loaded" in scheduler.stderr
    lint = call(installed, *VCCTL, "policy", "lint", "policy.yaml")
    assert lint.returncode == 255
    assert "failed to find Action  headcount" in lint.stdout
    assert "plugin 'spare-gpu' is not known" in lint.stdout
