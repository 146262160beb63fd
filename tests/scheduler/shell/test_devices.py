"""Pods that are bound only when their device claims are allocated and reserved for them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import core, kinds
from stromboli.kube.json import JsonObject
from stromboli.scheduler import device_binding
from stromboli.scheduler.binding import PreBindError
from stromboli.scheduler.core.extensions import BindExtension, DeviceGrant
from stromboli.scheduler.core.results import Bind, TaskRef
from stromboli.scheduler.device_binding import FINALIZER, ClaimLost, DeviceBinder
from stromboli.testing.builders import node
from tests.scheduler.plugins.dra.building import claim, device_class, devices, given, resource_slice
from tests.scheduler.shell.stage import Stage, gang


def put(stage: Stage, kind: kinds.Kind, obj: core.Object) -> None:
    stage.server.put(kind, dict(core.to_builtins(obj, kind)))


def put_cluster(stage: Stage, *claims: core.ResourceClaim, gpus: int = 2, pods: dict[str, str]) -> None:
    """A node with devices and a gang whose pods use claims by name."""
    stage.put(node("n0").offer(cpu=8, memory="8Gi"))
    put(stage, kinds.DEVICE_CLASSES, device_class())
    put(stage, kinds.RESOURCE_SLICES, resource_slice("s", *devices(gpus), node="n0"))
    for each in claims:
        put(stage, kinds.RESOURCE_CLAIMS, each)
    stage.put(*gang("job", len(pods)))
    for name, claim_name in pods.items():
        pod = stage.pod(name)
        spec = {**pod["spec"], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}]}
        stage.server.remove(kinds.PODS, name, "ns")
        stage.server.put(kinds.PODS, {**pod, "spec": spec})


def the_claim(stage: Stage, name: str = "c") -> JsonObject:
    return stage.server.get(kinds.RESOURCE_CLAIMS, name, "ns")


def users(stage: Stage, name: str = "c") -> list[str]:
    return sorted(consumer["name"] for consumer in the_claim(stage, name).get("status", {}).get("reservedFor", []))


def gpus(stage: Stage, name: str = "c") -> list[str]:
    allocation = the_claim(stage, name).get("status", {}).get("allocation") or {"devices": {"results": []}}
    return [result["device"] for result in allocation["devices"]["results"]]


async def test_claims_are_allocated_protected_and_reserved_before_pods_are_bound(stage: Stage) -> None:
    put_cluster(stage, claim("c"), claim("d"), pods={"job-0": "c", "job-1": "d"})
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 2)
    assert sorted(gpus(stage, "c") + gpus(stage, "d")) == ["gpu-0", "gpu-1"]
    assert (users(stage, "c"), users(stage, "d")) == (["job-0"], ["job-1"])
    assert FINALIZER in the_claim(stage)["metadata"]["finalizers"]
    selector = the_claim(stage)["status"]["allocation"]["nodeSelector"]
    assert selector["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n0"]


async def test_a_gang_that_shares_a_claim_is_bound_together(stage: Stage) -> None:
    put_cluster(stage, claim("c"), gpus=1, pods={f"job-{index}": "c" for index in range(4)})
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 4)
    assert gpus(stage) == ["gpu-0"]
    assert users(stage) == [f"job-{index}" for index in range(4)]


async def test_a_pod_that_cannot_be_bound_gives_its_reservation_back(stage: Stage) -> None:
    put_cluster(stage, claim("c"), pods={"job-0": "c"})
    stage.server.faults.fail(403, verb="create", kind=kinds.PODS, name="job-0", times=1)
    await stage.start()
    await stage.until(lambda: stage.bound("job") == 1)
    writes = [
        call for call in stage.server.called("update", kinds.RESOURCE_CLAIMS, "c") if call.subresource == "status"
    ]
    assert len(writes) == 3, "reserved, given back, reserved again"
    assert users(stage) == ["job-0"]


async def test_a_claim_that_cannot_be_written_keeps_its_pod_waiting_and_says_so(stage: Stage) -> None:
    put_cluster(stage, claim("c"), pods={"job-0": "c"})
    stage.server.faults.fail(
        403, verb="update", kind=kinds.RESOURCE_CLAIMS, times=None, message="resourceclaims is forbidden"
    )
    await stage.start()
    await stage.until(lambda: "ns/c" in ((stage.condition("job-0") or {}).get("message") or ""), "condition")
    condition = stage.condition("job-0")
    assert condition is not None
    assert condition["reason"] == "SchedulerError"
    assert "resourceclaims is forbidden" in condition["message"]
    assert stage.bound("job") == 0


# -- what becomes of a claim ------------------------------------------------------------------------------------------

ME = TaskRef("ns", "p", "uid-p", "ns/job")
OTHER = {"resource": "pods", "name": "other", "uid": "uid-other"}
MINE = {"resource": "pods", "name": "p", "uid": "uid-p"}


def written(
    allocation: core.DeviceAllocation | None = None, *reserved: JsonObject, deleting: bool = False
) -> JsonObject:
    metadata = {"name": "c", "uid": "uid-c"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})
    status: JsonObject = {"reservedFor": list(reserved)} if reserved else {}
    if allocation is not None:
        status["allocation"] = core.to_builtins(allocation)
    return {"metadata": metadata, "status": status}


@dataclass
class Case:
    """A claim as it is read, what was decided for the pod, and the users that are written, an error, or nothing."""

    claim: JsonObject
    decided: core.DeviceAllocation | None
    want: list[JsonObject] | str | None


GRANTS = {
    "first user": Case(written(), given("gpu-0"), [MINE]),
    "another user": Case(written(given("gpu-0"), OTHER), given("gpu-0"), [OTHER, MINE]),
    "allocated before": Case(written(given("gpu-0"), OTHER), None, [OTHER, MINE]),
    "nothing left to do": Case(written(given("gpu-0"), MINE), given("gpu-0"), None),
    "allocated otherwise": Case(written(given("gpu-1")), given("gpu-0"), "it was allocated elsewhere in the meantime"),
    "allocation taken away": Case(written(), None, "it is not allocated any more"),
    "being deleted": Case(written(given("gpu-0"), deleting=True), None, "it is being deleted"),
}


@pytest.mark.parametrize("case", GRANTS.values(), ids=GRANTS.keys())
def test_grants(case: Case) -> None:
    grant = DeviceGrant("c", "uid-c", case.decided)
    try:
        found = device_binding.granted(case.claim, ME, grant)
    except ClaimLost as error:
        assert str(error) == case.want
        return
    assert (found and found["status"]["reservedFor"]) == case.want


def test_the_finalizer_is_added_once_and_not_to_what_is_being_deleted() -> None:
    once = device_binding.protected(written())
    assert once is not None
    assert once["metadata"]["finalizers"] == [FINALIZER]
    assert device_binding.protected(once) is None
    with pytest.raises(ClaimLost):
        device_binding.protected(written(deleting=True))


@dataclass
class Release:
    """A claim as it is read, what had been decided for the pod, and what is left of its users and devices."""

    claim: JsonObject
    decided: core.DeviceAllocation | None
    want: tuple[list[JsonObject], bool] | None


RELEASES = {
    "allocated for this pod": Release(written(given("gpu-0"), MINE), given("gpu-0"), ([], False)),
    "allocated for this pod, and used by another": Release(
        written(given("gpu-0"), OTHER, MINE), given("gpu-0"), ([OTHER], True)
    ),
    "allocated before": Release(written(given("gpu-0"), MINE), None, ([], True)),
    "allocated otherwise meanwhile": Release(written(given("gpu-1"), MINE), given("gpu-0"), ([], True)),
    "not reserved": Release(written(given("gpu-0"), OTHER), given("gpu-0"), None),
}


@pytest.mark.parametrize("case", RELEASES.values(), ids=RELEASES.keys())
def test_releases(case: Release) -> None:
    left = device_binding.released(case.claim, ME, DeviceGrant("c", "uid-c", case.decided))
    if left is None:
        assert case.want is None
        return
    assert (left["status"]["reservedFor"], "allocation" in left["status"]) == case.want


# -- several claims ---------------------------------------------------------------------------------------------------


def two_claims(stage: Stage) -> Bind:
    """A bind of a pod with claims ``c`` and ``d``."""
    for name in "cd":
        put(stage, kinds.RESOURCE_CLAIMS, claim(name))
    grants = tuple(DeviceGrant(name, f"uid-{name}", given(f"gpu-{name}")) for name in "cd")
    return Bind(ME, "n0", BindExtension(devices=grants))


async def test_what_was_reserved_before_a_claim_failed_is_given_back(stage: Stage) -> None:
    bind = two_claims(stage)
    stage.server.faults.fail(403, verb="update", kind=kinds.RESOURCE_CLAIMS, name="d", times=None)
    with pytest.raises(PreBindError, match="claim ns/d: "):
        await DeviceBinder(stage.client).pre_bind(bind)
    assert (users(stage, "c"), gpus(stage, "c")) == ([], [])


async def test_a_claim_that_is_gone_has_nothing_to_give_back(stage: Stage) -> None:
    bind = two_claims(stage)
    binder = DeviceBinder(stage.client)
    await binder.pre_bind(bind)
    stage.server.remove(kinds.RESOURCE_CLAIMS, "d", "ns")
    await binder.roll_back(bind)
    assert users(stage, "c") == []


async def test_what_cannot_be_given_back_is_named(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    bind = two_claims(stage)
    binder = DeviceBinder(stage.client)
    await binder.pre_bind(bind)
    stage.server.faults.fail(403, verb="update", kind=kinds.RESOURCE_CLAIMS, name="c", times=None)
    await binder.roll_back(bind)
    assert users(stage, "d") == []
    assert "claim ns/c stays reserved for ns/p" in caplog.text


async def test_a_claim_made_again_is_not_written(stage: Stage) -> None:
    bind = two_claims(stage)
    stage.server.remove(kinds.RESOURCE_CLAIMS, "c", "ns")
    put(stage, kinds.RESOURCE_CLAIMS, core.ResourceClaim(metadata=core.ObjectMeta(name="c", namespace="ns", uid="new")))
    with pytest.raises(PreBindError, match="claim ns/c: it was deleted and made again"):
        await DeviceBinder(stage.client).pre_bind(bind)
    assert gpus(stage, "c") == []


async def test_conflicts_without_end_are_a_failure(stage: Stage) -> None:
    bind = two_claims(stage)
    conflict = stage.server.faults.fail(409, verb="update", kind=kinds.RESOURCE_CLAIMS, name="c", times=None)
    with pytest.raises(PreBindError, match="claim ns/c: "):
        await DeviceBinder(stage.client).pre_bind(bind)
    assert conflict.hits == device_binding.ATTEMPTS
