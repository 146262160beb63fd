"""Configuration of nodes: what keeps them apart from each other and from the machine."""

from __future__ import annotations

import tomllib
from pathlib import Path

from e2e.realnode import configurations
from e2e.realnode.addresses import CONTROL, NodeAddresses
from e2e.realnode.confinement import ENTER, TIED, entering

ONE, TWO = NodeAddresses(1), NodeAddresses(2)
HERE = Path("/place/node-1")


def test_containerd_keeps_everything_in_its_nodes_directory() -> None:
    config = tomllib.loads(configurations.containerd(HERE, sandbox_image="sandbox:1"))
    assert [config["root"], config["state"], config["grpc"]["address"]] == [
        "/place/node-1/root",
        "/place/node-1/state",
        "/place/node-1/containerd.sock",
    ]
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["cni"]["conf_dir"] == "/place/node-1/cni"
    assert cri["sandbox_image"] == "sandbox:1"


def test_nodes_share_neither_bridge_nor_addresses() -> None:
    bridges = [configurations.network(node)["plugins"][0] for node in (ONE, TWO)]
    assert [bridge["bridge"] for bridge in bridges] == ["node-1", "node-2"]
    assert [bridge["ipam"]["ranges"][0][0]["gateway"] for bridge in bridges] == [ONE.address, TWO.address]
    assert len({ONE.address, TWO.address, CONTROL}) == 3
    assert len({ONE.pods, TWO.pods}) == 2


def test_all_containers_are_below_the_runs_control_group() -> None:
    config = configurations.kubelet(ONE, HERE, logs=Path("/place/logs"), cgroup="stromboli-1")
    assert config["cgroupRoot"] == "/stromboli-1"
    assert config["podLogsDir"] == "/place/logs"
    assert config["containerRuntimeEndpoint"] == "unix:///place/node-1/containerd.sock"


def test_kubelets_and_proxies_leave_the_machines_settings_alone() -> None:
    kubelet = configurations.kubelet(ONE, HERE, logs=HERE, cgroup="g")
    assert kubelet["protectKernelDefaults"] is True
    assert kubelet["makeIPTablesUtilChains"] is False
    assert configurations.proxy(HERE)["conntrack"]["maxPerCore"] == 0


def test_names_are_served_at_the_address_that_pods_are_given() -> None:
    kubelet = configurations.kubelet(ONE, HERE, logs=HERE, cgroup="g")
    assert kubelet["clusterDNS"] == [CONTROL]
    assert f"bind {CONTROL}\n" in configurations.names(HERE)


def test_what_is_entered_ends_with_who_entered_it() -> None:
    command = entering(["python", Path("/x")])
    assert command == [*TIED, *ENTER, "python", "/x"]
    assert "--kill-child" in command
    assert {"--mount", "--net", "--pid"} < set(command)
