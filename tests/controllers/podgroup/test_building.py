"""PodGroups of ordinary pods: spec 03 sections 3.3 and 3.7, spec 01 section 24.2."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import quantities
from stromboli.api.core import Pod, PodGroup, from_builtins
from stromboli.controllers.podgroup import building
from stromboli.controllers.podgroup.building import Owners

UID = "7a09885b-b753-4924-9fba-77c0836bac20"
RS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs1", "uid": UID, "controller": True}


def pod(*, owned: bool = True, phase: str = "Pending", requests: dict[str, str] | None = None, **meta: Any) -> Pod:
    spec = {
        "schedulerName": "volcano",
        "priorityClassName": "test-pc",
        "containers": [{"name": "c", "resources": {"requests": requests or {}}}],
    }
    head = {"name": "pod1", "namespace": "test", "uid": UID, "ownerReferences": [RS] if owned else []}
    return from_builtins(Pod, {"metadata": {**head, **meta}, "spec": spec, "status": {"phase": phase}})


def test_a_pod_of_a_controller() -> None:
    group = building.build(pod(uid="other"), Owners())
    assert group["metadata"]["name"] == f"podgroup-{UID}"
    assert group["metadata"]["ownerReferences"] == [RS]
    assert (group["spec"]["minMember"], group["spec"]["priorityClassName"]) == (1, "test-pc")
    assert group["status"] == {"phase": "Pending"}


def test_a_pod_on_its_own() -> None:
    group = building.build(pod(owned=False), Owners())
    assert group["metadata"]["name"] == f"podgroup-{UID}"
    [owner] = group["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "v1", "kind": "Pod", "name": "pod1", "uid": UID, "controller": True, "blockOwnerDeletion": True
    }  # fmt: skip


def test_what_the_pod_says() -> None:
    notes = {"scheduling.volcano.sh/queue-name": "test-queue", "volcano.sh/preemptable": "true"}
    group = building.build(pod(annotations=notes, labels={"volcano.sh/cooldown-time": "60s", "app": "x"}), Owners())
    assert group["spec"]["queue"] == "test-queue"
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert group["metadata"]["labels"] == {"volcano.sh/cooldown-time": "60s"}


def test_what_the_owners_say_and_the_pod_overrules() -> None:
    owners = Owners(
        {
            "scheduling.volcano.sh/group-min-member": "3",
            "volcano.sh/custom-key": "custom-value",
            "volcano.sh/jdb-min-available": "2",
            "unrelated": "x",
        }
    )
    group = building.build(pod(annotations={"volcano.sh/jdb-min-available": "1"}, requests={"cpu": "1"}), owners)
    assert group["metadata"]["annotations"] == {
        "volcano.sh/custom-key": "custom-value",
        "volcano.sh/jdb-min-available": "1",
    }
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"]["cpu"] == "3"


def test_a_budget_of_the_owners_is_inherited() -> None:
    group = building.build(pod(), Owners({"volcano.sh/jdb-max-unavailable": "20%"}))
    assert group["metadata"]["annotations"] == {"volcano.sh/jdb-max-unavailable": "20%"}


@pytest.mark.parametrize(
    ("text", "replicas", "want"),
    [
        ("2", None, 2),
        ("0", None, 0),
        ("-1", None, 1),
        ("many", None, 1),
        (str(2**31), None, 1),
        (None, 7, 1),
        ("2", 1, 1),
        ("2", 5, 2),
        ("2", 0, 1),
    ],
)
def test_gang_size_and_its_cap_for_rolling_owners(text: str | None, replicas: int | None, want: int) -> None:
    annotations = {} if text is None else {"scheduling.volcano.sh/group-min-member": text}
    assert building.min_member(Owners(annotations, replicas)) == want


def test_a_gang_of_none_reserves_nothing() -> None:
    assert building.min_resources(pod(requests={"cpu": "1"}), 0) == {}


def test_a_finished_pod_reserves_no_compute() -> None:
    assert building.min_resources(pod(phase="Succeeded", requests={"cpu": "1"}), 1) == {"count/pods": "1"}


def test_everything_a_quota_would_charge() -> None:
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1", "hugepages-test": "2000"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    two = from_builtins(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [container, container]}})
    want = {
        "count/pods": "1", "pods": "1", "cpu": "2", "requests.cpu": "2", "limits.cpu": "2", "memory": "2000Mi",
        "requests.memory": "2000Mi", "limits.memory": "2000Mi", "nvidia.com/gpu": "2", "requests.nvidia.com/gpu": "2",
        "hugepages-test": "4000", "requests.hugepages-test": "4000",
    }  # fmt: skip
    assert quantities.equal(building.min_resources(two, 1), want)


@pytest.mark.parametrize(
    ("mode", "tier", "want"),
    [
        ("hard", "2", {"mode": "hard", "highestTierAllowed": 2}),
        ("SOFT", None, {"mode": "soft"}),
        (None, "1", {"mode": "hard", "highestTierAllowed": 1}),
        ("invalid", "3", {"mode": "hard", "highestTierAllowed": 3}),
        (None, "high", {"mode": "hard"}),
        (None, None, None),
    ],
)
def test_topology_from_annotations(mode: str | None, tier: str | None, want: dict[str, object] | None) -> None:
    given = {"volcano.sh/network-topology-mode": mode, "volcano.sh/network-topology-highest-tier": tier}
    assert building.network_topology({key: value for key, value in given.items() if value is not None}) == want


def test_only_the_controllers_own_part_of_a_group_is_changed() -> None:
    owners = Owners({"scheduling.volcano.sh/group-min-member": "2"})
    present = from_builtins(
        PodGroup,
        {
            "metadata": {"name": "g", "annotations": {"theirs": "x"}},
            "spec": {
                "minMember": 3,
                "queue": "moved",
                "minTaskMember": {"t": 1},
                "minResources": {"nvidia.com/gpu": 10},
            },
        },
    )
    patch = building.changes(pod(requests={"nvidia.com/gpu": "1"}), owners, present)
    assert patch.keys() == {"spec"}
    assert patch["spec"]["minMember"] == 2
    assert patch["spec"]["minResources"]["nvidia.com/gpu"] == "2"
    assert patch["spec"].keys() == {"minMember", "minResources"}
