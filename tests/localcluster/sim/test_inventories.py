"""Simulated nodes from flags and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.localcluster.nodes.inventories import (
    InventoryError,
    NodeGroup,
    fill,
    load_inventory,
    parse_pairs,
    unique,
)


@pytest.mark.parametrize(
    ("template", "number", "want"),
    [
        ("node-%d", 7, "node-7"),
        ("n%05d", 42, "n00042"),
        ("z{i%4}", 6, "z2"),
        ("rack-{i//8}", 17, "rack-2"),
        ("{i}-{i}", 3, "3-3"),
        ("plain", 3, "plain"),
        ("{j}", 3, "{j}"),
        ("{i%0}", 3, "{i%0}"),
    ],
)
def test_templates(template: str, number: int, want: str) -> None:
    assert fill(template, number) == want


def test_a_group_makes_nodes() -> None:
    group = NodeGroup(2, "n%d", {"cpu": "4", "pods": "10"}, {"cpu": "3"}, {"zone": "z{i}"}, {"a": "{i}"})
    first, second = group.nodes()
    assert second["metadata"] == {
        "name": "n1",
        "labels": {
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "zone": "z1",
        },
        "annotations": {"a": "1"},
    }
    assert first["status"] == {"capacity": {"cpu": "4", "pods": "10"}, "allocatable": {"cpu": "3", "pods": "10"}}


def test_a_file_of_groups_and_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(
        """
- count: 2
  name: gpu-%02d
  capacity: {cpu: 64, nvidia.com/gpu: 8}
  taints: [{key: gpu, effect: NoSchedule}]
- kind: Node
  apiVersion: v1
  metadata: {name: special}
---
count: 1
name: lone
unschedulable: true
"""
    )
    nodes = load_inventory(path)
    assert [node["metadata"]["name"] for node in nodes] == ["gpu-00", "gpu-01", "special", "lone"]  # type: ignore[index]
    assert nodes[0]["status"]["capacity"]["cpu"] == "64"  # type: ignore[index]
    assert nodes[0]["spec"] == {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    assert nodes[3]["spec"] == {"unschedulable": True}


def test_full_nodes_are_labelled_with_their_name_unless_they_say_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(
        """
- {kind: Node, metadata: {name: bare}}
- {kind: Node, metadata: {name: zoned, labels: {zone: a}}}
- {kind: Node, metadata: {name: renamed, labels: {kubernetes.io/hostname: other}}}
- {kind: Node, metadata: {name: odd, labels: [zone]}}
"""
    )
    assert [node["metadata"]["labels"] for node in load_inventory(path)] == [  # type: ignore[index]
        {"kubernetes.io/hostname": "bare"},
        {"kubernetes.io/hostname": "zoned", "zone": "a"},
        {"kubernetes.io/hostname": "other"},
        ["zone"],  # for the API server to refuse
    ]


BAD_FILES = {
    "not YAML": ("a: [", "not YAML"),
    "a scalar": ("- 5", "entry 0: expected a Node object or a group with count, got int"),
    "an unknown field": ("- {count: 1, nmae: x}", "entry 0: unknown field nmae"),
    "a count that is none": ("- {count: many}", "entry 0: count: expected a whole number of nodes, got 'many'"),
    "a negative count": ("- {count: -1}", "count: expected a whole number"),
    "labels that are a list": ("- {labels: [a]}", "labels: expected a mapping, got list"),
    "taints that are a mapping": ("- {taints: {a: b}}", "taints: expected a list"),
    "a node without a name": ("- {kind: Node}", "entry 0: metadata.name: required"),
    "the same name twice": ("- {count: 2, name: same}", 'node name "same" is used twice'),
}


@pytest.mark.parametrize(("text", "want"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_named_in_one_line(tmp_path: Path, text: str, want: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(InventoryError) as caught:
        load_inventory(path)
    assert want in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="No such file or directory; give a readable file to --nodes"):
        load_inventory(tmp_path / "none.yaml")


def test_pairs() -> None:
    assert parse_pairs("cpu=8, memory=32Gi", "--node-capacity") == {"cpu": "8", "memory": "32Gi"}
    with pytest.raises(InventoryError, match="--node-capacity: 'cpu' is not of the form key=value"):
        parse_pairs("cpu", "--node-capacity")


def test_distinct_names_pass() -> None:
    nodes = list(NodeGroup(3).nodes())
    assert unique(nodes) == nodes
