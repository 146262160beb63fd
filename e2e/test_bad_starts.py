"""A process that cannot start says so in one line that names the offender, exits non-zero, leaves nothing."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from stromboli.cli.stack import PROCESSES, SCHEDULER


async def start(module: str, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a process that ends by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"stromboli.{module}", *arguments,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, err = await asyncio.wait_for(process.communicate(), 40)
    except TimeoutError:
        process.kill()
        raise
    return process.returncode or 0, err.decode()


def only_line(err: str) -> str:
    """The only error line (logs may precede it), without a traceback anywhere."""
    lines = [line for line in err.splitlines() if ": error: " in line]
    assert "Traceback" not in err, err
    assert len(lines) == 1, err
    return lines[0]


def arguments_for(name: str) -> list[str]:
    """What a process needs besides the kubeconfig."""
    if name == "webhooks":
        return ["--webhook-url=https://127.0.0.1:8443"]
    return ["--leader-elect=false"]


@pytest.mark.parametrize("name", PROCESSES)
async def test_a_missing_kubeconfig_is_named(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "absent"
    code, err = await start(name, f"--kubeconfig={missing}", *arguments_for(name))
    assert code == 1
    assert str(missing) in only_line(err)


@pytest.mark.parametrize("name", PROCESSES)
async def test_a_kubeconfig_that_is_no_kubeconfig_is_named(name: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("}{")
    code, err = await start(name, f"--kubeconfig={broken}", *arguments_for(name))
    assert code == 1
    assert str(broken) in only_line(err)


@pytest.mark.parametrize("name", PROCESSES)
async def test_an_unknown_flag_is_named_with_the_nearest(name: str) -> None:
    code, err = await start(name, "--kube-conf=x")
    assert code == 1
    assert "unknown flag: --kube-conf; did you mean --kubeconfig?" in only_line(err)


@pytest.mark.parametrize("name", PROCESSES)
async def test_a_port_in_use_is_named(name: str, kubeconfig: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, err = await start(
            name,
            f"--kubeconfig={kubeconfig}",
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{port}",
            *arguments_for(name),
        )
    assert code == 1
    assert f"127.0.0.1:{port}" in only_line(err)
    assert "in use" in err


async def test_the_port_of_the_cluster_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, err = await start("localcluster", f"--listen=127.0.0.1:{port}", f"--data-dir={tmp_path / 'data'}")
    assert code == 1
    assert f"127.0.0.1:{port}" in only_line(err)


POLICIES = {
    "an unknown action": ('actions: "enqueue, allocat"\n', ["allocat", "allocate"]),
    "an unknown plugin": ('actions: "allocate"\ntiers:\n- plugins: [{name: gangs}]\n', ["gangs", "gang"]),
    "an argument of the wrong type": (
        'actions: "allocate"\ntiers:\n- plugins: [{name: nodeorder, arguments: {leastrequested.weight: [1]}}]\n',
        ["nodeorder", "leastrequested.weight"],
    ),
    "no YAML": ("{{", ["policy.yaml"]),
}


@pytest.mark.parametrize("name", POLICIES)
async def test_a_policy_file_that_cannot_be_used_is_named(name: str, tmp_path: Path, kubeconfig: Path) -> None:
    content, wanted = POLICIES[name]
    policy = tmp_path / "policy.yaml"
    policy.write_text(content)
    for arguments in ([f"--check-config={policy}"], [f"--kubeconfig={kubeconfig}", f"--scheduler-conf={policy}"]):
        code, err = await start(SCHEDULER, *arguments)
        assert code == 1
        for word in wanted:
            assert word in only_line(err)
