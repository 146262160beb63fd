"""The command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.localcluster.options import ClusterSettings, parse, settings
from stromboli.process.flags import FlagError


def read(*arguments: str) -> ClusterSettings:
    return settings(parse(arguments))


def test_defaults() -> None:
    found = read()
    assert (found.host, found.port, found.authorization_mode, found.crds) == ("127.0.0.1", 0, "RBAC", "builtin")
    assert found.data_dir == Path(".stromboli").absolute()
    assert found.state_file is None
    assert [node["metadata"]["name"] for node in found.nodes] == ["node-0", "node-1", "node-2"]
    assert found.pods.run_seconds == 5


def test_nodes_by_flags() -> None:
    found = read(
        "--nodes=4", "--node-name=n%02d", "--node-capacity=cpu=64,nvidia.com/gpu=8", "--node-label=zone=z{i%2}",
        "--node-label=rack=r{i//2}", "--node-taint=gpu=a:NoSchedule", "--node-taint=slow:NoExecute",
    )  # fmt: skip
    last = found.nodes[3]
    assert last["metadata"]["name"] == "n03"
    assert {last["metadata"]["labels"][key] for key in ("zone", "rack")} == {"z1", "r1"}
    assert last["status"]["capacity"] == {
        "cpu": "64",
        "memory": "32Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
        "nvidia.com/gpu": "8",
    }
    assert last["spec"]["taints"] == [
        {"key": "gpu", "value": "a", "effect": "NoSchedule"},
        {"key": "slow", "effect": "NoExecute"},
    ]


def test_nodes_by_file(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("- {count: 2, name: x%d}")
    assert len(read(f"--nodes={tmp_path / 'nodes.yaml'}").nodes) == 2


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("127.0.0.1:6443", ("127.0.0.1", 6443)),
        (":0", ("127.0.0.1", 0)),
        ("8443", ("127.0.0.1", 8443)),
        ("[::1]:1", ("::1", 1)),
    ],
)
def test_addresses(text: str, want: tuple[str, int]) -> None:
    found = read(f"--listen={text}")
    assert (found.host, found.port) == want


def test_service_addresses() -> None:
    found = read("--service-address=ns/hook=127.0.0.1:9443")
    assert found.service_addresses == {("ns", "hook"): "127.0.0.1:9443"}


BAD = {
    "--listen=localhost": 'invalid argument "localhost" for --listen: expected HOST:PORT',
    "--listen=127.0.0.1:99999": "for --listen",
    "--nodes=/none.yaml": "/none.yaml: No such file or directory; give a readable file to --nodes",
    "--node-capacity=cpu": "--node-capacity: 'cpu' is not of the form key=value",
    "--node-label=zone": "--node-label: 'zone' is not of the form key=value",
    "--node-taint=gpu": "expected key=value:NoSchedule",
    "--node-name=same": 'node name "same" is used twice',
    "--crds=/none": "expected builtin, none or a directory",
    "--authorization-mode=Node": "expected RBAC or AlwaysAllow",
    "--service-address=hook=1": "expected NAMESPACE/NAME=HOST:PORT",
    "--pod-run-seconds=long": "expected a number",
    "--nodse=3": "unknown flag: --nodse; did you mean --nodes?",
    "--log-format=xml": "expected text or json",
}


@pytest.mark.parametrize(("argument", "want"), BAD.items())
def test_bad_flags_are_named_in_one_line(argument: str, want: str) -> None:
    with pytest.raises((ValueError, FlagError)) as caught:
        read(argument)
    assert want in str(caught.value)
    assert "\n" not in str(caught.value)
