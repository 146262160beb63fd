"""Hot structs: what they read and what they forgive."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from stromboli.api import core, kinds
from stromboli.api.core import UndecodableObject

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-06-24T09:17:58Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "1"},
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "2", "controller": True},
        ],
        "managedFields": [{"manager": "m"}],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "1.2.3.4"}],
            }
        ],
        "volumes": [
            {"name": "token", "projected": {"sources": []}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        ],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
    },
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "c", "restartCount": 2, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
        ],
    },
}


def wire(obj: object) -> bytes:
    return json.dumps(obj).encode()


def test_a_pod_is_read_with_kubernetes_names() -> None:
    pod = core.decode(core.Pod, wire(POD))
    assert pod.key == ("ns", "p")
    assert pod.spec.containers[0].ports[0].host_ip == "1.2.3.4"
    assert pod.spec.containers[0].ports[0].protocol == "TCP"
    assert pod.status.pod_ip == "10.0.0.1"
    terminated = pod.status.container_statuses[0].last_state.terminated
    assert terminated is not None
    assert terminated.exit_code == 137
    assert pod.controller is not None
    assert pod.controller.name == "j"


def test_volumes_that_nothing_looks_at_are_dropped() -> None:
    volumes = core.decode(core.Pod, wire(POD)).spec.volumes
    assert [volume.name for volume in volumes] == ["data", "disk"]
    assert volumes[1].aws_elastic_block_store is not None
    assert volumes[1].aws_elastic_block_store.volume_id == "vol-1"


def test_an_empty_selector_is_not_an_absent_one() -> None:
    pod = core.decode(core.Pod, wire(POD))
    assert pod.spec.topology_spread_constraints[0].label_selector == core.LabelSelector()
    assert core.TopologySpreadConstraint().label_selector is None


def test_pods_share_equal_tolerations_and_owners() -> None:
    tolerating = {**POD, "spec": {"tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}]}}
    first, second = (core.decode(core.Pod, wire(tolerating)) for _ in range(2))
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.owner_references is second.metadata.owner_references


def test_affinities_can_be_interned_by_content() -> None:
    def affinity(value: str) -> core.Affinity:
        term = core.PodAffinityTerm(
            topology_key="zone",
            label_selector=core.LabelSelector(
                match_labels={"app": value, "x": "y"},
                match_expressions=(core.Requirement(key="k", operator="Exists"),),
            ),
        )
        return core.Affinity(pod_affinity=core.PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))

    assert len({affinity("a"), affinity("a"), affinity("b")}) == 2


def test_objects_are_immutable_and_copies_can_differ() -> None:
    pod = core.decode(core.Pod, wire(POD))
    with pytest.raises(AttributeError):
        pod.spec.node_name = "n2"  # type: ignore[misc]
    moved = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n2"))
    assert (pod.spec.node_name, moved.spec.node_name) == ("n1", "n2")


def test_nulls_are_forgiven_wherever_they_are() -> None:
    sloppy = {
        "metadata": {"name": "p", "labels": None, "creationTimestamp": None},
        "spec": {"containers": [{"name": "c", "resources": None, "ports": None}], "nodeSelector": None},
        "status": None,
    }
    pod = core.decode(core.Pod, wire(sloppy))
    assert (pod.name, pod.metadata.labels, pod.spec.containers[0].ports) == ("p", {}, ())


def test_a_wrong_type_is_named_by_field() -> None:
    with pytest.raises(UndecodableObject, match=r"Pod: Expected `str`, got `int` - at `\$\.spec\.nodeName`"):
        core.decode(core.Pod, wire({"spec": {"nodeName": 5}}))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"pod"'])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(UndecodableObject):
        core.decode(core.Pod, data)


def test_plain_data_becomes_a_struct() -> None:
    assert core.from_builtins(core.Pod, {"metadata": {"name": "x", "labels": None}}).name == "x"
    with pytest.raises(UndecodableObject, match="Node"):
        core.from_builtins(core.Node, {"spec": 1})


def test_writing_leaves_zeros_out_and_names_the_kind() -> None:
    event = core.Event(metadata=core.ObjectMeta(name="e"), reason="Scheduled", count=1)
    assert core.to_builtins(event, kinds.EVENTS) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "reason": "Scheduled",
        "count": 1,
    }
    assert core.decode(core.Event, core.encode(event, kinds.EVENTS)) == event
    assert core.decode(core.Event, core.encode(event)) == event


TIMES: dict[str, float] = {
    "1970-01-01T00:00:10Z": 10.0,
    "1970-01-01T00:00:10.500000Z": 10.5,
    "1970-01-01T01:00:00+01:00": 0.0,
}


@pytest.mark.parametrize("text", TIMES)
def test_times_become_seconds(text: str) -> None:
    assert core.timestamp(text) == TIMES[text]


def test_an_absent_time_is_zero_and_a_bad_one_is_named() -> None:
    assert core.timestamp(None) == 0.0
    with pytest.raises(ValueError, match="'yesterday' is not an RFC 3339 time"):
        core.timestamp("yesterday")
    with pytest.raises(ValueError, match="has no time zone"):
        core.timestamp("2026-06-24T09:17:58")


def test_created_and_deleting() -> None:
    pod = core.Pod(
        metadata=core.ObjectMeta(
            creation_timestamp="1970-01-01T00:00:10Z",
            deletion_timestamp="1970-01-01T00:01:00Z",
        )
    )
    assert (pod.created, pod.deleting) == (10.0, True)
    assert (core.Pod().created, core.Pod().deleting) == (0.0, False)


ROOT = Path(__file__).parents[2]


def test_hot_modules_do_not_import_pydantic() -> None:
    modules = "core, kinds, names, quantities, durations, resources, requests, selectors, phases, reasons, booleans"
    code = f"import sys; from stromboli.api import {modules}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=30).returncode == 0
