"""Jobs with device claims in previews, explanations and simulations."""

from __future__ import annotations

import msgspec
import pytest

from stromboli.api import core
from stromboli.cli.rehearsing import claims, members
from stromboli.cli.rehearsing.explaining import explain
from stromboli.cli.rehearsing.facts import Facts
from stromboli.cli.rehearsing.previewing import Verdict, preview
from stromboli.cli.rehearsing.simulating import simulate
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.extensions import DeviceGrant
from stromboli.scheduler.core.objects import ClusterObjects
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.scheduler.core.snapshots import decode
from tests.cli.situations import DEFAULT, NOW, nodes, vcjob
from tests.scheduler.plugins.dra.building import claim, device_class, devices, given, resource_slice


def template() -> core.ResourceClaimTemplate:
    return core.ResourceClaimTemplate(
        metadata=core.ObjectMeta(name="one-gpu", namespace="ns", uid="uid-one-gpu"),
        spec=core.ResourceClaimTemplateSpec(spec=claim().spec),
    )


def cluster(*more: core.Object, gpus: int = 2) -> Snapshot:
    """Two nodes, the first with devices."""
    offered = resource_slice("s", *devices(gpus), node="n0")
    return Snapshot(NOW, (*nodes(), DEFAULT, device_class(), offered, *more))


def job(replicas: int, name: str = "train", **claims: str) -> JsonObject:
    named = {"name": "gpu", **(claims or {"resourceClaimTemplateName": "one-gpu"})}
    return vcjob(name, replicas=replicas, requests={"cpu": "1"}, pod_spec={"resourceClaims": [named]})


@pytest.mark.parametrize(("replicas", "want"), [(2, Verdict.FITS_NOW), (3, Verdict.NEVER_FITS)])
def test_a_preview_counts_devices_of_claims_made_from_a_template(replicas: int, want: Verdict) -> None:
    found = preview(cluster(template()), DEFAULT_POLICY, job(replicas))
    assert found.verdict == want
    assert found.placements == ({"n0": 2} if want is Verdict.FITS_NOW else {})


def test_pods_whose_template_is_not_there_wait_for_their_claims() -> None:
    found = preview(cluster(), DEFAULT_POLICY, job(1))
    assert found.verdict == Verdict.NEVER_FITS
    assert found.sentence.endswith("ResourceClaim not created yet.")


def test_a_job_waits_for_a_device_that_another_one_has() -> None:
    taken = claim("old", allocation=given("gpu-0", pool="n0"), reserved=("uid-old",))
    snapshot = cluster(template(), taken, gpus=1)
    group = members.pod_group(job(1), [], NOW)
    found = explain(Facts(job(1), snapshot.with_objects(group), DEFAULT_POLICY))
    assert found.reason == "NodesRefuse"
    assert "cannot allocate all claims" in found.sentence


def test_a_device_is_given_once_in_all_cycles_of_a_simulation() -> None:
    """A gang in each of two queues, and devices for one of them, from a file."""
    snapshot = decode(cluster(template()).encode())
    found = simulate(snapshot, DEFAULT_POLICY, cycles=6, jobs=[job(2, "first"), job(2, "second")])
    assert {start.job.partition("-uid")[0] for start in found.started} == {"ns/first"}
    assert len(found.started) == 2


def shelf(*stored: core.ResourceClaim) -> ClusterObjects:
    objects = ClusterObjects()
    for each in stored:
        objects.apply(each)
    return objects


def consumer(name: str) -> core.Pod:
    return core.Pod(metadata=core.ObjectMeta(name=name, namespace="ns", uid=f"ns-{name}"))


def test_what_is_written_with_a_bind_is_given_back_by_the_last_that_uses_it() -> None:
    shared, one, other = claim("shared"), consumer("one"), consumer("other")
    objects = shelf(shared)
    for user in (one, other):
        grant = DeviceGrant("shared", shared.uid, given("gpu-0"))
        for changed in claims.written(objects, user, [grant]):
            objects.apply(changed)
    (first,) = claims.given_back(objects, one)
    assert (first[0].status.allocation, first[1]) == (given("gpu-0"), False)
    objects.apply(first[0])
    (last,) = claims.given_back(objects, other)
    assert (last[0].status, last[1]) == (core.ResourceClaimStatus(), False)


def test_a_claim_made_for_a_pod_goes_with_it_and_no_grant_of_another_is_written() -> None:
    own = claim("own", owner="one")
    assert list(claims.given_back(shelf(own), consumer("one"))) == [(own, True)]
    assert list(claims.given_back(shelf(own), consumer("other"))) == []
    assert list(claims.written(shelf(own), consumer("one"), [DeviceGrant("own", "uid-of-another")])) == []


def test_a_claim_from_a_template_is_its_pods_own() -> None:
    pod = msgspec.structs.replace(
        consumer("one"),
        spec=core.PodSpec(resource_claims=(core.PodResourceClaim(name="gpu", resource_claim_template_name="one-gpu"),)),
    )
    made, (first,) = claims.furnished(pod, {("ns", "one-gpu"): template()})
    assert made.status.resource_claim_statuses[0].resource_claim_name == first.name
    assert first.controller is not None
    assert first.controller.uid == pod.uid
    assert claims.furnished(pod, {}) == (pod, [])
